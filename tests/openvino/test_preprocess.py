"""Preprocessing: the same steps on OpenVINO and here give the same text, ports and values."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from harness.dropin import assert_same, run
from harness.nets import Net

import ir_runtime


class Case(NamedTuple):
    """Steps for a model of the fixture, and the inputs to run it with, as arguments of ``given``."""

    steps: str
    inputs: str = "f32 1 3 8 8"
    model: str = "image"
    exact: bool = True
    before: str = ""
    """What is done with the model first."""

    @property
    def program(self) -> str:
        return BUILD.replace("{before}", self.before).replace("{steps}", self.steps)


START = """
import re
from importlib import import_module
preprocess = import_module(f"{ov.__name__}.preprocess")
op = import_module(f"{ov.__name__}.opset8")
F, R, P = preprocess.ColorFormat, preprocess.ResizeAlgorithm, preprocess.PaddingMode
L, T = ov.Layout, ov.Type
"""
BUILD = (
    START
    + """
model = ov.Core().read_model(path)
{before}
ppp = preprocess.PrePostProcessor(model)
{steps}
note(str(ppp), repr(ppp))
model = ppp.build()
for port in (*model.inputs, *model.outputs):
    note(sorted(port.names), str(port.partial_shape), port.element_type.to_string())
note([p.layout for p in model.get_parameters()], [r.layout for r in model.get_results()])
note([re.sub(r"_\\d+$", "_0", p.get_friendly_name()) for p in model.get_parameters()])
"""
)
RUN = """
compiled = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
results = compiled(inputs)
note(*[np.array(results[port]) for port in compiled.outputs])
"""
SAVE = """
ov.save_model(model, saved, compress_to_fp16=False)
"""

INPUT, OUTPUT = "ppp.input()", "ppp.output()"
NHWC = f"{INPUT}.tensor().set_layout(L('NHWC')); {INPUT}.model().set_layout(L('NCHW'))\n"
COLOR = f"{INPUT}.model().set_layout(L('NCHW'))\n{INPUT}.tensor().set_element_type(T.u8).set_color_format(F.%s%s)\n"
PRE = f"{INPUT}.preprocess()"
POST = f"{OUTPUT}.postprocess()"

CASES = {
    "nothing": Case(""),
    "element type of the tensor": Case(f"{INPUT}.tensor().set_element_type(T.u8)", "u8 1 3 8 8"),
    "element type, explicitly": Case(
        f"{INPUT}.tensor().set_element_type(T.i32); {PRE}.convert_element_type(T.f16).convert_element_type()",
        "i32 1 3 8 8",
    ),
    "a type that does not change": Case(f"{PRE}.convert_element_type(T.f32)"),
    "layout of the tensor": Case(NHWC, "f32 1 8 8 3"),
    "layout of the tensor alone": Case(f"{INPUT}.tensor().set_layout(L('NHWC'))"),
    "layout of the model alone": Case(f"{INPUT}.model().set_layout(L('NCHW'))"),
    "layouts by an ellipsis": Case(
        f"{INPUT}.tensor().set_layout(L('N...C')); {INPUT}.model().set_layout(L('NC...'))", "f32 1 8 8 3"
    ),
    "layouts with unknown dimensions": Case(
        f"{INPUT}.tensor().set_layout(L('?WH?')); {INPUT}.model().set_layout(L('NCHW'))", "f32 1 8 8 3"
    ),
    "a layout without the batch": Case(
        f"{INPUT}.tensor().set_layout(L('HWC')); {INPUT}.model().set_layout(L('NCHW'))", "f32 8 8 3"
    ),
    "convert_layout to the model's": Case(NHWC + f"{PRE}.convert_layout(L())", "f32 1 8 8 3"),
    "convert_layout twice": Case(NHWC + f"{PRE}.convert_layout(L('NWHC')).convert_layout(L('CHWN'))", "f32 1 8 8 3"),
    "convert_layout by indices": Case(f"{PRE}.convert_layout([0, 3, 1, 2])", "f32 1 8 8 3"),
    "convert_layout by indices, with a layout": Case(
        f"{INPUT}.tensor().set_layout(L('NHWC')); {PRE}.convert_layout([0, 3, 1, 2])", "f32 1 8 8 3"
    ),
    "convert_layout by indices and by name": Case(
        f"{INPUT}.tensor().set_layout(L('CHWN'))\n"
        f"{PRE}.convert_layout([3, 1, 2, 0]).convert_layout(L('NWHC')).convert_layout(dims=(0, 3, 2, 1))",
        "f32 3 8 8 1",
    ),
    "mean": Case(f"{PRE}.mean(1.5)"),
    "mean per channel": Case(NHWC + f"{PRE}.mean([1, 2.5, -3])", "f32 1 8 8 3"),
    "scale by powers of two": Case(NHWC + f"{PRE}.scale([2, 0.5, 8])", "f32 1 8 8 3"),
    "scale": Case(f"{PRE}.scale(3)"),
    "mean and scale of an image": Case(
        NHWC + f"{INPUT}.tensor().set_element_type(T.u8)\n"
        f"{PRE}.convert_element_type(T.f32).mean(np.array([123.675, 116.28, 103.53])).scale((58.395, 57.12, 57.375))",
        "u8 1 8 8 3",
        exact=False,
    ),
    "f16": Case(
        f"{INPUT}.tensor().set_element_type(T.f16); {PRE}.mean(0.5).scale(0.25)", "f16 1 3 8 8", exact=False
    ),
    "reverse_channels": Case(NHWC + f"{PRE}.reverse_channels()", "f32 1 8 8 3"),
    "reverse_channels of unknown number": Case(
        f"{INPUT}.tensor().set_layout(L('NC...')).set_shape([1, -1, 8, 8]); {PRE}.reverse_channels()"
    ),
    "pad": Case(f"{PRE}.pad([0, 0, 1, 2], [0, 0, 1, 0], 0.5, P.CONSTANT); {INPUT}.tensor().set_shape([1, 3, 6, 6])", "f32 1 3 6 6"),
    "pad by reflection": Case(
        f"{PRE}.pad([0, 0, 1, 2], [0, 0, 1, 0], [0], P.REFLECT); {INPUT}.tensor().set_shape([1, 3, 6, 6])",
        "f32 1 3 6 6",
    ),
    "pad symmetrically": Case(
        f"{PRE}.pad((0, 0, 1, 2), (0, 0, 1, 0), 0, P.SYMMETRIC); {INPUT}.tensor().set_shape([1, 3, 6, 6])",
        "f32 1 3 6 6",
    ),
    "crop": Case(
        f"{INPUT}.tensor().set_shape([1, 3, 12, 9]); {PRE}.crop([0, 0, 2, 1], [1, 3, 10, 9])", "f32 1 3 12 9"
    ),
    "crop from the end": Case(
        f"{INPUT}.tensor().set_shape([1, 3, 12, -1]); {PRE}.crop([0, 0, -9, 0], [1, 3, -1, 8])", "f32 1 3 12 9"
    ),
    **{
        f"resize: {mode.lower()}": Case(
            NHWC + f"{INPUT}.tensor().set_spatial_static_shape(13, 5); {PRE}.resize(R.RESIZE_{mode})",
            "f32 1 13 5 3",
            exact=mode == "NEAREST",
        )
        for mode in ("LINEAR", "CUBIC", "NEAREST", "BILINEAR_PILLOW", "BICUBIC_PILLOW")
    },
    "resize of a dynamic image": Case(
        NHWC + f"{INPUT}.tensor().set_spatial_dynamic_shape(); {PRE}.resize(R.RESIZE_LINEAR)", "f32 1 5 11 3", exact=False
    ),
    "resize to lengths": Case(
        NHWC + f"{INPUT}.tensor().set_element_type(T.u8).set_spatial_static_shape(16, 6)\n"
        f"{PRE}.resize(R.RESIZE_NEAREST, 4, dst_width=10).resize(alg=R.RESIZE_NEAREST, dst_height=8, dst_width=8)",
        "u8 1 16 6 3",
    ),
    "set_from": Case(f"{INPUT}.tensor().set_from(np.zeros((1, 3, 8, 8), np.int8))", "i8 1 3 8 8"),
    "set_from a tensor": Case(f"{INPUT}.tensor().set_from(ov.Tensor(np.zeros((1, 3, 8, 8), np.uint8)))", "u8 1 3 8 8"),
    "set_shape": Case(f"{INPUT}.tensor().set_shape(ov.PartialShape([-1, 3, 8, 8]))"),
    "memory type": Case(f"{INPUT}.tensor().set_memory_type('GPU_SURFACE')"),
    "custom": Case(f"{PRE}.custom(lambda tensor: op.multiply(tensor, tensor).output(0)).mean(1)", exact=True),
    **{
        f"colours: {name} to {to}": Case(
            COLOR % (name, "") + f"{PRE}.convert_color(F.{to})",
            f"u8 1 8 8 {4 if name.endswith('X') else 3}",
        )
        for name in ("RGB", "BGR", "RGBX", "BGRX")
        for to in ("RGB", "BGR")
    },
    **{
        f"colours: {name} to {to}": Case(
            COLOR % (name, "") + f"{PRE}.convert_color(F.{to})", planes, exact=False
        )
        for name, planes in (
            ("NV12_SINGLE_PLANE", "u8 1 12 8 1"),
            ("NV12_TWO_PLANES", "u8 1 8 8 1, u8 1 4 4 2"),
            ("I420_SINGLE_PLANE", "u8 1 12 8 1"),
            ("I420_THREE_PLANES", "u8 1 8 8 1, u8 1 4 4 1, u8 1 4 4 1"),
        )
        for to in ("RGB", "BGR")
    },
    **{
        f"colours: {name} to GRAY": Case(
            COLOR % (name, "") + f"{PRE}.convert_color(F.GRAY)", planes, model="gray"
        )
        for name, planes in (
            ("NV12_SINGLE_PLANE", "u8 1 12 8 1"),
            ("NV12_TWO_PLANES", "u8 1 8 8 1, u8 1 4 4 2"),
            ("I420_SINGLE_PLANE", "u8 1 12 8 1"),
            ("I420_THREE_PLANES", "u8 1 8 8 1, u8 1 4 4 1, u8 1 4 4 1"),
            ("RGB", "u8 1 8 8 3"),
            ("BGR", "u8 1 8 8 3"),
            ("GRAY", "u8 1 8 8 1"),
        )
    },
    "colours: f32 to GRAY": Case(
        f"{INPUT}.model().set_layout(L('NCHW'))\n"
        f"{INPUT}.tensor().set_color_format(F.BGR).set_layout(L('NCHW')); {PRE}.convert_color(F.GRAY)",
        model="gray",
        exact=False,
    ),
    "colours: names of planes": Case(
        COLOR % ("NV12_TWO_PLANES", ", ['y', 'uv']") + f"{PRE}.convert_color(F.RGB).resize(R.RESIZE_NEAREST)",
        "u8 1 8 8 1, u8 1 4 4 2",
        exact=False,
    ),
    "colours: a camera": Case(
        COLOR % ("NV12_TWO_PLANES", ", ['y', 'uv']") + f"{INPUT}.tensor().set_spatial_static_shape(16, 12)\n"
        f"{PRE}.convert_color(F.BGR).convert_element_type(T.f32).resize(R.RESIZE_LINEAR).mean([1, 2, 3]).scale(0.5)",
        "u8 1 16 12 1, u8 1 8 6 2",
        exact=False,
    ),
    "output type": Case(f"{OUTPUT}.tensor().set_element_type(T.i32)"),
    "output layout": Case(f"{OUTPUT}.model().set_layout(L('NCHW')); {OUTPUT}.tensor().set_layout(L('NHWC'))"),
    "output layout alone": Case(f"{OUTPUT}.tensor().set_layout(L('NHWC'))"),
    "no output layout": Case(f"{OUTPUT}.tensor().set_layout(L('')); {OUTPUT}.model().set_layout(L('NCHW'))"),
    "layout of the model's output alone": Case(f"{OUTPUT}.model().set_layout(L('NHWC'))"),
    "output steps": Case(
        f"{OUTPUT}.model().set_layout(L('NCHW')); {OUTPUT}.tensor().set_layout(L('NHWC')).set_element_type(T.f32)\n"
        f"{POST}.convert_element_type(T.f16).convert_layout(L('NWHC')).convert_layout()\n"
        f"{POST}.custom(lambda tensor: op.negative(tensor).output(0)).convert_element_type()"
        .replace("convert_layout()", "convert_layout(L())"),
    ),
    "output layout by indices": Case(f"{POST}.convert_layout([0, 2, 3, 1])"),
    "everything at once": Case(
        NHWC + f"{INPUT}.tensor().set_element_type(T.u8).set_spatial_static_shape(20, 10)\n"
        f"{PRE}.convert_element_type(T.f32).resize(R.RESIZE_LINEAR, 10, 12).crop([0, 1, 1, 0], [1, 9, 9, 3])\n"
        f"{PRE}.mean([1, 2, 3]).scale([2, 4, 8]).reverse_channels().convert_layout(L('NCHW')).mean(0.25)\n"
        f"{OUTPUT}.tensor().set_element_type(T.f16)",
        "u8 1 20 10 3",
        exact=False,
    ),
    "a model with layouts": Case(f"{INPUT}.tensor().set_layout(L('NHWC'))", "f32 1 8 8 3", model="with layouts"),
    "layouts of the file, batch moved": Case(
        f"{PRE}.convert_layout([0, 3, 1, 2]).mean([1, 2, 3])", "f32 1 8 8 3", model="with layouts"
    ),
    "several inputs": Case(
        "ppp.input('a').tensor().set_element_type(T.u8); ppp.input(1).tensor().set_layout(L('CN'))\n"
        "ppp.input(1).model().set_layout(L('NC')); ppp.input(tensor_name='a').preprocess().convert_element_type().mean(1)\n"
        "ppp.output('second').tensor().set_element_type(T.f16)",
        "u8 2 3, f32 3 2",
        model="pair",
    ),
    "added outputs": Case(
        "ppp.output(2).tensor().set_element_type(T.f16); ppp.input('a').tensor().set_element_type(T.u8)\n"
        "ppp.input('a').preprocess().convert_element_type().mean(3)",
        "u8 2 3, f32 2 3",
        model="pair",
        before="model.add_outputs('a'); model.add_outputs(['first'])",
    ),
    "a reshaped model": Case(NHWC + f"{PRE}.mean([1, 2, 3])", "f32 2 5 4 3", before="model.reshape([2, 3, 5, 4])"),
    "layouts that were set before": Case(
        f"{INPUT}.tensor().set_layout(L('NHWC')); {OUTPUT}.tensor().set_layout(L('NHWC'))",
        "f32 1 8 8 3",
        before="model.get_parameters()[0].layout = L('NCHW'); model.get_results()[0].layout = L('NCHW')",
    ),
    "one processor after another": Case(
        f"{INPUT}.tensor().set_element_type(T.u8); {OUTPUT}.tensor().set_layout(L('NCHW')).set_element_type(T.i32)",
        "u8 1 8 8 3",
        before=f"ppp = preprocess.PrePostProcessor(model)\n{NHWC}{PRE}.mean([1, 2, 3])\n"
        f"{OUTPUT}.model().set_layout(L('NCHW')); {OUTPUT}.tensor().set_layout(L('NHWC')); model = ppp.build()",
    ),
    "a batch set afterwards": Case(
        NHWC + f"{PRE}.mean(1)\nmodel = ppp.build(); ov.set_batch(model, 3); ppp = preprocess.PrePostProcessor(model)",
        "f32 3 8 8 3",
    ),
    "an input of a dynamic batch": Case(
        NHWC + f"{INPUT}.tensor().set_element_type(T.u8); {PRE}.convert_element_type().mean(1)", "u8 2 4 5 3", model="dynamic"
    ),
    "an input of unknown rank": Case(f"{INPUT}.tensor().set_element_type(T.u8).set_shape([2, 4]); {PRE}.convert_element_type().mean(1)", "u8 2 4", model="any rank"),
    "an input that is an output": Case(
        f"{INPUT}.tensor().set_element_type(T.u8); {PRE}.convert_element_type().mean(1)", "u8 2 3", model="through"
    ),
    "an old file": Case(NHWC + f"{OUTPUT}.tensor().set_element_type(T.f16)", "f32 1 8 8 3", model="old"),
    "a convolution": Case(
        NHWC + f"{INPUT}.tensor().set_element_type(T.u8)\n"
        f"{PRE}.reverse_channels().convert_element_type(T.f32).mean([1, 2, 3]).scale([3, 5, 7])",
        "u8 1 8 8 3",
        model="convolution",
        exact=False,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models with an image input, and others."""
    path = tmp_path_factory.mktemp("models")
    for name, net in _nets().items():
        (path / f"{name}.xml").write_bytes(net.xml())
        (path / f"{name}.bin").write_bytes(net.weights)
    return path


def _nets() -> dict[str, Net]:
    shapes = {
        "image": "1,3,8,8",
        "gray": "1,1,8,8",
        "dynamic": "?,3,?,?",
        "with layouts": "1,3,8,8",
        "any rank": "...",
    }
    nets = {name: _pointwise(shape) for name, shape in shapes.items()}
    nets["old"] = _pointwise("1,3,8,8", "10")
    layout = '<rt_info><attribute name="layout" version="0" layout="[N,C,H,W]"/></rt_info></port></output>'
    layers = nets["with layouts"].layers
    layers[:2] = [text.replace("</port></output>", layout) for text in layers[:2]]
    nets["pair"] = pair = Net(name="pair")
    a, b = pair.parameter("a", "2,3", out="FP32 2 3"), pair.parameter("b", "2,3", out="FP32 2 3")
    pair.result(pair.op("Add", a, b, out="FP32 2 3", name="sum", names="first"), "out")
    pair.result(pair.op("ReLU", b, out="FP32 2 3", name="positive", names="second"), "out 2")
    nets["through"] = through = Net(name="through")
    through.result(through.parameter("x", "2,3", out="FP32 2 3"))
    nets["convolution"] = net = Net(name="convolution")
    x = net.parameter("x", "1,3,8,8", out="FP32 1 3 8 8")
    weights = net.constant(np.linspace(-1, 1, 2 * 3 * 3 * 3).reshape(2, 3, 3, 3), "f32")
    how = {
        "strides": "1,1",
        "pads_begin": "1,1",
        "pads_end": "1,1",
        "dilations": "1,1",
        "auto_pad": "explicit",
    }
    net.result(net.op("Convolution", x, weights, out="FP32 1 2 8 8", name="conv", names="y", **how))
    return nets


def _pointwise(shape: str, version: str = "11") -> Net:
    net = Net(name="pointwise", version=version)
    says = "FP32 " + " ".join("-1" if dim == "?" else dim for dim in shape.split(",") if dim != "...")
    x = net.parameter("x", shape, out=says)
    net.result(net.op("Abs", x, out=says, name="abs", names="y"), "out")
    return net


def given(text: str) -> list[np.ndarray[Any, Any]]:
    """Return random tensors of values with which f32 computes exactly."""
    generator = np.random.default_rng(3)
    kinds = {"f32": np.float32, "f16": np.float16}
    found = []
    for each in text.split(", "):
        kind, *dims = each.split()
        shape = tuple(map(int, dims))
        if kind in kinds:
            found.append((generator.integers(-500, 500, shape) / 4).astype(kinds[kind]))
        else:
            dtype = np.dtype({"u": "uint", "i": "int"}[kind[0]] + kind[1:])
            found.append(generator.integers(0, min(np.iinfo(dtype).max, 255), shape).astype(dtype))
    return found


def compare(ours: list[Any], theirs: list[Any], exact: bool) -> None:
    """Require equal texts and equal values; close values where operations round differently."""
    if exact:
        for mine, its in zip(ours, theirs, strict=True):
            if isinstance(its, np.ndarray):
                np.testing.assert_array_equal(mine, its)
    assert_same(ours, theirs)


@pytest.mark.parametrize("name", CASES)
def test_steps(name: str, folder: Path) -> None:
    case = CASES[name]
    program = case.program + RUN
    inputs, path = given(case.inputs), folder / f"{case.model}.xml"
    found = {
        package: run(program, package, path=path, inputs=inputs) for package in ("ir_runtime", "openvino")
    }
    compare(found["ir_runtime"], found["openvino"], case.exact)


LOAD = """
model = ov.Core().read_model(saved)
for port in (*model.inputs, *model.outputs):
    note(sorted(port.names), str(port.partial_shape), port.element_type.to_string())
note([p.layout for p in model.get_parameters()], [r.layout for r in model.get_results()])
"""


# OpenVINO's CPU plugin ignores the coefficient that OpenVINO writes, and computes with Pillow's; old files it saves
# as old, and readers give their outputs the types of old programs.
SAVED = sorted(CASES.keys() - {"resize: bicubic_pillow", "an old file"})


@pytest.mark.parametrize("name", SAVED)
def test_saved(name: str, folder: Path, tmp_path: Path) -> None:
    """A model preprocessed and saved by either package is valid in both and gives the same results."""
    case = CASES[name]
    inputs, path = given(case.inputs), folder / f"{case.model}.xml"
    found = []
    for writer in ("ir_runtime", "openvino"):
        saved = tmp_path / f"{writer}.xml"
        run(case.program + SAVE, writer, path=path, saved=saved)
        assert [str(finding) for finding in ir_runtime.validate(saved)] == []
        found += [
            run(LOAD + RUN, reader, saved=saved, inputs=inputs) for reader in ("ir_runtime", "openvino")
        ]
    for each in found[:3]:
        compare(each, found[3], case.exact)
