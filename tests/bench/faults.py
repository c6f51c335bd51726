"""Does `debug.compare` accuse no honest execution, and find faults in the layer that has them?

    python tests/bench/faults.py [--out DIR] [--per-kind N] [--seed N] [--side SIDE] [MODEL...]

The models (tests/models/unseen.py) were not used to set thresholds; they are built and converted into the folder on
first use. Honest are OpenVINO in f32 and the backends. Faults (tests/models/wrong.py) are put into the IR,
which OpenVINO runs. A fault counts if it changes any bit of what OpenVINO computes; it is located if the first
unit that rounding does not explain has its layer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from models import zoo
from models.unseen import UNSEEN
from models.wrong import KINDS, Fault, faults

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.debug.observation import same_bits
from ir_runtime.debug.openvino_side import OpenVINO
from ir_runtime.debug.results import Comparison

HONEST = ("openvino:f32", "numpy", "native")


class Faulty:
    """OpenVINO, running a different model."""

    def __init__(self, model: ir.Model) -> None:
        self.model, self.seen = model, debug.Observation("", [])

    def observe(self, model: Any, reference: Any, feeds: Any, ports: Any) -> debug.Observation:
        """Run the faulty model."""
        self.seen = OpenVINO("f32").observe(self.model, reference, feeds, ports)
        return self.seen


@dataclass(frozen=True)
class Finding:
    """The outcome of a fault.

    Args:
        fault: the change.
        found: the layers of the first unit that rounding does not explain.
        excess: the largest local excess, and that of the outputs.
    """

    model: str
    fault: Fault
    found: tuple[str, ...]
    excess: tuple[float, float]

    @property
    def located(self) -> bool:
        """Whether the right layer was found."""
        return self.fault.layer in self.found

    @property
    def at_output(self) -> bool:
        """Whether the outputs alone reveal it."""
        return self.excess[1] > 4

    def __str__(self) -> str:
        local, output = self.excess
        found = "located" if self.located else f"taken for {', '.join(self.found) or 'rounding'}"
        what = f"{self.fault.kind}: {self.fault.layer!r}, {self.fault.what}"
        return f"{self.model:12} {what}: {found}; local R {local:.2g}, output R {output:.2g}"


def inputs_of(name: str) -> dict[str, np.ndarray]:
    """Return the inputs of a model."""
    return zoo.example_inputs(name, 5)


def honest(name: str, model: ir.Model, sides: Sequence[str] = HONEST) -> Iterator[Comparison]:
    """Judge executions without a fault."""
    for side in sides:
        yield debug.compare(model, inputs_of(name), side)


def findings(name: str, path: Path, per_kind: int = 1, seed: int = 0) -> Iterator[Finding]:
    """Judge executions with one effective fault each."""
    model, inputs = ir.read_model(path), inputs_of(name)
    right = Faulty(model)
    debug.compare(model, inputs, right)
    for fault in faults(path, per_kind, seed):
        side = Faulty(ir.read_model(fault.xml, fault.weights))
        try:
            report = debug.compare(model, inputs, side)
        except ir.IRError as reason:
            print(f"{name:12} {fault.kind}: {fault.layer!r} cannot run: {reason.message[:100]}")
            continue
        if _differ(right.seen, side.seen):
            first, worst = report.first or report.first_decision, report.worst
            outputs = max(output.excess for output in report.outputs)
            yield Finding(
                name, fault, first.layers if first else (), (worst.excess if worst else 0.0, outputs)
            )


def _differ(right: debug.Observation, wrong: debug.Observation) -> bool:
    both = [port for port in right.tensors if port in wrong.tensors]
    ours, theirs = ([*seen.outputs, *(seen.tensors[port] for port in both)] for seen in (right, wrong))
    return not same_bits([a.reshape(-1) for a in ours], [a.reshape(-1) for a in theirs])


def table(found: Sequence[Finding]) -> Iterator[str]:
    """Return a line for each kind, and one for all."""
    yield f"{'fault':20} {'made':>5} {'located':>12} {'at the output':>14}"
    for kind in (*KINDS, "all"):
        these = [each for each in found if kind in ("all", each.fault.kind)]
        if these:
            located, output = (
                sum(part) for part in zip(*((f.located, f.at_output) for f in these), strict=True)
            )
            count = len(these)
            yield f"{kind:20} {count:5} {located:5} {located / count:6.1%} {output:7} {output / count:6.1%}"


def main(arguments: Iterable[str] | None = None) -> None:
    """Print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="MODEL", help="models (default: all)")
    parser.add_argument(
        "--out", type=Path, default=Path("out/unseen"), help="where models are (default: %(default)s)"
    )
    parser.add_argument(
        "--per-kind", type=int, default=1, help="faults of a kind for a model (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the choice of faults (default: %(default)s)")
    parser.add_argument("--side", action="append", choices=HONEST, help="honest sides (default: all)")
    options = parser.parse_args(arguments)
    found: list[Finding] = []
    accused = judged = 0
    for name in options.names or UNSEEN:
        start, path = time.process_time(), zoo.ir_path(name, options.out)
        for report in honest(name, ir.read_model(path), options.side or HONEST):
            judged, accused = judged + 1, accused + (not report.explained)
            worst = report.worst.excess if report.worst else 0.0
            output = max(each.excess for each in report.outputs)
            seen = f"{report.boundaries - len(report.unobserved)} of {report.boundaries} tensors"
            print(
                f"{name:12} {report.side}: {report.verdict}; {seen}, local R {worst:.2g}, output R {output:.2g}"
            )
            if not report.explained:
                print(report)
        for each in findings(name, path, options.per_kind, options.seed):
            found.append(each)
            print(each, flush=True)
        print(f"{name:12} {time.process_time() - start:.0f} s of CPU", flush=True)
    print(f"\n{accused} of {judged} honest executions accused", *table(found), sep="\n")


if __name__ == "__main__":
    main()
