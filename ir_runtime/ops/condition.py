"""Operations that choose, find and sort into intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.dimension import Interval
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value, objects
from ._bounds import UNDECIDED, Number, choose
from ._broadcast import Rule, align, broadcast_shapes
from ._define import FOLLOWED, Input, Op, Output, attr, op
from ._elementwise import BROADCAST, carried, contents
from ._types import T_ANY, T_BOOLEAN


@op("Select-1")
class Select(Op):
    """Elements of ``then`` where ``condition`` holds, of ``otherwise`` where it does not."""

    condition = Input(T_BOOLEAN, "which to take; stretched to the shape of the others")
    then = Input(T_ANY, "elements to take where the condition holds")
    otherwise = Input(T_ANY, "elements to take where it does not")
    output = Output(T_ANY, "the elements taken")

    auto_broadcast: Rule = attr("numpy", doc=BROADCAST)

    def infer(self, condition: Value, then: Value, otherwise: Value) -> PartialShape:
        # With numpy, the page lets the condition be stretched only; OpenVINO lets it stretch the others, too.
        both = broadcast_shapes(then.shape, otherwise.shape, self.auto_broadcast)
        return broadcast_shapes(both, condition.shape, self.auto_broadcast)

    def evaluate(self, condition: Array, then: Array, otherwise: Array) -> Array:
        if self.auto_broadcast == "pdpd":
            condition, otherwise = align(condition, then.ndim), align(otherwise, then.ndim)
        return np.where(condition, then, otherwise)

    def propagate(self, *inputs: Value) -> Any:
        """Contents from those that the condition picks; the others may be unknown."""
        if all(value.known() is not None for value in inputs):
            return super().propagate(*inputs)
        if self.auto_broadcast == "pdpd":
            return None
        condition, then, otherwise = inputs
        arrays = (_known_or(UNDECIDED, condition), *(_known_or(Interval(), v) for v in (then, otherwise)))
        return carried(choose, then.element, *arrays)


def _known_or(number: Number, value: Value) -> Array | None:
    """The contents of a tensor, or the same number everywhere if nothing but its shape is known."""
    if (
        value.data is not None
        or value.shape.is_dynamic
        or value.count.min > FOLLOWED
        or not value.element.is_integral
    ):
        return contents(value)
    return objects([number] * value.count.min, value.shape.static)
