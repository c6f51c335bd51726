"""Messages for developers who declare operations or construct them directly."""

from __future__ import annotations

from harness.refusals import Call

import ir_runtime as ir
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ops import Op, op, registry
from ir_runtime.ops.infrastructure import Parameter

FOLDER = "messages"


def split(**attributes: object) -> Op:
    cls = registry.resolve("Split")
    assert cls is not None
    return cls(**attributes)


def again() -> None:
    """Declare an existing version."""

    @op("ReLU-1")
    class ReLU(Op):
        """The second class of its name."""


def computed() -> None:
    Parameter(element_type=ElementType.f32, shape=PartialShape([2])).evaluate()


PYTHON = (TypeError, ValueError, AttributeError, RuntimeError, ir.IRError)

REFUSALS = [
    Call("attribute that there is not", lambda: split(num_split=2), PYTHON),
    Call("attribute of another value", lambda: split(num_splits=0), PYTHON),
    Call("attribute set later", lambda: setattr(split(num_splits=2), "num_splits", 1), PYTHON),
    Call("declared twice", again, PYTHON),
    Call("parameter that is computed", computed, PYTHON),
]
