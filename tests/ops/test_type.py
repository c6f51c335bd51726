"""Conversions: bounds on integers, sub-byte types, and cases that the specification leaves open."""

from __future__ import annotations

import itertools

import numpy as np
import openvino as ov
import openvino.opset14 as opset
import pytest

from ir_runtime.errors import InferenceError, ValidationError
from ir_runtime.ir.dimension import Dimension, Interval, Symbol
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import TensorType, Value, objects
from ir_runtime.ops.conversion import NF4, convert
from ir_runtime.ops.type import PROMOTED, Convert, ConvertLike, ConvertPromoteTypes


def bounds(*numbers: int | Interval) -> Value:
    return Value.bounded(E.i64, objects(numbers, (len(numbers),)))


def test_lengths_go_through() -> None:
    length = Dimension.between(1, None, Symbol("length"))
    (found,) = Convert(destination_type=E.i32).infer_values(bounds(3, length, Interval(-1, 7)))
    assert found.element is E.i32
    assert found.numbers() == (3, length, Interval(-1, 7))
    like = Value.unknown(E.i32, found.shape)
    (found,) = ConvertLike().infer_values(bounds(3, length), like)
    assert found.numbers() == (3, length)


def test_bounds_that_may_wrap_are_those_of_the_type() -> None:
    numbers = bounds(5, Interval(-1, 3), Dimension(200, 300), Dimension(), Dimension(1, 8))
    (found,) = Convert(destination_type=E.u8).infer_values(numbers)
    every = Dimension(0, 255)
    assert found.numbers() == (5, every, every, every, Dimension(1, 8))


def test_bounds_as_truth() -> None:
    numbers = bounds(0, 5, Dimension(1, 8), Dimension(0, 8))
    (found,) = Convert(destination_type=E.boolean).infer_values(numbers)
    assert found.numbers() == (0, 1, 1, Dimension(0, 1))


def test_bounds_say_nothing_as_floats() -> None:
    (found,) = Convert(destination_type=E.f32).infer_values(bounds(5, Dimension(1, 3)))
    assert found.data is None
    assert found.shape == [2]


@pytest.mark.parametrize("target", [E.string, E.dynamic])
def test_only_numbers(target: E) -> None:
    with pytest.raises(ValidationError, match="'destination_type' must be a numeric type, not"):
        Convert(destination_type=target)


def test_types_of_few_bits() -> None:
    numbers = np.array([0, 1, 7, 8, 15, 16, -1, -9])
    assert convert(numbers, E.u4).astype(int).tolist() == [0, 1, 7, 8, 15, 0, 15, 7]
    assert convert(numbers, E.i4).astype(int).tolist() == [0, 1, 7, -8, -1, 0, -1, 7]
    assert convert(numbers, E.u2).astype(int).tolist() == [0, 1, 3, 0, 3, 0, 3, 3]
    assert convert(numbers, E.u1).tolist() == [0, 1, 1, 0, 1, 0, 1, 1]
    assert convert(numbers, E.u3).tolist() == [0, 1, 7, 0, 7, 0, 7, 7]
    assert convert(numbers, E.u6).tolist() == [0, 1, 7, 8, 15, 16, 63, 55]
    for element in (E.u4, E.i4, E.u2):
        few = np.arange(-2, 2).astype(element.dtype)
        assert convert(few, E.i32).tolist() == few.astype(int).tolist()


def test_nf4_is_carried_as_codes() -> None:
    codes = np.arange(16, dtype=np.uint8)
    assert convert(codes, E.f32, E.nf4).tolist() == NF4.tolist()
    assert convert(NF4, E.nf4).tolist() == codes.tolist()
    assert convert(codes, E.nf4, E.nf4) is codes
    assert convert(np.array([-2, -0.84, -0.85, 0.05, 3, np.nan]), E.nf4).tolist() == [0, 1, 0, 8, 15, 0]


def test_f4_and_f8e8m0() -> None:
    numbers = np.array([0.25, 0.75, 1.25, 5, 7, np.inf, -np.inf, np.nan])
    assert convert(numbers, E.f4e2m1).astype(float).tolist() == [0, 1, 1, 4, 6, 6, -6, 6]
    ties = np.array([1.5, 3, 6, 12])
    assert convert(ties, E.f8e8m0).astype(float).tolist() == [2, 2, 8, 8]


def test_what_has_no_place_in_a_machine_integer() -> None:
    strange = np.array([np.nan, np.inf, -np.inf, 1e30])
    assert convert(strange, E.i32).tolist() == [-(2**31)] * 4
    assert convert(strange, E.i64).tolist() == [-(2**63)] * 4
    assert convert(strange, E.u32).tolist() == [0] * 4
    assert convert(strange, E.u64).tolist() == [2**63, 0, 2**63, 0]
    assert convert(strange, E.u8).tolist() == [0] * 4
    assert convert(np.array([5e9, -3e9]), E.u32).tolist() == [5_000_000_000 - 2**32, 2**32 - 3_000_000_000]


def test_bf16_is_rounded_to_the_nearest() -> None:
    assert convert(np.array([0.4], "f4"), E.bf16).astype("f4").tolist() == [0.400390625]


def test_the_same_type_is_not_copied() -> None:
    data = np.ones(3, "f4")
    assert Convert(destination_type=E.f32).evaluate(data) is data


def promoted(a: str, b: str, ranks: tuple[int | None, int | None] = (1, 1), **attributes: bool) -> E:
    types = [
        TensorType(E.parse(t), PartialShape.dynamic(rank)) for t, rank in zip((a, b), ranks, strict=True)
    ]
    one, other = ConvertPromoteTypes(**attributes).infer_types(*map(Value, types))
    assert one.element is other.element
    return one.element


def theirs(a: E, b: E, scalar: bool, unsafe: bool) -> str | None:
    one, other = (
        opset.parameter([] if first and scalar else [2], getattr(ov.Type, e.label))
        for e, first in ((a, True), (b, False))
    )
    try:
        node = opset.convert_promote_types(one, other, promote_unsafe=unsafe, pytorch_scalar_promotion=scalar)
    except RuntimeError:
        return None
    return str(node.output(0).get_element_type().to_string())


@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("unsafe", [False, True])
def test_promotion_of_all_types(scalar: bool, unsafe: bool) -> None:
    for a, b in itertools.product(PROMOTED, PROMOTED):
        ranks = (0, 1) if scalar else (1, 1)
        try:
            how = {"pytorch_scalar_promotion": scalar, "promote_unsafe": unsafe}
            found = promoted(a.label, b.label, ranks, **how).label
        except InferenceError:
            found = None
        assert found == theirs(a, b, scalar, unsafe), (a, b)


def test_promotion_where_ranks_decide() -> None:
    how = {"pytorch_scalar_promotion": True, "promote_unsafe": True}
    assert promoted("i64", "u8", (None, 1), **how) is E.dynamic
    assert promoted("i64", "f32", (None, 1), **how) is E.f32
    assert promoted("i64", "dynamic") is E.dynamic
