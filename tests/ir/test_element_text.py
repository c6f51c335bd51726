"""The text of element types: OpenVINO's for programs, short names in messages."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ir_runtime as ov
from ir_runtime import opset13

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"


def test_no_message_shows_a_type_as_programs_see_it() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in SNAPSHOTS.rglob("*") if path.is_file()}
    assert len(texts) > 50
    shown = [str(path) for path, text in texts.items() if re.search(r"<Type: '\w+'>(?!')", text)]
    assert shown == []


def test_messages_have_the_short_names() -> None:
    x = opset13.parameter([2], "f32", name="x")
    with pytest.raises(ov.InputError, match="expected f32"):
        ov.compile_model(ov.Model([opset13.relu(x)], [x]), strict=True)(np.ones(2))


@pytest.mark.parametrize("type", [ov.Type.f16, "f16", "float16", "<Type: 'float16'>", "FP16"])
def test_properties_take_every_text_of_a_type(type: object) -> None:
    x = opset13.parameter([2], "f32", name="x")
    config = {"INFERENCE_PRECISION_HINT": type}
    compiled = ov.compile_model(ov.Model([opset13.relu(x)], [x]), config=config)
    assert compiled.get_property("INFERENCE_PRECISION_HINT") is ov.Type.f16


def test_attributes_may_be_types() -> None:
    x = opset13.parameter([2], "f32", name="x")
    node = opset13.convert(x, ov.Type.i64)
    assert node.get_attributes() == {"destination_type": "i64"}
