"""Select: `np.where` branches at every element, and takes ten times as long where processors cannot predict the condition."""

from __future__ import annotations

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.condition import Select
from ... import Kernel
from ...core.lengths import accepting, any_lengths
from .._backend import backend

__all__: list[str] = []

# Elements from which on it is worth to look at the condition; and how many of them there are, at least, for each change, if
# `np.where` is faster. A wrong guess takes it as long as the passes over this many elements.
MANY, STEADY = 1 << 12, 1 << 5


@backend.accelerates(Select)
def select(op: Select, condition: Value, then: Value, otherwise: Value) -> Kernel | None:
    """Return a kernel for numbers of NumPy's own types: their bits are masked, without branches."""
    dtype = then.element.dtype
    if dtype.kind not in "fiu" or op.auto_broadcast != "numpy":
        return None
    bits = np.dtype(f"i{dtype.itemsize}")

    def kernel(condition: Array, then: Array, otherwise: Array) -> Array:
        if condition.size < MANY or _is_steady(condition):
            return np.where(condition, then, otherwise)
        mask = np.negative(condition.view(np.int8)).astype(bits, copy=False)
        x, y = then.view(bits), otherwise.view(bits)
        found = np.bitwise_and(np.bitwise_xor(x, y), mask)
        return np.asarray(np.bitwise_xor(found, y, out=found)).view(dtype)

    return accepting(kernel, any_lengths)


def _is_steady(condition: Array) -> bool:
    """Return whether most elements are equal to the one before."""
    flat = condition.reshape(-1)
    return int(np.count_nonzero(flat[1:] != flat[:-1])) * STEADY < flat.size
