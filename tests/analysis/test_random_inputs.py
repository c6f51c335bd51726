"""Random inputs: accepted dims, indices in range, full sequences and masks of ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import ir_runtime as ir
from ir_runtime import opset13 as op
from ir_runtime.cli import main
from ir_runtime.openvino.random_feeds import random_feeds

EXAMPLES = Path(__file__).parents[2] / "examples"


def feeds(
    model: ir.Model, given: dict[int, np.ndarray] | None = None, seed: int = 0
) -> dict[str, np.ndarray]:
    """Return random inputs by name, except for those passed by index."""
    arrays = {model.inputs[index]: array for index, array in (given or {}).items()}
    found = random_feeds(model, arrays, seed)
    return {port.label: array for port, array in found.arrays.items()}


def language_model() -> ir.Model:
    """A model with token ids below 50, at most 20 positions, and a mask of the same length."""
    ids = op.parameter([-1, -1], np.int64, name="ids")
    mask = op.parameter([-1, -1], np.int64, name="attention_mask")
    places = op.parameter([-1, -1], np.int32, name="position_ids")
    table, positions = (
        op.constant(np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)) for rows in (50, 20)
    )
    words = op.gather(table, op.convert(ids, "i32"), op.constant(0))
    words = op.add(words, op.gather(positions, places, op.constant(0)))
    kept = op.unsqueeze(op.convert(mask, "f32"), op.constant([2]))
    return ir.Model([op.multiply(words, kept)], [ids, mask, places])


def test_indices_are_in_range_and_masks_are_ones() -> None:
    found = feeds(language_model())
    assert {array.shape for array in found.values()} == {(1, 16)}
    assert found["ids"].max() < 50
    assert found["ids"].max() > 1, "not only zeros and ones"
    assert found["position_ids"].max() < 20
    assert (found["attention_mask"] == 1).all()
    ir.compile_model(language_model())(list(found.values()))


def test_choices_are_said() -> None:
    model = language_model()
    assert random_feeds(model, {}).choices == (
        "ids=[1,16]", "ids below 50", "attention_mask=[1,16]", "attention_mask all ones", "position_ids=[1,16]",
        "position_ids below 20",
    )  # fmt: skip


def test_lengths_follow_inputs_that_are_given() -> None:
    found = feeds(language_model(), {0: np.zeros((3, 7), np.int64)})
    assert {array.shape for array in found.values()} == {(3, 7)}


def test_the_same_seed_gives_the_same_numbers() -> None:
    first, again, other = (feeds(language_model(), seed=seed)["ids"] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_sequences_are_whole() -> None:
    x = op.parameter([-1, -1, 3], np.float32, name="x")
    lengths = op.parameter([-1], np.int64, name="lengths")
    reversed_x = op.reverse_sequence(x, lengths, 0, 1)
    found = feeds(ir.Model([reversed_x], [x, lengths]))
    assert found["lengths"].tolist() == [found["x"].shape[1]] * found["x"].shape[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda ids: op.one_hot(ids, op.constant(5), op.constant(np.float32(1)), op.constant(np.float32(0)), -1),
        lambda ids: op.gather_elements(op.constant(np.ones((1, 5), np.float32)), op.unsqueeze(ids, op.constant([0])), 1),
        lambda ids: op.gather_elements(op.constant(np.ones((5, 1), np.float32)), op.unsqueeze(ids, op.constant([1])), -2),
        lambda ids: op.embedding_bag_offsets_sum(op.constant(np.ones((5, 2), np.float32)), ids, op.constant([0])),
    ],
)  # fmt: skip
def test_every_selection_bounds_its_indices(make: Callable[[ir.Node], ir.Node]) -> None:
    ids = op.parameter([200], np.int32, name="ids")
    found = feeds(ir.Model([make(ids)], [ids]))["ids"]
    assert set(found.tolist()) == set(range(5))


@pytest.mark.parametrize(
    "command", ["run {} --random", "profile {} --runs 1", "compare {} --against numpy --random"]
)
def test_commands_take_random_inputs_of_the_segmenter(command: str) -> None:
    """The segmenter's height and width are multiples of 4."""
    found = CliRunner().invoke(main, command.format(EXAMPLES / "segmenter" / "segmenter.xml").split())
    assert found.exit_code == 0, found.output
    assert "random data: seed 0; image=[1,3,64,96]" in found.stderr
