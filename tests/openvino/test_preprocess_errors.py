"""Refused preprocessing: the same kinds of errors as in OpenVINO, and an unchanged model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness.dropin import run
from harness.nets import Net

import ir_runtime as ir
from ir_runtime import preprocess
from ir_runtime.preprocess import ColorFormat, PrePostProcessor

START = """
from importlib import import_module
preprocess = import_module(f"{ov.__name__}.preprocess")
F, R, P = preprocess.ColorFormat, preprocess.ResizeAlgorithm, preprocess.PaddingMode
L, T = ov.Layout, ov.Type
model = ov.Core().read_model(path)
ppp = preprocess.PrePostProcessor(model)
tensor, steps, expected = ppp.input().tensor(), ppp.input().preprocess(), ppp.input().model()
wanted, after, has = ppp.output().tensor(), ppp.output().postprocess(), ppp.output().model()

def attempt(action):
    try:
        action()
        return "fine"
    except (RuntimeError, TypeError, ZeroDivisionError) as reason:
        return next(k.__name__ for k in (RuntimeError, TypeError, ZeroDivisionError) if isinstance(reason, k))
"""

ARGUMENTS = [
    "ppp.input('z')",
    "ppp.input(1)",
    "ppp.input(-1)",
    "ppp.input(1.0)",
    "ppp.output('x')",
    "ppp.output(5)",
    "preprocess.PrePostProcessor(5)",
    "preprocess.PrePostProcessor(None)",
    "tensor.set_layout('NHWC')",
    "expected.set_layout('NHWC')",
    "tensor.set_layout('N,C')",
    "tensor.set_layout('')",
    "wanted.set_layout(None)",
    "tensor.set_element_type('f32')",
    "tensor.set_element_type(np.float32)",
    "tensor.set_shape('1,2')",
    "tensor.set_shape([1, -1])",
    "tensor.set_shape(ov.Shape([1, 2]))",
    "tensor.set_shape(3)",
    "tensor.set_shape([1]).set_spatial_dynamic_shape()",
    "tensor.set_shape([1]).set_spatial_static_shape(1, 2)",
    "tensor.set_spatial_static_shape(1, 2).set_shape([1])",
    "tensor.set_spatial_dynamic_shape().set_from(np.zeros(2))",
    "tensor.set_spatial_static_shape(-1, 2)",
    "tensor.set_spatial_static_shape(1)",
    "tensor.set_from([1, 2])",
    "tensor.set_color_format(F.RGB, ['a'])",
    "tensor.set_color_format(F.NV12_TWO_PLANES, ['a'])",
    "tensor.set_color_format(F.NV12_TWO_PLANES, ['a', 'b'])",
    "tensor.set_color_format(F.NV12_TWO_PLANES, 'ab')",
    "tensor.set_color_format(5)",
    "tensor.set_memory_type(5)",
    "steps.mean('a')",
    "steps.mean(None)",
    "steps.mean([])",
    "steps.mean([1, 'a'])",
    "steps.mean(values=(1, 2))",
    "steps.mean(value=np.float64(3))",
    "steps.scale(1, 2)",
    "steps.resize(R.RESIZE_LINEAR, 3)",
    "steps.resize(R.RESIZE_LINEAR, 2**31, 1)",
    "steps.resize(R.RESIZE_LINEAR, -3, 1)",
    "steps.resize(0)",
    "steps.crop([0], [1, 2])",
    "steps.crop(0, 1)",
    "steps.crop([0.5], [1])",
    "steps.pad([1], [1])",
    "steps.pad([1], [1], 0, 'constant')",
    "steps.pad([1], [1], [0.5, 3], P.REFLECT)",
    "steps.convert_layout()",
    "steps.convert_layout([])",
    "steps.convert_layout([0, 1.5])",
    "steps.convert_layout([-1, 0])",
    "steps.convert_layout('NHWC')",
    "steps.convert_color(5)",
    "steps.convert_color(dst_format=F.RGB)",
    "steps.convert_element_type('f32')",
    "steps.custom(5)",
    "after.custom(5)",
    "after.convert_layout('NHWC')",
    "after.convert_element_type(5)",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("image")
    net = Net(name="image")
    x = net.parameter("x", "1,3,8,8", out="FP32 1 3 8 8")
    net.result(net.op("ReLU", x, out="FP32 1 3 8 8", name="relu", names="y"), "out")
    (folder / "image.xml").write_bytes(net.xml())
    return folder / "image.xml"


@pytest.mark.parametrize("call", ARGUMENTS)
def test_arguments(call: str, path: Path) -> None:
    program = f"{START}\nnote(attempt(lambda: {call}))"
    assert run(program, "ir_runtime", path=path) == run(program, "openvino", path=path)


NHWC, NCHW = "L('NHWC')", "L('NCHW')"
REFUSED = {
    "a mean of integers": "tensor.set_element_type(T.u8); steps.mean(1)",
    "a scale of integers": "tensor.set_element_type(T.u8); steps.scale(1)",
    "padding of integers": "tensor.set_element_type(T.u8); steps.pad([0] * 4, [0] * 4, 0, P.CONSTANT)",
    "padding with two numbers": "steps.pad([0] * 4, [0] * 4, [1, 2], P.CONSTANT)",
    "padding of three dimensions": "steps.pad([0] * 3, [0] * 3, 0, P.CONSTANT)",
    "a mean of too few channels": f"tensor.set_layout({NCHW}); steps.mean([1, 2])",
    "a mean of no channel": f"tensor.set_layout({NCHW}); steps.mean([])",
    "a mean without a layout": "steps.mean([1, 2, 3])",
    "reversed channels without a layout": "steps.reverse_channels()",
    "resizing without a layout": "steps.resize(R.RESIZE_LINEAR)",
    "resizing to other lengths than the model's": f"tensor.set_layout({NCHW}); steps.resize(R.RESIZE_LINEAR, 4, 4)",
    "cropping to other lengths than the model's": "steps.crop([0] * 4, [1, 3, 4, 4])",
    "a shape that does not fit": "tensor.set_shape([1, 4, 8, 8])",
    "a rank that does not fit": "tensor.set_shape([1, 3, 8])",
    "a dynamic image without a layout": "tensor.set_spatial_dynamic_shape()",
    "a layout of another rank": "tensor.set_layout(L('NC'))",
    "layouts of other dimensions": f"tensor.set_layout(L('NHWX')); expected.set_layout({NCHW})",
    "a shorter layout of other dimensions": f"tensor.set_layout(L('HWX')); expected.set_layout({NCHW})",
    "a shorter layout without names": f"tensor.set_layout(L('?HW')); expected.set_layout({NCHW})",
    "an order of too many dimensions": "steps.convert_layout([0, 1, 2, 4])",
    "an order with a dimension twice": f"tensor.set_layout({NCHW}); steps.convert_layout([0, 1, 1, 2])",
    "an order of five dimensions": "steps.convert_layout([0, 1, 2, 3, 4])",
    "an order of a layout with an ellipsis": "tensor.set_layout(L('N...')); steps.convert_layout([0, 2, 1, 3])",
    "an image of two planes": "tensor.set_color_format(F.NV12_TWO_PLANES)",
    "an image of one plane": "tensor.set_color_format(F.NV12_SINGLE_PLANE)",
    "an image of four channels": "tensor.set_color_format(F.RGBX)",
    "a mean of two planes": "tensor.set_color_format(F.NV12_TWO_PLANES); steps.mean(1)",
    "resizing of two planes": "tensor.set_color_format(F.NV12_TWO_PLANES); steps.resize(R.RESIZE_LINEAR)",
    "cropping of two planes": "tensor.set_color_format(F.NV12_TWO_PLANES); steps.crop([0], [1])",
    "padding of two planes": "tensor.set_color_format(F.I420_THREE_PLANES); steps.pad([0], [1], 0, P.CONSTANT)",
    "a custom step of two planes": "tensor.set_color_format(F.NV12_TWO_PLANES); steps.custom(lambda x: x)",
    "a layout of two planes": f"tensor.set_color_format(F.NV12_TWO_PLANES); steps.convert_layout({NHWC})",
    "colours of no format": "steps.convert_color(F.RGB)",
    "colours to planes": f"tensor.set_color_format(F.RGB); expected.set_layout({NCHW}); steps.convert_color(F.NV12_TWO_PLANES)",
    "colours from planes to RGBX": "tensor.set_color_format(F.I420_SINGLE_PLANE); steps.convert_color(F.RGBX)",
    "colours from grey": "tensor.set_color_format(F.GRAY); steps.convert_color(F.RGB)",
    "a name of a plane that is taken": "tensor.set_color_format(F.NV12_TWO_PLANES, ['a', 'a']); after.custom(lambda x: 1 / 0)",
    "a custom step that fails": "steps.mean(1).custom(lambda x: 1 / 0)",
    "a custom step that returns a number": "steps.custom(lambda x: 5)",
    "an output's custom step that fails": "steps.mean(1); after.custom(lambda x: 1 / 0)",
    "an output's custom step that returns a number": "tensor.set_element_type(T.u8); after.custom(lambda x: 5)",
    "a model's layout of another rank": "has.set_layout(L('NC'))",
    "an output's order of other dimensions": "after.convert_layout([0, 1, 2, 5])",
    "an output of no type": "after.convert_element_type()",
}  # fmt: skip
BUILD = """
note(attempt(ppp.build))
note(model.inputs, model.outputs, sorted(node.get_type_name() for node in model.get_ops()))
note([p.layout for p in model.get_parameters()], [r.layout for r in model.get_results()])
"""


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str, path: Path) -> None:
    program = f"{START}\n{REFUSED[what]}\n{BUILD}"
    ours = run(program, "ir_runtime", path=path)
    assert ours[0] != "fine"
    assert ours == run(program, "openvino", path=path)


def test_custom_steps_may_return_a_node(path: Path) -> None:
    """OpenVINO accepts only an output."""
    ppp = PrePostProcessor(ir.read_model(path))
    ppp.input().preprocess().custom(lambda tensor: tensor + tensor)
    assert "Add" in [node.get_type_name() for node in ppp.build().get_ops()]


def test_layouts_without_the_first_dimension_are_completed(path: Path) -> None:
    """This holds if nothing needs to be transposed, too, which OpenVINO refuses."""
    ppp = PrePostProcessor(ir.read_model(path))
    ppp.input().tensor().set_layout(ir.Layout("CHW"))
    ppp.input().model().set_layout(ir.Layout("NCHW"))
    image = np.linspace(-1, 1, 3 * 8 * 8, dtype=np.float32).reshape(3, 8, 8)
    (result,) = ir.compile_model(ppp.build())(image).values()
    np.testing.assert_array_equal(result, np.maximum(image, 0)[None])


def test_layouts_are_undone(path: Path) -> None:
    """The output layout is restored, too; OpenVINO keeps the one set by the failed build."""
    model = ir.read_model(path)
    ppp = PrePostProcessor(model)
    ppp.output().model().set_layout(ir.Layout("NCHW"))
    ppp.output().tensor().set_layout(ir.Layout("HWC"))
    with pytest.raises(ir.InputError, match=r"\[N,C,H,W\] cannot be converted to \[H,W,C\]"):
        ppp.build()
    assert model.get_results()[0].layout == ir.Layout()


def processor(path: Path) -> PrePostProcessor:
    return PrePostProcessor(ir.read_model(path))


def test_shapes_inside_are_undone(path: Path) -> None:
    """Shapes changed by the first steps are restored when a later one fails."""
    model = ir.read_model(path)
    ppp = PrePostProcessor(model)
    ppp.input().tensor().set_shape([1, 3, -1, -1])
    ppp.output().postprocess().custom(lambda tensor: tensor.node.output(1))
    with pytest.raises(ir.InputError, match="no output 1"):
        ppp.build()
    assert [node.output(0).partial_shape for node in model.get_ordered_ops()] == [[1, 3, 8, 8]] * 3


def test_built_twice(path: Path) -> None:
    """The second build is refused, and the model has the steps once."""
    program = f"{START}\ntensor.set_element_type(T.u8)\nppp.build()\n{BUILD}"
    assert run(program, "ir_runtime", path=path) == run(program, "openvino", path=path)


def test_a_layer_that_refuses(path: Path) -> None:
    """A layer of the model refuses the output of the steps, although its Parameter would accept it."""
    model = ir.read_model(path)
    model.reshape([-1, -1, -1, -1])
    ppp = PrePostProcessor(model)
    ppp.input().preprocess().custom(lambda tensor: tensor.node.output(1))
    with pytest.raises(ir.InputError, match="no output 1"):
        ppp.build()
    assert model.input().partial_shape == [-1, -1, -1, -1]
    assert [node.type for node in model.get_ordered_ops()] == ["Parameter", "ReLU", "Result"]


def test_messages(path: Path) -> None:
    """Messages name the input, layout and shape, and the remedy."""
    ppp = processor(path)
    ppp.input().tensor().set_layout(ir.Layout("NCHW"))
    ppp.input().preprocess().mean([1, 2])
    with pytest.raises(
        ir.InputError, match=r"mean has 2 .* \[1,3,8,8\] .*\[N,C,H,W\] has 3 channels\n.*per channel"
    ):
        ppp.build()
    ppp = processor(path)
    ppp.input().tensor().set_shape([1, 4, 8, 8])
    with pytest.raises(
        ir.InputError, match=r"input 'x' has shape \[1,4,8,8\], .*\[1,3,8,8\]\n.*print\(ppp\)"
    ):
        ppp.build()
    ppp = processor(path)
    ppp.input().tensor().set_color_format(ColorFormat.NV12_TWO_PLANES)
    with pytest.raises(
        ir.InputError, match=r"'x' .* RGB, BGR or GRAY, got NV12 \(multi-plane\)\n.*convert_color"
    ):
        ppp.build()
    ppp = processor(path)
    ppp.input().preprocess().mean([1, 2, 3])
    with pytest.raises(ir.InputError, match=r"\[\.\.\.\] has no channels dimension\n.*NCHW"):
        ppp.build()


def test_the_text_ends_where_a_step_fails(path: Path) -> None:
    """The text names the failing step, as OpenVINO's; errors other than refusals propagate."""
    ppp = processor(path)
    ppp.input().tensor().set_element_type(ir.Type.u8)
    ppp.input().preprocess().mean(1)
    *_, last, error, hint, end = str(ppp).split("\n")
    assert last == "      mean (1): ([1,3,8,8], [...], u8".replace("[...]", "<no layout>")
    assert error.startswith("Error occurred: ")
    assert "u8" in error
    assert "convert_element_type" in hint
    assert not end
    ppp.input().preprocess().custom(lambda tensor: 1 / 0)
    ppp.input().tensor().set_element_type(ir.Type.f32)
    with pytest.raises(ZeroDivisionError):
        str(ppp)


def test_showing_changes_nothing(path: Path) -> None:
    """Steps are applied for display, but not to the model."""
    model = ir.read_model(path)
    ppp = PrePostProcessor(model)
    ppp.input().tensor().set_element_type(ir.Type.u8)
    ppp.output().tensor().set_element_type(ir.Type.f16)
    before = [(node, node.inputs(), node.output(0).target_inputs) for node in model.get_ops()]
    assert "convert type (f16)" in str(ppp)
    assert before == [(node, node.inputs(), node.output(0).target_inputs) for node in model.get_ops()]
    assert model.input().element_type is ir.Type.f32


def test_choices() -> None:
    """Enumeration members equal no number, and print as OpenVINO's."""
    assert (repr(ColorFormat.RGB), str(ColorFormat.RGB)) == ("<ColorFormat.RGB: 5>", "ColorFormat.RGB")
    assert (int(ColorFormat.BGR), ColorFormat(6), ColorFormat.BGR == 6) == (6, ColorFormat.BGR, False)


@pytest.mark.parametrize("name", preprocess.__all__)
def test_names(name: str) -> None:
    """All of OpenVINO's names exist, with the same members and values."""
    import openvino.preprocess

    theirs, ours = getattr(openvino.preprocess, name), getattr(preprocess, name)
    names = {n for n in dir(theirs) if not n.startswith("_")}
    assert names <= set(dir(ours)) | {"value", "name"}
    for member, number in getattr(theirs, "__members__", {}).items():
        assert int(getattr(ours, member)) == int(number)


def test_every_name_is_there() -> None:
    import openvino.preprocess

    theirs = {n for n in dir(openvino.preprocess) if not n.startswith("_")}
    assert theirs == set(preprocess.__all__)
