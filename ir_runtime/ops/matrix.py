"""Matrix operations: products, Einsum and inverses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ..codes import Code
from ..errors import InferenceError, ValidationError
from ..ir.dimension import Dimension
from ..ir.formula import Count, product
from ..ir.operation import Operands, size
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._define.operation import T_FLOAT, T_INDEX_64, Input, Op, Output, T, attr, op
from ._lengths import broadcast_dims, broadcast_shapes, check_vector, listed
from .kernels.matmul import accumulator_dtype, from_accumulator, matmul

# Matrix products (MatMul), including batches.

_BATCHES = ("batches of a", "batches of b")


@op("MatMul-1", spec="matrix/matmul-1")
class MatMul(Op):
    """Multiply the matrices in the last two axes of ``a`` and ``b``; leading axes are batch axes.

    A 1-D ``a`` is a row and a 1-D ``b`` a column, whose axis is removed from the output. Integers wrap around, as in
    OpenVINO's reference; its plugin saturates them.
    """

    decisions = (
        "sums and products of integers wrap around, as in OpenVINO's reference; its plugin saturates them",
    )

    bounded = True
    flops_per_element = 0

    a = Input(T, "left matrices, of rank 1 or more")
    b = Input(T, "right matrices, of rank 1 or more; batch axes broadcast")
    product = Output(T, "the products, with the broadcast batch axes")

    transpose_a: bool = attr(False, doc="whether to swap the last two axes of a, unless it is 1-D")
    transpose_b: bool = attr(False, doc="whether to swap the last two axes of b, unless it is 1-D")

    def infer(self, a: Value, b: Value) -> PartialShape:
        for name, shape in (("a", a.shape), ("b", b.shape)):
            if shape.rank == 0:
                raise InferenceError(
                    f"{name} is a scalar; at least one axis is expected",
                    clause=f"{name} has at least one axis",
                )
        if a.shape.rank is None or b.shape.rank is None:
            return PartialShape.dynamic()
        left, right = _matrices(a.shape, self.transpose_a), _matrices(b.shape, self.transpose_b)
        columns, rows = left[-1], right[-2] if len(right) > 1 else right[0]
        if not columns.compatible(rows):
            raise InferenceError(
                f"a {_describe(a.shape, self.transpose_a)} has {columns} columns, "
                f"b {_describe(b.shape, self.transpose_b)} has {rows} rows; both must be equal",
                hint=self._hint(left, right),
                clause="a has as many columns as b has rows",
            )
        batch = broadcast_shapes(PartialShape(left[:-2]), PartialShape(right[:-2]), names=_BATCHES)
        return PartialShape([*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else [])])

    def _hint(self, left: list[Dimension], right: list[Dimension]) -> str:
        """Return a hint about the attribute whose negation would make the shapes match; empty if there is none."""
        if len(right) > 1 and left[-1].compatible(right[-1]):
            return f"with transpose_b {'false' if self.transpose_b else 'true'} they would fit"
        if len(left) > 1 and left[-2].compatible(right[-2] if len(right) > 1 else right[0]):
            return f"with transpose_a {'false' if self.transpose_a else 'true'} they would fit"
        return ""

    def refuses_lengths(self) -> bool:
        return True

    def evaluate(self, a: Array, b: Array) -> Array:
        left = np.swapaxes(a, -1, -2) if self.transpose_a and a.ndim > 1 else a
        right = np.swapaxes(b, -1, -2) if self.transpose_b and b.ndim > 1 else b
        return matmul(left, right)

    def macs(self, operands: Operands) -> Count:
        """Return one MAC for each pair of an element of the product and a column of ``a``."""
        a = operands.inputs[0]
        return operands.result * (a[-2] if self.transpose_a and len(a) > 1 else a[-1])


def _matrices(shape: PartialShape, transpose: bool) -> list[Dimension]:
    dims = list(shape)
    if transpose and len(dims) > 1:
        dims[-2:] = dims[:-3:-1]
    return dims


def _describe(shape: PartialShape, transpose: bool) -> str:
    return f"{shape} transposed" if transpose and len(shape) > 1 else str(shape)


# Einsum: sums of products over named axes (the Einstein summation convention).

ELLIPSIS = "..."

_SEARCHED = 24
"""The maximum number of operands for which NumPy optimizes the order, which takes cubic time."""


class Equation(NamedTuple):
    """The labels of the axes of each operand and of the output; an ellipsis counts as a label."""

    operands: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]


@op("Einsum-7")
class Einsum(Op):
    """Multiply ``operands`` with labelled axes, and sum over the labels that the output lacks.

    As in NumPy, the equation may contain spaces, and in implicit mode a label that one operand repeats is dropped; so
    the specification says. OpenVINO refuses spaces, and keeps such a label.
    """

    flops_per_element = 0

    operands = Input(T, "one tensor for each subscript", variadic=True)
    output = Output(T, "an axis for each label of the output")

    equation: str = attr(
        doc="labels of the axes, such as ij,jk->ik; without ->, the output has the labels that occur once, sorted"
    )

    def verify(self) -> None:
        """Require a valid equation."""
        parse(self.equation)

    def infer(self, *operands: Value) -> PartialShape:
        equation = parse(self.equation)
        if len(equation.operands) != len(operands):
            raise InferenceError(
                f"equation {self.equation!r} is for {len(equation.operands)} inputs, got {len(operands)}",
                code=Code.PORT_COUNT,
                clause="equation has a subscript for each input",
            )
        sizes: dict[str, Dimension] = {}
        covered: PartialShape = PartialShape()
        for index, (labels, operand) in enumerate(zip(equation.operands, operands, strict=True)):
            axes, middle = self._operand(index, labels, operand.shape)
            for label, dim in axes.items():
                merged = broadcast_dims(sizes.get(label, Dimension(1)), dim)
                if merged is None:
                    raise InferenceError(
                        f"label {label!r} of equation {self.equation!r} has length {dim} in input {index} "
                        f"{operand.shape}, but {sizes[label]} in an input before it",
                        clause="equal labels of different inputs have equal lengths, or one of them is 1",
                    )
                sizes[label] = merged
            names = ("the axes that ellipses cover so far", f"those of input {index}")
            covered = broadcast_shapes(covered, middle, names=names)
        if ELLIPSIS in equation.output and covered.rank is None:
            return PartialShape.dynamic()
        return PartialShape([d for n in equation.output for d in (covered if n == ELLIPSIS else (sizes[n],))])

    def _operand(
        self, index: int, labels: tuple[str, ...], shape: PartialShape
    ) -> tuple[dict[str, Dimension], PartialShape]:
        """Return the length of each label of an operand, and the shape that its ellipsis covers."""
        letters = [label for label in labels if label != ELLIPSIS]
        if shape.rank is None:
            middle = PartialShape.dynamic() if ELLIPSIS in labels else PartialShape()
            return {label: Dimension() for label in letters}, middle
        hidden = shape.rank - len(letters)
        if hidden < 0 or (hidden and ELLIPSIS not in labels):
            raise InferenceError(
                f"input {index} {shape} has rank {shape.rank}, but its subscript {''.join(labels)!r} in equation "
                f"{self.equation!r} names {len(letters)} axes",
                clause="a subscript has a label for each axis, or an ellipsis",
            )
        place = labels.index(ELLIPSIS) if ELLIPSIS in labels else shape.rank
        sizes: dict[str, Dimension] = {}
        for label, dim in zip(letters, (*shape[:place], *shape[place + hidden :]), strict=True):
            merged = dim.merge(sizes.get(label, dim))
            if merged is None:
                raise InferenceError(
                    f"label {label!r} occurs twice for input {index} {shape}, but its axes have lengths "
                    f"{sizes[label]} and {dim}",
                    clause="equal labels of one input have equal lengths",
                )
            sizes[label] = merged
        return sizes, PartialShape(shape[place : place + hidden])

    def evaluate(self, *operands: Array) -> Array:
        equation = parse(self.equation)
        numbers = {
            label: i for i, label in enumerate(dict.fromkeys(n for ls in equation.operands for n in ls))
        }
        hidden = [
            x.ndim - sum(n != ELLIPSIS for n in ls) for x, ls in zip(operands, equation.operands, strict=True)
        ]
        widest = max(hidden, default=0)

        def subscript(labels: tuple[str, ...], covered: int) -> list[int]:
            middle = range(len(numbers) + widest - covered, len(numbers) + widest)
            return [i for n in labels for i in (middle if n == ELLIPSIS else (numbers[n],))]

        dtype = operands[0].dtype
        work = np.dtype(np.int64) if dtype.kind in "iu" else accumulator_dtype(dtype)
        arguments: list[Array | list[int]] = []
        for index, (x, labels, covered) in enumerate(zip(operands, equation.operands, hidden, strict=True)):
            # Check the lengths: an operand with a length of 0 could make NumPy read beyond another one.
            self._operand(index, labels, PartialShape(x.shape))
            arguments += [x.astype(work, copy=False), subscript(labels, covered)]
        has_ellipsis = any(ELLIPSIS in labels for labels in equation.operands)
        output = subscript(equation.output, widest if has_ellipsis else 0)
        if len(operands) > _SEARCHED:
            return from_accumulator(
                np.array(_multiply_in_order(arguments[::2], arguments[1::2], output), work), dtype
            )
        optimize = "greedy" if len(operands) > 1 else False
        result = np.einsum(*arguments, output, optimize=optimize)
        return from_accumulator(np.array(result, work), dtype)

    def macs(self, operands: Operands) -> Count:
        """Return one MAC for each combination of indices, times the number of operands minus 1."""
        lengths: dict[str, Count] = {}
        for labels, operand in zip(parse(self.equation).operands, operands.inputs, strict=True):
            hidden = len(operand) - sum(label != ELLIPSIS for label in labels)
            axes = iter(operand)
            for label in labels:
                length = size([*islice(axes, hidden)]) if label == ELLIPSIS else next(axes)
                if lengths.get(label, 1) == 1:
                    lengths[label] = length
        return (len(operands.inputs) - 1) * product(lengths.values())


def _multiply_in_order(arrays: Sequence[Any], subscripts: Sequence[Any], output: Sequence[int]) -> Array:
    """Multiply operands one after another, summing over each label after its last use."""
    last = {number: index for index, numbers in enumerate(subscripts) for number in numbers}
    last |= dict.fromkeys(output, len(arrays))
    product, axes = arrays[0], subscripts[0]
    for index in range(1, len(arrays)):
        remaining = [n for n in dict.fromkeys((*axes, *subscripts[index])) if last[n] > index]
        product = np.einsum(product, axes, arrays[index], subscripts[index], remaining)
        axes = remaining
    return np.asarray(np.einsum(product, axes, output))


@cache
def parse(equation: str) -> Equation:
    """Parse an equation; raise a `ValidationError` if it is invalid."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    operands = tuple(_labels(subscript, equation) for subscript in left.split(","))
    labels_before = [label for labels in operands for label in labels]
    if not arrow:
        once = sorted(n for n in set(labels_before) - {ELLIPSIS} if labels_before.count(n) == 1)
        return Equation(operands, ((ELLIPSIS,) if ELLIPSIS in labels_before else ()) + tuple(once))
    output = _labels(right, equation)
    for label in output:
        if label not in (*labels_before, ELLIPSIS):
            raise ValidationError(
                f"attribute 'equation' is {equation!r}: label {label!r} after the arrow does not occur before it",
                clause="labels after the arrow occur before it",
            )
        if output.count(label) > 1:
            raise ValidationError(
                f"attribute 'equation' is {equation!r}: label {label!r} occurs twice after the arrow",
                clause="labels after the arrow are different",
            )
    return Equation(operands, output)


def _labels(subscript: str, equation: str) -> tuple[str, ...]:
    before, dots, after = subscript.partition(ELLIPSIS)
    for letter in before + after:
        if not (letter.isascii() and letter.isalpha()):
            raise ValidationError(
                f"attribute 'equation' is {equation!r}: subscript {subscript!r} may hold letters from a to z and A to "
                f"Z, and one ellipsis",
                clause="a subscript has letters from a to z and A to Z, and at most one ellipsis",
            )
    return (*before, *((ELLIPSIS,) if dots else ()), *after)


# Grouped matrix products: each group of rows has its own matrix (mixture of experts).


@op("GroupedMatMul-17", spec="matrix/grouped-matmul-17")
class GroupedMatMul(Op):
    """Multiply each group of rows of ``mat_a`` with its transposed matrix of ``mat_b``.

    Older versions of the specification also describe matrices [G, K, N], and a pair of matrices instead of a stack;
    OpenVINO has neither. Rows beyond the last offset give 0, as in its reference. OpenVINO 2026.4 infers shapes of this
    operation, but does not run it yet.
    """

    decisions = ("rows beyond the last offset are 0, as in OpenVINO's reference; the page does not say",)

    flops_per_element = 0

    mat_a = Input(T, "[rows, K] with offsets, or [G, M, K] without")
    mat_b = Input(T, "[G, N, K]")
    offsets = Input(
        T_INDEX_64, "[G], the exclusive end of each group of rows; only for 2-D mat_a", optional=True
    )
    output = Output(T, "[rows, N] or [G, M, N]")

    def infer(self, mat_a: Value, mat_b: Value, offsets: Value | None = None) -> PartialShape:
        a, b = mat_a.shape, mat_b.shape
        rank = 3 if offsets is None else 2
        if a.rank not in (None, rank):
            form = "[G, M, K]" if offsets is None else "[rows, K]"
            raise InferenceError(
                f"mat_a has shape {a}; {form} is expected {'without' if offsets is None else 'with'} offsets",
                clause="mat_a has rank 2 with offsets, and 3 without",
            )
        if b.rank not in (None, 3):
            raise InferenceError(f"mat_b has shape {b}; [G, N, K] is expected", clause="mat_b is [G, N, K]")
        a = PartialShape.dynamic(rank) if a.rank is None else a
        b = PartialShape.dynamic(3) if b.rank is None else b
        if not a[-1].compatible(b[-1]):
            raise InferenceError(
                f"mat_a {a} and mat_b {b} differ in length along their last axis, K",
                hint="mat_b is [G, N, K], with its matrices transposed" if a[-1].compatible(b[-2]) else "",
                clause="mat_a and mat_b have equal lengths along their last axis, K",
            )
        if offsets is None:
            return PartialShape([_groups(a[0], b[0], "mat_a"), a[1], b[1]])
        check_vector(offsets, "offsets")
        if offsets.shape.rank is not None:
            _groups(offsets.shape[0], b[0], "offsets")
        return PartialShape([a[0], b[1]])

    def evaluate(self, mat_a: Array, mat_b: Array, offsets: Array | None = None) -> Array:
        columns = np.swapaxes(mat_b, -1, -2)
        if offsets is None:
            return matmul(mat_a, columns)
        ends = offsets.tolist()
        starts = [0, *ends][: len(ends)]
        if sorted([0, *ends, len(mat_a)]) != [0, *ends, len(mat_a)]:
            raise InferenceError(
                f"offsets is {listed(ends)}; it must rise from 0 to {len(mat_a)}, the rows of mat_a, at most",
                clause="offsets ascends from 0 to at most the number of rows of mat_a",
            )
        output = np.zeros((len(mat_a), columns.shape[-1]), mat_a.dtype)
        for matrix, start, end in zip(columns, starts, ends, strict=True):
            output[start:end] = matmul(mat_a[start:end], matrix)
        return output

    def macs(self, operands: Operands) -> Count:
        """Return one MAC for each pair of an output element and a column of ``mat_a``."""
        return operands.result * operands.inputs[0][-1]


def _groups(groups: Dimension, expected: Dimension, name: str) -> Dimension:
    merged = groups.merge(expected)
    if merged is None:
        raise InferenceError(
            f"{name} has {groups} groups, mat_b has {expected}", clause=f"{name} has as many groups as mat_b"
        )
    return merged


# Matrix inverses.


@op("Inverse-14")
class Inverse(Op):
    """Inverses of the matrices in the last two axes of ``data``, computed in f32, as the specification requires.

    A singular matrix is an error here; OpenVINO gives infinities and NaN.
    """

    flops_per_element = 0

    data = Input(T_FLOAT, "[..., N, N]")
    output = Output(T_FLOAT, "[..., N, N]")

    adjoint: bool = attr(False, doc="whether to transpose each inverse")

    def infer(self, data: Value) -> PartialShape:
        shape = data.shape
        if shape.rank is None:
            return shape
        if shape.rank < 2:
            raise InferenceError(
                f"data has shape {shape}; at least two axes are expected, [..., N, N]",
                clause="data has at least two axes, [..., N, N]",
            )
        side = shape[-1].merge(shape[-2])
        if side is None:
            raise InferenceError(
                f"data has shape {shape}; its last two axes, the matrices, must be equally long",
                clause="the matrices in data are square",
            )
        return PartialShape([*shape[:-2], side, side])

    def evaluate(self, data: Array) -> Array:
        try:
            inverse = np.linalg.inv(data.astype(np.float32))
        except np.linalg.LinAlgError:
            raise InferenceError(
                "a matrix in data has no inverse: its determinant is 0",
                clause="the matrices in data have an inverse",
            ) from None
        if self.adjoint:
            inverse = np.swapaxes(inverse, -1, -2)
        return np.ascontiguousarray(inverse, data.dtype)

    def macs(self, operands: Operands) -> Count:
        """Return the cube of the number of rows of each matrix, as for Gaussian elimination."""
        return operands.result * operands.inputs[0][-1]
