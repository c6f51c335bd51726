"""What samples of the movement group cannot say: errors, strings, intervals, batches that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.layers import bounded, layer, value, values

from ir_runtime.errors import InferenceError, ValidationError
from ir_runtime.ir.dimension import Dimension

F = np.float32


PATCH = {"sizes": "2,2", "strides": "1,1", "rates": "1,1", "auto_pad": "valid"}

REFUSED = [
    ("Pad-12", {"pad_mode": "constant"}, ("f32 2", "i64 1", "i64 1", "f32 1"), "pad_value must be a scalar"),
    ("Pad-12", {"pad_mode": "constant"}, ("f32 2", "i64 1,1", "i64 1"), "pads_begin must be 1-D"),
    (
        "Pad-12",
        {"pad_mode": "constant"},
        ("f32 2", "i64 1", "i64 2"),
        "pads_end has 2 elements, data of rank 1",
    ),
    (
        "Pad-12",
        {"pad_mode": "reflect"},
        ("f32 2", [2], [0]),
        "reflect padding by 2 of an axis of length 2; at most 1",
    ),
    ("Pad-12", {"pad_mode": "symmetric"}, ("f32 ..2", [0], [3]), "of length ..2; at most 2 is possible"),
    ("Pad-12", {"pad_mode": "edge"}, ("f32 0", [0], [1]), "edge padding by 1 needs an element"),
    ("Roll-7", {}, ("f32 2", "i64 2", "i64 3"), "shift is of shape [2], but axes of shape [3]"),
    ("Roll-7", {}, ("f32 2", "i64 2,1", "i64 2"), "shift must be a scalar or 1-D"),
    ("Roll-7", {}, ("f32 2", 1, [1]), "axis 1 is out of range for rank 1"),
    (
        "Reverse-1",
        {"mode": "mask"},
        ("f32 2", "i64 1"),
        "reversed_axes is i64, which mode mask does not take",
    ),
    ("Reverse-1", {"mode": "index"}, ("f32 2", "i64 1,1"), "reversed_axes must be 1-D"),
    ("Reverse-1", {"mode": "mask"}, ("f32 2,2", "boolean 1"), "a mask of 1 axes for data of rank 2"),
    ("ReverseSequence-1", {}, ("f32 2", "i64 2"), "data must have a batch and a sequence axis"),
    ("ReverseSequence-1", {}, ("f32 2,2", "i64 3"), "3 seq_lengths for a batch of 2"),
    ("ReverseSequence-1", {}, ("f32 2,2", "i64 3,1"), "seq_lengths must be 1-D"),
    ("ShuffleChannels-1", {"group": "3"}, ("f32 1,4",), "4 channels do not divide into 3 groups"),
    ("ScatterNDUpdate-15", {}, ("f32", "i64 1", "f32"), "must have at least one axis"),
    ("ScatterNDUpdate-15", {}, ("f32 2", "i64 1,2", "f32 1"), "indices name 2 axes, but data has only 1"),
    (
        "ScatterNDUpdate-4",
        {},
        ("f32 2,3", "i64 4,1", "f32 4,2"),
        "updates are of shape [4,2]; data and indices ask for [4,3]",
    ),
    (
        "ScatterNDUpdate-4",
        {},
        ("f32 2", [1], "f32 2"),
        "updates are of shape [2]; data and indices ask for []",
    ),
    (
        "ScatterUpdate-3",
        {},
        ("f32 2,3", "i64 4", "f32 2,5", 1),
        "updates are of shape [2,5]; data and indices ask for [2,4]",
    ),
    ("ScatterUpdate-3", {}, ("f32 2,3", "i64 4", "f32 2", "i64 1"), "data and indices ask for [?,?]"),
    ("ScatterUpdate-3", {}, ("f32 2,3", "i64 4", "f32 2,4", [1, 1]), "axis must be one number, not 2"),
    (
        "ScatterElementsUpdate-3",
        {},
        ("f32 2", "i64 2", "f32 3", 0),
        "indices are of shape [2], but updates of shape [3]",
    ),
    ("ScatterElementsUpdate-3", {}, ("f32 2,2", "i64 2", "f32 2", 0), "must have the same rank"),
    (
        "ScatterElementsUpdate-3",
        {},
        ("f32 2,2", "i64 2,3", "f32 2,3", 0),
        "indices are of length 3 along axis 1, data only of 2",
    ),
    (
        "ScatterElementsUpdate-12",
        {"reduction": "mean"},
        ("boolean 2", "i64 2", "boolean 2", 0),
        "mean is not defined for boolean",
    ),
    ("GatherElements-6", {"axis": "0"}, ("f32", "i64 1"), "data must have at least one axis"),
    (
        "GatherElements-6",
        {"axis": "0"},
        ("f32 2,3", "i64 2,2"),
        "indices are of shape [2,2]; data and axis 0 ask for [?,3]",
    ),
    (
        "GatherND-8",
        {"batch_dims": "1"},
        ("f32 2", "i64 2,1"),
        "data [2] must have more axes than batch_dims, which is 1",
    ),
    (
        "GatherND-8",
        {"batch_dims": "1"},
        ("f32 2,2", "i64 2,2"),
        "indices name 2 axes of [2,2], after 1 of the batch",
    ),
    ("GatherND-5", {"batch_dims": "1"}, ("f32 2,2", "i64 3,1"), "have different batches"),
    ("GatherTree-1", {}, ("i32 2,1,1", "i32 2,1,2", "i32 1", "i32"), "must both be [time, batch, beam]"),
    (
        "GatherTree-1",
        {},
        ("i32 2,1,1", "i32 2,1,1", "i32 2", "i32"),
        "2 lengths in max_seq_len for a batch of 1",
    ),
    ("GatherTree-1", {}, ("i32 2,1,1", "i32 2,1,1", "i32 1,1", "i32"), "max_seq_len must be 1-D"),
    ("GatherTree-1", {}, ("i32 2,1,1", "i32 2,1,1", "i32 1", "i32 1"), "end_token must be a scalar"),
    ("BatchToSpace-2", {}, ("f32 4", [1], [0], [0]), "data must have a batch and a spatial axis"),
    (
        "BatchToSpace-2",
        {},
        ("f32 4,2", [1, 2, 2], [0] * 3, [0] * 3),
        "block_shape has 3 numbers for data of rank 2",
    ),
    (
        "BatchToSpace-2",
        {},
        ("f32 4,2", [1, 2], [0, 0], [0]),
        "equally many numbers, found: block_shape 2, crops_begin 2, crops_end 1",
    ),
    (
        "BatchToSpace-2",
        {},
        ("f32 5,2", [1, 2], [0, 0], [0, 0]),
        "batch of length 5 does not divide into blocks of 2",
    ),
    ("BatchToSpace-2", {}, ("f32 4,2", [1, 2], [0, 3], [0, 2]), "crops of 5 elements exceed 2 blocks of 2"),
    ("BatchToSpace-2", {}, ("f32 4,2", [1, 0], [0, 0], [0, 0]), "block_shape must be at least 1, not 0"),
    ("BatchToSpace-2", {}, ("f32 4,2", [2, 2], [0, 0], [0, 0]), "block_shape must be 1 for the batch, not 2"),
    ("BatchToSpace-2", {}, ("f32 4,2", [1, 2], [1, 0], [0, 0]), "crops_begin must be 0 for the batch, not 1"),
    ("SpaceToBatch-2", {}, ("f32 4,2", [1, 2], [0, -1], [0, 0]), "pads_begin must be at least 0, not -1"),
    (
        "SpaceToBatch-2",
        {},
        ("f32 4,2", [1, 2], [0, 1], [0, 0]),
        "padded axis 1 of length 3 does not divide into blocks of 2",
    ),
    ("DepthToSpace-1", {"mode": "depth_first"}, ("f32 4,2",), "but have rank 2"),
    (
        "DepthToSpace-1",
        {"mode": "depth_first", "block_size": "2"},
        ("f32 1,6,2,2",),
        "channels of length 6 does not divide",
    ),
    (
        "SpaceToDepth-1",
        {"mode": "depth_first", "block_size": "2"},
        ("f32 1,6,2,3",),
        "axis 3 of length 3 does not divide",
    ),
    ("ExtractImagePatches-3", PATCH, ("f32 1,1,3",), "data must be [batch, channels, rows, columns]"),
    ("Unique-10", {}, ("f32", 0), "axis 0 is out of range for rank 0"),
    ("Unique-10", {}, ("f32", "i64"), "axis is given, but data is a scalar"),
    ("Unique-10", {}, ("f32 2,3", [0, 1]), "axis must be one number, not 2"),
    ("Col2Im-15", {}, ("f32 1,1,4,4", [2, 2], [2, 2]), "or without batch, not of shape [1,1,4,4]"),
    (
        "Col2Im-15",
        {},
        ("f32 4,4", [2, 2, 2], [2, 2]),
        "output_size must have a number for rows and one for columns, not 3",
    ),
    ("Col2Im-15", {}, ("f32 4,4", [2, 2], [2, 0]), "kernel_size must be at least 1, not ['2', '0']"),
    ("Col2Im-15", {}, ("f32 4,4", [4, 4], [2, 2]), "4 patches, where output_size and kernel_size make 9"),
    (
        "Col2Im-15",
        {},
        ("f32 4,4", [4, 1], [2, 2]),
        "kernel of extent 2 exceeds the padded length 1 of axis 1",
    ),
    (
        "Col2Im-15",
        {},
        ("f32 6,9", [4, 4], [2, 2]),
        "axis of channels of length 6 does not divide into blocks of 4",
    ),
]


@pytest.mark.parametrize(("name", "attributes", "inputs", "message"), REFUSED)
def test_contradictions(name: str, attributes: dict[str, str], inputs: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        layer(name, **attributes).infer_types(*values(inputs))
    assert message in caught.value.message
    assert "\n" not in caught.value.message


WRONG_DATA = [
    ("Pad-12", {"pad_mode": "reflect"}, (np.zeros(3, F), [3], [0]), "reflect padding by 3"),
    (
        "ReverseSequence-1",
        {},
        (np.zeros((2, 3), F), [1, 4]),
        "must lie between 0 and 3, the length of axis 1",
    ),
    (
        "ScatterNDUpdate-4",
        {},
        (np.zeros(3, F), [[3]], np.zeros(1, F)),
        "index 3 is out of range for an axis of length 3",
    ),
    (
        "ScatterUpdate-3",
        {},
        (np.zeros(3, F), [-1], np.zeros(1, F), [0]),
        "indices must not be negative: [-1]",
    ),
    ("ScatterElementsUpdate-3", {}, (np.zeros(3, F), [-4], np.zeros(1, F), [0]), "index -4 is out of range"),
    ("GatherElements-6", {"axis": "0"}, (np.zeros(3, F), [5]), "index 5 is out of range"),
    ("GatherND-8", {}, (np.zeros((3, 2), F), [[0, 2]]), "index 2 is out of range for an axis of length 2"),
    ("GatherTree-1", {}, (np.ones((2, 1, 1), F), np.ones((2, 1, 1), F), F([2]), F(0)), "there are 1 beams"),
]


@pytest.mark.parametrize(("name", "attributes", "inputs", "message"), WRONG_DATA)
def test_data_that_do_not_fit(
    name: str, attributes: dict[str, str], inputs: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(InferenceError) as caught:
        layer(name, **attributes).evaluate(*map(np.asarray, inputs))
    assert message in caught.value.message


def test_strings_are_padded_with_empty_ones() -> None:
    words = np.array(["a", "bc"], object)
    padded = layer("Pad-12", pad_mode="constant").evaluate(words, np.array([1]), np.array([0]))
    assert padded.tolist() == ["", "a", "bc"]


def test_strings_and_nan_can_be_different() -> None:
    words = np.array(["b", "a", "b"], object)
    unique, indices, inverse, counts = layer("Unique-10").evaluate(words)
    assert unique.tolist() == ["a", "b"]
    assert (indices.tolist(), inverse.tolist(), counts.tolist()) == ([1, 0], [1, 0, 1], [1, 2])
    found = layer("Unique-10").evaluate(np.array([np.nan, 1, np.nan], F))
    assert found[3].tolist() == [1, 1, 1]
    assert [x.size for x in layer("Unique-10").evaluate(np.zeros(0, F))] == [0, 0, 0, 0]


def test_how_many_elements_may_differ() -> None:
    unique = layer("Unique-10")
    shapes = [str(s) for s in unique.infer(value("f32 2..3,4"))]
    assert shapes == ["[1..12]", "[1..12]", "[8..12]", "[1..12]"]
    shapes = [str(s) for s in unique.infer(value("f32 2,?"), value("i64"))]
    assert shapes == ["[1..2,?]", "[?]", "[?]", "[?]"]
    assert str(unique.infer(value("f32 ..."), value(0))[0]) == "[...]"


def test_batches_broadcast() -> None:
    """As the page of GatherND-8 has it; OpenVINO 2026.4 asks for equal batches."""
    gather = layer("GatherND-8", batch_dims="1")
    data, indices = np.arange(6).reshape(1, 3, 2), np.array([[[2]], [[0]]])
    assert gather.evaluate(data, indices).tolist() == [[[4, 5]], [[0, 1]]]
    assert gather.evaluate(np.concatenate([data, -data]), indices[:1]).tolist() == [[[4, 5]], [[-4, -5]]]
    assert gather.infer(value(data), value(indices)) == [2, 1, 2]


LENGTHS = bounded(Dimension(1, 8), 3, 4)


@pytest.mark.parametrize(
    ("name", "attributes", "inputs", "expected"),
    [
        ("Pad-12", {"pad_mode": "constant"}, (LENGTHS, [1], [0]), [0, Dimension(1, 8), 3, 4]),
        ("Roll-7", {}, (LENGTHS, [1], [0]), [4, Dimension(1, 8), 3]),
        ("Reverse-1", {"mode": "index"}, (LENGTHS, [0]), [4, 3, Dimension(1, 8)]),
        ("ScatterUpdate-3", {}, (LENGTHS, [1], [7], 0), [Dimension(1, 8), 7, 4]),
        ("ScatterUpdate-3", {}, ([5, 6, 7, 8], [0, 2, 1], LENGTHS, 0), [Dimension(1, 8), 4, 3, 8]),
        ("ScatterNDUpdate-4", {}, (LENGTHS, [[-1]], [7]), [Dimension(1, 8), 3, 7]),
        ("ScatterElementsUpdate-3", {}, (LENGTHS, [2], [7], 0), [Dimension(1, 8), 3, 7]),
        ("GatherElements-6", {"axis": "0"}, (LENGTHS, [1, 0]), [3, Dimension(1, 8)]),
        ("GatherND-8", {}, (LENGTHS, [[2], [0]]), [4, Dimension(1, 8)]),
        ("ScatterNDUpdate-15", {"reduction": "sum"}, (LENGTHS, [[0]], [7]), None),
        (
            "Roll-7",
            {},
            ([1, 2, 3], bounded(Dimension(1, 8)), [0]),
            None,
        ),
    ],
)
def test_lengths_are_followed(
    name: str, attributes: dict[str, str], inputs: tuple[Any, ...], expected: list[Any] | None
) -> None:
    (found,) = layer(name, **attributes).infer_values(*values(inputs))
    assert found.numbers() == (None if expected is None else tuple(expected))


def test_lengths_of_padded_axes() -> None:
    pad = layer("Pad-12", pad_mode="constant")
    pads = bounded(Dimension(0, 2), -3)
    assert str(pad.infer(value("f32 2..4,1..8"), pads, pads)) == "[2..8,..2]"
    assert pad.infer(value("f32 ..."), pads, pads).rank is None


@pytest.mark.parametrize(
    ("name", "attributes", "inputs", "expected"),
    [
        ("BatchToSpace-2", {}, ("f32 4..8,1..3", [1, 2], "i64 2", "i64 2"), "[2..4,..6]"),
        ("BatchToSpace-2", {}, ("f32 8,3", "i64 2", [0, 1], [0, 0]), "[1..8,2..]"),
        ("BatchToSpace-2", {}, ("f32 ...", [1, 2], "i64 2", "i64 2"), "[...]"),
        ("SpaceToBatch-2", {}, ("f32 2,3..5", [1, 2], [0, 1], [0, 0]), "[4,2..3]"),
        ("SpaceToBatch-2", {}, ("f32 2,3", "i64 2", [0, 1], [0, 0]), "[2..,1..4]"),
        (
            "DepthToSpace-1",
            {"mode": "depth_first", "block_size": "2"},
            ("f32 ?,5..12,1..3,?",),
            "[?,2..3,2..6,?]",
        ),
        (
            "SpaceToDepth-1",
            {"mode": "depth_first", "block_size": "2"},
            ("f32 ?,1..2,3..8,?",),
            "[?,4..8,2..4,?]",
        ),
        ("DepthToSpace-1", {"mode": "depth_first"}, ("f32 ...",), "[...]"),
        ("ExtractImagePatches-3", PATCH, ("f32 ...",), "[?,?,?,?]"),
        ("ExtractImagePatches-3", PATCH, ("f32 1,2,..3,5..",), "[1,8,..2,4..]"),
        ("Col2Im-15", {}, ("f32 ?,8,?", "i64 2", [2, 2]), "[?,2,?,?]"),
        ("Col2Im-15", {}, ("f32 8,?", [4, 5], "i64 2"), "[1..8,4,5]"),
    ],
)
def test_lengths_in_part(
    name: str, attributes: dict[str, str], inputs: tuple[Any, ...], expected: str
) -> None:
    assert str(layer(name, **attributes).infer(*values(inputs))) == expected


def test_attributes_are_checked() -> None:
    with pytest.raises(ValidationError, match="sizes must have a number for rows and one for columns, not"):
        layer("ExtractImagePatches-3", **(PATCH | {"sizes": "2"}))
    with pytest.raises(ValidationError, match="did you mean 'reflect'"):
        layer("Pad-12", pad_mode="reflection")
    with pytest.raises(ValidationError, match="'group' must be an integer at least 1"):
        layer("ShuffleChannels-1", group="0")
    with pytest.raises(ValidationError, match="count_element_type must be i64 or i32, not f32"):
        layer("Unique-10", count_element_type="f32")
