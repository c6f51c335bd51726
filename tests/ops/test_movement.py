"""Concat, Split, Slice, Gather and Tile, beyond samples: errors, strings, symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.files import model_of
from harness.oracle import Ours
from harness.sample import case, ints, numbers, scalar, value

from ir_runtime.errors import InferenceError
from ir_runtime.ir.dimension import Dimension, Interval, Symbol
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value, objects

MASKS = {"begin_mask": (), "end_mask": ()}
SHRINK = MASKS | {"shrink_axis_mask": (1,)}
BOTH = {"mode": "bidirectional"}
MAPPED = {"mode": "explicit"}

INFERRED: list[tuple[str, dict[str, Any], tuple[Any, ...], str]] = [
    ("Concat-1", {"axis": 0}, ("f32 ...", "f32 ..."), "[...]"),
    ("Concat-1", {"axis": -1}, ("f32 ?,3", "f32 ...", "f32 4,2..5"), "[4,5..]"),
    ("Gather-8", {}, ("f32 2,3,4", "i64 5,6", "i64"), "[?,?,?,?]"),
    ("Gather-8", {"batch_dims": 1}, ("f32 2,3,4", "i64 ?,6", "i64"), "[2,?,?]"),
    ("Gather-8", {}, ("f32 2,3", "i64 ...", scalar(0)), "[...]"),
    ("Gather-8", {"batch_dims": -1}, ("f32 2,3", "i64 ...", scalar(1)), "[?,?]"),
    ("Gather-8", {}, ("f32 ...", "i64 2", scalar(1)), "[...]"),
    ("Transpose-1", {}, ("f32 2,3", "i64 2"), "[2..3,2..3]"),
    ("Transpose-1", {}, ("f32 ...", [1, 0]), "[?,?]"),
    ("Transpose-1", {}, ("f32 ...", "i64 3"), "[?,?,?]"),
    ("Transpose-1", {}, ("f32 ...", ints()), "[...]"),
    ("Split-1", {"num_splits": 2}, ("f32 4,6", "i64"), "[..4,..6]"),
    ("Split-1", {"num_splits": 2}, ("f32 ...", scalar(0)), "[...]"),
    ("VariadicSplit-1", {}, ("f32 4,6", "i64", [3, 1]), "[..4,..6]"),
    ("VariadicSplit-1", {}, ("f32 4,6", scalar(1), "i64 2"), "[4,..6]"),
    ("Slice-8", {}, ("f32 4,6", "i64 1", [3], [1]), "[..3,6]"),
    ("Slice-8", {}, ("f32 4,6", [1], [3], "i64 1"), "[..4,6]"),
    ("Slice-8", {}, ("f32 1495872112882155326..", [0], [1], [1]), "[1]"),
    ("Slice-8", {}, ("f32 4,6", [1], [3], [1], "i64 1"), "[..4,..6]"),
    ("StridedSlice-1", SHRINK, ("f32 4,6", "i64 1", "i64 1"), "[6]"),
    ("StridedSlice-1", MASKS, ("f32 4,6", "i64 ?", "i64 ?"), "[..4,..6]"),
    ("StridedSlice-1", MASKS, ("f32 ...", [0], [1]), "[...]"),
    ("StridedSlice-1", MASKS | {"begin_mask": (1, 1)}, ("f32 4,6", "i64 ?", [3, 9], [1, 2]), "[3,3]"),
    ("SliceScatter-15", {}, ("f32 ...", "f32 2,3", [0], [2], [1]), "[?,?]"),
    ("Broadcast-3", {}, ("f32 2,?", "i64 3"), "[?,2,?]"),
    ("Broadcast-3", {}, ("f32 ...", [2, 3]), "[2,3]"),
    ("Broadcast-3", {}, ("f32 2", "i64 ?"), "[...]"),
    ("Broadcast-3", BOTH, ("f32 4,1", "i64 1"), "[4,?]"),
    ("Broadcast-3", BOTH, ("f32 ...", [2, 3]), "[...]"),
    ("Broadcast-3", {"mode": "pdpd"}, ("f32 ...", [2, 3]), "[?,?]"),
    ("Broadcast-3", {"mode": "pdpd"}, ("f32 2", [1, 3]), "[2,3]"),
    ("Broadcast-3", MAPPED, ("f32 2", "i64 2", "i64 1"), "[?,?]"),
    ("Tile-1", {}, ("f32 2,3", "i64 3"), "[?,?,?]"),
    ("Tile-1", {}, ("f32 2,3", "i64 ?"), "[...]"),
]


@pytest.mark.parametrize(("name", "attributes", "inputs", "wanted"), INFERRED)
def test_shapes_known_in_part(name: str, attributes: Any, inputs: tuple[Any, ...], wanted: str) -> None:
    found = case(name, **attributes).layer().infer_types(*map(value, inputs))
    assert {str(f.shape) for f in found} == {wanted}


def test_masks_may_differ_in_length() -> None:
    """The specification allows it; OpenVINO refuses."""
    masks = {"begin_mask": (1,), "end_mask": (0, 1, 1, 1), "new_axis_mask": (0, 0, 1)}
    data = numbers(3, 4)
    found = case("StridedSlice-1", **masks).layer().evaluate(data, ints(2, 1, 0), ints(2, 0, 0))
    np.testing.assert_array_equal(found, data[:2, 1:, None])


def test_the_number_of_parts_may_be_unknown() -> None:
    sample = case("VariadicSplit-1", numbers(6), scalar(0), ints(2, 4))
    assert sample.layer().infer_values(value("f32 6"), value(scalar(0)), value("i64 ?")) == ()
    ours = Ours(*model_of(sample, dynamic=True))  # takes the file's word
    assert list(ours.report) == []
    assert [str(v.shape) for v in ours.types()] == ["[?]", "[?]"]


def test_one_part_is_a_tensor_of_its_own() -> None:
    data = numbers(4, 2)
    for found in (
        case("Split-1", num_splits=1).layer().evaluate(data, scalar(0)),
        case("VariadicSplit-1").layer().evaluate(data, scalar(0), ints(4)),
    ):
        np.testing.assert_array_equal(found, data)


def test_unknown_parts_stay_unknown_beside_known_ones() -> None:
    length = Dimension.between(1, 8, Symbol("batch"))
    known = Value.bounded(ElementType.i64, objects([length, 4], (2,)))
    (found,) = case("Concat-1", axis=0).layer().infer_values(known, value("i64 1"))
    assert found.numbers() == (length, 4, Interval())
    (found,) = case("Concat-1", axis=0).layer().infer_values(value(np.float32([2])), value("f32 1"))
    assert found.data is None
    (found,) = case("Concat-1", axis=0).layer().infer_values(value(np.uint32([2])), value("u32 1"))
    assert found.numbers() == (2, Dimension())


def test_lengths_keep_their_symbols() -> None:
    length = Dimension.between(0, None, Symbol("length"))
    data = Value.unknown(ElementType.f32, PartialShape([length, 1]))
    asked = Value.bounded(ElementType.i64, objects([length], (1,)))
    layers = (
        case("Slice-8").layer().infer_types(data, value([0]), asked, value([1])),
        case("Slice-8").layer().infer_types(data, value([-1]), value([-(2**63)]), value([-1])),
        case("StridedSlice-1", begin_mask=(1,), end_mask=(1,))
        .layer()
        .infer_types(data, value([7]), value([7])),
        case("Tile-1")
        .layer()
        .infer_types(value("f32 1,1"), Value.bounded(ElementType.i64, objects([length, 1], (2,)))),
        case("Broadcast-3").layer().infer_types(value("f32 1"), asked),
        case("VariadicSplit-1").layer().infer_types(data, value(scalar(0)), value([-1, 0])),
        case("Split-1", num_splits=1).layer().infer_types(data, value(scalar(0))),
    )
    for found in layers:
        assert found[0].shape[0].symbol is length.symbol


def test_lengths_that_a_slice_bounds_have_no_symbol() -> None:
    length = Dimension.between(0, None, Symbol("length"))
    data = Value.unknown(ElementType.f32, PartialShape([length, 1]))
    (found,) = case("Slice-8").layer().infer_types(data, value([1]), value([-(2**63)]), value([-1]))
    assert (found.shape[0], found.shape[0].symbol) == (Dimension.between(0, 2), None)


def test_strings_are_moved() -> None:
    words = np.array(["a", "bc", "d"], object)
    results = {
        "Gather-8": case("Gather-8").layer().evaluate(words, ints(-1, 5), scalar(0)),
        "Concat-1": case("Concat-1", axis=0).layer().evaluate(words[2:], np.array([""], object)),
        "Slice-8": case("Slice-8")
        .layer()
        .evaluate(np.array(["d", "", "x"], object), ints(0), ints(2), ints(1)),
    }
    for name, found in results.items():
        assert found.tolist() == ["d", ""], name
    assert case("Gather-8").layer().evaluate(words[:0], ints(1), scalar(0)).tolist() == [""]


@pytest.mark.parametrize(
    ("name", "attributes", "inputs", "message"),
    [
        (
            "Split-1",
            {"num_splits": 2},
            (numbers(3), scalar(0)),
            "axis 0 of data .* has length 3, which num_splits 2",
        ),
        ("VariadicSplit-1", {}, (numbers(3), scalar(0), ints(1, 1)), "split_lengths is"),
        ("StridedSlice-1", SHRINK, (numbers(3), ints(3), ints(4)), "element 0 of begin is 3"),
        ("Gather-8", {"batch_dims": 2}, (numbers(3), ints(0), scalar(0)), "batch_dims 2 is out of range"),
    ],
)
def test_contradictions_at_run_time(
    name: str, attributes: Any, inputs: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(InferenceError, match=message):
        case(name, **attributes).layer().evaluate(*inputs)
