"""``ir-runtime shapes``: symbolic shapes, and constraints on the inputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from click.testing import Result
from harness.nets import Net, total, write, write_chain
from models.controlled import CASES

from ir_runtime import PartialShape
from ir_runtime.cli.shaping import shapes_of

Invoke = Callable[[str], Result]
Check = Callable[..., Result]


def save(folder: Path, net: Net, name: str = "net") -> None:
    (folder / f"{name}.xml").write_bytes(net.xml())
    (folder / f"{name}.bin").write_bytes(net.weights)


def pyramid() -> Net:
    """An image downsampled by a strided window, and split into 8x8 blocks."""
    net = Net()
    image = net.parameter("image", "?,1,?,?", out="FP32 -1 1 -1 -1")
    weights = net.constant(np.zeros((4, 1, 3, 3)), "f32", name="weights")
    how = {"strides": "2,2", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    halved = net.op("Convolution", image, weights, name="halve", **how)
    blocks = net.op("SpaceToDepth", halved, name="blocks", mode="blocks_first", block_size=4)
    net.result(net.op("ReLU", blocks, out="FP32 -1 64 -1 -1", name="positive"))
    return net


def sentence() -> Net:
    """Tokens with up to 16 positions."""
    net = Net()
    tokens = net.parameter("tokens", "1..8,?,4", names="tokens")
    mask = net.parameter("mask", "1..8,?,1", names="mask")
    shape = net.op("ShapeOf", tokens, version="opset3", output_type="i64", name="shape")
    length = net.op("Gather", shape, net.constant([1]), net.constant(0), version="opset8", name="length")
    table = net.constant(np.zeros((16, 4)), "f32", name="table")
    begin, step = net.constant([0]), net.constant([1])
    rows = net.op("Slice", table, begin, length, step, version="opset8", name="positions")
    placed = net.op("Add", tokens, rows, name="placed")
    net.result(net.op("Concat", placed, mask, axis=2, name="masked"))
    return net


def contradiction() -> Net:
    net = Net()
    x = net.parameter("x", "?")
    for length in (3, 4):
        bias = net.constant(np.zeros(length), "f32", name=f"bias{length}")
        net.result(net.op("Add", x, bias, auto_broadcast="none", name=f"plus{length}"), f"result{length}")
    return net


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("image", "shapes pyramid.xml"),
        ("tokens", "shapes sentence.xml --layers 'p*' --layers masked --inputs"),
        ("bare", "shapes pyramid.xml --no-constraints"),
        ("unconfirmed", "shapes sentence.xml --no-confirm --layers masked"),
        ("reshaped", "shapes pyramid.xml --shape 'image=[2,1,64,32..64]'"),
        ("refused", "shapes pyramid.xml --shape '[1,1,20,20]'"),
        ("no_rank", "shapes sentence.xml --shape tokens=... --layers masked"),
        ("static", "shapes chain.xml"),
        ("impossible", "shapes impossible.xml"),
        ("invalid", "shapes invalid.xml"),
        ("other_layers", "shapes chain.xml --layers none"),
        ("near_layers", "shapes chain.xml --layers stretsh"),
        ("no_shape", "shapes chain.xml --shape x=[1,2"),
        ("no_input", "shapes chain.xml --shape y[1,2],x[1,3]"),
    ],
)
def test_what_is_shown(folder: Path, check: Check, name: str, line: str) -> None:
    save(folder, pyramid(), "pyramid")
    save(folder, sentence(), "sentence")
    save(folder, contradiction(), "impossible")
    write_chain(folder)
    write(folder, total().replace('type="Add"', 'type="Adds"'), "invalid")
    codes = {"refused": 3, "impossible": 1, "no_shape": 2, "no_input": 2, "other_layers": 2, "near_layers": 2}
    assert check(f"shapes_{name}", line).exit_code == codes.get(name, 0)


def test_json_has_the_same(folder: Path, invoke: Invoke) -> None:
    save(folder, pyramid())
    record = json.loads(invoke("shapes net.xml --json").stdout)
    assert record["inputs"] == [
        {"input": "image", "axis": axis, "name": name, "bounds": "?"}
        for axis, name in ((0, "batch"), (2, "height"), (3, "width"))
    ]
    ports = {port["layer"]: port for port in record["ports"]}
    assert ports["blocks"]["shape"] == ["batch", 64, "ceil(height/8)", "ceil(width/8)"]
    assert ports["blocks"]["line"] == 7
    (constraint,) = [c for c in record["constraints"]["constraints"] if c["kind"] == "multiple"]
    assert (constraint["symbols"], constraint["number"]) == (["height", "width"], 8)
    assert constraint["text"] == "height and width leave 0 or 7 when divided by 8"
    assert constraint["confirmed"] is True
    assert constraint["refused_by"]["layer"] == "blocks"


def test_bodies_are_listed(folder: Path, invoke: Invoke) -> None:
    """Layers of bodies are named by paths, with their shapes in the body."""
    ov.serialize(CASES["if_in_if"][0](), folder / "net.xml")
    record = json.loads(invoke("shapes net.xml --layers '*then_body*' --json").stdout)
    names = [port["layer"] for port in record["ports"]]
    assert any(name.count("then_body") == 2 for name in names)
    assert all(port["shape"] is not None for port in record["ports"])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["[1..8,3,?,?]"], {None: "[1..8,3,?,?]"}),
        (["data=[1..8,3,?,?]"], {"data": "[1..8,3,?,?]"}),
        (["1,-1"], {None: "[1,?]"}),
        (["x=..."], {"x": "[...]"}),
        (["x = [2.., ..8]"], {"x": "[2..,..8]"}),
        (["ids[1,16],mask[?,16]"], {"ids": "[1,16]", "mask": "[?,16]"}),
        (["ids=[1,16], mask=[?]"], {"ids": "[1,16]", "mask": "[?]"}),
        (["[1,2],[3]"], {0: "[1,2]", 1: "[3]"}),
        (["a.b/c:0=[?]", "x[]"], {"a.b/c:0": "[?]", "x": "[]"}),
    ],
)  # fmt: skip
def test_shapes_as_text(texts: list[str], expected: dict[str | int | None, str]) -> None:
    assert {name: str(shape) for name, shape in shapes_of(texts).items()} == expected


@pytest.mark.parametrize(
    "text",
    [
        "[1..8,3,?,?]", "1..8,3", "...", "[...]", "-1", "?", "..8", "2..", "", "[]", "[1,2", "1,,2", "1,2]", "a",
        "1.5", "..", "[..., 3]", " [1,2] ", "[[1,2]]", "[-1..8]", "+3", "0..0", "1 2", "..-1", "1_0", "1..x", "[1,2],",
    ],
)  # fmt: skip
def test_one_shape_is_read_as_openvino_reads_it(text: str) -> None:
    assert _read(PartialShape, text) == _read(ov.PartialShape, text)


def _read(kind: Callable[[str], object], text: str) -> str:
    """Return the shape of the output, or the refusal."""
    try:
        return str(kind(text))
    except (ValueError, RuntimeError):
        return "refused"
