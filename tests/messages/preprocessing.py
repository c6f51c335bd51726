"""Messages for layouts, batches and preprocessing steps that do not fit the model."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.nets import Net
from harness.refusals import Call

import ir_runtime as ir
from ir_runtime import layout_helpers, opset8, preprocess

FOLDER = "messages"


def image(shape: str = "1,3,8,8") -> ir.Model:
    """A model with an image input, one layer, and an added operand."""
    net = Net()
    says = "FP32 " + shape.replace("?", "-1").replace(",", " ")
    x = net.parameter("x", shape, out=says if shape != "..." else "FP32")
    net.result(net.op("Abs", x, out=says if shape != "..." else "FP32", name="abs", names="y"), "out")
    return ir.read_model(net.xml())


def pair(*layouts: str) -> ir.Model:
    """Two inputs of shape [2,3]."""
    net = Net()
    a, b = (net.parameter(name, "2,3", out="FP32 2 3") for name in "ab")
    net.result(net.op("Add", a, b, out="FP32 2 3", name="sum", names="sum"))
    model = ir.read_model(net.xml())
    for port, layout in zip(model.inputs, layouts, strict=False):
        layout_helpers.set_layout(port, ir.Layout(layout))
    return model


def built(steps: str, shape: str = "1,3,8,8") -> None:
    """Apply settings and steps, and build the model."""
    ppp = preprocess.PrePostProcessor(image(shape))
    names: dict[str, Any] = {"ppp": ppp, "np": np, "L": ir.Layout, "T": ir.Type}
    names["four"] = opset8.constant(np.zeros((1, 8, 8, 4), np.float32))
    names |= {"F": preprocess.ColorFormat, "R": preprocess.ResizeAlgorithm, "P": preprocess.PaddingMode}
    names |= {"given": ppp.input().tensor(), "steps": ppp.input().preprocess(), "model": ppp.input().model()}
    names |= {
        "wanted": ppp.output().tensor(),
        "after": ppp.output().postprocess(),
        "has": ppp.output().model(),
    }
    exec(steps, names)
    ppp.build()


def step(name: str, text: str, shape: str = "1,3,8,8") -> Call:
    return Call(name, lambda: built(text, shape), (ir.IRError, TypeError))


def constant() -> ir.Model:
    """A model without inputs."""
    net = Net()
    net.result(net.constant([1]))
    return ir.read_model(net.xml(), net.weights)


def relu() -> ir.Output:
    return image().get_ordered_ops()[1].output(0)


WRONG: Any = "NCHW"
TYPES = (ir.IRError, TypeError, AttributeError)

REFUSALS = [
    Call("layout with a character that no name has", lambda: ir.Layout("N,C")),
    Call("layout with a name twice", lambda: ir.Layout("NCN")),
    Call("layout without a comma", lambda: ir.Layout("[N...]")),
    Call("layout of no name", lambda: ir.Layout("[]")),
    Call("layout with an empty name", lambda: ir.Layout("[N,,C]")),
    Call("layout of another type", lambda: ir.Layout(5), TYPES),  # type: ignore[arg-type]
    Call("dimension that a layout has not", lambda: ir.Layout("NC").get_index_by_name("height")),
    Call("text for a layout", lambda: layout_helpers.has_batch(WRONG), TYPES),
    Call("layout of no port", lambda: layout_helpers.get_layout(WRONG), TYPES),
    Call("layout for no port", lambda: layout_helpers.set_layout(WRONG, ir.Layout()), TYPES),
    Call("layout for a port inside", lambda: layout_helpers.set_layout(relu(), ir.Layout("NCHW"))),
    Call("layout of another rank", lambda: layout_helpers.set_layout(image().input(), ir.Layout("NC"))),
    Call("text as the layout of an input", lambda: layout_helpers.set_layout(image().input(), WRONG), TYPES),
    Call("batch without a layout", lambda: ir.get_batch(image())),
    Call("batches that differ", lambda: ir.get_batch(pair("NC", "CN"))),
    Call("batch that is a text", lambda: ir.set_batch(pair("NC", "NC"), "3"), TYPES),  # type: ignore[arg-type]
    Call("batch of no model", lambda: ir.get_batch("model"), TYPES),  # type: ignore[arg-type]
    Call("processor of no model", lambda: preprocess.PrePostProcessor(WRONG), TYPES),
    step("input that is not there", "ppp.input('z')"),
    step("index of an input that is not there", "ppp.input(1)"),
    step("negative index", "ppp.input(-1)"),
    step("name and index", "ppp.input('x', input_index=0)"),
    Call("one of two inputs", lambda: preprocess.PrePostProcessor(pair()).input()),
    Call("input of a model without any", lambda: preprocess.PrePostProcessor(constant()).input(0)),
    step("built twice", "ppp.build()"),
    step("argument of another type", "given.set_element_type('f32')"),
    step("mean that is not a number", "steps.mean('a')"),
    step("means that are not numbers", "steps.mean(['a'])"),
    step("mean of integers", "given.set_element_type(T.u8); steps.mean(1)"),
    step("mean of too few channels", "given.set_layout('NCHW'); steps.mean([1, 2])"),
    step("mean without a layout", "steps.mean([1, 2, 3])"),
    step("mean of two planes", "given.set_color_format(F.NV12_TWO_PLANES); steps.mean(1)"),
    step("channels beyond the rank", "steps.convert_layout(L('NDHWC')).mean([1, 2, 3])"),
    step("channels of an unknown rank", "given.set_layout('NC...'); steps.mean([1, 2])", "..."),
    step("padding with two numbers", "steps.pad([0] * 4, [0] * 4, [1, 2], P.CONSTANT)"),
    step("negative index of a dimension", "steps.convert_layout([-1])"),
    step("dimensions that are a number", "steps.convert_layout(5)"),
    step("no layout", "steps.convert_layout()"),
    step("no layout of an output", "after.convert_layout()"),
    step("order with a dimension twice", "given.set_layout('NCHW'); steps.convert_layout([0, 1, 1, 2])"),
    step("order of another number of dimensions than the layout", "has.set_layout('NCHW'); after.convert_layout([1, 0])"),
    step("order of a layout with an ellipsis", "given.set_layout('N...'); steps.convert_layout([0, 2, 1, 3])"),
    step("order of dimensions that the model has not", "steps.convert_layout([0, 1, 2, 3, 4])"),
    step("layouts of different ranks", "has.set_layout('NCHW'); wanted.set_layout('HWC')"),
    step("layouts of different dimensions", "given.set_layout('NHWX'); model.set_layout('NCHW')"),
    step("shorter layout of other dimensions", "given.set_layout('HWX'); model.set_layout('NCHW')"),
    step("shorter layout with unknown dimensions", "given.set_layout('?HW'); model.set_layout('NCHW')"),
    step("longer layout than the model", "given.set_layout('HWC'); model.set_layout('NCDHW')"),
    step("layouts of an unknown rank", "given.set_layout('N...C'); model.set_layout('NC...')", "..."),
    step("layouts that do not fit the model", "given.set_layout('NHWDC'); model.set_layout('NCDHW')"),
    step("shape besides a height", "given.set_spatial_static_shape(1, 2).set_shape([1])"),
    step("height besides a shape", "given.set_shape([1]).set_spatial_dynamic_shape()"),
    step("shape that does not fit", "given.set_shape([1, 4, 8, 8])"),
    step("resizing to a height alone", "steps.resize(R.RESIZE_LINEAR, 3)"),
    step("resizing to a huge length", "steps.resize(R.RESIZE_LINEAR, 1 << 31, 1)"),
    step("resizing to a length that is not known", "given.set_layout('NCHW'); steps.resize(R.RESIZE_LINEAR)", "1,3,?,?"),
    step("resizing without a layout", "steps.resize(R.RESIZE_LINEAR)"),
    step("cropping with too few ends", "steps.crop([0, 0], [1])"),
    step("names of planes that are a text", "given.set_color_format(F.NV12_TWO_PLANES, 'ab')"),
    step("names of too few planes", "given.set_color_format(F.NV12_TWO_PLANES, ['y'])"),
    step("names of planes that are taken", "ppp._model.output().set_names({'x/a'})\n"
         "given.set_color_format(F.NV12_TWO_PLANES, ['a', 'b'])"),
    step("image of two planes", "given.set_color_format(F.NV12_TWO_PLANES)"),
    step("colours that cannot be converted", "given.set_color_format(F.GRAY); steps.convert_color(F.RGB)"),
    step("grey of three dimensions", "given.set_color_format(F.RGB).set_layout('HWC').set_shape([8, 8, 3])\n"
         "steps.convert_color(F.GRAY)"),
    step("grey of four channels", "given.set_color_format(F.RGB); model.set_layout('NCHW')\n"
         "steps.custom(lambda tensor: four).convert_color(F.GRAY)"),
    step("reversed channels without a layout", "steps.reverse_channels()"),
    step("function that is not one", "steps.custom(5)"),
    step("function that returns a number", "steps.custom(lambda tensor: 5)"),
    step("tensor of an unknown type", "given.set_element_type(T.dynamic)"),
    step("output of an unknown type", "after.convert_element_type()"),
]  # fmt: skip
