"""Messages for invalid dims, shapes and element types."""

from __future__ import annotations

import numpy as np
from harness.refusals import Call

import ir_runtime as ir
from ir_runtime.codes import Code
from ir_runtime.ir.dimension import Dimension
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from messages.calls import passing

FOLDER = "messages"


def _named() -> ir.Model:
    model = passing()
    model.set_rt_info("x", "name")
    return model


PYTHON = (TypeError, ValueError, ir.IRError)

REFUSALS = [
    Call("element type", lambda: ElementType.parse("f23"), PYTHON),
    Call("element type of complex numbers", lambda: ElementType.from_dtype(np.complex64), PYTHON),
    Call("negative length", lambda: ir.Shape([2, -3]), PYTHON),
    Call("shape that is not known", lambda: ir.PartialShape("2,?").to_shape()),
    Call("length that is not known", lambda: Dimension("1..8").get_length()),
    Call("length that is no number", lambda: Dimension("two"), PYTHON),
    Call("length of a fraction", lambda: PartialShape([1.5]), PYTHON),  # type: ignore[list-item]
    Call("lengths the wrong way round", lambda: Dimension(8, 1), PYTHON),
    Call("half of the brackets", lambda: PartialShape("[2,3"), PYTHON),
    Call("length with three bounds", lambda: PartialShape([(1, 2, 3)]), PYTHON),  # type: ignore[list-item]
    Call("bounds that are texts", lambda: PartialShape([("?", "?")]), PYTHON),  # type: ignore[list-item]
    Call("text that is no shape of known lengths", lambda: ir.Shape("1,?")),
    Call("text that is no shape", lambda: ir.PartialShape("x,3")),
    Call("dimension beyond a shape", lambda: ir.PartialShape([1, 3])[2]),
    Call("entry of a shape of unknown rank", lambda: ir.PartialShape.dynamic()[0]),
    Call("list of several types", lambda: ir.OVAny([1, "a"])),
    Call("value of another type", lambda: ir.OVAny("x").astype(int)),
    Call("path through a value of rt_info", lambda: _named().set_rt_info(1, ["name", "more"])),
    Call("code", lambda: Code.of("IR999"), PYTHON),
    Call("unknown rank", lambda: len(PartialShape("...")), PYTHON),
]
