"""What is said about models that cannot be measured."""

from __future__ import annotations

from harness.nets import Net
from harness.refusals import Call

import ir_runtime as ir

FOLDER = "messages"


def unranked() -> ir.Model:
    """A model whose input may have any shape."""
    found = Net()
    found.result(found.op("Abs", found.parameter("x", "...")))
    return ir.read_model(found.xml())


REFUSALS = [
    Call("runtime that is not known", lambda: ir.profile(unranked(), against="onnxruntime")),
    Call("random input without a rank", lambda: ir.profile(unranked())),
]
