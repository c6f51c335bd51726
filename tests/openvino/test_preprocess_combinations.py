"""Random sequences of preprocessing steps on OpenVINO and here."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.dropin import assert_same, run
from harness.nets import Net

COUNT = 80

PROGRAM = """
import re
from importlib import import_module
preprocess = import_module(f"{ov.__name__}.preprocess")
F, R, P = preprocess.ColorFormat, preprocess.ResizeAlgorithm, preprocess.PaddingMode
L, T = ov.Layout, ov.Type
model = ov.Core().read_model(path)
ppp = preprocess.PrePostProcessor(model)
steps, after = ppp.input().preprocess(), ppp.output().postprocess()
text = built = None
try:
    for step in plan:
        exec(step)
    text = str(ppp).split("\\nError occurred")[0]
    built = ppp.build()
except RuntimeError:
    pass
note(built is None, built and text)  # of steps that fail, the text is tested by itself
if built:
    for port in (*model.inputs, *model.outputs):
        note(sorted(port.names), str(port.partial_shape), port.element_type.to_string())
    note([p.layout for p in model.get_parameters()], [r.layout for r in model.get_results()])
    compiled = ov.compile_model(built, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    generator = np.random.default_rng(1)
    fed = []
    for port in compiled.inputs:
        shape = [d.get_length() if d.is_static else 3 for d in port.partial_shape]
        fed.append(generator.integers(0, 50, shape).astype(port.element_type.to_dtype()))
    results = compiled(fed)
    note(*[np.array(results[port]) for port in compiled.outputs])
"""

LAYOUTS = [
    "NCHW",
    "NHWC",
    "HWC",
    "N...",
    "N...C",
    "NC??",
    "?CHW",
    "CNHW",
    "[N,C,H,W]",
    "",
    "NWHC",
    "C...",
]
TYPES = ["u8", "i32", "f32", "f16", "i8", "f64", "i64"]
COLORS = [
    *("RGB", "BGR", "RGBX", "BGRX", "GRAY", "NV12_SINGLE_PLANE", "NV12_TWO_PLANES", "I420_SINGLE_PLANE"),
    *("I420_THREE_PLANES", "UNDEFINED"),
]
SHAPES = [
    "[1, 8, 8, 3]",
    "[1, 3, 8, 8]",
    "[-1, -1, -1, 3]",
    "[1, 3, -1, -1]",
    "[8, 8, 3]",
    "[2, 3, 8, 8]",
    "[1, 12, 6, 3]",
]
ORDERS = [
    "[0, 3, 1, 2]",
    "[0, 2, 3, 1]",
    "[3, 1, 0, 2]",
    "(1, 0, 2, 3)",
    "[0, 1]",
    "[0, 1, 2, 4]",
    "[2, 0, 1]",
]


def plan(seed: int) -> list[str]:
    """Draw a few settings and a few steps."""
    chance = random.Random(seed)
    pick = chance.choice
    settings = [
        lambda: f"ppp.input().tensor().set_layout(L('{pick(LAYOUTS)}'))",
        lambda: f"ppp.input().model().set_layout(L('{pick(LAYOUTS[:5])}'))",
        lambda: f"ppp.input().tensor().set_element_type(T.{pick(TYPES)})",
        lambda: f"ppp.input().tensor().set_shape({pick(SHAPES)})",
        lambda: "ppp.input().tensor().set_spatial_dynamic_shape()",
        lambda: f"ppp.input().tensor().set_spatial_static_shape({pick([4, 8, 10])}, {pick([6, 8])})",
        lambda: f"ppp.input().tensor().set_color_format(F.{pick(COLORS)})",
        lambda: f"ppp.output().tensor().set_layout(L('{pick(LAYOUTS)}'))",
        lambda: f"ppp.output().model().set_layout(L('{pick(LAYOUTS)}'))",
        lambda: f"ppp.output().tensor().set_element_type(T.{pick(TYPES[1:4])})",
    ]
    steps = [
        lambda: f"steps.convert_element_type(T.{pick(['f32', 'f32', 'u8', 'dynamic', 'i32'])})",
        lambda: f"steps.convert_layout(L('{pick(LAYOUTS)}'))",
        lambda: f"steps.convert_layout({pick(ORDERS)})",
        lambda: f"steps.mean({pick(['2', '[1, 2, 3]', '[0.5]'])})",
        lambda: f"steps.scale({pick(['2', '[0.5, 4, 8]', '[0.25]'])})",
        lambda: "steps.reverse_channels()",
        lambda: "steps.resize(R.RESIZE_NEAREST)",
        lambda: f"steps.resize(R.RESIZE_NEAREST, {pick([8, 5])}, 8)",
        lambda: f"steps.convert_color(F.{pick(['RGB', 'BGR', 'GRAY', 'RGB', 'NV12_TWO_PLANES'])})",
        lambda: f"steps.crop([0, 0, 0, 0], {pick([[1, 3, 8, 8], [1, 8, 8, 3], [9, 9, 9, -1]])})",
        lambda: f"steps.pad([0, 0, {pick([0, 1])}, 0], [0, 0, 0, 0], 2, P.CONSTANT)",
        lambda: "steps.custom(lambda x: (x.node + x.node).output(0))",
        lambda: f"after.convert_layout({pick(ORDERS)})",
        lambda: f"after.convert_layout(L('{pick(LAYOUTS)}'))",
        lambda: f"after.convert_element_type(T.{pick(['i32', 'f16', 'dynamic'])})",
    ]
    common = [
        [],
        ["ppp.input().model().set_layout(L('NCHW'))"],
        ["ppp.input().tensor().set_layout(L('NHWC'))", "ppp.input().model().set_layout(L('NCHW'))"],
    ]
    chosen = [pick(settings)() for _ in range(chance.randrange(3))]
    return [*pick(common), *chosen, *[pick(steps)() for _ in range(chance.randrange(1, 4))]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models")
    for name, shape in (("static", "1,3,8,8"), ("dynamic", "?,3,?,?"), ("gray", "1,1,8,8")):
        net = Net(name=name)
        says = "FP32 " + shape.replace("?", "-1").replace(",", " ")
        x = net.parameter("x", shape, out=says)
        net.result(net.op("Abs", x, out=says, name="abs", names="y"), "out")
        (path / f"{name}.xml").write_bytes(net.xml())
    return path


def both(folder: Path, seed: int) -> tuple[list[str], list[Any], list[Any]]:
    steps, model = plan(seed), ("static", "static", "dynamic", "gray")[seed % 4]
    given: dict[str, Any] = {"plan": steps, "path": folder / f"{model}.xml", "np": np}
    ours, theirs = (run(PROGRAM, package, **given) for package in ("ir_runtime", "openvino"))
    return steps, ours, theirs


@pytest.mark.parametrize("seed", range(COUNT))
def test_steps_in_random_order(seed: int, folder: Path) -> None:
    steps, ours, theirs = both(folder, seed)
    print("\n".join(steps))
    assert_same(ours, theirs)
