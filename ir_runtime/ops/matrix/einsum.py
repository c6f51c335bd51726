"""Einsum: sums of products over named axes (the Einstein summation convention)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ...codes import Code
from ...errors import ValidationError
from ...ir.dimension import Dimension
from ...ir.formula import Count, product
from ...ir.operands import Operands, size
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import InferenceError, Input, Op, Output, T, attr, op
from .._lengths import broadcast_dims, broadcast_shapes
from ..kernels.matmul import accumulator_dtype, from_accumulator

ELLIPSIS = "..."

_SEARCHED = 24
"""The most operands for which NumPy optimizes the order, in cubic time."""


class Equation(NamedTuple):
    """Labels of the axes of each operand and of the output; an ellipsis is a label."""

    operands: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]


@op("Einsum-7")
class Einsum(Op):
    """Multiply ``operands`` with labelled axes, and sum over the labels missing from the output.

    OpenVINO refuses blanks and, in implicit mode, keeps labels that one operand repeats; the page
    allows the former and drops the latter, as NumPy does.
    """

    flops_per_element = 0

    operands = Input(T, "one tensor for each subscript", variadic=True)
    output = Output(T, "an axis for each label of the output")

    equation: str = attr(doc="labels of the axes: ij,jk->ik; without ->, those that occur once, sorted")

    def verify(self) -> None:
        """Read the equation."""
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
        """Return the length of each label, and the shape covered by the ellipsis."""
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
            self._operand(
                index, labels, PartialShape(x.shape)
            )  # lengths of 0 in others make NumPy read beyond x
            arguments += [x.astype(work, copy=False), subscript(labels, covered)]
        has_ellipsis = any(ELLIPSIS in labels for labels in equation.operands)
        output = subscript(equation.output, widest if has_ellipsis else 0)
        if len(operands) > _SEARCHED:
            return from_accumulator(np.array(_in_turn(arguments[::2], arguments[1::2], output), work), dtype)
        optimize = "greedy" if len(operands) > 1 else False
        result = np.einsum(*arguments, output, optimize=optimize)
        return from_accumulator(np.array(result, work), dtype)

    def macs(self, operands: Operands) -> Count:
        """Return one MAC for each combination of labels and each operand after the first."""
        lengths: dict[str, Count] = {}
        for labels, operand in zip(parse(self.equation).operands, operands.inputs, strict=True):
            hidden = len(operand) - sum(label != ELLIPSIS for label in labels)
            axes = iter(operand)
            for label in labels:
                length = size([*islice(axes, hidden)]) if label == ELLIPSIS else next(axes)
                if lengths.get(label, 1) == 1:
                    lengths[label] = length
        return (len(operands.inputs) - 1) * product(lengths.values())


def _in_turn(arrays: Sequence[Any], subscripts: Sequence[Any], output: Sequence[int]) -> Array:
    """Multiply operands one after another, summing over each label after its last use."""
    last = {number: place for place, numbers in enumerate(subscripts) for number in numbers}
    last |= dict.fromkeys(output, len(arrays))
    product, axes = arrays[0], subscripts[0]
    for place in range(1, len(arrays)):
        remaining = [n for n in dict.fromkeys((*axes, *subscripts[place])) if last[n] > place]
        product = np.einsum(product, axes, arrays[place], subscripts[place], remaining)
        axes = remaining
    return np.asarray(np.einsum(product, axes, output))


@cache
def parse(equation: str) -> Equation:
    """Parse an equation; `ValueError` describes an error."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    operands = tuple(_labels(subscript, equation) for subscript in left.split(","))
    given = [label for labels in operands for label in labels]
    if not arrow:
        once = sorted(n for n in set(given) - {ELLIPSIS} if given.count(n) == 1)
        return Equation(operands, ((ELLIPSIS,) if ELLIPSIS in given else ()) + tuple(once))
    output = _labels(right, equation)
    for label in output:
        if label not in (*given, ELLIPSIS):
            raise ValidationError(
                f"attribute 'equation' is {equation!r}: label {label!r} behind the arrow is not before it",
                clause="labels after the arrow are before it, too",
            )
        if output.count(label) > 1:
            raise ValidationError(
                f"attribute 'equation' is {equation!r}: label {label!r} is twice behind the arrow",
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
