"""Branches and loops against OpenVINO, and errors inside bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from harness.nets import Net, body_of
from harness.oracle import PLUGIN, core, plugin, read

import ir_runtime
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array
from models.controlled import CASES


def save(name: str, folder: Path) -> Path:
    path = folder / f"{name}.xml"
    ov.serialize(CASES[name][0](), path)
    return path


def reference(path: Path, inputs: list[Array]) -> list[Array]:
    """Return OpenVINO's reference, else its plugin, which corrupts exchanged loop states."""
    model = core().read_model(path)
    outputs = [ov.Tensor(o.get_element_type(), ov.Shape([0])) for o in model.outputs]
    try:
        if model.evaluate(outputs, [ov.Tensor(x) for x in inputs]):
            return [np.array(o.data) for o in outputs]
    except RuntimeError:
        pass
    found = core().compile_model(model, "CPU", PLUGIN)(inputs)
    return [np.array(found[i]) for i in range(len(outputs))]


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_openvino(name: str, backend: str, tmp_path: Path) -> None:
    path = save(name, tmp_path)
    model = ir_runtime.read_model(path)
    assert list(model.report) == []
    compiled = ir_runtime.compile_model(model, backend=backend)
    for inputs in CASES[name][1]:
        for found, wanted, port in zip(
            compiled(inputs).to_tuple(), reference(path, inputs), compiled.outputs, strict=True
        ):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            assert port.partial_shape.contains(found.shape)
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_infers_what_openvino_infers(name: str, tmp_path: Path) -> None:
    path = save(name, tmp_path)
    ours, theirs = ir_runtime.read_model(path), core().read_model(path)
    for mine, other in zip(ours.outputs, theirs.outputs, strict=True):
        wanted = ir_runtime.PartialShape(str(other.partial_shape))
        assert mine.partial_shape.refines(wanted), f"OpenVINO infers {wanted}"


class Names:
    """An observer that records which layers ran."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def before(self, step: ir_runtime.Step, inputs: Any) -> None:
        pass

    def after(self, step: ir_runtime.Step, outputs: Any, seconds: float) -> None:
        self.seen.append(step.layer.name)


def test_layers_of_bodies_are_observed_by_path(tmp_path: Path) -> None:
    path = save("if_in_if", tmp_path)
    names = Names()
    condition = np.array(True)
    ir_runtime.compile_model(path)([condition, condition, np.zeros(3, np.float32)], observers=[names])
    inner, middle, outer = names.seen
    assert inner.startswith(f"{middle}/then_body/Exp_")
    assert middle.startswith(f"{outer}/then_body/If_")


def test_findings_in_bodies_name_the_path(tmp_path: Path) -> None:
    path = save("loop_over_slices", tmp_path)
    text = path.read_text()
    start = text.index("<output>", text.index('type="Add"'))
    wrong = text[:start] + text[start:].replace("<dim>3</dim>", "<dim>4</dim>", 1)
    report = ir_runtime.validate(wrong.encode(), weights=path.with_suffix(".bin"))
    assert [d.code for d in report] == ["IR303"]
    assert "/body/Add_" in (next(iter(report)).layer or "")


def test_unknown_operations_in_bodies_are_found(tmp_path: Path) -> None:
    path = save("if_that_is_decided", tmp_path)
    text = path.read_text().replace('type="Abs"', 'type="Abz"')
    with pytest.raises(ir_runtime.UnsupportedError, match=r"else_body/Abs_\d+.*'Abz'"):
        ir_runtime.read_model(text.encode(), path.with_suffix(".bin"))


def test_a_layer_that_fails_in_a_body_is_named_by_path(tmp_path: Path) -> None:
    path = save("if_that_picks", tmp_path)
    compiled = ir_runtime.compile_model(path)
    with pytest.raises(ir_runtime.ExecutionError) as caught:
        compiled([np.array(True), np.zeros(2, np.float32), np.array([5, 7])])
    assert "/then_body/GatherElements_" in str(caught.value)


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("condition", [True, False])
def test_outputs_in_a_port_map_may_count_from_0(counted: bool, condition: bool) -> None:
    """As in the specification's example of If, where the layer's output port has the id 3."""
    then, otherwise = Net(), Net()
    for body, types in ((then, ("ReLU", "Abs")), (otherwise, ("Negative", "Exp"))):
        x = body.parameter("part", "3", out="FP32 3")
        for type in types:
            body.result(body.op(type, x, out="FP32 3"), f"of_{type}")
    maps = "".join(
        f'<{name}><input external_port_id="1" internal_layer_id="0"/>'
        f'<output external_port_id="{1 if counted else 3}" internal_layer_id="4"/>'
        f'<output external_port_id="{0 if counted else 2}" internal_layer_id="2"/></{name}>'
        for name in ("then_port_map", "else_port_map")
    )
    inside = maps + "".join(
        f"<{name}>{body_of(body).removeprefix('<body>').removesuffix('</body>')}</{name}>"
        for name, body in (("then_body", then), ("else_body", otherwise))
    )
    net = Net()
    sources = [net.parameter("c", "", "boolean", out="BOOL"), net.parameter("x", "3", out="FP32 3")]
    for number, end in enumerate(net.layer("If", sources, ["FP32 3"] * 2, version="opset8", inside=inside)):
        net.result(end, f"result{number}")
    feeds = [np.array(condition), np.array([-1, 0, 2], np.float32)]
    model = ir_runtime.read_model(net.xml())
    assert list(model.report) == []
    found = ir_runtime.compile_model(model)(feeds).to_tuple()
    wanted = plugin(read(net.xml()), feeds)
    for mine, its in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-6)
