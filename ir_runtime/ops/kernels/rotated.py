"""Rotated boxes: intersection over union, and non-maximum suppression.

A box is the x and y of its centre, width, height, and an angle in radians, clockwise in images, where y
points down.
"""

from __future__ import annotations

import numpy as np

from ..._util.arrays import Array

__all__ = ["rotated_nms", "rotated_iou"]


_SIGNS = np.array([[0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5], [0.5, -0.5]])
# Tolerance for points on an edge.
_CLOSE = 1e-9


def rotated_iou(box: Array, others: Array) -> Array:
    """Return the intersection over union of a box with each of others, [n, 5]; 0 for empty boxes."""
    pair = np.stack([np.broadcast_to(box, others.shape), others]).astype(np.float64)
    area = pair[..., 2] * pair[..., 3]
    pair[..., :2] -= pair[1:, :, :2]  # around the origin, to limit rounding
    shared = _intersection_areas(_corners(pair[0]), _corners(pair[1]))
    together = area[0] + area[1] - shared
    return np.asarray(np.divide(shared, together, out=np.zeros(len(others)), where=(area > 0).all(axis=0)))


def rotated_nms(boxes: Array, threshold: float, most: int) -> Array:
    """Return the kept boxes among boxes [n, 5] in descending order of score; see `boxes.greedy_nms`."""
    selected: list[int] = []
    rest = np.arange(len(boxes))
    while len(rest) and len(selected) < most:
        selected.append(int(rest[0]))
        rest = rest[1:]
        rest = rest[~(rotated_iou(boxes[selected[-1]], boxes[rest]) > threshold)]
    return np.array(selected, np.int64)


def _corners(boxes: Array) -> Array:
    """Return the corners in order: [n, 4, 2]."""
    x, y = np.moveaxis(_SIGNS * boxes[:, None, 2:4], -1, 0)
    cosine, sine = np.cos(boxes[:, 4:]), np.sin(boxes[:, 4:])
    turned = np.stack([x * cosine - y * sine, x * sine + y * cosine], axis=-1)
    return np.asarray(turned + boxes[:, None, :2])


def _intersection_areas(a: Array, b: Array) -> Array:
    """Return the areas of intersections of convex polygons [n, 4, 2], as hulls of their common points."""
    crossings, crosses = _crossings(a, b)
    points = np.concatenate([a, b, crossings], axis=1)
    valid = np.concatenate([_within(a, b), _within(b, a), crosses], axis=1)
    count = valid.sum(axis=1)
    middle = (points * valid[..., None]).sum(axis=1) / np.maximum(count, 1)[:, None]
    around = np.where(valid[..., None], points - middle[:, None], 0)
    angles = np.where(valid, np.arctan2(around[..., 1], around[..., 0]), np.inf)
    order = np.argsort(angles, axis=1)
    hull = np.take_along_axis(around, order[..., None], axis=1)
    # Invalid points come last: replace them by the first one.
    last = np.arange(hull.shape[1]) >= count[:, None]
    hull = np.where(last[..., None], hull[:, :1], hull)
    x, y = hull[..., 0], hull[..., 1]
    doubled = (x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1)
    return np.where(count > 2, np.abs(doubled) / 2, 0)


def _cross(a: Array, b: Array) -> Array:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def _within(points: Array, polygon: Array) -> Array:
    """Return a mask of the points in a polygon or on its edges."""
    edges = np.roll(polygon, -1, axis=1) - polygon
    sides = _cross(edges[:, None], points[:, :, None] - polygon[:, None])
    reach = _CLOSE * (np.abs(edges).max(axis=(1, 2), initial=0)[:, None, None] ** 2 + 1e-30)
    return np.asarray((sides >= -reach).all(axis=2) | (sides <= reach).all(axis=2))


def _crossings(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the intersections of two polygons' edges, and a mask of valid ones: [n, 16, 2], [n, 16]."""
    along, across = np.roll(a, -1, axis=1) - a, np.roll(b, -1, axis=1) - b
    along, across = along[:, :, None], across[:, None]
    gap = b[:, None] - a[:, :, None]
    slant = _cross(along, across)
    parallel = np.abs(slant) < 1e-14
    divisor = np.where(parallel, 1, slant)
    t, u = _cross(gap, across) / divisor, _cross(gap, along) / divisor
    crosses = ~parallel & (t >= 0) & (t <= 1) & (u >= 0) & (u <= 1)
    points = a[:, :, None] + t[..., None] * along
    return points.reshape(len(a), 16, 2), crosses.reshape(len(a), 16)
