"""Binary and activations, element by element."""

from __future__ import annotations

import numpy as np

from ...ir.tensor import Value
from ...ops import Op
from .. import Kernel
from ._backend import backend
from ._chain import Chain, bent, shifted
from ._curves import CURVES, curve_of
from ._finish import UFUNCS, fits
from ._memory import is_f32

__all__: list[str] = []


@backend.accelerates(*UFUNCS)
def arithmetic(op: Op, a: Value, b: Value) -> Kernel | None:
    """f32; a constant on the right or, where it makes no difference, on the left."""
    if not is_f32(a, b) or not fits(op, 0):
        return None
    ufunc = UFUNCS[type(op)]
    if (right := shifted(ufunc, b, a)) is not None:
        return Chain(lambda x, _: right(x), 2)
    if fits(op, 1) and (left := shifted(ufunc, a, b)) is not None:
        return Chain(lambda _, x: left(x), 2)
    return Chain(lambda x, y: np.asarray(ufunc(x, y)), 2)


@backend.accelerates(*CURVES)
def activation(op: Op, data: Value, *others: Value) -> Kernel | None:
    """f32, with settings that are constant."""
    inputs = (data, *others)
    curve = curve_of(op, inputs) if is_f32(*inputs) else None
    if curve is None:
        return None

    return Chain(lambda x, *_: bent(curve, x), len(inputs))
