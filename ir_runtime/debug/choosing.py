"""Choose the set of layers whose errors matter most together.

Small errors superpose at the outputs: the effect of several layers is about the sum of their separate effects, with signs.
The sum over the remaining layers therefore predicts the error of any choice without another run.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from ..ir.blocks import blocks
from ..ir.tensor import Array

__all__ = ["choose", "difference"]

NUMBERS = 4096
"""Size of the sketch of a large output."""
_SEED = 0


def difference(found: Array, exact: Array) -> tuple[float, Array]:
    """Return the sum of squared differences of two arrays, and a sketch of the differences of at most `NUMBERS` numbers.

    A count sketch: differences are multiplied by random signs, the same for all arrays of a size, and folded. Inner products of
    sketches estimate those of the differences. NaN in both arrays counts as equal.

    Args:
        found: an array.
        exact: the exact array; if its shape differs, the sum is infinite.
    """
    if found.shape != exact.shape:
        return np.inf, np.zeros(min(exact.size, NUMBERS))
    squares, random = 0.0, np.random.default_rng(_SEED)
    sums = np.zeros(min(exact.size, NUMBERS))
    for ours, theirs in blocks(found, exact):
        with np.errstate(invalid="ignore"):
            off = ours.astype(np.float64) - theirs.astype(np.float64)
        off[(ours == theirs) | (np.isnan(ours) & np.isnan(theirs))] = 0
        squares += float(np.square(off).sum()) if np.isfinite(off).all() else np.inf
        off[~np.isfinite(off)] = 0
        if exact.size > NUMBERS:
            off *= random.choice([-1.0, 1.0], off.size)
            off = np.pad(off, (0, -off.size % NUMBERS)).reshape(-1, NUMBERS).sum(0)
        sums += off
    return squares, sums


def choose(effects: Sequence[Array], count: int) -> list[int]:
    """Return the indices of the effects to remove so that the norm of the sum of the others is small.

    Greedy selection, followed by exchanges as long as they improve it.

    Args:
        effects: the effect of each layer on the outputs.
        count: the number of effects to remove, at most.
    """
    stacked = np.stack(effects)
    products, kept = stacked @ stacked.T, list[int]()

    def size(without: Sequence[int]) -> float:
        rest = [place for place in range(len(effects)) if place not in without]
        return float(products[np.ix_(rest, rest)].sum())

    while len(kept) < min(count, len(effects)):
        others = [place for place in range(len(effects)) if place not in kept]
        kept.append(min(others, key=lambda place: size([*kept, place])))
    best, improved = size(kept), True
    while improved:
        improved = False
        for index, other in product(range(len(kept)), range(len(effects))):
            changed = [*kept[:index], other, *kept[index + 1 :]]
            if other not in kept and (found := size(changed)) < best * (1 - 1e-9):
                kept, best, improved = changed, found, True
    return kept
