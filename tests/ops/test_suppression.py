"""Non-maximum suppression, beyond samples: bounds on the number of boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.layers import layer, value, values
from harness.nets import Net
from harness.oracle import core, read

import ir_runtime as ir
from ir_runtime.ir.dimension import Dimension
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Value, objects

SUPPRESSIONS = [f"NonMaxSuppression-{version}" for version in (1, 3, 4, 5, 9)]


def number(k: int | Dimension) -> Value:
    return Value.bounded(ElementType.i64, objects([k], ()))


@pytest.mark.parametrize("name", SUPPRESSIONS)
@pytest.mark.parametrize(
    ("boxes", "scores", "limit", "rows"),
    [
        ("2,10,4", "2,3,10", 4, "..24"),
        ("2,10,4", "2,3,10", 40, "..60"),
        ("2,10,4", "2,3,10", Dimension(1, 5), "..30"),
        ("2,?,4", "2,3,..7", 40, "..42"),
        ("2,?,4", "2,3,?", 4, "..24"),
        ("2,10,4", "...", 4, "?"),
        ("?,10,4", "?,3,10", 4, "?"),
        ("?,10,4", "?,3,10", 0, "0"),
        ("...", "...", "i64", "?"),
    ],
)
def test_how_many_may_be_left(name: str, boxes: str, scores: str, limit: Any, rows: str) -> None:
    k = value(f"{limit} ") if isinstance(limit, str) else number(limit)
    found = layer(name).infer_types(value(f"f32 {boxes}"), value(f"f32 {scores}"), k)
    assert str(found[0].shape) == f"[{rows},3]"


@pytest.mark.parametrize("version", [1, 3, 4])
def test_openvino_infers_the_same_when_it_compiles(version: int) -> None:
    """For a file, OpenVINO infers a fixed number of rows, however many boxes are kept."""
    net = Net()
    boxes, scores = (
        net.parameter("boxes", "1,3,4", out="FP32 1 3 4"),
        net.parameter("scores", "1,1,3", out="FP32 1 1 3"),
    )
    rest = net.constant(3), net.constant(0.5, "f32"), net.constant(0.1, "f32")
    how: dict[str, str] = {"box_encoding": "corner", "sort_result_descending": "true"}
    how |= {} if version == 1 else {"output_type": "i64"}
    left = net.op("NonMaxSuppression", boxes, scores, *rest, out="I64 3 3", version=f"opset{version}", **how)
    net.result(left)
    ours, theirs = ir.read_model(net.xml(), net.weights), read(net.xml(), net.weights)
    compiled = core().compile_model(theirs, "CPU")
    fed = [np.zeros((1, 3, 4), "f4"), np.array([[[0.9, 0.8, 0.05]]], "f4")]
    assert str(ours.output().partial_shape) == str(compiled.output(0).partial_shape) == "[..3,3]"
    assert str(theirs.output(0).partial_shape) == "[3,3]"
    found, wanted = ir.compile_model(ours)(fed)[0], compiled(fed)[0]
    np.testing.assert_array_equal(found, wanted, strict=True)
    assert found.shape == (2, 3)


@pytest.mark.parametrize("name", SUPPRESSIONS)
def test_without_a_limit_none_is_left(name: str) -> None:
    boxes, scores = np.ones((1, 3, 4), "f4"), np.ones((1, 2, 3), "f4")
    found = layer(name).infer_values(*values([boxes, scores]))
    assert str(found[0].shape) == "[0,3]"


@pytest.mark.parametrize(
    ("name", "inputs", "attributes", "shapes"),
    [
        ("MatrixNms-8", ("f32 2,10,4", "f32 2,3,10"), {}, "[..60,6] [..60,1] [2]"),
        ("MatrixNms-8", ("f32 2,10,4", "f32 2,3,10"), {"nms_top_k": "4"}, "[..24,6] [..24,1] [2]"),
        ("MatrixNms-8", ("f32 2,?,4", "f32 2,3,?"), {"keep_top_k": "4"}, "[..8,6] [..8,1] [2]"),
        ("MulticlassNms-8", ("f32 ?,10,4", "f32 ?,3,10"), {}, "[?,6] [?,1] [?]"),
        ("MulticlassNms-9", ("f32 3,10,4", "f32 3,10", "i64 2"), {}, "[..60,6] [..60,1] [2]"),
        (
            "MulticlassNms-9",
            ("f32 3,10,4", "f32 3,10", "i64 2"),
            {"keep_top_k": "5"},
            "[..10,6] [..10,1] [2]",
        ),
    ],
)
def test_shapes_of_several_classes(
    name: str, inputs: tuple[str, ...], attributes: dict[str, str], shapes: str
) -> None:
    found = layer(name, **attributes).infer_types(*values(inputs))
    assert " ".join(str(t.shape) for t in found) == shapes


def test_boxes_of_no_area_and_nan() -> None:
    """Such boxes neither suppress others nor are suppressed."""
    boxes = np.array([[[0, 0, 0, 5], [0, 0, 0, 5], [0, np.nan, 5, 5], [0, 0, 5, 5]]], "f4")
    limits = np.array(9), np.array(0.5, "f4"), np.array(0, "f4")
    found, scores, count = layer("NonMaxSuppression-9").evaluate(boxes, np.ones((1, 1, 4), "f4"), *limits)
    assert found[:, 2].tolist() == [0, 1, 2, 3]
    assert scores[:, 2].tolist() == [1, 1, 1, 1]
    assert count.tolist() == [4]
