"""How far runtimes are from f64 in single operations, in units in the last place: `ir_runtime.debug.precision` has the figures.

    python tests/bench/functions.py [--samples N] [OPERATION...]

Each operation runs on the samples of the tests in f32, by OpenVINO's plugin, by its definitions and by each backend.
Errors are the rms of the differences, divided by that of the result and by half a unit in the last place of f32 (2**-24).
Operations that decide, and samples of which OpenVINO is known to differ, are left out. Printed are those in which a runtime is
off by more than rounding explains four times.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from harness.files import model_of
from harness.oracle import evaluated, plugin, read
from harness.sample import Sample, named_samples

import ir_runtime as ir
from ir_runtime.backends import available
from ir_runtime.debug.decisions import decides
from ir_runtime.debug.reference import Reference
from ir_runtime.debug.tensors import computed_layers
from ir_runtime.debug.verdict import error_of

UNIT = 2.0**-24
SHOWN = 4.0


def samples(names: Sequence[str], count: int) -> Iterator[Sample]:
    """Return some f32 samples of each operation, large ones first."""
    of: dict[str, list[Sample]] = defaultdict(list)
    for sample in named_samples().values():
        labels = [value.element.label for value in sample.values()]
        if "f32" in labels and not sample.differs and sample.oracle != "none":
            of[sample.op].append(sample)
    for name, found in of.items():
        if not names or name.rpartition("-")[0] in names:
            yield from sorted(found, key=lambda sample: -sample.inputs[0].size)[:count]


def errors(sample: Sample) -> dict[str, float]:
    """Return the error of each runtime in ulps; none if the operation decides, or OpenVINO does not run it."""
    xml, weights = model_of(sample, sample.constant, False)
    model = ir.read_model(xml, weights)
    reference = Reference(model)
    layers = computed_layers(reference.graph)
    if any(decides(reference.graph, reference.types, layer) for layer in layers):
        return {}
    feeds = [x for i, x in enumerate(sample.inputs) if i not in sample.constant]
    truth = Reference(model, wide=True).run(feeds)
    theirs = read(xml, weights)
    runs = {"plugin": plugin(theirs, feeds), "definition": evaluated(theirs, feeds)}
    runs |= {name: ir.compile_model(model, backend=name)(feeds).to_tuple() for name in available()}
    return {
        name: max(_units(found, exact) for found, exact in zip(run, truth, strict=True))
        for name, run in runs.items()
        if run is not None
    }


def _units(found: np.ndarray, exact: np.ndarray) -> float:
    if exact.dtype.kind != "f" or exact.size < 2:
        return 0.0
    error = error_of(np.asarray(found), exact)
    return error.relative / UNIT if np.isfinite(error.relative) else 0.0


def main(arguments: Iterable[str] | None = None) -> None:
    """Print the operations in which a runtime has large errors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="OPERATION", help="their names (default: all)")
    parser.add_argument("--samples", type=int, default=4, help="samples of each (default: %(default)s)")
    options = parser.parse_args(arguments)
    worst: dict[str, dict[str, float]] = defaultdict(dict)
    for sample in samples(options.names, options.samples):
        try:
            found = errors(sample)
        except (ir.IRError, RuntimeError, MemoryError):
            continue
        of = worst[sample.op]
        for name, error in found.items():
            of[name] = max(of.get(name, 0.0), error)
    for name, of in worst.items():
        others = {key: value for key, value in of.items() if key != "reference"}
        if max(others.values(), default=0.0) > SHOWN * max(of.get("reference", 0.0), 0.5):
            print(f"{name:32}", *(f"{key} {value:.2g}" for key, value in of.items()), sep="  ")


if __name__ == "__main__":
    main()
