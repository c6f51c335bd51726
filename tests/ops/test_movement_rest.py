"""Other data movement, beyond samples: errors, strings, intervals, broadcast batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.layers import bounded, layer, value, values

from ir_runtime.ir.dimension import Dimension, Interval
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Value, objects

F = np.float32


PATCH = {"sizes": "2,2", "strides": "1,1", "rates": "1,1", "auto_pad": "valid"}


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
    """As specified for GatherND-8; OpenVINO 2026.4 requires equal batches."""
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
        ("ScatterNDUpdate-15", {"reduction": "sum"}, (LENGTHS, [[0]], [7]), [Dimension(8, 15), 3, 4]),
        (
            "ScatterNDUpdate-15",
            {"reduction": "prod"},
            (LENGTHS, [[0], [0]], [2, 3]),
            [Dimension(6, 48), 3, 4],
        ),
        (
            "ScatterNDUpdate-15",
            {"reduction": "sub"},
            ([5, 6], [[0]], bounded(Dimension(1, 8))),
            [Interval(-3, 4), 6],
        ),
        ("ScatterNDUpdate-15", {"reduction": "max"}, (LENGTHS, [[0]], [7]), [Dimension(7, 8), 3, 4]),
        ("ScatterElementsUpdate-12", {"reduction": "min"}, (LENGTHS, [0], [2], 0), [Dimension(1, 2), 3, 4]),
        (
            "ScatterElementsUpdate-12",
            {"reduction": "max", "use_init_val": "false"},
            (LENGTHS, [0, 0], [2, 5], 0),
            [5, 3, 4],
        ),
        (
            "ScatterElementsUpdate-12",
            {"reduction": "mean"},
            (LENGTHS, [1], [5], 0),
            [Dimension(1, 8), Interval(), 4],
        ),
        ("StridedSlice-1", {"begin_mask": "0", "end_mask": "1"}, (LENGTHS, [1], "i64 1"), [3, 4]),
        ("StridedSlice-1", {"begin_mask": "0", "end_mask": "0"}, (LENGTHS, [1], "i64 1"), None),
        (
            "StridedSlice-1",
            {"begin_mask": "1", "end_mask": "0"},
            (LENGTHS, bounded(Interval(-2, 2)), [2]),
            [Dimension(1, 8), 3],
        ),
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


def test_sums_of_lengths_wrap_around() -> None:
    """They wrap in their element type; intervals that cross its end become unknown."""
    lengths = Value.bounded(ElementType.i8, objects([100, Dimension(90, 99), Dimension(1, 2)], (3,)))
    scatter = layer("ScatterNDUpdate-15", reduction="sum")
    (found,) = scatter.infer_values(lengths, value([[0], [1], [2]]), value(np.array([100, 30, 30], np.int8)))
    assert found.numbers() == (-56, Interval(-128, 127), Dimension(31, 32))


@pytest.mark.parametrize(
    ("mode", "dim", "begin", "expected"),
    [
        ("constant", "?", 3, "[3..]"),
        ("edge", "?", 3, "[4..]"),
        ("symmetric", "?", 3, "[6..]"),
        ("reflect", "?", 3, "[7..]"),
        ("reflect", "?", Interval(2, 3), "[5..]"),
        ("reflect", "?", Interval(-1, 3), "[?]"),
        ("edge", "5..9", 3, "[8..12]"),
    ],
)
def test_what_is_copied_must_be_there(mode: str, dim: str, begin: int | Interval, expected: str) -> None:
    pad = layer("Pad-12", pad_mode=mode)
    assert str(pad.infer(value(f"f32 {dim}"), bounded(begin), value([0]))) == expected


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
