"""The examples on the pages of operations can be read as printed."""

from __future__ import annotations

import numpy as np
import pytest
from harness.examples import EXAMPLE_MODELS, examples

import ir_runtime as ir
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define.describe import group, page, recorded

alone = [cls for cls in registry if group(cls) and cls.versioned_name() not in EXAMPLE_MODELS]
versions = pytest.mark.parametrize("cls", alone, ids=lambda cls: cls.versioned_name())


def test_what_is_recorded_is_up_to_date() -> None:
    file, text = examples()
    assert file.read_text(encoding="utf-8") == text, "make index writes it"


def test_every_operation_has_an_example() -> None:
    found = {cls.versioned_name(): recorded(cls.versioned_name()) for cls in registry if group(cls)}
    assert [name for name, record in found.items() if record is None] == []
    assert len(found) >= 245
    assert recorded("Blend-99") is None


@versions
def test_a_page_is_a_model(cls: type[Op]) -> None:
    """The layer on a page can be read, and infers the types of the example, as on pages of the specification."""
    found = recorded(cls.versioned_name())
    assert found is not None
    model = ir.read_fragment(page(cls), strict=True)
    (layer,) = (node for node in model.get_ordered_ops() if node.get_friendly_name() == "example")
    assert layer.get_type_name().casefold() == cls.name.casefold()
    for port, tensor in zip(layer.outputs(), found.outputs, strict=True):
        assert port.get_element_type().to_string() == tensor.type
        assert port.get_partial_shape().compatible(ir.PartialShape(list(tensor.shape)))


def test_what_is_printed_is_what_was_computed() -> None:
    """Check a known page: rows of a matrix, and their sums."""
    found = recorded("ReduceSum-1")
    assert found is not None
    data, axes = found.inputs
    numbers = np.array(eval(data.text)), eval(axes.text)[0]
    assert np.array(eval(found.outputs[0].text)).ravel() == pytest.approx(
        numbers[0].sum(numbers[1]).ravel(), abs=3e-4
    )
