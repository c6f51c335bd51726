"""Constants of every element type, written and read by OpenVINO."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from harness.nets import Net
from harness.oracle import answer, read, tensor
from harness.sample import numbers
from openvino import opset13 as opset
from openvino.op import Constant

import ir_runtime as ir
from ir_runtime.backends import available
from ir_runtime.codes import Code
from ir_runtime.ir.array import Packed
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.tensor import Array
from ir_runtime.ops.kernels.strings import pack_strings

NUMERIC = tuple(e for e in E if e not in (E.string, E.dynamic))
TEXTS = np.array([["abc", ""], ["déf\n", "日本語"]], object)

types = pytest.mark.parametrize("element", NUMERIC, ids=str)
shapes = pytest.mark.parametrize("shape", [(), (1,), (3,), (0,), (2, 0), (5, 7), (3, 1700)], ids=str)


def some(element: E, *shape: int) -> Array:
    """Return values of a type; for small types, drawn from all of them."""
    if element.bits <= 8 and element is not E.boolean:
        codes = np.random.default_rng(0).integers(0, 1 << element.bits, shape, np.uint8)
        return codes.view(element.dtype)
    return numbers(*shape, dtype=element.label)


def written(array: Array, element: E, folder: Path, dynamic: bool = False) -> Path:
    """A model written by OpenVINO, with one constant as its output."""
    constant = Constant(tensor(array, element.label))
    constant.set_friendly_name("c")
    path = folder / "m.xml"
    ov.save_model(ov.Model([opset.result(constant)], []), path, compress_to_fp16=False)
    return path


def same(found: Array, wanted: Array) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tobytes() == wanted.tobytes()


@types
@shapes
def test_constants_that_openvino_wrote(element: E, shape: tuple[int, ...], tmp_path: Path) -> None:
    array = some(element, *shape)
    model = ir.read_model(written(array, element, tmp_path))
    assert list(model.report) == []
    assert model.output().element_type is element
    same(model.constant("c"), array)
    for backend in available():
        compiled = ir.compile_model(model, backend=backend)
        found, again = compiled([])[0], compiled([])[0]
        same(found, array)
        assert found.flags.writeable
        assert not np.shares_memory(found, again)


@types
def test_any_bytes_are_read_as_openvino_reads_them(element: E) -> None:
    raw = np.random.default_rng(1).bytes(element.nbytes(41))
    net = Net()
    where = {"shape": 41, "offset": 0, "size": len(raw)}
    net.result(net.op("Const", out=element.label, name="c", element_type=element, **where))
    (wanted,) = answer(read(net.xml(), raw), [])
    found = ir.read_model(net.xml(), raw).constant("c")
    same(found, wanted.view(np.uint8) != 0 if element is E.boolean else wanted)


@types
def test_large_ones_stay_in_the_file(element: E, tmp_path: Path) -> None:
    model = ir.read_model(written(some(element, 3, 1700), element, tmp_path))
    (constant,) = model._graph.of_type("Constant")
    payload = vars(constant.op)["value"]
    assert isinstance(payload, Packed) == (element.bits < 8)
    raw = payload.raw if isinstance(payload, Packed) else payload
    assert element is E.boolean or not raw.flags.owndata
    assert not raw.flags.writeable or element is E.boolean


@pytest.mark.parametrize("shape", [(2, 2), (4,), (1,), ()], ids=str)
def test_texts_that_openvino_wrote(shape: tuple[int, ...], tmp_path: Path) -> None:
    texts = TEXTS.ravel()[: int(np.prod(shape))].reshape(shape)
    model = ir.read_model(written(texts, E.string, tmp_path))
    assert list(model.report) == []
    assert model.output().element_type is E.string
    for found, kind in ((model.constant("c"), "O"), (ir.compile_model(model)([])[0], "U")):
        assert (found.dtype.kind, found.shape, found.tolist()) == (kind, shape, texts.tolist())
    assert (tmp_path / "m.bin").read_bytes() == pack_strings(texts).tobytes()


def test_no_texts(tmp_path: Path) -> None:
    model = ir.read_model(written(np.empty(0, object), E.string, tmp_path))
    assert list(model.report) == []
    assert model.constant("c").shape == (0,)


def text_net(raw: bytes, count: int = 2) -> Net:
    net = Net()
    where = {"shape": count, "offset": 0, "size": len(raw)}
    net.result(net.op("Const", out="string", name="c", element_type="string", **where))
    net.weights = raw
    return net


def test_bytes_that_are_no_text_survive() -> None:
    raw = np.array([1, 0, 3], "<i4").tobytes() + b"a\xff\xc3"
    found = ir.read_model((net := text_net(raw, 1)).xml(), net.weights).constant("c")
    assert found[0].encode("utf-8", "surrogateescape") == b"a\xff\xc3"
    assert pack_strings(found).tobytes() == raw


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ([2, 0, 1], "attribute 'size' is 14, but string[2] takes 16 bytes"),
        ([3, 0, 1, 2], "they declare 3 strings, expected 2"),
        ([-1, 0, 1, 2], "they declare -1 strings, expected 2"),
        ([2, 1, 1, 2], "do not increase from 0"),
        ([2, 0, 2, 1], "do not increase from 0"),
        ([2, 0, -1, 2], "do not increase from 0"),
        ([2, 0, 1, 9], "do not increase from 0 to at most 2"),
    ],
)
def test_texts_that_are_none(header: list[int], why: str) -> None:
    raw = np.array(header, "<i4").tobytes() + b"ab"
    net = text_net(raw)
    (found,) = ir.validate(net.xml(), raw)
    assert (found.code, found.line, found.layer) == (Code.WEIGHTS_RANGE, 4, "c")
    assert why in found.message


def sized(element: str, shape: str, size: int, given: int = 64) -> tuple[Net, bytes]:
    net = Net()
    where = {"shape": shape, "offset": 0, "size": size}
    net.result(net.op("Const", out=element, name="c", element_type=element, **where))
    return net, bytes(range(given))


@pytest.mark.parametrize(
    ("element", "shape", "size"),
    [
        ("i64", "0", 1),
        ("i64", "0, 3", 1),
        ("f32", "2,0", 0),
        ("u4", "0", 1),
        ("u4", "0", 0),
        ("boolean", "0", 1),
    ],
)
def test_empty_constants_may_have_a_byte(element: str, shape: str, size: int) -> None:
    for given in (0, 64):
        net, weights = sized(element, shape, size, given)
        model = ir.read_model(net.xml(), weights)
        assert list(model.report) == []
        assert model.constant("c").size == 0


@pytest.mark.parametrize(
    ("element", "shape", "size"),
    [("f32", "2", 12), ("u4", "3", 3), ("i64", "", 9), ("u3", "3", 6), ("u1", "9", 3)],
)
def test_more_bytes_than_needed_are_said(element: str, shape: str, size: int) -> None:
    """OpenVINO reads such files silently."""
    net, weights = sized(element, shape, size)
    model = ir.read_model(net.xml(), weights)
    (found,) = model.report
    assert (found.code, str(found.severity), found.line) == (Code.WEIGHTS_RANGE, "warning", 4)
    assert "the rest is ignored" in found.message
    same(model.constant("c"), *answer(read(net.xml(), weights), []))


@pytest.mark.parametrize(
    ("element", "shape", "size", "takes"),
    [("f32", "2", 7, 8), ("u4", "3", 1, 2), ("u1", "9", 1, 2), ("u3", "3", 2, 3), ("u6", "1", 1, 3), ("i64", "", 0, 8)],
)  # fmt: skip
def test_too_few_bytes(element: str, shape: str, size: int, takes: int) -> None:
    net, weights = sized(element, shape, size)
    (found,) = ir.validate(net.xml(), weights)
    assert (found.code, found.line) == (Code.WEIGHTS_RANGE, 4)
    assert f"attribute 'size' is {size}, but" in found.message
    assert f"takes {takes}" in found.message
