"""Five questions of a new user, each answered on the first screen by a sentence with a link to the layer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

import ir_runtime as ov
from ir_runtime.debug import measure, old_model
from ir_runtime.report import Measures

pytestmark = pytest.mark.browser

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.xml"
IMAGE = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)
SCREEN = 800


def digits() -> ov.Model:
    return ov.read_model(DIGITS)


def without_relu() -> ov.Model:
    """The digits network without its last ReLU."""
    model = digits()
    relu = next(node for node in model.get_ops() if "parts.2" in node.friendly_name)
    for target in list(relu.output(0).get_target_inputs()):
        target.replace_source_output(relu.input_value(0))
    model.validate_nodes_and_infer_types()
    return model


def answer(page: Any, text: str) -> Locator:
    """Return the sentence with a text, which must be on the first screen."""
    sentence: Locator = page.locator("#story li", has_text=text)
    expect(sentence).to_have_count(1)
    box = sentence.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= SCREEN, f"{text!r} is below the first screen"
    return sentence


def leads_to(page: Any, sentence: Locator, layer: str) -> None:
    """Follow the first link of a sentence, and expect the layer's details."""
    sentence.locator("[data-node]").first.click()
    expect(page.locator("#chosen")).to_contain_text(layer)
    expect(page.locator(".box.on")).not_to_have_count(0)


def test_is_this_file_all_right(opened: Any) -> None:
    page = opened(digits().report().html).page
    expect(page.locator("#story h2").first).to_have_text("Is it all right?")
    answer(page, "The file is valid")
    text = DIGITS.read_text(encoding="utf-8")
    wrong = re.sub(r"<dim>80</dim>(\s*<dim>4</dim>)", r"<dim>81</dim>\1", text, count=1)
    model = ov.read_model(wrong, DIGITS.with_suffix(".bin").read_bytes(), strict=False)
    page = opened(model.report().html).page
    expect(page.locator("#story h2").first).to_have_text("What is wrong")
    sentence = answer(page, "output port 2 declares dims [?,81,4,4], but the operation gives [?,80,4,4]")
    expect(sentence).to_contain_text("parts › Convolution")
    leads_to(page, sentence, "Multiply_3008")


def test_what_does_it_need(opened: Any) -> None:
    page = opened(ov.read_model(DIGITS.parents[1] / "segmenter" / "segmenter.xml").report().html).page
    sentence = answer(page, "Takes image f32 batch×3×height×width.")
    answer(page, "Needs height and width are multiples of 4.")
    answer(page, "13.3 k parameters (26.1 KiB)")
    leads_to(page, sentence, "Parameter")
    static = digits()
    static.reshape([1, 1, 8, 8])
    answer(opened(static.report().html).page, "Activations peak at 24 KiB in ")


def test_where_does_the_time_go(opened: Any) -> None:
    model = digits()
    slow = next(layer.name for layer in model._graph if layer.type == "ReduceMean")
    times = {slow: 9.0, **{layer.name: 0.5 for layer in model._graph.of_type("ReLU")}}
    page = opened(model.report(measures=Measures(times=times)).html).page
    answer(page, "One run: 2.48 MFLOP, 10.50 ms")
    leads_to(page, answer(page, "86% of the time is in 1 of 4 layers: average › ReduceMean"), slow)


def test_why_do_these_two_differ(opened: Any, tmp_path: Path) -> None:
    model = digits()
    ov.serialize(without_relu(), tmp_path / "other.xml")
    measures = measure(model, [IMAGE], against=str(tmp_path / "other.xml"))
    page = opened(model.report(measures=measures).html).page
    sentence = answer(page, "Unexplained: ")
    expect(sentence).to_contain_text(
        "reads '__module.parts.1/aten::batch_norm/BatchNormInference' as input 0"
    )
    expect(sentence).to_contain_text("See average › ReduceMean.")
    leads_to(page, sentence, "__module.average/aten::adaptive_avg_pool2d/AdaptiveAvgPool")


def test_what_changed(opened: Any) -> None:
    model = without_relu()
    page = opened(digits().report(old=old_model(model, digits())).html).page
    sentence = answer(page, "2 layers differ from digits.xml: average › ReduceMean: inputs")
    expect(sentence).to_contain_text("parts › 2 › ReLU: added.")
    leads_to(page, sentence, "input 0 reads another layer")
    page = opened(model.report(old=old_model(digits(), model)).html).page
    answer(page, "'__module.parts.2/aten::relu/Relu' was removed.")
