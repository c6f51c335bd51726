"""Does `debug.budget` name the layers that are worth keeping in floating point?

    python tests/bench/budget.py [--nncf] [NETWORK...]

Five small networks are trained on handwritten digits (a minute), and budgets are made of 70 pictures, in three precisions. Brute force is
the reference: models in which one layer is quantized, and models that keep any three. Printed are, for each network
and precision:

- layers: how many there are to choose from,
- rank: Spearman's correlation of the costs with the errors of models that have one layer quantized,
- all, budget, best: the error with all layers quantized, with the three that `budget` keeps in f32, and with the best three
  (of the ten layers that matter most, where there are more),
- gain: the part of what the best three gain that those of `budget` gain, on the pictures of the budget,
- single: the same for the three layers that cost most alone,
- held out: the first again on 30 other pictures, where the best three are those of these pictures.

With `--nncf`, models that NNCF quantizes are compared as well (w8a8; it takes minutes): the rank correlation, the errors that are
predicted and those that NNCF's models have, and the gain against the best of 20 sets of the six layers that matter most there.
It needs the packages nncf and openvino.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import redirect_stdout
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from models.digit_networks import NETWORKS, calibrating, held_out, trained
from models.lowered import Array, Lowering, best_to_keep, relative_error

import ir_runtime as ir
from ir_runtime import debug

PRECISIONS = ("w8a8", "int8", "int4")
KEPT = 3
AMONG = 6


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation of values without ties."""
    ranks = [np.argsort(np.argsort(numbers)) for numbers in (first, second)]
    return float(np.corrcoef(*ranks)[0, 1])


def gain(error: Callable[[Collection[str]], float], kept: Collection[str], best: Collection[str]) -> float:
    """Return the gain of keeping other layers, as a fraction of the gain of keeping the best ones."""
    total = error(())
    return (total - error(kept)) / (total - error(best))


def compare(name: str, model: ir.Model, to: str) -> str:
    """Return a row of the table."""
    images = calibrating()
    brute, found = Lowering(model, to, images), debug.budget(model, images, to, KEPT)
    costs = {cost.layer: cost.error for cost in found.layers}
    rank = rank_correlation(
        [brute.error({layer}) for layer in brute.layers], [costs[layer] for layer in brute.layers]
    )

    def error(kept: Collection[str]) -> float:
        return brute.error(set(brute.layers) - set(kept))

    best = best_to_keep(brute, KEPT)
    shown = [len(brute.layers), rank, error(()), error(found.kept), error(best)]
    alone = [cost.layer for cost in found.layers[:KEPT]]
    gains = [gain(error, found.kept, best), gain(error, alone, best)]
    brute.measure_on(held_out()[0])
    best = best_to_keep(brute, KEPT)
    gains.append(gain(error, found.kept, best))
    return (
        f"{name:12} {to:5} {shown[0]:6} {shown[1]:6.3f}  {shown[2]:.1e} {shown[3]:.1e} {shown[4]:.1e} "
        + " ".join(f"{number:8.2f}" for number in gains)
    )


def compare_with_nncf(name: str, model: ir.Model, folder: Path) -> str:
    """Return a row of the table of NNCF's models."""
    import logging

    import nncf
    import openvino as ov

    nncf.set_log_level(logging.ERROR)
    images, path, quantized = calibrating(), folder / f"{name}.xml", folder / "quantized.xml"
    ir.save_model(model, path, compress_to_fp16=False)
    found = debug.budget(model, images, "w8a8", KEPT)
    exact = _run(model, images)

    @cache
    def made(kept: tuple[str, ...]) -> float:
        scope = nncf.IgnoredScope(names=list(kept)) if kept else None
        dataset = nncf.Dataset(list(np.split(images, len(images))))
        with redirect_stdout(sys.stderr):  # it shows progress
            lowered = nncf.quantize(
                ov.Core().read_model(path), dataset, subset_size=len(images), ignored_scope=scope
            )
        ov.save_model(lowered, quantized, compress_to_fp16=False)
        return relative_error(_run(ir.read_model(quantized), images), exact)

    def error(kept: Collection[str]) -> float:
        return made(tuple(sorted(kept)))

    layers = [cost.layer for cost in found.layers]
    alone = [error(set(layers) - {layer}) for layer in layers]
    worst = [layer for _, layer in sorted(zip(alone, layers, strict=True), reverse=True)[:AMONG]]
    best = min(combinations(worst, KEPT), key=error)
    rank = rank_correlation(alone, [cost.error for cost in found.layers])
    return (
        f"{name:12} {len(layers):6} {rank:6.3f}  {found.total:.1e} {error(()):.1e}  "
        f"{found.remaining:.1e} {error(found.kept):.1e} {error(best):.1e} {gain(error, found.kept, best):8.2f}"
    )


def _run(model: ir.Model, images: Array) -> Array:
    return np.array(ir.compile_model(model, backend="numpy")(images)[0])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"by default, {', '.join(NETWORKS)}")
    parser.add_argument("--nncf", action="store_true", help="compare with models that NNCF quantizes")
    options = parser.parse_args()
    names = options.networks or [*NETWORKS]
    if unknown := sorted({*names} - {*NETWORKS}):
        parser.error(f"unknown network {unknown[0]!r}; known are {', '.join(NETWORKS)}")
    models = {name: trained(name) for name in names}
    print("network      to    layers   rank  all     budget  best        gain   single held out")
    for name, model in models.items():
        for to in PRECISIONS:
            print(compare(name, model, to), flush=True)
    if options.nncf:
        print("\nnetwork      layers   rank  all: predicted, NNCF  kept: predicted, NNCF, best     gain")
        with tempfile.TemporaryDirectory() as folder:
            for name, model in models.items():
                print(compare_with_nncf(name, model, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
