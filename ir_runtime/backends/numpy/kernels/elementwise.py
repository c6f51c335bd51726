"""Element-wise binary operations and activations."""

from __future__ import annotations

import numpy as np

from ....ir.tensor import Array, Value
from ....ops import Op
from ....ops.activation.clipped import PReLU, known_slopes
from ....ops.arithmetic.binary import Divide, Maximum, Minimum
from ....ops.elementwise import Binary
from ....ops.quantization import FakeQuantize
from ... import Kernel, KernelTemplate
from ...common.activations import ACTIVATIONS
from ...common.epilogue import BINARY_UFUNCS, MINMAX_UFUNCS, binary_ufunc
from ...common.layout import flat_view, is_f32
from ...core.lengths import any_lengths
from .._backend import backend
from ..math.finite import is_finite
from ._chain import Chain, activation_kernel, broadcast_kernel

__all__: list[str] = []

_ZERO = np.zeros((), np.float32)


@backend.accelerates(*BINARY_UFUNCS, *MINMAX_UFUNCS)
def arithmetic(op: Op, a: Value, b: Value) -> KernelTemplate | None:
    """Return a kernel for f32; a constant may be on the left if the operation commutes. Integers use the ufunc."""
    if not is_f32(a, b):
        return _integer_ufunc(op, a, b)
    if (ufunc := binary_ufunc(op, 0, b)) is None:
        return None
    if (right := broadcast_kernel(ufunc, b, a)) is not None:
        return Chain(Kernel.unary(right), 2)
    if binary_ufunc(op, 1, a) and (left := broadcast_kernel(ufunc, a, b)) is not None:
        return Chain(Kernel.unary(left, 1), 2)
    if a.shape.rank or b.shape.rank:
        return Chain(Kernel(ufunc, accepts=any_lengths), 2)
    return Chain(Kernel(lambda x, y: np.asarray(ufunc(x, y))), 2)


@backend.accelerates(*MINMAX_UFUNCS)
def extremum(op: Op, a: Value, b: Value) -> KernelTemplate | None:
    """Return a kernel for two f32 tensors. What has a NaN, or infinities, is computed as the reference does."""
    if not is_f32(a, b) or not isinstance(op, Binary) or op.auto_broadcast != "numpy":
        return None
    if not a.shape.rank or not b.shape.rank:
        return None
    ufunc = MINMAX_UFUNCS[type(op)]

    def compute(x: Array, y: Array) -> Array:
        found = ufunc(x, y)
        flat = flat_view(found)
        return found if flat is not None and is_finite(flat) else op.evaluate(x, y)

    return Chain(Kernel(compute, accepts=any_lengths), 2)


def _integer_ufunc(op: Op, a: Value, b: Value) -> Kernel | None:
    """Return a ufunc for integers, mostly shape arithmetic of a few numbers, where call overhead dominates."""
    kinds = {value.element.dtype.kind for value in (a, b)}
    if isinstance(op, Divide | Maximum | Minimum) or kinds - set("iu") or not (a.shape.rank or b.shape.rank):
        return None
    ufunc = binary_ufunc(op, 0, b)
    return None if ufunc is None else Kernel(ufunc, accepts=any_lengths)


@backend.accelerates(*ACTIVATIONS, FakeQuantize)
def activation(op: Op, data: Value, *others: Value) -> KernelTemplate | None:
    """Return a kernel for f32, with constant settings."""
    inputs = (data, *others)
    run = activation_kernel(op, inputs) if is_f32(*inputs) else None
    return None if run is None else Chain(Kernel.unary(run), len(inputs))


@backend.accelerates(PReLU)
def slopes(op: PReLU, data: Value, slope: Value) -> Kernel | None:
    """f32, with constant slopes. Where all are from 0 to 1, the maximum of both products is right."""
    known = known_slopes(data, slope)
    if not is_f32(data, slope) or known is None or not known.size or known.ndim > len(data.shape):
        return None
    if not np.isfinite(known).all():
        return None

    def of_small_slopes(x: Array) -> Array:
        y = np.multiply(x, known)
        return np.maximum(x, y, out=y)

    def of_any_slopes(x: Array) -> Array:
        y = np.minimum(x, _ZERO)
        np.multiply(y, known, out=y)
        return np.add(y, np.maximum(x, _ZERO), out=y)

    return Kernel.unary(of_small_slopes if ((known > 0) & (known <= 1)).all() else of_any_slopes)
