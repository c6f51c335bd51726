"""Intersection over union (IoU) and non-maximum suppression (NMS) of boxes.

A box is a row ``x1, y1, x2, y2``: two corners, the smaller coordinates first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from ..._util import deadline
from ..._util.arrays import Array, Float

__all__ = ["areas", "descending", "greedy_nms", "iou", "decode_deltas", "soft_nms", "as_float"]


# The numbers of winners and of candidates compared per chunk, so that the pairs stay in the cache.
TOGETHER, ABREAST = 128, 512
# The number of candidates to examine at once, per box that may still be selected.
WINDOW = 2


def as_float(numbers: Array) -> Array:
    """Convert to the dtype in which boxes are computed: f64 for f64, else f32."""
    return numbers if numbers.dtype == np.float64 else numbers.astype(np.float32, copy=False)


def areas(boxes: Array, extra: float = 0) -> Array:
    """Return the area of each box, with ``extra`` added to its sides."""
    more = boxes.dtype.type(extra)
    return np.asarray((boxes[..., 2] - boxes[..., 0] + more) * (boxes[..., 3] - boxes[..., 1] + more))


def iou(a: Array, b: Array, extra: float = 0, *, apart: bool = True) -> Array:
    """Return the intersection over union of boxes that broadcast; 0 if a box is empty.

    Args:
        a: boxes ``[..., 4]``.
        b: boxes ``[..., 4]``.
        extra: what to add to the sides of boxes: 1 if coordinates are pixels.
        apart: whether boxes with a gap between them never overlap, even if ``extra`` closes it.
    """
    # One axis after the other, since NumPy is slow on rows of two.
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
    # The comparisons are negated, so that NaN propagates to the result, and suppresses nothing.
    meets = touching & ~((shared <= 0) | (mine <= 0) | (other <= 0))
    with np.errstate(all="ignore"):
        return np.asarray(np.where(meets, shared / together, a.dtype.type(0)))


def descending(scores: Array, above: float | None = None, most: int = -1) -> Array:
    """Return the indices that sort scores in descending order (stable).

    Args:
        scores: 1-D.
        above: the exclusive minimum of the scores to return.
        most: the maximum number of indices; -1 means all.
    """
    indices = np.arange(len(scores)) if above is None else np.flatnonzero(scores > above)
    if above is not None and 0 < most < len(indices):
        best = scores[indices]  # sort only scores that are at least the last one returned
        indices = indices[best >= np.partition(best, -most)[-most]]
    indices = indices[np.argsort(-scores[indices], kind="stable")]
    return indices if most < 0 else indices[:most]


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
    """Return the indices of the boxes that greedy non-maximum suppression selects.

    Args:
        boxes: boxes ``[n, 4]`` in descending order of score.
        threshold: the maximum overlap of selected boxes.
        most: the maximum number of boxes to select; -1 means all, and so does any number if ``eta`` is below 1.
        extra: see `iou`.
        inclusive: whether an overlap equal to ``threshold`` also suppresses.
        apart: see `iou`.
        eta: multiplies the threshold after each selected box, as long as the threshold is above 0.5.
    """
    if eta < 1:
        return _suppress_adaptively(boxes, threshold, eta, extra, inclusive, apart)
    limit, more = boxes.dtype.type(threshold), boxes.dtype.type(extra)

    def suppresses(a: Array, b: Array) -> Array:
        overlap = _overlaps_of(a, b, more, apart and bool(extra), limit)
        return np.asarray(overlap >= limit if inclusive else overlap > limit)

    columns = np.concatenate([boxes.T, areas(boxes, extra)[None]])
    remaining, window = (most, max(WINDOW * most, TOGETHER)) if most >= 0 else (len(boxes), len(boxes))
    selected = list[Array]()
    # If few boxes are selected, further candidates are examined only when needed.
    for start in range(0, len(boxes), max(window, 1)):
        if remaining < 1:
            break
        left = columns[:, start : start + window]
        rest = np.arange(start, start + left.shape[1])
        for winners in selected:
            alive = _survivors(columns[:, winners], left, suppresses, more, limit)
            rest, left = rest[alive], left[:, alive]
        winners_of_window = _select(rest, left, suppresses, more, limit, remaining)
        remaining -= sum(map(len, winners_of_window))
        selected += winners_of_window
    return np.concatenate(selected) if selected else np.zeros(0, np.int64)


_Suppresses: TypeAlias = Callable[[Array, Array], Array]
"""Maps two arrays of boxes that broadcast, given as columns with their areas, to whether the first suppress the second."""


def _select(
    rest: Array, left: Array, suppresses: _Suppresses, more: Float, limit: Float, most: int
) -> list[Array]:
    """Select boxes greedily, and return their indices in chunks.

    Args:
        rest: the indices of the candidates, in descending order of score.
        left: their boxes as columns ``x1, y1, x2, y2, area``.
        suppresses: returns a mask of whether boxes suppress others, both given as columns.
        more: what to add to the sides of intersections, as ``extra`` of `iou`.
        limit: the maximum overlap of selected boxes.
        most: the maximum number of boxes to select.
    """
    selected: list[Array] = []
    # Chunk by chunk, the best first: find the winners in the chunk, then the candidates that they suppress.
    while len(rest) and most > 0:
        deadline.check()
        chunk = min(TOGETHER, most)
        best, others = left[:, :chunk], left[:, chunk:]
        winners = _select_in_order(suppresses(best[:, :, None], best[:, None]))
        selected.append(rest[winners])
        most -= len(winners)
        if not most:
            break
        alive = _survivors(best[:, winners], others, suppresses, more, limit)
        rest, left = rest[chunk:][alive], others[:, alive]
    return selected


def _survivors(best: Array, others: Array, suppresses: _Suppresses, more: Float, limit: Float) -> Array:
    """Return a mask of the boxes ``others`` that no box of ``best`` suppresses; for the arguments see `_select`."""
    alive = np.ones(others.shape[1], np.bool_)
    for one, other in _candidates(best, others, more, limit):
        suppressed = suppresses(best[:, one], others[:, other])
        alive[other[suppressed]] = False
    return alive


def _candidates(a: Array, b: Array, more: Float, limit: Float) -> Iterator[tuple[Array, Array]]:
    """Yield the indices of pairs of boxes, given as columns with their areas, whose overlap may reach ``limit``.

    The overlap is ``shared / (areas - shared)``, so it reaches the limit where ``shared`` is at least
    ``limit / (1 + limit)`` of the sum of both areas. ``more`` is added to the sides of intersections.
    """
    count = a.shape[1]
    if not limit > 0:
        everything = np.indices((count, b.shape[1])).reshape(2, -1)
        yield everything[0], everything[1]
        return
    part = limit / (1 + limit) * a.dtype.type(1 - 1e-5)
    most = min(ABREAST, b.shape[1])
    # NumPy is fastest on operands of the same shape, without broadcasting.
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
    """Write the lengths of the intersections of two arrays of intervals, plus ``more``, to ``out``.

    Args:
        low: the lower bounds of the first intervals.
        high: their upper bounds.
        lows: the lower bounds of the second intervals, which broadcast.
        highs: their upper bounds.
        more: what to add to each length.
        out: the results, negative if intervals do not meet.
        edge: scratch memory.
    """
    np.minimum(high, highs, out=out)
    np.maximum(low, lows, out=edge)
    np.subtract(out, edge, out=out)
    if more:
        np.add(out, more, out=out)


def _select_in_order(suppresses: Array) -> list[int]:
    """Return the indices of the boxes that no earlier selected box suppresses.

    ``suppresses[i, j]`` tells whether box i suppresses box j.
    """
    packed = np.packbits(suppresses, axis=1, bitorder="little")
    rows, width = packed.tobytes(), packed.shape[1]
    left, selected = (1 << len(suppresses)) - 1, list[int]()
    while left:
        index = (left & -left).bit_length() - 1
        selected.append(index)
        suppressed = int.from_bytes(rows[width * index : width * (index + 1)], "little")
        left &= ~(suppressed | 1 << index)
    return selected


def _overlaps_of(a: Array, b: Array, more: Float, touching: bool, limit: Float) -> Array:
    """Return the `iou` of boxes given as columns with their areas; 0 may become NaN if ``limit`` is above 0.

    Args:
        a: boxes.
        b: boxes, which broadcast against ``a``.
        more: ``extra`` of `iou`.
        touching: whether boxes with a gap between them never overlap.
        limit: the overlap with which results are compared.
    """
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
    if limit > 0 and not touching:  # then 0 and NaN are alike: neither exceeds the limit
        with np.errstate(all="ignore"):
            return np.asarray(np.divide(shared, union, out=union))
    # The comparisons are negated, so that NaN propagates to the result, and suppresses nothing.
    meets = meets & ~((shared <= 0) | (a[4] <= 0) | (b[4] <= 0))
    return np.asarray(np.divide(shared, union, out=np.zeros_like(union), where=meets))


def _suppress_adaptively(
    boxes: Array, threshold: float, eta: float, extra: float, inclusive: bool, apart: bool
) -> Array:
    """Select greedily, with a threshold multiplied by ``eta`` after each selected box as long as it is above 0.5.

    For the arguments see `greedy_nms`.
    """
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
    """Return the indices of the boxes that soft NMS selects (Bodla et al. 2017), and their decayed scores.

    Args:
        boxes: boxes ``[n, 4]``.
        scores: scores ``[n]``.
        sigma: the width of the decay: an overlap multiplies a score by ``exp(-overlap ** 2 / (2 * sigma))``.
        most: the maximum number of boxes to select.
        above: the exclusive minimum of scores, also after their decay.
        cut: the overlap from which a box is dropped at once.
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
    """Apply deltas to boxes: shifts of the centre in units of the sides, and logarithms of scale factors.

    Args:
        boxes: boxes ``[..., 4]``.
        deltas: deltas ``[..., 4]`` of x, y, log width and log height.
        extra: see `iou`.
        largest: the maximum of the logarithms.
    """
    more = boxes.dtype.type(extra)
    sides = boxes[..., 2:] - boxes[..., :2] + more
    centre = boxes[..., :2] + sides / 2 + deltas[..., :2] * sides
    logs = deltas[..., 2:] if largest is None else np.minimum(deltas[..., 2:], boxes.dtype.type(largest))
    half = np.exp(logs) * sides / 2
    return np.concatenate([centre - half, centre + half - more], axis=-1)
