"""Parameters, constants and results."""

from __future__ import annotations

from typing import Any

from ...ir.array import Packed
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, TensorType, Value
from .._define.operation import MAX_PROPAGATED, T_ANY, Input, Op, Output, attr, blob_field, op


@op("Parameter-1")
class Parameter(Op):
    """An input of the model."""

    flops_per_element = 0

    output = Output("element_type", "what the caller gives")

    element_type: ElementType = attr(doc="element type of the input")
    shape: PartialShape = attr(doc="shape of the input; -1 or ? where any length goes, 1..8 within bounds")

    pure = False

    def infer(self) -> PartialShape:
        return self.shape

    def evaluate(self) -> Array:
        raise RuntimeError("a Parameter has the value that the caller gives; it is never computed")


@op("Constant-1", aliases=("Const",))
class Constant(Op):
    """A tensor stored in the model."""

    flops_per_element = 0

    output = Output("element_type", "the tensor")

    element_type: ElementType = attr(doc="element type of the tensor")
    shape: PartialShape = attr(doc="shape of the tensor")
    offset: int = attr(ge=0, doc="first byte in the .bin")
    size: int = attr(ge=0, doc="number of bytes in the .bin")
    value: Any = blob_field(doc="the array, or packed numbers; a view of the .bin")

    def infer(self) -> PartialShape:
        return self.shape

    def evaluate(self) -> Array:
        return self.value.unpack() if isinstance(self.value, Packed) else self.value

    def infer_values(self, *inputs: Value, **context: Any) -> tuple[Value, ...]:
        """Return the type, and the contents if cheap: a view, or few enough to unpack now."""
        large = isinstance(self.value, Packed) and self.value.size > MAX_PROPAGATED
        return (Value(TensorType(self.element_type, self.shape), None if large else self.evaluate()),)


@op("Result-1")
class Result(Op):
    """An output of the model."""

    bounded = True
    flops_per_element = 0

    input = Input(T_ANY, "what the caller receives")
    output = Output(T_ANY, "the same tensor")

    symbolic = True

    def infer(self, input: Value) -> PartialShape:
        return input.shape

    def evaluate(self, input: Array) -> Array:
        return input
