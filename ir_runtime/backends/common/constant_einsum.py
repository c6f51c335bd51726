"""Einsum of a tensor and constant weights, by a backend's kernel for MatMul."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ir.shape import PartialShape
from ...ir.tensor import Array, TensorType, Value
from ...ops.matrix.einsum import Einsum
from ...ops.matrix.matmul import MatMul
from ..core.backend import Backend
from ..core.kernel import Kernel, KernelTemplate
from .einsum import EinsumProduct, Reshaped, einsum_product
from .layout import is_f32

__all__ = ["constant_einsum"]


def constant_einsum(
    backend: Backend, op: Einsum, operands: Sequence[Value], reshaped: Reshaped = np.reshape
) -> KernelTemplate | None:
    """Return a kernel for f32 of static shape by one constant matrix, ``None`` if the equation or the backend has none.

    Args:
        backend: has the kernel for the product.
        op: the operation.
        operands: its inputs.
        reshaped: returns an array in another shape.
    """
    if len(operands) != 2 or not is_f32(*operands) or not all(v.shape.is_static for v in operands):
        return None
    found = einsum_product(op.equation, tuple(len(value.shape) for value in operands))
    places = [place for place, value in enumerate(operands) if value.is_known]
    if found is None or found.batches or len(places) != 1:
        return None
    if places[0] == (0 if not found.swapped else 1):  # the constant is the left matrix
        found = found.exchanged()
    return _kernel(backend, found, operands[1 - places[0]], operands[places[0]], 1 - places[0], reshaped)


def _kernel(
    backend: Backend, found: EinsumProduct, data: Value, weights: Value, place: int, reshaped: Reshaped
) -> KernelTemplate | None:
    """Return a kernel of rows of ``data``, the input at ``place``, by the matrix of the other one."""
    known = weights.known()
    lengths = [data.shape.static[axis] for axis in found.left]
    if known is None or not known.size or not all(lengths):
        return None
    summed, outer = lengths[found.rows :], lengths[: found.rows]
    apart = known.transpose(found.right)
    if list(apart.shape[: found.depths]) != summed:
        return None
    depth, columns = int(np.prod(summed)), apart.shape[found.depths :]
    turned = known.ndim == 2 and found.right == (1, 0)
    matrix = known if turned else np.ascontiguousarray(apart).reshape(depth, -1)
    shape = [*outer, depth] if outer else [1, depth]
    rows = Value(TensorType(data.element, PartialShape(shape)))
    inner = backend.kernel(MatMul(transpose_a=False, transpose_b=turned), (rows, Value.constant(matrix)))
    is_plain = found.left == tuple(range(len(found.left))) and found.depths == len(columns) == 1 and outer
    if inner is None or (is_plain and place == 0 and found.output == tuple(range(len(found.output)))):
        return inner
    return _Rearranged(inner, found, tuple(shape), (*outer, *columns), place, matrix, reshaped)


class _Rearranged(KernelTemplate):
    """A product whose data are put in order before it, and its result after it."""

    def __init__(
        self, inner: KernelTemplate, found: EinsumProduct, shape: tuple[int, ...], result: Sequence[int], place: int,
        matrix: Array, reshaped: Reshaped,
    ) -> None:  # fmt: skip
        self._inner, self._found, self._place, self._matrix = inner, found, place, matrix
        self._shape, self._result, self._reshaped = shape, result, reshaped

    def prepare(self) -> Kernel:
        """Return the kernel, with packed weights."""
        ready = self._inner.prepare()
        product = ready.whole
        axes, shape, result = self._found.left, self._shape, self._result
        output, place = self._found.output, self._place
        matrix, reshaped = self._matrix, self._reshaped

        def kernel(*arrays: Array) -> Array:
            rows = reshaped(arrays[place].transpose(axes), shape)
            return np.asarray(product(rows, matrix)).reshape(result).transpose(output)

        return Kernel(kernel, name=ready.name, replay=ready.replay)
