"""Elements and slices that are replaced at constant places (ScatterNDUpdate), as where programs assign to a part of a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....errors import InferenceError
from ....ir.tensor import Array, Value
from ....ops.movement.scatter import ScatterNDUpdate4, ScatterNDUpdate15, ScatterNDUpdateBase
from ... import Kernel
from ...common.kept_memory import empty
from .._backend import backend
from ..threading.capture import replayed
from ._copy import COPY, SIZES, recorded_copy
from ._index_grid import index_grid

__all__: list[str] = []

# Most axes of the part that is replaced.
MAX_AXES = 6


@backend.accelerates(ScatterNDUpdate4, ScatterNDUpdate15)
def scatter_part(op: ScatterNDUpdateBase, data: Value, indices: Value, updates: Value) -> Kernel | None:
    """All types but strings in data of static shape, at constant places that are a grid, and none twice: a part of the data."""
    known, dtype = indices.known(), data.element.dtype
    if isinstance(op, ScatterNDUpdate15) and op.reduction != "none":
        return None
    if known is None or not data.shape.is_static or dtype.hasobject or dtype.itemsize not in SIZES:
        return None
    shape = data.shape.static
    size, places = math.prod(shape[known.shape[-1] :]), _places(op, known, shape)
    grid = None if places is None else index_grid(places, MAX_AXES)
    if places is None or grid is None or not size or len(np.unique(places)) < places.size:
        return None
    part, count = grid, places.size * size
    COPY.prepare()

    def suits(data: Array, indices: Array, updates: Array) -> bool:
        return data.shape == shape and updates.size == count

    def kernel(data: Array, indices: Array, updates: Array) -> Array:
        if not suits(data, indices, updates):
            return np.asarray(op.evaluate(data, indices, updates))
        out = empty(shape, dtype)
        target = part.view(out.reshape(-1, size), 0)
        if not (recorded_copy(data, out) and recorded_copy(updates.reshape(target.shape), target)):
            out[...] = data
            target[...] = updates.reshape(target.shape)
        return out

    return Kernel(kernel, accepts=suits, replay=replayed(alone=False))


def _places(op: ScatterNDUpdateBase, indices: Array, shape: Sequence[int]) -> Array | None:
    """Return tuples of indices as positions along one axis; ``None`` if one is out of range."""
    try:
        return op.places(indices, shape)
    except InferenceError:
        return None  # the operation raises it when it runs
