"""Boxes: intersection over union (IoU), and non-maximum suppression (NMS).

A box is four numbers in the last axis: two corners, the smaller coordinates first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from ..._util import deadline
from ..._util.arrays import Array, Float

__all__ = ["areas", "descending", "greedy_nms", "iou", "decode_deltas", "soft_nms", "as_float"]


# Kept boxes and candidates compared per chunk, so that the pairs stay in the cache.
TOGETHER, ABREAST = 128, 512
# Candidates examined first for each box to be kept.
WINDOW = 2


def as_float(numbers: Array) -> Array:
    """Convert to the dtype for computing boxes: at least f32."""
    return numbers if numbers.dtype == np.float64 else numbers.astype(np.float32, copy=False)


def areas(boxes: Array, extra: float = 0) -> Array:
    """Return the area of each box; ``extra`` is added to its sides."""
    more = boxes.dtype.type(extra)
    return np.asarray((boxes[..., 2] - boxes[..., 0] + more) * (boxes[..., 3] - boxes[..., 1] + more))


def iou(a: Array, b: Array, extra: float = 0, *, apart: bool = True) -> Array:
    """Return the intersection over union of broadcast boxes; 0 for empty boxes.

    Args:
        a: boxes.
        b: other boxes.
        extra: added to the sides of boxes: 1 if coordinates are pixels.
        apart: whether boxes with a gap never overlap, even if ``extra`` closes it.
    """
    # One coordinate after the other: NumPy is slow on rows of two.
    ours, theirs = np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)
    shared, touching = a.dtype.type(1), np.True_
    for low, high in ((0, 2), (1, 3)):
        start, end = np.maximum(ours[low], theirs[low]), np.minimum(ours[high], theirs[high])
        if apart and extra:
            touching = touching & (start <= end)
        side = end - start + a.dtype.type(extra) if extra else end - start
        shared = shared * np.maximum(side, 0)
    mine, other = areas(a, extra), areas(b, extra)
    together = mine + other - shared
    # Negated, so that NaN propagates to the result, and suppresses nothing.
    meets = touching & ~((shared <= 0) | (mine <= 0) | (other <= 0))
    with np.errstate(all="ignore"):
        return np.asarray(np.where(meets, shared / together, a.dtype.type(0)))


def descending(scores: Array, above: float | None = None, most: int = -1) -> Array:
    """Return the indices of scores in descending order (stable).

    Args:
        scores: 1-D.
        above: the exclusive lower limit.
        most: the most indices to return; -1 means all.
    """
    places = np.arange(len(scores)) if above is None else np.flatnonzero(scores > above)
    if above is not None and 0 < most < len(places):
        best = scores[places]  # sort only those at least as good as the last one
        places = places[best >= np.partition(best, -most)[-most]]
    places = places[np.argsort(-scores[places], kind="stable")]
    return places if most < 0 else places[:most]


def greedy_nms(
    boxes: Array,
    threshold: float,
    most: int = -1,
    *,
    extra: float = 0,
    inclusive: bool = False,
    apart: bool = True,
    eta: float = 1,
) -> Array:
    """Return the boxes kept by greedy non-maximum suppression, given boxes in descending order of score.

    Args:
        boxes: [n, 4]
        threshold: the largest allowed overlap.
        most: the most boxes to keep; -1 means any number.
        extra: see `iou`.
        inclusive: whether an overlap equal to ``threshold`` also suppresses.
        apart: see `iou`.
        eta: the factor of the threshold for each box kept, while it is above 0.5.
    """
    if eta < 1:
        return _adaptive(boxes, threshold, eta, extra, inclusive, apart)
    limit, more = boxes.dtype.type(threshold), boxes.dtype.type(extra)

    def suppresses(a: Array, b: Array) -> Array:
        overlap = _overlaps_of(a, b, more, apart and bool(extra), limit)
        return np.asarray(overlap >= limit if inclusive else overlap > limit)

    columns = np.concatenate([boxes.T, areas(boxes, extra)[None]])
    remaining, window = (most, max(WINDOW * most, TOGETHER)) if most >= 0 else (len(boxes), len(boxes))
    selected = list[Array]()
    # If few boxes are kept, further candidates are examined only when needed.
    for start in range(0, len(boxes), max(window, 1)):
        if remaining < 1:
            break
        left = columns[:, start : start + window]
        rest = np.arange(start, start + left.shape[1])
        for winners in selected:
            alive = _survivors(columns[:, winners], left, suppresses, more, limit)
            rest, left = rest[alive], left[:, alive]
        found = _best(rest, left, suppresses, more, limit, remaining)
        remaining -= sum(map(len, found))
        selected += found
    return np.concatenate(selected) if selected else np.zeros(0, np.int64)


_Suppresses: TypeAlias = Callable[[Array, Array], Array]
"""Whether boxes, given in columns with their areas, suppress others, which broadcast against them."""


def _best(
    rest: Array, left: Array, suppresses: _Suppresses, more: Float, limit: Float, most: int
) -> list[Array]:
    """Return the kept boxes among ``rest``, given in columns as ``left``, at most ``most``."""
    selected: list[Array] = []
    # In chunks of the best: find the survivors, then what they suppress.
    while len(rest) and most > 0:
        deadline.check()
        some = min(TOGETHER, most)
        best, others = left[:, :some], left[:, some:]
        winners = _first_come(suppresses(best[:, :, None], best[:, None]))
        selected.append(rest[winners])
        most -= len(winners)
        if not most:
            break
        alive = _survivors(best[:, winners], others, suppresses, more, limit)
        rest, left = rest[some:][alive], others[:, alive]
    return selected


def _survivors(best: Array, others: Array, suppresses: _Suppresses, more: Float, limit: Float) -> Array:
    """Return a mask of the others that none of the best suppresses."""
    alive = np.ones(others.shape[1], np.bool_)
    for one, other in _candidates(best, others, more, limit):
        suppressed = suppresses(best[:, one], others[:, other])
        alive[other[suppressed]] = False
    return alive


def _candidates(a: Array, b: Array, more: Float, limit: Float) -> Iterator[tuple[Array, Array]]:
    """Yield pairs of boxes, given in columns with their areas, whose overlap may reach the limit.

    The overlap is ``shared / (areas - shared)``, so it reaches the limit when ``shared`` is a certain
    fraction of the areas.
    """
    count = a.shape[1]
    if not limit > 0:
        everything = np.indices((count, b.shape[1])).reshape(2, -1)
        yield everything[0], everything[1]
        return
    part = limit / (1 + limit) * a.dtype.type(1 - 1e-5)
    most = min(ABREAST, b.shape[1])
    # Arrays of the same shape are processed fastest.
    wide = np.repeat(a[:, :, None], most, axis=2)
    wide[4] *= part
    areas = b[4] * part
    scratch = np.empty((3, count, most), a.dtype)
    none = np.zeros((count, most), a.dtype)
    for start in range(0, b.shape[1], ABREAST):
        others = b[:, start : start + most]
        length = others.shape[1]
        x1, y1, x2, y2, least = wide[:, :, :length]
        shared, height, edge = scratch[:, :, :length]
        _sides(x1, x2, others[0], others[2], more, shared, edge)
        _sides(y1, y2, others[1], others[3], more, height, edge)
        np.maximum(shared, none[:, :length], out=shared)
        np.multiply(shared, height, out=shared)
        np.add(least, areas[start : start + most], out=edge)
        one, other = np.divmod(np.flatnonzero(shared >= edge), length)
        yield one, other + start


def _sides(low: Array, high: Array, lows: Array, highs: Array, more: Float, out: Array, edge: Array) -> None:
    """Return the lengths of the intersections along an axis."""
    np.minimum(high, highs, out=out)
    np.maximum(low, lows, out=edge)
    np.subtract(out, edge, out=out)
    if more:
        np.add(out, more, out=out)


def _first_come(suppresses: Array) -> list[int]:
    """Return the kept boxes, when each kept box suppresses some later ones."""
    packed = np.packbits(suppresses, axis=1, bitorder="little")
    rows, width = packed.tobytes(), packed.shape[1]
    left, selected = (1 << len(suppresses)) - 1, list[int]()
    while left:
        index = (left & -left).bit_length() - 1
        selected.append(index)
        gone = int.from_bytes(rows[width * index : width * (index + 1)], "little")
        left &= ~(gone | 1 << index)
    return selected


def _overlaps_of(a: Array, b: Array, more: Float, touching: bool, limit: Float) -> Array:
    """Return the `iou` of boxes in columns with their areas; above a limit of 0, no overlap may also be NaN."""
    width, height = np.minimum(a[2], b[2]), np.minimum(a[3], b[3])
    width -= np.maximum(a[0], b[0])
    height -= np.maximum(a[1], b[1])
    meets = (width >= 0) & (height >= 0) if touching else np.True_
    if more:
        width += more
        height += more
    shared = np.maximum(width, 0, out=width)
    shared *= np.maximum(height, 0, out=height)
    union = b[4] + a[4]
    union -= shared
    if limit > 0 and not touching:  # neither 0 nor NaN is above it
        with np.errstate(all="ignore"):
            return np.asarray(np.divide(shared, union, out=union))
    # Negated, so that NaN propagates to the result, and suppresses nothing.
    meets = meets & ~((shared <= 0) | (a[4] <= 0) | (b[4] <= 0))
    return np.asarray(np.divide(shared, union, out=np.zeros_like(union), where=meets))


def _adaptive(
    boxes: Array, threshold: float, eta: float, extra: float, inclusive: bool, apart: bool
) -> Array:
    """Suppress greedily with a threshold that adapts after each kept box."""
    selected: list[int] = []
    for index, box in enumerate(boxes):
        limit = boxes.dtype.type(threshold)
        overlap = iou(box, boxes[selected], extra, apart=apart)
        if not (overlap >= limit if inclusive else overlap > limit).any():
            selected.append(index)
            threshold = threshold * eta if threshold > 0.5 else threshold
    return np.array(selected, np.int64)


def soft_nms(
    boxes: Array, scores: Array, sigma: float, most: int, *, above: float, cut: float | None = None
) -> tuple[Array, Array]:
    """Return the boxes that soft NMS keeps (Bodla et al. 2017), and their decayed scores.

    Args:
        boxes: [n, 4]
        scores: [n]
        sigma: an overlap multiplies a score by ``exp(-overlap ** 2 / (2 * sigma))``.
        most: the most boxes to keep.
        above: boxes are dropped unless their score is above this.
        cut: boxes that overlap by this or more are dropped at once.
    """
    alive = np.flatnonzero(scores > above)
    boxes, current = boxes[alive], scores[alive]
    selected: list[int] = []
    final: list[float] = []
    scale = boxes.dtype.type(-0.5 / sigma)
    while len(alive) and len(selected) < most:
        best = int(np.argmax(current))
        selected.append(int(alive[best]))
        final.append(current[best])
        overlap = iou(boxes[best], boxes)
        current = current * np.exp(scale * overlap * overlap)
        left = current > above
        left[best] = False
        if cut is not None:
            left &= overlap < cut
        alive, boxes, current = alive[left], boxes[left], current[left]
    return np.array(selected, np.int64), np.array(final, scores.dtype)


def decode_deltas(boxes: Array, deltas: Array, extra: float = 0, largest: float | None = None) -> Array:
    """Decode deltas to boxes: shifts of the centre in units of the sides, and logarithms of scale factors.

    Args:
        boxes: [..., 4]
        deltas: [..., 4]: x, y, log of width, log of height.
        extra: see `iou`.
        largest: the upper limit of the logarithms.
    """
    more = boxes.dtype.type(extra)
    sides = boxes[..., 2:] - boxes[..., :2] + more
    centre = boxes[..., :2] + sides / 2 + deltas[..., :2] * sides
    logs = deltas[..., 2:] if largest is None else np.minimum(deltas[..., 2:], boxes.dtype.type(largest))
    half = np.exp(logs) * sides / 2
    return np.concatenate([centre - half, centre + half - more], axis=-1)
