"""Small conformance cases and corpora for tests."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import ir_runtime
from harness.nets import binary, net, parameter, result
from ir_runtime import opset1, opset6, opset8
from ir_runtime.conformance.case import SEVERAL, Case, Tolerance
from ir_runtime.ir.element import ElementType
from ir_runtime.openvino.model import Model

__all__ = [
    "counter",
    "crashing",
    "files_of",
    "refused",
    "relu",
    "small_corpus",
    "write_folder",
    "write_zip",
    "wrong",
]

F32 = ElementType.f32


def files_of(model: Model) -> tuple[bytes, bytes]:
    """Return the ``.xml`` and ``.bin`` contents of a model."""
    with TemporaryDirectory() as folder:
        ir_runtime.save_model(model, Path(folder) / "model.xml")
        xml, weights = (Path(folder, f"model.{suffix}").read_bytes() for suffix in ("xml", "bin"))
        return xml, weights


def relu(number: int = 1) -> Case:
    """Relu of two numbers."""
    xml, weights = _relu_files()
    array = np.float32([-1, 2])
    return Case(
        f"Relu-1/{number:04}", "Relu-1", "value", xml, weights, [array], [np.maximum(array, 0)], [F32], [F32],
        [Tolerance()], clauses=["Relu-1 C1"], notes="a note", source="page",
    )  # fmt: skip


@cache
def _relu_files() -> tuple[bytes, bytes]:
    x = opset1.parameter([2], np.float32, name="x")
    return files_of(ir_runtime.Model([opset1.relu(x)], [x], "relu"))


def counter() -> Case:
    """A variable that accumulates its input, in three steps."""
    x = opset1.parameter([1], np.float32, name="x")
    total = opset1.add(opset6.read_value(opset1.multiply(x, np.float32([0])), "total"), x)
    xml, weights = files_of(ir_runtime.Model([total], [opset6.assign(total, "total")], [x], "counter"))
    inputs, expected = ([np.float32([n]) for n in numbers] for numbers in ((1, 2, 4), (1, 3, 7)))
    return Case(
        "several/0001", SEVERAL, "state", xml, weights, inputs, expected, [F32] * 3, [F32] * 3, [Tolerance()] * 3,
        steps=3,
    )  # fmt: skip


def wrong(number: int = 2) -> Case:
    """ReLU with a wrong expected output."""
    return replace(relu(number), expected=[np.float32([5, 2])], clauses=["Relu-1 C2"])


def refused(number: int = 1) -> Case:
    """Add of shapes that cannot be broadcast."""
    layers = [
        parameter(0, "x", "2"),
        parameter(1, "y", "3"),
        binary(2, "z", "Add", "2", "3", "2"),
        result(3, "2"),
    ]
    xml = net(layers, [(0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0)]).encode()
    inputs = [np.zeros(2, np.float32), np.zeros(3, np.float32)]
    return Case(
        f"Add-1/{number:04}",
        "Add-1",
        "refusal",
        xml,
        b"",
        inputs,
        [],
        [F32, F32],
        [],
        [],
        clauses=["Add-1 C1"],
    )


def crashing() -> Case:
    """Gather without indices, which crashes OpenVINO's CPU plugin."""
    x = opset1.parameter([2], np.float32, name="x")
    model = ir_runtime.Model([opset8.gather(x, np.zeros((0,), np.int64), np.int64(0))], [x], "gather")
    xml, weights = files_of(model)
    inputs, expected = [np.float32([1, 2])], [np.zeros((0,), np.float32)]
    return Case(
        "Gather-8/0001", "Gather-8", "value", xml, weights, inputs, expected, [F32], [F32], [Tolerance()]
    )


def small_corpus() -> list[Case]:
    """Two passing cases, a failing one, and a refusal."""
    return [relu(1), wrong(2), relu(3), refused()]


def write_folder(folder: Path, cases: Iterable[Case]) -> Path:
    """Write each case to a subfolder."""
    for case in cases:
        case.save(folder / case.id)
    return folder


def write_zip(path: Path, cases: Iterable[Case]) -> Path:
    """Write cases to a zip archive."""
    with zipfile.ZipFile(path, "w") as archive:
        for case in cases:
            for name, contents in case.files():
                archive.writestr(f"{case.id}/{name}", contents)
    return path
