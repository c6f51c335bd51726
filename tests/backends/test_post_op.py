"""Which layers are post-ops, and what is known about their operands."""

from __future__ import annotations

import numpy as np
import pytest
from harness.layers import layer

from ir_runtime.backends.common.post_op import match_post_op
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value

DATA = Value.unknown(ElementType.f32, PartialShape("?,3,4,5"))
CHANNELS = np.arange(3, dtype=np.float32).reshape(1, 3, 1, 1)


def test_an_activation_has_no_operand() -> None:
    found = match_post_op(layer("ReLU-1"), [DATA], 0)
    assert found is not None
    assert (found.operand, found.extra_inputs, found.row(1), found.has_full_operand) == (None, 0, None, False)


def test_a_constant_that_varies_along_one_axis_is_a_row_of_that_axis_only() -> None:
    found = match_post_op(layer("Add-1"), [Value.constant(CHANNELS), DATA], 1)
    assert found is not None
    row = found.row(1)
    assert row is not None
    assert row.tolist() == [0, 1, 2]
    assert found.row(-1) is None
    assert not found.has_full_operand


def test_an_operand_is_full_only_where_all_lengths_are_known_to_be_equal() -> None:
    static = Value.unknown(ElementType.f32, PartialShape("2,3"))
    full = match_post_op(layer("Add-1"), [static, static], 0)
    open_ = match_post_op(layer("Add-1"), [DATA, Value.unknown(ElementType.f32, PartialShape("?,3,4,5"))], 0)
    assert full is not None
    assert full.has_full_operand
    assert open_ is not None
    assert not open_.has_full_operand


@pytest.mark.parametrize(
    ("name", "attributes", "inputs", "place"),
    [
        ("Add-1", {}, [Value.unknown(ElementType.i32, PartialShape("2,3"))] * 2, 0),
        ("Add-1", {"auto_broadcast": "none"}, [DATA, DATA], 0),
        ("Add-1", {}, [Value.unknown(ElementType.f32, PartialShape.dynamic())] * 2, 0),
        ("PReLU-1", {}, [DATA, DATA], 1),
    ],
    ids=["integers", "no broadcasting", "rank not known", "the result is a parameter"],
)
def test_what_is_no_post_op(name: str, attributes: dict[str, str], inputs: list[Value], place: int) -> None:
    assert match_post_op(layer(name, **attributes), inputs, place) is None
