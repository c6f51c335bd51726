"""Uniformly distributed random numbers."""

from __future__ import annotations

from typing import Literal

from ...errors import InferenceError, ValidationError
from ...ir.element import ElementType as E
from ...ir.shape import PartialShape
from ...ir.signature import FLOATS
from ...ir.tensor import Array, Value
from .._define.operation import T_INDEX_64, Element, Input, Output, attr, op
from .._lengths import check_one_number, lengths_of
from ._seeded import Advance, RandomOp

TYPES = (*FLOATS, E.i64, E.i32)
T_LIMIT = Element("T", TYPES, "the output_type")


@op("RandomUniform-8")
class RandomUniform(RandomOp):
    """Random numbers from ``minval``, below ``maxval``.

    With seeds, every compilation of a model draws the same sequence. Aligned to TensorFlow, each run continues it;
    aligned to PyTorch, each run starts again, as in OpenVINO.
    """

    shape = Input(T_INDEX_64, "lengths of the axes, 1-D")
    minval = Input(T_LIMIT, "the lowest number, a scalar or alone in a list")
    maxval = Input(T_LIMIT, "above all numbers, a scalar or alone in a list; rounding may reach it")
    output = Output("output_type", "numbers of a shape as asked for")

    output_type: E = attr(doc="element type of the output: f64, f32, f16, bf16, i64 or i32")
    alignment: Literal["tensorflow", "pytorch"] = attr(
        "tensorflow",
        doc="whose numbers to draw: by Philox, or by a Mersenne twister that is seeded with global_seed alone",
    )

    def verify(self) -> None:
        """Require a supported element type."""
        if self.output_type not in TYPES:
            raise ValidationError(
                f"attribute 'output_type' must be one of {', '.join(element.label for element in TYPES)}, not {self.output_type.label}",
                clause="attribute 'output_type' is a numeric type",
            )

    def infer(self, shape: Value, minval: Value, maxval: Value) -> PartialShape:
        for name, limit in (("minval", minval), ("maxval", maxval)):
            check_one_number(limit, name)
            if limit.element not in (self.output_type, E.dynamic):
                raise InferenceError(
                    f"{name} is {limit.element.label}; {self.output_type.label}, the attribute 'output_type', is expected",
                    clause=f"{name} is of the type that attribute 'output_type' names",
                )
        low, high = minval.known(), maxval.known()
        if low is not None and high is not None and not low.item() < high.item():
            raise InferenceError(
                f"minval is {low.item()}; a number below maxval, {high.item()}, is expected",
                clause="minval is less than maxval",
            )
        # For a list of at most n lengths, OpenVINO infers exactly n, although there may be fewer.
        return PartialShape(lengths_of(shape, "shape"))

    def evaluate(
        self, shape: Array, minval: Array, maxval: Array, *, advance: Advance | None = None
    ) -> Array:
        lengths = self.infer(*map(Value.constant, (shape, minval, maxval))).static
        spread = minval.reshape(()), maxval.reshape(())
        if self.alignment == "pytorch":
            return self.as_pytorch(self.output_type, lengths, spread)
        return self.as_tensorflow(self.output_type, lengths, spread, advance)
