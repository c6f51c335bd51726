"""Messages about conformance cases that are damaged, and about runtimes that do not run them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import numpy as np
from harness.nets import Net
from harness.refusals import Call

from ir_runtime.conformance.adapters import adapter
from ir_runtime.conformance.case import Case, Tolerance
from ir_runtime.ir.element import ElementType

FOLDER = "messages"
F32 = ElementType.f32


def relu() -> Case:
    net, x = Net(), np.float32([-1, 2])
    net.result(net.op("Relu", net.parameter("x", "2")), "y")
    xml = net.xml()
    return Case(
        "Relu-1/0001", "Relu-1", "value", xml, b"", [x], [np.maximum(x, 0)], [F32], [F32], [Tolerance()]
    )


def parse(**meta: Any) -> Case:
    """Read a case whose description has other fields."""
    case = relu()
    return Case.parse(dict(case.files()) | {"case.json": json.dumps({**case.record(), **meta}).encode()})


def parse_with(**files: bytes | None) -> Case:
    """Read a case with other files; ``None`` removes one."""
    changed = {name.replace("_npy", ".npy"): contents for name, contents in files.items()}
    contents = dict(relu().files()) | changed
    return Case.parse({name: raw for name, raw in contents.items() if raw is not None})


def run_command(body: str) -> Any:
    return adapter(f'{sys.executable} -c "{body}"')(relu())


def output(**fields: Any) -> list[dict[str, Any]]:
    return [{"type": "f32", "ulp": 0, "absolute": 0, "predicate": "", **fields}]


REFUSALS = [
    Call("case without a model", lambda: Case.parse({})),
    Call("case of another schema", lambda: parse(schema=7)),
    Call("case that leaves the corpus", lambda: parse(id="../x")),
    Call("case of something else", lambda: parse(operation="!")),
    Call("case of an unknown kind", lambda: parse(kind="valu")),
    Call("case of too many arrays", lambda: parse(inputs=["f32"] * 9999)),
    Call("case of half a step", lambda: parse(steps=2)),
    Call("case of an unknown type", lambda: parse(inputs=["dynamic"])),
    Call("case of a negative tolerance", lambda: parse(outputs=output(ulp=-1))),
    Call("case without an input", lambda: parse_with(input_0_npy=None)),
    Call("case whose input is text", lambda: parse_with(input_0_npy=b"text")),
    Call("case whose input should hold strings", lambda: parse(inputs=["string"])),
    Call("case whose input should hold bits", lambda: parse(inputs=["bf16"])),
    Call("runtime that is unknown", lambda: adapter("openvin")),
    Call("command with an open quote", lambda: adapter("python 'device.py")),
    Call("command that fails", lambda: run_command("import sys; sys.exit(3)"), (RuntimeError,)),
    Call("command for several steps", lambda: adapter("./run x")(replace(relu(), steps=2)), (Exception,)),
]
