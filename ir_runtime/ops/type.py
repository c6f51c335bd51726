"""Conversions of element types."""

from __future__ import annotations

from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType, Value
from ._convert import convert
from ._define import FOLLOWED, Element, Input, Op, Output, attr, op
from ._types import EVERY

NUMERIC = tuple(e for e in EVERY if e is not ElementType.string)
T = Element("T", NUMERIC, "any type of numbers, or boolean")
T_LIKE = Element("T2", NUMERIC, "any type of numbers, or boolean")


@op("Convert-1")
class Convert(Op):
    """The numbers of ``data`` as numbers of another element type."""

    data = Input(T, "tensor to convert")
    converted = Output("destination_type", "the same shape, in the new type")

    destination_type: ElementType = attr(doc="element type to convert to")

    symbolic = True

    def verify(self) -> None:
        """Require a type of numbers."""
        if self.destination_type not in NUMERIC:
            raise ValueError(f"destination_type must be a type of numbers, not {self.destination_type}")

    def infer(self, data: Value) -> PartialShape:
        return data.shape

    def evaluate(self, data: Array) -> Array:
        return convert(data, self.destination_type)


@op("ConvertLike-1")
class ConvertLike(Op):
    """The numbers of ``data`` as numbers of the element type of ``like``, whose contents do not matter."""

    data = Input(T, "tensor to convert")
    like = Input(T_LIKE, "tensor of the element type to convert to")
    converted = Output(T_LIKE, "the shape of data, in the new type")

    symbolic = True

    def infer(self, data: Value, like: Value) -> TensorType:
        return TensorType(like.element, data.shape)

    def evaluate(self, data: Array, like: Array) -> Array:
        return convert(data, ElementType.from_dtype(like.dtype))

    def propagate(self, *inputs: Value) -> Array | None:
        """The contents, of which ``like`` has no part."""
        data, like = inputs
        if data.data is None or data.data.size > FOLLOWED or like.element is ElementType.dynamic:
            return None
        try:
            return convert(data.data, like.element)
        except TypeError:
            return None
