"""The first screen of a report, for valid and faulty models."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import numpy as np
import pytest
from browser.models import loop
from click.testing import CliRunner

import ir_runtime as ov
from ir_runtime import opset13 as ops
from ir_runtime.cli import main
from ir_runtime.debug import measure, old_model
from ir_runtime.report import Conclusion, Link, Measures, Sentence, Story

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.xml"
IMAGE = [np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)]


@pytest.fixture
def model() -> ov.Model:
    return ov.read_model(DIGITS)


@pytest.fixture
def without_relu() -> ov.Model:
    model = ov.read_model(DIGITS)
    relu = next(node for node in model.get_ops() if node.get_type_name() == "Relu")
    for target in list(relu.output(0).get_target_inputs()):
        target.replace_source_output(relu.input_value(0))
    model.validate_nodes_and_infer_types()
    return model


def links(sentence: Sentence) -> list[Link]:
    return [part for part in sentence.parts if isinstance(part, Link)]


def told(story: Story, beginning: str) -> Sentence:
    sentences = (*story.about, *story.costs, *story.problems)
    return next(sentence for sentence in sentences if str(sentence).startswith(beginning))


def test_a_sound_model_says_what_it_is_and_what_was_not_measured(model: ov.Model) -> None:
    story = model.report().story
    assert str(told(story, "Takes")) == "Takes image f32 batch×1×8×8."
    assert str(told(story, "Gives")) == "Gives scores f32 batch×10."
    assert "3 Convolution" in str(story.about[0])
    assert story.is_fine
    assert "not compared" in str(story.problems[-1])
    assert "not measured" in str(story.problems[-1])
    assert story.advice == [
        f"ir-runtime report digits.xml {option}" for option in ("--profile", "--compare openvino")
    ]


def test_arithmetic_is_attributed_to_layers_by_module(model: ov.Model) -> None:
    page = model.report()
    most = told(page.story, "98% of the arithmetic")
    first, second = links(most)
    assert (str(first), str(second)) == ("shapes › Convolution", "parts › Convolution")
    assert f'data-node="{first.target}"' in page.html
    assert "% of the weights are in " in " ".join(map(str, page.story.costs))
    modules = told(page.story, "By module: shapes 54%")
    assert [link.kind for link in links(modules)] == ["scope"] * 3


def test_measured_time_replaces_arithmetic(model: ov.Model) -> None:
    slow = next(layer.name for layer in model._graph if layer.type == "ReduceMean")
    measures = Measures(times={slow: 9.0, **{layer.name: 0.5 for layer in model._graph.of_type("ReLU")}})
    story = model.report(measures=measures).story
    assert "10.50 ms" in str(told(story, "One run"))
    assert "86% of the time is in 1 of 4 layers: average › ReduceMean" in str(told(story, "86%"))
    assert not any("arithmetic" in str(sentence) for sentence in story.costs)


def test_the_time_of_a_fused_step_is_divided_by_flops(model: ov.Model) -> None:
    names = [layer.name for layer in model._graph if layer.type in ("Convolution", "ReLU")]
    convert, rest = "folded away", names
    measures = Measures(times={convert: 4.0}, fused=dict.fromkeys(rest, convert))
    story = model.report(measures=measures).story
    assert "4.00 ms" in str(told(story, "One run")), (
        "although no layer that is shown has the name of the step"
    )
    assert "shapes › Convolution" in str(told(story, "99% of the time"))


def test_a_difference_that_rounding_does_not_explain_is_a_problem(
    model: ov.Model, without_relu: ov.Model, tmp_path: Path
) -> None:
    ov.serialize(without_relu, tmp_path / "other.xml")
    story = model.report(measures=measure(model, IMAGE, against=str(tmp_path / "other.xml"))).story
    assert not story.is_fine
    assert story.problems[0].severity == "error"
    assert str(story.problems[0]).startswith("Unexplained: ")
    assert links(story.problems[0]), "leads to the layer"
    assert "compare digits.xml --against" in story.advice[0]
    agreeing = model.report(measures=measure(model, IMAGE, against="numpy")).story
    assert agreeing.is_fine
    assert str(agreeing.problems[0]) == "Rounding explains how numpy differs from f64."


def test_inf_and_nan_are_problems() -> None:
    x = ops.parameter([2], np.float32, "x")
    big = ops.exp(x, name="big")
    model = ov.Model([ops.subtract(big, big)], [x])
    fits, exceeds = [np.float32([0, 1])], [np.float32([0, 20])]
    traced = model.report(measures=measure(model, exceeds, precision="f16")).story
    assert "In f16, 'big' (Exp-1) makes Inf, which reaches an output" in str(traced.problems[0])
    assert traced.advice[0] == "ir-runtime trace-nan model.xml --as f16 --random"
    assert model.report(measures=measure(model, fits, precision="f16")).story.is_fine
    ran = model.report(measures=measure(model, [np.float32([0, 100])])).story
    assert "has 1 NaN among 2 numbers" in str(ran.problems[0])
    assert ran.problems[0].severity == "error"
    overflowing = (
        ov.Model([big], [x]).report(measures=measure(ov.Model([big], [x]), [np.float32([0, 100])])).story
    )
    assert "has 1 Inf among 2 numbers" in str(overflowing.problems[0])
    assert overflowing.problems[0].severity == "warning"


def test_what_changed_is_told(model: ov.Model, without_relu: ov.Model) -> None:
    story = without_relu.report(old=old_model(model, without_relu)).story
    assert (
        str(story.problems[0])
        == "1 layer differs from digits.xml: '__module.parts.2/aten::relu/Relu' was removed."
    )
    back = model.report(old=old_model(without_relu, model)).story
    assert "parts › 2 › ReLU: added" in str(back.problems[0])
    assert links(back.problems[0])
    same = model.report(old=old_model(ov.read_model(DIGITS), model)).story
    assert same.is_fine
    assert "Nothing differs from digits.xml" in str(same.problems[0])


def test_errors_of_the_file_come_first_and_the_rest_is_counted() -> None:
    layer = (
        '<layer id="{0}" name="e{0}" type="Exp" version="opset1"><input><port id="0"><dim>2</dim></port></input>'
        '<output><port id="1"><dim>3</dim></port></output></layer>'
    )
    text = "".join(layer.format(number) for number in range(6))
    model = ov.read_fragment(text, strict=False)
    story = model.report().story
    assert len([sentence for sentence in story.problems if sentence.severity == "error"]) >= 3
    assert any(link.kind == "tab" for sentence in story.problems for link in links(sentence))
    assert not story.is_fine
    assert story.advice == ["ir-runtime validate model.xml"]


def test_findings_in_bodies_lead_to_their_layers() -> None:
    model = loop()
    inner = next(layer for layer in model._graph.everywhere() if layer.type == "Add")
    model.report.warning("IR000", "it looks odd", inner.where)
    page = model.report()
    (link,) = links(page.story.problems[0])
    assert link.layer == inner.name


def test_what_is_known_in_part_is_said_to_be_at_least_so_much() -> None:
    x, y = ops.parameter([-1, 4], np.float32, "x"), ops.parameter([2, 4], np.float32, "y")
    weights = ops.constant(np.ones((4, 8), np.float32))
    rows = ops.squeeze(ops.non_zero(ops.reduce_sum(x, np.int64([1])), "i64"), np.int64([0]))
    some = ops.matmul(ops.gather(x, rows, np.int64(0)), weights, False, False)
    model = ov.Model([some, ops.matmul(y, weights, False, False)], [x, y])
    story = model.report(constraints=False).story
    assert "at least" in str(told(story, "One run"))
    assert not any("of the arithmetic" in str(sentence) for sentence in story.costs)


def test_warnings_about_the_file_end_no_command_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(webbrowser, "open", lambda _: True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    text = DIGITS.read_text(encoding="utf-8")
    warned = text.replace('auto_pad="explicit"', 'auto_pad="explicit" colour="red"', 1)
    Path("warned.xml").write_text(warned, encoding="utf-8")
    Path("warned.bin").write_bytes(DIGITS.with_suffix(".bin").read_bytes())
    for command in ("validate warned.xml", "report warned.xml", "open warned.xml"):
        ended = CliRunner().invoke(main, command.split())
        assert (command, ended.exit_code, "warning" in ended.output) == (command, 0, True)
    Path("warned.bin").unlink()
    for command in ("validate warned.xml", "report warned.xml", "open warned.xml"):
        assert CliRunner().invoke(main, command.split()).exit_code == 1, command


def test_what_is_wrong_in_measurements_fails_whatever_its_severity(model: ov.Model) -> None:
    for severity, passes in (("error", False), ("warning", False), ("note", True)):
        measures = Measures(conclusions=[Conclusion(severity, "Something.")])
        assert model.report(measures=measures).story.ok is passes


def test_the_command_prints_problems_and_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_relu: ov.Model
) -> None:
    monkeypatch.chdir(tmp_path)
    ov.serialize(without_relu, "new.xml")
    sound = CliRunner().invoke(main, ["report", str(DIGITS)])
    assert (sound.exit_code, sound.stdout.startswith("The file is valid")) == (0, True)
    changed = CliRunner().invoke(main, ["report", "new.xml", "--diff", str(DIGITS), "-o", "changed.html"])
    assert (changed.exit_code, "Relu' was removed" in changed.stdout) == (1, True)
    assert Path("changed.html").exists()
    compared = CliRunner().invoke(
        main, ["report", str(DIGITS), "--compare", "new.xml", "-o", "compared.html"]
    )
    assert (compared.exit_code, compared.stdout.startswith("Unexplained")) == (1, True)
