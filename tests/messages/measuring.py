"""Messages for models that cannot be measured."""

from __future__ import annotations

from harness.nets import Net
from harness.refusals import Call

import ir_runtime as ir

FOLDER = "messages"


def unranked() -> ir.Model:
    """A model with an input of unknown rank."""
    found = Net()
    found.result(found.op("Abs", found.parameter("x", "...")))
    return ir.read_model(found.xml())


REFUSALS = [
    Call("runtime that is not known", lambda: ir.profile(unranked(), against="onnxruntime")),
    Call("random input without a rank", lambda: ir.profile(unranked())),
]
