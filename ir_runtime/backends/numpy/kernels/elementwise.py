"""Elementwise binary operations and activations, post-ops applied in place to whole results of any layout, and Convert."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import methodcaller
from typing import Any

import numpy as np

from ...._util.arrays import DType
from ....ir.element import ElementType
from ....ir.operation import Operation
from ....ir.tensor import Array, Value
from ....ops import Op
from ....ops.activation import PReLU, ReLU, known_slopes
from ....ops.arithmetic import Divide, Maximum, Minimum
from ....ops.elementwise import Binary
from ....ops.quantization import FakeQuantize
from ....ops.type import Convert
from ... import Kernel, KernelTemplate
from ...common.activations import ACTIVATIONS, UFUNCS, Activation, activation_of, broadcast_binary
from ...common.epilogue import BINARY_UFUNCS, MINMAX_UFUNCS, binary_ufunc
from ...common.layout import flat_view, is_f32, moveaxis, repeat_row
from ...common.post_op import PostOp, constant_row, fake_quantize_passes, limit_rows, match_post_op
from ...core.kernel import any_lengths
from .._backend import backend
from ._gemm import is_finite

__all__ = ["apply_activation", "Chain"]

# Up to this size of a tensor, constants are broadcast to its shape: NumPy adds equal shapes in a third of the time.
SMALL = 1 << 10
# Up to this many elements, NumPy broadcasts a row faster than a repeated row can be sliced.
FEW = 1 << 8


@dataclass(frozen=True)
class ArrayPostOp:
    """An elementwise layer applied to a result, in place if the memory layout allows; returns the new result."""

    inputs: int
    """The number of inputs of the layer other than the result."""
    run: Callable[..., Array]
    full_tensor: bool = False
    """Whether ``run`` also takes the other operand."""


@dataclass(frozen=True)
class Chain(KernelTemplate):
    """A kernel that returns a new array, followed by post-ops that are applied to it in place if its layout allows.

    ``head`` is the kernel, and ``arity`` the number of inputs of its layer. NumPy itself raises an error for lengths that do not
    broadcast.
    """

    head: Kernel
    arity: int
    post_ops: tuple[ArrayPostOp, ...] = ()

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> Chain | None:
        """Return a chain that also computes ``op``, or ``None`` if it cannot."""
        post_op = _lower(match_post_op(op, inputs, place))
        return None if post_op is None else Chain(self.head, self.arity, (*self.post_ops, post_op))

    def prepare(self) -> Kernel:
        """Return the head alone if no layer was fused, else a kernel that reads only the inputs it needs."""
        if not self.post_ops:
            return self.head
        if self.head.operands is None or any(post_op.full_tensor for post_op in self.post_ops):
            return Kernel(self._on_all_inputs(), accepts=any_lengths)
        head, runs = self.head.run, tuple(post_op.run for post_op in self.post_ops)

        def run(x: Array) -> Array:
            out: Any = head(x)
            for apply in runs:
                out = apply(out)
            return out  # type: ignore[no-any-return]

        return Kernel.unary(run, self.head.operands[0])

    def _on_all_inputs(self) -> Callable[..., Array]:
        """Return a function of the inputs of the head, followed by the other inputs of the post-ops."""
        head, arity = self.head.whole, self.arity
        work, start = [], arity
        for post_op in self.post_ops:
            work.append((post_op.run, start if post_op.full_tensor else 0))
            start += post_op.inputs

        def run(*arrays: Array) -> Array:
            out: Any = head(*arrays[:arity])
            for apply, place in work:
                out = apply(out, arrays[place]) if place else apply(out)
            return out  # type: ignore[no-any-return]

        return run


def _lower(post_op: PostOp | None) -> ArrayPostOp | None:
    if post_op is None:
        return None
    others, operand = post_op.extra_inputs, post_op.operand
    if operand is None:
        run = activation_kernel(post_op.op, post_op.inputs)
        return None if run is None else ArrayPostOp(others, lambda out: run(out, out))
    if (ufunc := binary_ufunc(post_op.op, post_op.place, operand)) is None:
        return None
    if (shift := broadcast_kernel(ufunc, operand, post_op.data)) is not None:
        return ArrayPostOp(others, lambda out: shift(out, out))
    if post_op.has_full_operand:
        return ArrayPostOp(others, lambda out, array: ufunc(out, array, out=out), full_tensor=True)
    return None


def activation_kernel(op: Operation, inputs: Sequence[Value]) -> Callable[..., Array] | None:
    """Return the elementwise f32 function ``(x, out=None)`` of an activation, or ``None``."""
    if isinstance(op, ReLU) and (run := broadcast_kernel(np.maximum, _ZERO_VALUE, inputs[0])) is not None:
        return run
    if (ufunc := UFUNCS.get(type(op))) is not None:
        return ufunc if inputs[0].shape.rank else None
    if isinstance(op, FakeQuantize):
        return _quantize_kernel(op, inputs)
    activation = activation_of(op, inputs)
    return None if activation is None else partial(apply_activation, activation)


def _quantize_kernel(op: FakeQuantize, inputs: Sequence[Value]) -> Callable[..., Array] | None:
    """Return FakeQuantize for constant limits that vary along at most one axis, or ``None``."""
    for axis in range(-(inputs[0].shape.rank or 0), 0):
        if (rows := limit_rows(op, inputs, axis)) is not None:
            passes = fake_quantize_passes(rows)
            if passes is None or rows.shape[1] == 1:
                return passes and partial(apply_activation, passes)
            return partial(_apply_rows, passes, axis)
    return None


def _apply_rows(passes: Activation, axis: int, x: Array, out: Array | None = None) -> Array:
    """Apply passes to rows along ``axis``; return ``out`` with the results, or a new array with that axis stored last."""
    rows = np.ascontiguousarray(moveaxis(x, axis, -1))
    result = np.empty(rows.shape, np.float32)
    passes(rows.reshape(-1), result.reshape(-1))
    moved = moveaxis(result, -1, axis)
    if out is None:
        return moved
    out[...] = moved
    return out


_ZERO_VALUE = Value.constant(np.float32(0))


def apply_activation(activation: Activation, x: Array, out: Array | None = None) -> Array:
    """Apply an activation to an array of any layout; return ``out`` with the results, or a new array of the same layout."""
    if x.flags.c_contiguous and (out is None or out is x):
        result = np.empty(x.shape, np.float32) if out is None else out
        activation(x.reshape(-1), result.reshape(-1))
        return result
    source = flat_view(x)
    if source is None:
        x = out = x.copy(order="K")  # keeps the memory order that other layers expect
        source = flat_view(x)
    result = np.empty_like(x) if out is None else out
    target = flat_view(result)
    assert source is not None
    assert target is not None
    activation(source, target)
    return result


def broadcast_kernel(ufunc: np.ufunc, other: Value, data: Value) -> Callable[..., Array] | None:
    """Return a function ``(x, out=None)`` that computes ``ufunc(x, other)`` for a constant ``other``, or ``None`` if unsupported.

    The constant must vary along at most one axis, unless ``data``, the tensor that ``x`` is an array of, is small. Along the
    axis that is stored last, it is repeated for longer inner loops.
    """
    if (full := _small_constant(other, data)) is not None:
        return _shared_ufunc(ufunc, full.tobytes(), full.dtype) if not full.ndim else _bind_ufunc(ufunc, full)
    axes = range(-(data.shape.rank or 0), 0)
    rows = ((axis, row) for axis in axes if (row := constant_row(other, data, axis)) is not None)
    if (first := next(rows, None)) is None:
        return None
    axis, row = first
    repeated = repeat_row(row)
    run = broadcast_binary(ufunc, repeated)
    column = row.reshape(-1, *(1,) * (-1 - axis))
    few, most = (SMALL, 0) if axis != -1 else (FEW, repeated.size)

    def kernel(x: Array, out: Array | None = None) -> Array:
        if x.size <= few:
            return ufunc(x, column, out=out)  # type: ignore[no-any-return]
        if x.size <= most and x.flags.c_contiguous:
            return ufunc(x, repeated[: x.size].reshape(x.shape), out=out)  # type: ignore[no-any-return]
        result = np.empty_like(x) if out is None else out
        source, target = moveaxis(x, axis, -1), moveaxis(result, axis, -1)
        if source.flags.c_contiguous and target.flags.c_contiguous:
            run(source.reshape(-1), target.reshape(-1))
        else:
            ufunc(x, column, out=result)
        return result

    return kernel


@lru_cache(256)
def _shared_ufunc(ufunc: np.ufunc, scalar: bytes, dtype: DType) -> Callable[..., Array]:
    """Bind a scalar to a ufunc; layers with the same scalar share the function."""
    return _bind_ufunc(ufunc, np.frombuffer(scalar, dtype).reshape(()))


def _bind_ufunc(ufunc: np.ufunc, full: Array) -> Callable[..., Array]:
    return lambda x, out=None: ufunc(x, full, out=out)


def _small_constant(other: Value, data: Value) -> Array | None:
    """Return a constant as a scalar, or broadcast to the shape of the data; ``None`` unless the data are small and static.

    It is also ``None`` if ``other`` is not constant, or broadcasts the data to a larger shape.
    """
    known = other.known()
    if known is None or not data.shape.rank or not data.shape.is_static:
        return None
    shape = data.shape.static
    if math.prod(shape) > SMALL or known.ndim > len(shape):
        return None
    if known.size == 1:
        return known.reshape(())
    if known.shape == shape:
        return known.copy()
    try:
        return np.broadcast_to(known, shape).copy()
    except ValueError:  # the result is larger
        return None


_ZERO = np.zeros((), np.float32)


@backend.accelerates(*BINARY_UFUNCS, *MINMAX_UFUNCS)
def arithmetic(op: Op, a: Value, b: Value) -> KernelTemplate | None:
    """Return a kernel for f32, or for integers by the plain ufunc, else ``None``.

    A constant may come first if the operation commutes.
    """
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
    """Return a kernel for two f32 tensors, else ``None``; a result that is not finite is computed by the reference instead."""
    if not is_f32(a, b) or not isinstance(op, Binary) or op.auto_broadcast != "numpy":
        return None
    if not a.shape.rank or not b.shape.rank:
        return None
    ufunc = MINMAX_UFUNCS[type(op)]

    def compute(x: Array, y: Array) -> Array:
        result = ufunc(x, y)
        flat = flat_view(result)
        return result if flat is not None and is_finite(flat) else op.evaluate(x, y)

    return Chain(Kernel(compute, accepts=any_lengths), 2)


def _integer_ufunc(op: Op, a: Value, b: Value) -> Kernel | None:
    """Return the ufunc as a kernel for integers, else ``None``: mostly shape arithmetic, where call overhead dominates."""
    kinds = {value.element.dtype.kind for value in (a, b)}
    if isinstance(op, Divide | Maximum | Minimum) or kinds - set("iu") or not (a.shape.rank or b.shape.rank):
        return None
    ufunc = binary_ufunc(op, 0, b)
    return None if ufunc is None else Kernel(ufunc, accepts=any_lengths)


@backend.accelerates(*ACTIVATIONS, FakeQuantize)
def activation(op: Op, data: Value, *others: Value) -> KernelTemplate | None:
    """Return a kernel for f32 and constant parameters, or ``None`` if this backend has no function for them."""
    inputs = (data, *others)
    run = activation_kernel(op, inputs) if is_f32(*inputs) else None
    return None if run is None else Chain(Kernel.unary(run), len(inputs))


@backend.accelerates(PReLU)
def slopes(op: PReLU, data: Value, slope: Value) -> Kernel | None:
    """Return PReLU for f32 and constant finite slopes, else ``None``; if all slopes are in (0, 1], as ``max(x, slope * x)``."""
    known = known_slopes(data, slope)
    if not is_f32(data, slope) or known is None or not known.size or known.ndim > len(data.shape):
        return None
    if not np.isfinite(known).all():
        return None

    def maximum_of_products(x: Array) -> Array:
        y = np.multiply(x, known)
        return np.maximum(x, y, out=y)

    def sum_of_parts(x: Array) -> Array:
        y = np.minimum(x, _ZERO)
        np.multiply(y, known, out=y)
        return np.add(y, np.maximum(x, _ZERO), out=y)

    return Kernel.unary(maximum_of_products if ((known > 0) & (known <= 1)).all() else sum_of_parts)


_REAL = (ElementType.f16, ElementType.f32, ElementType.f64)
_INTEGERS = tuple(ElementType.parse(f"{sign}{bits}") for sign in "iu" for bits in (8, 16, 32, 64))


@backend.accelerates(Convert)
def convert(op: Convert, data: Value) -> Kernel | None:
    """Return a single `astype` for the conversions that NumPy computes as specified, else ``None``.

    These are conversions to f32 or f64, and between integers.
    """
    source, target = data.element, op.destination_type
    if source not in (*_REAL, *_INTEGERS, ElementType.boolean):
        return None
    whole = target in _INTEGERS and source not in _REAL  # modulo their size
    if not whole and target not in _REAL[1:]:
        return None
    return Kernel.unary(methodcaller("astype", target.dtype, copy=False))
