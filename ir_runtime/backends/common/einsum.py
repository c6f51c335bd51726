"""Einsum of two inputs as a batched matrix product: classify labels as batch, row, column and summed axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

import numpy as np

from ...ir.shape import PartialShape
from ...ir.tensor import Array, TensorType, Value
from ...ops.matrix import ELLIPSIS, Einsum, MatMul, parse
from ..core.backend import Backend
from ..core.kernel import Kernel, KernelTemplate
from .layout import is_f32

__all__ = ["EinsumProduct", "einsum_product", "constant_einsum"]

Reshaped: TypeAlias = Callable[[Array, tuple[int, ...]], Array]
"""A function ``(array, shape)`` that reshapes an array."""

_Labels: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class EinsumProduct:
    """An Einsum of two inputs, as a batched matrix product.

    Args:
        swapped: whether the second input is the left matrix.
        left: the axes of the left input, in the order batch, row, summed.
        right: the axes of the right input, in the order batch, summed, column.
        batches: the number of batch axes.
        depths: the number of summed axes.
        output: the permutation from batch, row and column axes to the axes of the result.
    """

    swapped: bool
    left: tuple[int, ...]
    right: tuple[int, ...]
    batches: int
    depths: int
    output: tuple[int, ...]

    @property
    def rows(self) -> int:
        """The number of row axes."""
        return len(self.left) - self.batches - self.depths

    @property
    def columns(self) -> int:
        """The number of column axes."""
        return len(self.right) - self.batches - self.depths

    @property
    def is_plain(self) -> bool:
        """Whether there is exactly one row, one column and one summed axis."""
        return self.rows == self.columns == self.depths == 1

    def permute(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return views of inputs ``a`` and ``b`` as the left and the right matrix, with axes permuted by `left` and `right`."""
        left, right = (b, a) if self.swapped else (a, b)
        return left.transpose(self.left), right.transpose(self.right)

    def fits(self, left: Array, right: Array) -> bool:
        """Return whether the summed axes of both permuted inputs have the same lengths."""
        return left.shape[-self.depths :] == right.shape[self.batches : self.batches + self.depths]

    def matrices(self, left: Array, right: Array, reshaped: Reshaped = np.reshape) -> tuple[Array, Array]:
        """Reshape permuted inputs to ``[batch..., rows, depth]`` and ``[batch..., depth, columns]``, by the function ``reshaped``."""
        if self.is_plain:
            return left, right
        depth = math.prod(left.shape[-self.depths :])
        rows = math.prod(left.shape[self.batches : -self.depths])
        columns = math.prod(right.shape[self.batches + self.depths :])
        batch, other = left.shape[: self.batches], right.shape[: self.batches]
        return reshaped(left, (*batch, rows, depth)), reshaped(right, (*other, depth, columns))

    def result(self, product: Array, left: Array, right: Array) -> Array:
        """Return the result of the Einsum, given the product of `matrices`, and the permuted inputs ``left`` and ``right``."""
        if not self.is_plain:
            rows = left.shape[self.batches : -self.depths]
            columns = right.shape[self.batches + self.depths :]
            product = product.reshape(*product.shape[: self.batches], *rows, *columns)
        return product.transpose(self.output)

    def transpose(self) -> EinsumProduct:
        """Return the same Einsum as the transposed product, with left and right exchanged."""
        n, rows, columns, depths = self.batches, self.rows, self.columns, self.depths
        place = [*range(n), *range(n + columns, n + columns + rows), *range(n, n + columns)]
        return replace(
            self, swapped=not self.swapped,
            left=(*self.right[:n], *self.right[n + depths :], *self.right[n : n + depths]),
            right=(*self.left[:n], *self.left[n + rows :], *self.left[n : n + rows]),
            output=tuple(place[axis] for axis in self.output),
        )  # fmt: skip


@cache
def einsum_product(equation: str, ranks: tuple[int, ...]) -> EinsumProduct | None:
    """Express an Einsum equation as a batched matrix product, or return ``None`` if that is impossible.

    It is impossible unless there are two inputs, if a label is repeated within an input, if a label of one input only is
    summed, if no label is summed, or if no label belongs to one input only.

    Args:
        equation: a valid equation.
        ranks: the ranks of the inputs.
    """
    parsed = parse(equation)
    if len(ranks) != 2 or len(parsed.operands) != 2:
        return None
    hidden = [
        rank - sum(label != ELLIPSIS for label in labels)
        for rank, labels in zip(ranks, parsed.operands, strict=True)
    ]
    widest = max(hidden)
    one, other = (
        _expand_ellipsis(labels, count, widest) for labels, count in zip(parsed.operands, hidden, strict=True)
    )
    output = _expand_ellipsis(parsed.output, widest, widest)
    repeats = any(len(set(labels)) < len(labels) for labels in (one, other))
    if min(hidden) < 0 or repeats or not set(one) ^ set(other) <= set(output):
        return None
    if not set(output) ^ {*one, *other} or not set(one) ^ set(other):
        return None
    first = next(label for label in output if (label in one) is not (label in other))
    swapped = first not in one
    return (
        _classify_labels(other, one, output, True) if swapped else _classify_labels(one, other, output, False)
    )


def _classify_labels(left: _Labels, right: _Labels, output: _Labels, swapped: bool) -> EinsumProduct:
    """Classify the labels of the left and the right input as batch, row, column and summed axes.

    Args:
        left: the labels of the left input.
        right: the labels of the right input.
        output: the labels of the result.
        swapped: whether the left input is the second one.
    """
    batch = [label for label in output if label in left and label in right]
    rows = [label for label in output if label in left and label not in right]
    columns = [label for label in output if label in right and label not in left]
    depth = [label for label in left if label not in output]
    order = [*batch, *rows, *columns]
    return EinsumProduct(
        swapped,
        _indices(left, [*batch, *rows, *depth]),
        _indices(right, [*batch, *depth, *columns]),
        len(batch),
        len(depth),
        _indices(order, output),
    )


def _indices(labels: Sequence[str], order: Sequence[str]) -> tuple[int, ...]:
    """Return the index in ``labels`` of each label of ``order``."""
    return tuple(map(labels.index, order))


def _expand_ellipsis(labels: _Labels, hidden: int, widest: int) -> _Labels:
    """Replace an ellipsis by one label for each axis that it covers; the last axes of all ellipses have the same label.

    Args:
        labels: the labels of an input or of the result.
        hidden: the number of axes that the ellipsis covers.
        widest: the largest number of axes that the ellipsis covers in any input.
    """
    covered = tuple(f"{ELLIPSIS}{index}" for index in range(widest - hidden, widest))
    return tuple(name for label in labels for name in (covered if label == ELLIPSIS else (label,)))


def constant_einsum(
    backend: Backend, op: Einsum, operands: Sequence[Value], reshaped: Reshaped = np.reshape
) -> KernelTemplate | None:
    """Return a kernel for an f32 Einsum of static shapes with one constant input, computed as a MatMul.

    Returns ``None`` for any other Einsum, if the equation is no matrix product or has batch axes, or if the backend has no
    kernel for the MatMul.

    Args:
        backend: the backend that offers the MatMul kernel.
        op: the operation.
        operands: its inputs.
        reshaped: reshapes an array, as `numpy.reshape`.
    """
    if len(operands) != 2 or not is_f32(*operands) or not all(v.shape.is_static for v in operands):
        return None
    product = einsum_product(op.equation, tuple(len(value.shape) for value in operands))
    places = [place for place, value in enumerate(operands) if value.is_known]
    if product is None or product.batches or len(places) != 1:
        return None
    if places[0] == (0 if not product.swapped else 1):  # the constant is the left matrix
        product = product.transpose()
    return _kernel(backend, product, operands[1 - places[0]], operands[places[0]], 1 - places[0], reshaped)


def _kernel(
    backend: Backend, product: EinsumProduct, data: Value, weights: Value, place: int, reshaped: Reshaped
) -> KernelTemplate | None:
    """Return a kernel that multiplies ``data``, the input at index ``place``, by the constant ``weights`` on the right.

    Returns ``None`` if an axis is empty, summed axes differ in length, or the backend has no kernel for the MatMul.
    """
    known = weights.known()
    lengths = [data.shape.static[axis] for axis in product.left]
    if known is None or not known.size or not all(lengths):
        return None
    summed, outer = lengths[product.rows :], lengths[: product.rows]
    apart = known.transpose(product.right)
    if list(apart.shape[: product.depths]) != summed:
        return None
    depth, columns = int(np.prod(summed)), apart.shape[product.depths :]
    turned = known.ndim == 2 and product.right == (1, 0)
    matrix = known if turned else np.ascontiguousarray(apart).reshape(depth, -1)
    shape = [*outer, depth] if outer else [1, depth]
    rows = Value(TensorType(data.element, PartialShape(shape)))
    inner = backend.kernel(MatMul(transpose_a=False, transpose_b=turned), (rows, Value.constant(matrix)))
    is_plain = (
        product.left == tuple(range(len(product.left))) and product.depths == len(columns) == 1 and outer
    )
    if inner is None or (is_plain and place == 0 and product.output == tuple(range(len(product.output)))):
        return inner
    return _Rearranged(inner, product, tuple(shape), (*outer, *columns), place, matrix, reshaped)


class _Rearranged(KernelTemplate):
    """A MatMul kernel, with the axes of its data permuted before it and those of its result after it."""

    def __init__(
        self, inner: KernelTemplate, product: EinsumProduct, shape: tuple[int, ...], result: Sequence[int], place: int,
        matrix: Array, reshaped: Reshaped,
    ) -> None:  # fmt: skip
        self._inner, self._product, self._place, self._matrix = inner, product, place, matrix
        self._shape, self._result, self._reshaped = shape, result, reshaped

    def prepare(self) -> Kernel:
        """Pack the weights, and return the kernel."""
        ready = self._inner.prepare()
        product = ready.whole
        axes, shape, result = self._product.left, self._shape, self._result
        output, place = self._product.output, self._place
        matrix, reshaped = self._matrix, self._reshaped

        def kernel(*arrays: Array) -> Array:
            rows = reshaped(arrays[place].transpose(axes), shape)
            return np.asarray(product(rows, matrix)).reshape(result).transpose(output)

        return Kernel(kernel, name=ready.name, replay=ready.replay)
