"""Each pass has a name and a summary, and can print the program that it leaves."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.backends import KernelTemplate
from ir_runtime.compiler import choose_kernel
from ir_runtime.compiler.compile import PASSES
from ir_runtime.compiler.program import Options, Program
from ir_runtime.ir.graph import Layer, Port
from ir_runtime.openvino.compiling import PASS_NAMES, fusions_of, program_after


def convolution(activation: str = "ReLU") -> ir.Model:
    """A convolution with weights computed from constants, an activation, and Exp."""
    net = Net()
    x = net.parameter("x", "1,3,8,8", out="FP32 1 3 8 8")
    kind = "FP32 512 3 3 3"
    weights = net.op("Multiply", net.constant(np.ones((512, 3, 3, 3), np.float32), "f32"), net.constant([2], "f32"),
                     out=kind, name="weights")  # fmt: skip
    y = net.op("Convolution", x, weights, out="FP32 1 512 6 6", name="conv", strides="1,1", dilations="1,1",
               pads_begin="0,0", pads_end="0,0")  # fmt: skip
    y = net.op(activation, y, out="FP32 1 512 6 6", name="act")
    net.result(net.op("Transpose", y, net.constant([0, 2, 3, 1]), out="FP32 1 6 6 512", name="transposed"))
    return ir.read_model(net.xml(), net.weights)


def test_passes_have_names_and_summaries() -> None:
    assert len(set(PASS_NAMES)) == len(PASS_NAMES) == len(PASSES) + 1
    assert all(each.summary.endswith(".") for each in PASSES)


def test_the_program_after_each_pass() -> None:
    model = convolution()
    found = {name: program_after(model, name, "numpy").splitlines() for name in PASS_NAMES}
    assert found["quantized-weights"][1].startswith(
        '"weights" = Multiply-1(const f32[512,3,3,3], const f32[1])'
    )
    conv = '"conv" = Convolution-1("x", const f32[512,3,3,3]) : f32[1,512,6,6]'
    assert found["fold"][1:3] == [conv, '"act" = ReLU-1("conv") : f32[1,512,6,6]']
    assert found["match"] == found["select"] == found["fold"][: len(found["match"])]
    assert found["fuse"][1:3] == [conv, '  + "act" = ReLU-1("conv") : f32[1,512,6,6]']
    assert found["pack"] == found["fuse"]
    assert '"x/f16" = Convert-1("x") : f16[1,3,8,8]' in found["narrow"]


def test_no_kernel_is_chosen_for_a_layer_that_is_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[str] = []

    def kernel(program: Program, options: Options, layer: Layer, read: Collection[Port]) -> KernelTemplate:
        chosen.append(layer.type)
        return choose(program, options, layer, read)

    choose = choose_kernel.choose_kernel
    monkeypatch.setattr(choose_kernel, "choose_kernel", kernel)
    ir.compile_model(convolution(), backend="numpy")
    assert sorted(chosen) == ["Convolution", "Transpose"]
    chosen.clear()
    ir.compile_model(convolution(), backend="reference")
    assert {"Convolution", "ReLU", "Transpose", "Multiply"} <= set(chosen)


def test_the_reference_folds_and_fuses_nothing() -> None:
    text = program_after(convolution(), "pack", "reference")
    assert '"weights" = Multiply-1' in text
    assert "+" not in text


def test_what_is_quantized_matched_and_cached_is_shown() -> None:
    net = Net()
    x = net.parameter("x", "?,3", out="FP32 -1 3")
    shape = net.op("ShapeOf", x, out="I64 2", version="opset3", name="shape", output_type="i64")
    size = net.op("ReduceProd", shape, net.constant([0]), out="I64", name="size", keep_dims="false")
    net.result(size)
    text = program_after(ir.read_model(net.xml(), net.weights), "match", "numpy")
    assert '"size" = ReduceProd-1("shape", const i64[1]) : i64[]  # matches shape arithmetic' in text


def test_unknown_passes_are_refused() -> None:
    with pytest.raises(ir.InputError, match="unknown pass 'folding'") as caught:
        program_after(convolution(), "folding")
    assert "did you mean 'fold'?" in str(caught.value)


def test_what_is_fused() -> None:
    report = fusions_of(convolution(), "numpy")
    assert [[layer.name for layer in each.layers] for each in report.fused] == [["conv", "act"]]
    assert report.unfused == ()


def several_readers() -> Net:
    net = Net()
    x = net.parameter("x", "1,8", out="FP32 1 8")
    y = net.op("MatMul", x, net.constant(np.ones((8, 8), np.float32), "f32"), out="FP32 1 8", name="product")
    net.result(net.op("ReLU", y, out="FP32 1 8", name="first"))
    net.result(net.op("Transpose", y, net.constant([1, 0]), out="FP32 8 1", name="second"))
    return net


def output() -> Net:
    net = Net()
    x = net.parameter("x", "1,8", out="FP32 1 8")
    y = net.op("MatMul", x, net.constant(np.ones((8, 8), np.float32), "f32"), out="FP32 1 8", name="product")
    net.result(y)
    net.result(net.op("ReLU", y, out="FP32 1 8", name="first"))
    return net


def no_epilogue() -> Net:
    net = Net()
    x = net.parameter("x", "1,8", out="FP32 1 8")
    y = net.op("Transpose", x, net.constant([1, 0]), out="FP32 8 1", name="product")
    net.result(net.op("ReLU", y, out="FP32 8 1", name="first"))
    return net


@pytest.mark.parametrize(
    ("net", "reason"),
    [
        (several_readers, "its result is also read by 'second'"),
        (output, "its result is an output of the model"),
        (no_epilogue, "its kernel has no epilogue"),
    ],
)
def test_what_is_not_fused_has_a_reason(net: object, reason: str) -> None:
    made = net()  # type: ignore[operator]
    report = fusions_of(ir.read_model(made.xml(), made.weights), "numpy")
    (found,) = report.unfused
    assert (found.layer.name, found.producer and found.producer.name, found.reason) == (
        "first",
        "product",
        reason,
    )
    assert report.fused == ()


def test_patterns_say_why_they_refuse() -> None:
    net = Net()
    x = net.parameter("x", "2,8", out="FP32 2 8")
    squares = net.op("Multiply", x, x, out="FP32 2 8")
    mean = net.op("ReduceMean", squares, net.constant([0]), out="FP32 1 8", keep_dims="true")
    root = net.op("Sqrt", net.op("Add", mean, net.constant([1e-5], "f32"), out="FP32 1 8"), out="FP32 1 8")
    net.result(net.op("Divide", x, root, out="FP32 2 8", name="normed"))
    report = fusions_of(ir.read_model(net.xml(), net.weights), "native")
    reasons = [each.reason for each in report.unfused if each.producer is None]
    assert reasons == [
        "pattern native: rms_norm: the mean is not over the last axis, or its axes are not constant"
    ]
