"""TopK along an axis, by partitioning instead of sorting."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.sort.topk import TopK1, TopK3, TopK11, TopKBase
from ... import UNREAD, Kernel
from ...common.layout import moveaxis
from .._backend import backend

__all__: list[str] = []

# Up to this many elements, a tensor is sorted as a whole.
FEW = 1 << 8
# Up to this length, sorting a row together with its indices is faster than comparing it with a threshold.
SHORT = 1 << 10
# A mask of all bits of an f32 but the sign.
MAGNITUDE = np.int32(2**31 - 1)


@backend.accelerates(TopK1, TopK3, TopK11)
def topk(op: TopKBase, data: Value, k: Value, unread: Collection[int] = ()) -> Kernel | None:
    """Return a kernel for integers and floating-point types of NumPy, else ``None``; the reference handles NaN."""
    if data.element.dtype.kind not in "fiu":
        return None
    largest, index = op.mode == "max", op.index_element_type.dtype

    def kernel(x: Array, k: Array) -> tuple[Array, Array]:
        if k.ndim or not x.size or not x.ndim or not -x.ndim <= op.axis < x.ndim:
            return op.evaluate(x, k)
        axis, count = op.axis % x.ndim, int(k)
        if not 1 <= count <= x.shape[axis]:
            return op.evaluate(x, k)
        if count == 1:
            indices = _argbest(x, axis, largest)
        elif x.size <= FEW and x.dtype.kind == "f":
            indices = _first_in_order(op, x, axis, count)
        elif x.dtype == np.float32 and (count == x.shape[axis] or x.shape[axis] <= SHORT):
            selected = _select_by_keys(op, moveaxis(x, axis, -1), count, largest)
            indices = None if selected is None else moveaxis(selected, -1, axis)
        else:
            selected = _select(op, moveaxis(x, axis, -1), count, largest)
            indices = None if selected is None else moveaxis(selected, -1, axis)
        if indices is None:
            return op.evaluate(x, k)
        values = UNREAD if 0 in unread else np.take_along_axis(x, indices, axis)
        return values, indices.astype(index, copy=False)

    return Kernel(kernel)


def _argbest(x: Array, axis: int, largest: bool) -> Array | None:
    """Return the index of the first best element along an axis, or ``None`` if NaN would be chosen as the smallest."""
    if largest:
        return np.asarray(x.argmax(axis, keepdims=True))
    indices = x.argmin(axis, keepdims=True)
    nan = x.dtype.kind == "f" and np.isnan(np.take_along_axis(x, indices, axis)).any()
    return None if nan else indices


def _first_in_order(op: TopKBase, x: Array, axis: int, count: int) -> Array | None:
    """Return the indices of the ``count`` best elements by sorting, in few calls; ``None`` if there is a NaN."""
    if np.isnan(x).any():
        return None
    order = (-x if op.mode == "max" else x).argsort(axis, kind="stable")
    indices = np.asarray(order[(*(slice(None),) * axis, slice(count))])
    return np.sort(indices, axis) if op.sort == "index" else indices


def _select(op: TopKBase, x: Array, count: int, largest: bool) -> Array | None:
    """Return the indices of the ``count`` best elements along the last axis by partitioning; ``None`` if NaN is among them.

    Elements better than the threshold are selected, and the first of those equal to it.
    """
    length = x.shape[-1]
    ordered = np.partition(x, length - count if largest else count - 1, axis=-1)
    threshold = ordered[..., length - count :][..., :1] if largest else ordered[..., count - 1 : count]
    if x.dtype.kind == "f" and np.isnan(ordered[..., length - count :] if largest else threshold).any():
        return None
    better, chosen = (x > threshold, x >= threshold) if largest else (x < threshold, x <= threshold)
    if np.count_nonzero(chosen) != threshold.size * count:
        equal = chosen & ~better
        chosen = better | (equal & (equal.cumsum(-1) <= count - better.sum(-1, keepdims=True)))
    indices = chosen.nonzero()[-1].reshape(*x.shape[:-1], count)
    if op.sort == "index":
        return indices
    values = np.take_along_axis(x, indices, -1)
    if not largest:
        return np.take_along_axis(indices, values.argsort(-1, kind="stable"), -1)
    order = count - 1 - np.flip(np.flip(values, -1).argsort(-1, kind="stable"), -1)
    return np.take_along_axis(indices, order, -1)


def _select_by_keys(op: TopKBase, x: Array, count: int, largest: bool) -> Array | None:
    """Return the indices of the ``count`` best f32 along the last axis, or ``None`` if there is a NaN.

    It sorts i64 keys, whose upper half orders the elements, best first, and whose lower half is the index. NumPy sorts integers
    much faster than it sorts indices stably.
    """
    bits = np.add(x, np.float32(0), order="C").view(np.int32)  # -0.0 becomes 0.0
    if np.isnan(x).any():
        return None
    # Flip the magnitude of negative values, so that integers have the order of f32.
    np.bitwise_xor(bits, (bits >> 31) & MAGNITUDE, out=bits)
    if largest:
        np.invert(bits, out=bits)
    keys = np.left_shift(bits, 32, dtype=np.int64)
    np.bitwise_or(keys, np.arange(x.shape[-1]), out=keys)
    if count < x.shape[-1]:
        keys.partition(count - 1, -1)
        keys = keys[..., :count]
    keys.sort(-1)
    indices = keys & (2**32 - 1)
    return np.sort(indices, -1) if op.sort == "index" else indices
