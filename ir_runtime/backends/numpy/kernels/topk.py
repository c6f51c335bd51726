"""The best elements along an axis, found without sorting all of them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.sort.topk import TopK1, TopK3, TopK11, TopKBase
from ... import UNREAD, Kernel
from ...common.layout import moveaxis
from .._backend import backend

__all__: list[str] = []


@backend.accelerates(TopK1, TopK3, TopK11)
def best(op: TopKBase, data: Value, k: Value, unread: Collection[int] = ()) -> Kernel | None:
    """Of types that NumPy has itself. NaN is left to the reference where it would be chosen or compared."""
    if data.element.dtype.kind not in "fiu":
        return None
    largest, index = op.mode == "max", op.index_element_type.dtype

    def kernel(x: Array, k: Array) -> tuple[Array, Array]:
        if k.ndim or not x.size or not x.ndim or not -x.ndim <= op.axis < x.ndim:
            return op.evaluate(x, k)
        axis, count = op.axis % x.ndim, int(k)
        if not 1 <= count <= x.shape[axis]:
            return op.evaluate(x, k)
        found = _one(x, axis, largest) if count == 1 else _several(op, moveaxis(x, axis, -1), count, largest)
        if found is None:
            return op.evaluate(x, k)
        places = found if count == 1 else moveaxis(found, -1, axis)
        values = UNREAD if 0 in unread else np.take_along_axis(x, places, axis)
        return values, places.astype(index, copy=False)

    return kernel


def _one(x: Array, axis: int, largest: bool) -> Array | None:
    """Where the first of the best is: the first NaN, too, which is larger than any number."""
    if largest:
        return np.asarray(x.argmax(axis, keepdims=True))
    places = x.argmin(axis, keepdims=True)
    nan = x.dtype.kind == "f" and np.isnan(np.take_along_axis(x, places, axis)).any()
    return None if nan else places


def _several(op: TopKBase, x: Array, count: int, largest: bool) -> Array | None:
    """Where the best are along the last axis: those beyond the last one chosen, and the first of its equals."""
    length = x.shape[-1]
    ordered = np.partition(x, length - count if largest else count - 1, axis=-1)
    last = ordered[..., length - count :][..., :1] if largest else ordered[..., count - 1 : count]
    if x.dtype.kind == "f" and np.isnan(ordered[..., length - count :] if largest else last).any():
        return None
    beyond, chosen = (x > last, x >= last) if largest else (x < last, x <= last)
    if np.count_nonzero(chosen) != last.size * count:
        equal = chosen & ~beyond
        chosen = beyond | (equal & (equal.cumsum(-1) <= count - beyond.sum(-1, keepdims=True)))
    places = chosen.nonzero()[-1].reshape(*x.shape[:-1], count)
    if op.sort == "index":
        return places
    values = np.take_along_axis(x, places, -1)
    if not largest:
        return np.take_along_axis(places, values.argsort(-1, kind="stable"), -1)
    order = count - 1 - np.flip(np.flip(values, -1).argsort(-1, kind="stable"), -1)
    return np.take_along_axis(places, order, -1)
