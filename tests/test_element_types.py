"""Inputs, outputs and tensors of every element type through the API."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import openvino as ov
import pytest
from click.testing import CliRunner
from harness.files import packed
from harness.nets import passing
from harness.oracle import tensor
from harness.sample import numbers
from models.compressed import COMPRESSIONS, mlp

import ir_runtime as ir
from ir_runtime.cli import main
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.tensor import Array

NUMERIC = tuple(e for e in E if e not in (E.string, E.dynamic))
types = pytest.mark.parametrize("element", NUMERIC, ids=str)


def model(element: str, shape: str = "3") -> ir.CompiledModel:
    """A model that returns its input."""
    return ir.compile_model(ir.read_model(passing(element, shape).encode()))


def some(element: E) -> Array:
    if element.bits <= 8 and element is not E.boolean:
        return np.array([0, 1, (1 << element.bits) - 1], np.uint8).view(element.dtype)
    return numbers(3, dtype=element.label)


@types
def test_what_goes_in_comes_out(element: E) -> None:
    compiled, data = model(element.label), some(element)
    assert compiled.input().element_type is compiled.output().element_type is element
    for given in (data, [data], {"x": data}, ir.Tensor(data, type=element), tensor(data, element.label)):
        found = compiled(given)[0]
        assert (found.dtype, found.shape, found.tobytes()) == (element.dtype, (3,), data.tobytes())
        assert found.flags.writeable
        assert not np.shares_memory(found, data)


@types
def test_requests_have_tensors_of_the_type(element: E) -> None:
    request, data = model(element.label).create_infer_request(), some(element)
    request.set_input_tensor(ir.Tensor(data, type=element))
    request.infer()
    found = request.get_output_tensor()
    assert found.element_type is element
    assert found.byte_size == tensor(data, element.label).byte_size
    assert found.elements.tobytes() == data.tobytes()


@types
def test_tensors_from_packed_bytes(element: E) -> None:
    """As in OpenVINO: from an array of bytes, a shape, and a type."""
    data = some(element)
    raw = np.frombuffer(packed(data, element), np.uint8)
    made = ir.Tensor(raw if element.bits < 8 else raw.view(element.dtype), [3], element)
    assert (made.element_type, made.shape, made.elements.tobytes()) == (element, (3,), data.tobytes())


@pytest.mark.parametrize(
    ("given", "label"),
    [([1, 0, True], "u1"), ([1, 2, -8], "i4"), ([3, 0, 1], "u2"), ([0, 15, 7], "nf4"), ([1, 0.5, -2], "f8e4m3"),
     ([True, False, True], "boolean"), ([0.5, 1, 1.5], "bf16")],
)  # fmt: skip
def test_python_numbers(given: list[Any], label: str) -> None:
    assert model(label)(given)[0].astype(float).tolist() == given


TEXTS = ["abc", "", "日本語"]


@pytest.mark.parametrize(
    "given",
    [TEXTS, np.array(TEXTS), np.array(TEXTS, object), [t.encode() for t in TEXTS],
     np.array([t.encode() for t in TEXTS]), np.array([TEXTS[0].encode(), *TEXTS[1:]], object),
     tensor(np.array(TEXTS, object), "string"), ir.Tensor(np.array(TEXTS))],
    ids=["list", "str", "object", "list of bytes", "bytes", "mixed", "OpenVINO's", "ours"],
)  # fmt: skip
def test_texts(given: Any) -> None:
    found = model("string")(given)[0]
    assert (found.dtype.kind, found.tolist()) == ("U", TEXTS)


@pytest.mark.parametrize(
    ("label", "given", "message"),
    [
        ("nf4", np.zeros(3, np.float32), "input 'x' is f32, expected nf4"),
        ("nf4", np.array([1, 2, 16], np.uint8), "input 'x' has bit patterns above 15, the highest of nf4"),
        ("u1", np.array([1, 2, 0], np.uint8), "input 'x' has bit patterns above 1, the highest of u1"),
        ("u6", np.array([1, 64, 0], np.uint8), "input 'x' has bit patterns above 63, the highest of u6"),
        ("nf4", ir.Tensor(np.zeros(3, np.uint8)), "input 'x' is u8, expected nf4"),
        ("u8", ir.Tensor(np.zeros(3, np.uint8), type=E.nf4), "input 'x' is nf4, expected u8"),
        ("u3", ir.Tensor(np.zeros(3, np.uint8), type=E.u6), "input 'x' is u6, expected u3"),
        ("i4", np.zeros(3, np.int8), "input 'x' is i8, expected i4"),
        ("i4", [1, 2, 99], "input 'x' has values that i4 cannot represent"),
        ("u4", [1, 2, 1.5], "input 'x' has values that u4 cannot represent"),
        ("nf4", [1, 2, 1.5], "input 'x' has values that nf4 cannot represent"),
        ("f8e4m3", np.zeros(3, ml_dtypes.float8_e5m2), "input 'x' is f8e5m2, expected f8e4m3"),
        ("boolean", np.zeros(3, complex), "input 'x' is complex128, expected boolean"),
        ("string", np.zeros(3), "input 'x' is f64, expected strings"),
        (
            "string",
            np.array(["a", "b", 3], object),
            "input 'x' is an array of Python objects, expected strings",
        ),
        ("f32", np.array(["a", "b", 3], object), "input 'x' is an array of Python objects, expected f32"),
    ],
)
def test_what_does_not_fit(label: str, given: Any, message: str) -> None:
    with pytest.raises(ir.InputError, match=re.escape(message)):
        model(label)(given)


def test_tensors_that_contradict_themselves() -> None:
    with pytest.raises(ir.InputError, match=re.escape("u4[5] takes 3 packed bytes, not 2")):
        ir.Tensor(np.zeros(2, np.uint8), [5], E.u4)
    with pytest.raises(ir.InputError, match="a tensor of f32 is an array of float32, not of uint8"):
        ir.Tensor(np.zeros(2, np.uint8), type=E.f32)


def test_weights_are_counted_packed(tmp_path: Path) -> None:
    ov.save_model(mlp(COMPRESSIONS["uint4"]), path := tmp_path / "m.xml", compress_to_fp16=False)
    shown = CliRunner().invoke(main, ["inspect", str(path)]).stdout
    count = 96 * 128 + 64 * 96 + 32 * 64
    zeros = count // 32
    assert re.search(
        rf"u4 +6 +{count + zeros} +{(count + zeros) // 2}\n", shown.replace(",", "").replace("'", "")
    ), shown


@types
def test_what_the_command_line_saves_can_be_given_again(element: E, tmp_path: Path) -> None:
    path, first, second = (tmp_path / name for name in ("m.xml", "a.npz", "b.npz"))
    path.write_text(passing(element.label, "3"))
    run = CliRunner().invoke(main, ["run", str(path), "--random", "-o", str(first)])
    again = CliRunner().invoke(main, ["run", str(path), "-i", f"x={first}", "-o", str(second)])
    assert (run.exit_code, again.exit_code) == (0, 0), run.output + again.output
    assert first.read_bytes() == second.read_bytes()
