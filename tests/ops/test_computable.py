"""Layers with known shapes that cannot be computed: nodes are created, everything else refuses them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset8 as ops


def proposal(opset: object = ops) -> ir.Node:
    attributes = {"base_size": 1, "pre_nms_topn": 20, "post_nms_topn": 10, "nms_thresh": 0.5, "feat_stride": 1,
                  "min_size": 1, "ratio": [0.5, 1], "scale": [2.0, 3.0]}  # fmt: skip
    inputs = [ops.parameter([1, 4, 5, 5], np.float32), ops.parameter([1, 8, 5, 5], np.float32)]
    return ops.proposal(*inputs, ops.parameter([3], np.float32), attributes)


def region_yolo() -> ir.Node:
    data = ops.parameter([1, 125, 13, 13], np.float32)
    return ops.region_yolo(data, 4, 80, 1, False, [6, 7, 8], 0, 3)


def binary_convolution() -> ir.Node:
    data, filters = ops.parameter([1, 1, 9, 9], np.float32), ops.parameter([1, 1, 3, 3], np.float32)
    return ops.binary_convolution(data, filters, [1, 1], [0, 0], [0, 0], [1, 1], "xnor-popcount", 0.0)


def ctc_greedy_decoder() -> ir.Node:
    return ops.ctc_greedy_decoder(ops.parameter([20, 8, 128], np.int32), ops.parameter([20, 8], np.int32))


def detection_output() -> ir.Node:
    inputs = [
        ops.parameter([1, 8], np.float32),
        ops.parameter([1, 4], np.float32),
        ops.parameter([1, 2, 10], np.float32),
    ]
    attributes = {
        "keep_top_k": [1],
        "nms_threshold": 0.5,
        "decrease_label_id": True,
        "background_label_id": 1,
    }
    return ops.detection_output(*inputs, attributes)


@pytest.mark.parametrize(
    ("create", "shape", "message"),
    [
        (proposal, [10, 5], "must have 8 channels"),
        (region_yolo, [1, 255, 13, 13], "must have 255 channels"),
        (binary_convolution, [1, 1, 7, 7], "'filters' is f32; allowed are u1"),
        (ctc_greedy_decoder, [8, 20, 1, 1], "'data' is i32; allowed are"),
        (detection_output, None, "'background_label_id' must be 0"),
    ],
)
def test_nodes_are_created_and_models_are_refused(
    create: Callable[[], ir.Node], shape: list[int] | None, message: str
) -> None:
    node = create()
    assert shape is None or list(node.output(0).shape) == shape
    with pytest.raises(ir.ValidationError, match=message):
        ir.Model([node.output(0)], [value.node for value in node.input_values()])


def test_a_node_that_is_mended_is_part_of_a_model() -> None:
    node = proposal()
    for attribute in ("ratio", "scale"):
        node.set_attribute(attribute, [1.0, 2.0] if attribute == "ratio" else [2.0])
    model = ir.Model([node.output(0)], [value.node for value in node.input_values()])
    assert ir.validate(model).ok
