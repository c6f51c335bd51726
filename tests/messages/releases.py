"""Messages for models that a release of OpenVINO does not read."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from harness.files import model_of
from harness.legacy import LegacyNet
from harness.nets import Net
from harness.refusals import Call
from harness.sample import case, ints, numbers, scalar

import ir_runtime as ir
from ir_runtime import opset1, opset8, opset14
from ir_runtime._util.command_line import for_command_line

FOLDER = "messages"
POOL = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "kernel": (2, 2)}


def saving(model: Callable[[], ir.Model], release: str = "2021.4") -> Callable[[], None]:
    """Save for a release in a temporary folder."""

    def call() -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            ir.save_model(model(), "model.xml", for_release=release)

    return call


def layer(
    name: str, op: str, *inputs: Any, fixed: tuple[int, ...] = (), release: str = "2022.1", **how: Any
) -> Call:
    """A model of one layer; its inputs are Parameters, except for those in ``fixed``."""
    return Call(name, saving(lambda: ir.read_model(*model_of(case(op, *inputs, **how), fixed)), release))


def dynamic(op: str, *inputs: str, version: int, **how: Any) -> Callable[[], ir.Model]:
    """A model of one layer on inputs such as ``"f32 ?,2"``."""

    def build() -> ir.Model:
        net = Net()
        sources = []
        for index, text in enumerate(inputs):
            element, _, shape = text.partition(" ")
            sources.append(net.parameter(f"x{index}", shape, element))
        ends = net.layer(
            op, sources, [""] * (1 + (op == "ConvertPromoteTypes")), version=f"opset{version}", **how
        )
        for index, end in enumerate(ends):
            net.result(end, f"result{index}")
        return ir.read_model(net.xml())

    return build


def validating(net: Net | LegacyNet, release: str) -> Callable[[], None]:
    def call() -> None:
        report = ir.validate(net.xml(), for_release=release)
        raise ir.ValidationError.of(report.errors)

    return call


def identity(version: str = "11", shape: str = "2") -> Net:
    net = Net(version=version)
    x = net.parameter("x", shape, out=f"FP32 {shape.replace('?', '-1').replace(',', ' ')}")
    net.result(net.op("Identity", x, version="opset16"))
    return net


def legacy() -> LegacyNet:
    net = LegacyNet()
    net.layer("ReLU", [net.input("x", 1, 2)], (1, 2))
    return net


X = numbers(1, 2, 4, 4)

REFUSALS = [
    Call("validate for an old release", validating(identity(shape="?"), "2021.4")),
    Call("validate for a newer one", validating(legacy(), "2024.6")),
    Call("unknown release", lambda: ir.validate(identity().xml(), for_release="2024.7")),
    Call("no release at all", lambda: ir.validate(identity().xml(), for_release="newest")),
    Call("no older operations", saving(dynamic("ErfInv", "f32 2", version=17))),
    Call("no release reads it", saving(dynamic("Range", "f32", "f32", "f32", version=17, output_type="f32"))),
    Call("dynamic dims", saving(dynamic("ReLU", "f32 ?", version=1))),
    Call("output of f64", saving(dynamic("ReLU", "f64 2", version=1))),
    layer("attribute of the former version", "TopK-11", numbers(4), scalar(2), axis=0, mode="max", sort="value", stable=True),
    layer("input of the former version", "MulticlassNms-9", numbers(2, 3, 4), numbers(2, 3), ints(1, 2)),
    Call("output of the former version", saving(lambda: _indices())),
    layer("value of the former version", "AvgPool-14", X, rounding_type="ceil_torch", exclude__pad=False, **POOL),
    layer("padding that is not constant", "Pad-12", numbers(3), ints(1), ints(1), pad_mode="edge"),
    layer("padding that crops", "Pad-12", numbers(3), ints(-1), ints(1), fixed=(1, 2), pad_mode="edge"),
    layer("reduction", "ScatterElementsUpdate-12", numbers(3), ints(1), numbers(1), scalar(0), reduction="sum"),
    layer("mean of bags", "EmbeddingBagPacked-15", numbers(5, 2), np.int64([[0, 1]]), reduction="mean"),
    layer("mode of interpolation", "Interpolate-11", X, ints(4, 4), ints(2, 3), fixed=(1, 2), mode="bilinear_pillow", shape_calculation_mode="sizes"),
    layer("bits", "BitwiseAnd-13", ints(1), ints(2)),
    layer("windows", "AdaptiveAvgPool-8", X, ints(3, 3), fixed=(1,), release="2021.4"),
    layer("means of integers", "AdaptiveAvgPool-8", ints(1, 2).reshape(1, 1, 2), ints(1), fixed=(1,), release="2021.4"),
    Call("dynamic channels", saving(dynamic("GroupNormalization", "f32 1,?,4", "f32 ?", "f32 ?", version=12, num_groups=2, epsilon=1), "2022.1")),
    Call("rank of attention", saving(dynamic("ScaledDotProductAttention", *["f32 ..."] * 3, version=13, causal=False), "2022.1")),
    Call("features of attention", saving(dynamic("ScaledDotProductAttention", *["f32 1,2,?"] * 3, version=13, causal=False), "2022.1")),
    Call("dynamic types", saving(dynamic("ConvertPromoteTypes", "dynamic 2", "dynamic 2", version=14), "2022.1")),
    Call("type of a tensor", saving(dynamic("Convert", "f8e4m3 2", version=1, destination_type="f32"), "2022.1")),
    Call("batches", saving(dynamic("GatherND", "f32 2,3,?", "i64 2,3,?,1", version=8, batch_dims=2))),
    Call("scalar", saving(dynamic("SoftMax", "f32 ", version=8, axis=0))),
    Call("dynamic rank", saving(dynamic("SoftMax", "f32 ...", version=8, axis=1))),
    Call("number of lengths", saving(dynamic("Interpolate", "f32 1,1,4,4", "i64 ?", version=11, mode="nearest", shape_calculation_mode="sizes"), "2022.1")),
    Call("indices of adaptive pooling", saving(lambda: _adaptive_indices())),
    Call("on the command line", lambda: on_command_line(validating(identity(), "2024.6"))),
    layer("slices", "Slice-8", numbers(3), ints(0), ints(2), ints(1), ints(0), release="2021.4"),
    layer("slices backwards", "Slice-8", numbers(3), ints(2), ints(0), ints(-1), ints(0), fixed=(3, 4), release="2021.4"),
]  # fmt: skip


def on_command_line(call: Callable[[], None]) -> None:
    with for_command_line():
        call()


def _adaptive_indices() -> ir.Model:
    x = opset1.parameter([1, 1, 4], np.float32, name="x")
    pooled = opset8.adaptive_max_pool(x, opset1.constant([2]), name="pooled")
    return ir.Model([pooled.output(0), pooled.output(1)], [x])


def _indices() -> ir.Model:
    x = opset1.parameter([1, 1, 4, 4], np.float32, name="x")
    pooled = opset14.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2], name="pooled")
    return ir.Model([pooled.output(0), pooled.output(1)], [x])
