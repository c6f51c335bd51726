"""Layouts and batches: the same expressions and programs on OpenVINO and here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openvino
import pytest
from harness.dropin import assert_same, evaluate, run
from harness.nets import Net

import ir_runtime as ir

TEXTS = [
    *(
        "NCHW",
        "nchw",
        "[N,C,H,W]",
        "[ N , Ch ,?]",
        "N...C",
        "...",
        "[...]",
        "[...,C]",
        "[N,...]",
        "[N,...,C,?]",
    ),
    *(
        "?",
        "??",
        "N??C",
        "",
        "  ",
        "[]",
        "[,]",
        "[ ]",
        "[",
        "N,C",
        "NN",
        "N..C",
        "N...C...",
        "**SCALAR**",
        "N C",
    ),
    *("[batch,channels,height,width,depth]", "[b,channel]", " NC ", "[N,,C]", "[N,C,]", "[...,]", "[N ...]"),
    *(
        "[N...]",
        "[_]",
        "_",
        "[a-b]",
        "N.",
        "a1",
        "[_a]",
        "[a b]",
        "BC",
        "[HEIGHT,H]",
        "N...?",
        "?...",
        "[?,...,?]",
    ),
    *(
        "..",
        "....",
        "NC....",
        "[...,N,...]",
        "[?]",
        "[1]",
        "12",
        "[ N , ... , C ]",
        "[N,...,C,]",
        "[,...]",
        "[N,,...]",
    ),
]
NAMED = ["N", "n", "batch", "Width", "channels", "depth", "", "x"]
EXPRESSIONS = [
    "ov.Layout() == ov.Layout('')",
    "ov.Layout('NC') == 'nc'",
    "ov.Layout('NC') == '[n,channels]'",
    "ov.Layout('NC') != 'NC'",
    "'NC' == ov.Layout('NC')",
    "ov.Layout('NC') in (5, None)",
    "ov.Layout('NC') == 'N..'",
    "ov.Layout('N...') == ov.Layout('N?')",
    "ov.Layout(layout_str='NC').to_string()",
    "ov.Layout.scalar()",
    "ov.Layout.scalar().empty",
    "ov.Layout(5)",
    "ov.Layout(None)",
    "hash(ov.Layout('NC'))",
    *[
        f"ov.Layout('NC...W').{what}({name!r})"
        for what in ("has_name", "get_index_by_name")
        for name in NAMED
    ],
    *[
        f"ov.layout_helpers.{what}({layout})"
        for name in ("batch", "channels", "depth", "height", "width")
        for what in (f"has_{name}", f"{name}_idx")
        for layout in ("ov.Layout('NC...W')", "ov.Layout('[height,D]')", "layout=ov.Layout()", "'NCHW'")
    ],
]


@pytest.mark.parametrize("text", TEXTS)
def test_texts(text: str) -> None:
    for shown in ("repr({})", "str({})", "{}.empty"):
        expression = shown.format(f"ov.Layout({text!r})")
        assert_same(evaluate(expression, "ir_runtime"), evaluate(expression, "openvino"))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(expression: str) -> None:
    assert_same(evaluate(expression, "ir_runtime"), evaluate(expression, "openvino"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models: an image through two layers, two batched inputs, and one that cannot be reshaped."""
    path = tmp_path_factory.mktemp("layouts")
    image = Net(name="image")
    x = image.parameter("x", "2,3,4,4", out="FP32 2 3 4 4")
    image.result(image.op("ReLU", x, out="FP32 2 3 4 4", name="relu", names="y"), "out")
    pair = Net(name="pair")
    a, b = pair.parameter("a", "?,3", out="FP32 -1 3"), pair.parameter("b", "2,3", out="FP32 2 3")
    any_rank = pair.parameter("c", "...", out="FP32")
    pair.result(pair.op("Add", a, b, out="FP32 2 3", name="sum", names="sum"))
    pair.result(pair.op("ReLU", any_rank, out="FP32", name="positive", names="positive"), "second")
    fixed = Net(name="fixed")
    x = fixed.parameter("x", "2,6", out="FP32 2 6")
    target = fixed.constant([2, 6])
    fixed.result(fixed.op("Reshape", x, target, out="FP32 2 6", special_zero="false", name="r", names="r"))
    for net in (image, pair, fixed):
        (path / f"{net.name}.xml").write_bytes(net.xml())
        (path / f"{net.name}.bin").write_bytes(net.weights)
    return path


READ = """
core = ov.Core()
model = core.read_model(folder / "{}.xml")
x, *others = model.get_parameters()

def attempt(action):
    try:
        note(action())
    except (RuntimeError, TypeError, AttributeError) as reason:
        note(next(k.__name__ for k in (RuntimeError, TypeError, AttributeError) if isinstance(reason, k)))
"""
PROGRAMS = {
    "layouts of inputs and outputs": READ.format("image")
    + """
note(x.layout, x.get_layout(), model.results[0].layout, ov.layout_helpers.get_layout(model.output()))
x.layout = ov.Layout("NCHW")
model.get_results()[0].set_layout(ov.Layout("NHWC"))
note(x.layout, x.get_layout(), model.parameters[0].layout, model.output().node.layout)
ov.layout_helpers.set_layout(model.input(), ov.Layout("[batch,...]"))
note(ov.layout_helpers.get_layout(model.inputs[0]), x.layout, model.input().get_node().layout)
x.set_layout(ov.Layout())
note(x.layout, model.result.layout)
""",
    "layouts that are refused": READ.format("image")
    + """
relu = next(op for op in model.get_ops() if op.get_friendly_name() == "relu")
attempt(lambda: x.set_layout(ov.Layout("NC")))
attempt(lambda: x.set_layout(ov.Layout("NCDHW...")))
attempt(lambda: x.set_layout("NCHW"))
attempt(lambda: setattr(x, "layout", ov.Layout("NCDHW")))
attempt(lambda: ov.layout_helpers.set_layout(model.input(), "NCHW"))
attempt(lambda: ov.layout_helpers.set_layout(relu.output(0), ov.Layout("NCHW")))
attempt(lambda: ov.layout_helpers.get_layout(relu.output(0)))
attempt(lambda: ov.layout_helpers.get_layout(x))
attempt(lambda: relu.layout)
attempt(lambda: ov.layout_helpers.set_layout(ov.compile_model(model, "CPU").input(), ov.Layout("NCHW")))
note(x.layout)
""",
    "layouts of compiled models": READ.format("image")
    + """
x.set_layout(ov.Layout("NCHW"))
compiled = core.compile_model(model, "CPU")
note(ov.layout_helpers.get_layout(compiled.input()), compiled.inputs[0].get_node().layout)
""",
    "layouts after reshaping": READ.format("image")
    + """
x.set_layout(ov.Layout("NCHW"))
model.reshape([1, 3, 8, 8])
note(x.layout, model.input().partial_shape)
""",
    "batches": READ.format("image")
    + """
attempt(lambda: ov.get_batch(model))
x.set_layout(ov.Layout("...W"))
attempt(lambda: ov.get_batch(model))
attempt(lambda: ov.set_batch(model, 2))
x.set_layout(ov.Layout("N..."))
for batch in (5, ov.Dimension(1, 9), -1, np.int64(7), 2):
    ov.set_batch(model, batch)
    note(model.input(), model.output(), ov.get_batch(model))
ov.set_batch(model)
note(model.input(), ov.get_batch(model=model))
ov.set_batch(model=model, batch_size=3)
ov.set_batch(model, dimension=ov.Dimension(4))
note(model.input().shape)
x.set_layout(ov.Layout("...N"))
ov.set_batch(model, 6)
note(model.input().shape)
for wrong in ("3", 2.0, None, [1]):
    attempt(lambda: ov.set_batch(model, wrong))
attempt(lambda: ov.get_batch(5))
attempt(lambda: ov.set_batch(5, 5))
""",
    "batches of several inputs": READ.format("pair")
    + """
a, (b, c) = x, others
a.set_layout(ov.Layout("NC"))
note(ov.get_batch(model))
b.set_layout(ov.Layout("NC"))
c.set_layout(ov.Layout("N..."))
note(ov.get_batch(model))
ov.set_batch(model, 4)
note(model.inputs, model.outputs)
b.set_layout(ov.Layout("CN"))
attempt(lambda: ov.get_batch(model))
attempt(lambda: ov.set_batch(model, 2))
""",
    "a batch that a layer refuses": READ.format("fixed")
    + """
x.set_layout(ov.Layout("NC"))
attempt(lambda: ov.set_batch(model, 3))
note(model.inputs, model.outputs)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, folder: Path) -> None:
    assert_same(
        run(PROGRAMS[name], "ir_runtime", folder=folder), run(PROGRAMS[name], "openvino", folder=folder)
    )


SAVE = """
model = ov.Core().read_model(folder / "image.xml")
model.get_parameters()[0].layout = ov.Layout("NCHW")
model.get_results()[0].layout = ov.Layout("N...")
ov.save_model(model, folder / "saved.xml", compress_to_fp16=False)
"""
LOAD = """
model = ov.Core().read_model(folder / "saved.xml")
note(model.get_parameters()[0].layout, model.get_results()[0].layout)
model.get_parameters()[0].layout = ov.Layout()
ov.save_model(model, folder / "saved.xml", compress_to_fp16=False)
note(ov.Core().read_model(folder / "saved.xml").get_parameters()[0].layout)
"""


@pytest.mark.parametrize("writer", ["ir_runtime", "openvino"])
@pytest.mark.parametrize("reader", ["ir_runtime", "openvino"])
def test_files_carry_layouts(writer: str, reader: str, folder: Path) -> None:
    run(SAVE, writer, folder=folder)
    assert run(LOAD, reader, folder=folder) == ["<Layout: [N,C,H,W]>", "<Layout: [N,...]>", "<Layout: [...]>"]


def test_messages() -> None:
    """Messages name the layout, the input and its shape, and the remedy."""
    net = Net()
    net.result(net.parameter("x", "2,3", out="FP32 2 3"))
    model = ir.read_model(net.xml(), net.weights)
    with pytest.raises(ir.InputError, match=r"'N,C' is not a layout: ',' .*\n.*such as \"NCHW\""):
        ir.Layout("N,C")
    with pytest.raises(ir.InputError, match=r"\[N,C\] has no dimension 'height'"):
        ir.Layout("NC").get_index_by_name("height")
    with pytest.raises(ir.InputError, match=r"\[N\] does not fit 'x'.*\[2,3\]\n.*name 2 dimensions"):
        model.parameters[0].set_layout(ir.Layout("N"))
    with pytest.raises(ir.InputError, match=r"no input .* a batch: 'x' has shape \[2,3\] and layout \[...\]"):
        ir.get_batch(model)


def test_clones_have_layouts_of_their_own() -> None:
    net = Net()
    net.result(net.parameter("x", "2,3", out="FP32 2 3"))
    model = ir.read_model(net.xml(), net.weights)
    other = model.clone()
    other.parameters[0].layout = ir.Layout("NC")
    assert (model.parameters[0].layout, other.parameters[0].layout) == (ir.Layout(), ir.Layout("NC"))


def test_every_name_is_there() -> None:
    theirs: Any = openvino.layout_helpers
    assert {name for name in dir(theirs) if not name.startswith("_")} == set(ir.layout_helpers.__all__)
    assert {n for n in dir(openvino.Layout) if not n.startswith("_")} <= set(dir(ir.Layout))
