"""Connectionist temporal classification: what is refused, what is inferred, the loss by its definition."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest
from harness.layers import layer, values
from harness.sample import ints, numbers, scalar

from ir_runtime.errors import InferenceError, ValidationError


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        ("CTCGreedyDecoder-1", ("f32 ?,2,5", "f32 4,?"), ["[2,4,1,1]"]),
        ("CTCGreedyDecoder-1", ("f32 ...", "f32 4,?"), ["[?,4,1,1]"]),
        ("CTCGreedyDecoder-1", ("f32 ...", "f32 ..."), ["[?,?,1,1]"]),
        ("CTCGreedyDecoderSeqLen-6", ("f32 ...", "i32 3", "i32 ..."), ["[3,?]", "[3]"]),
        ("CTCGreedyDecoderSeqLen-6", ("f32 1..4,6,?", "i64 2..9", "i64 1"), ["[2..4,6]", "[2..4]"]),
        ("CTCLoss-4", ("f32 ...", "i32 ?", "i32 ?,?", "i32 3"), ["[3]"]),
        ("CTCLoss-4", ("f32 ...", "i32 ...", "i32 ...", "i32 ...", "i32 "), ["[?]"]),
    ],
)
def test_inferred_from_little(name: str, shapes: tuple[str, ...], expected: list[str]) -> None:
    assert [str(t.shape) for t in layer(name).infer_types(*values(shapes))] == expected


@pytest.mark.parametrize(
    ("name", "shapes", "message"),
    [
        ("CTCGreedyDecoder-1", ("f32 4,2,5", "f32 2,4"),
         "sequence_mask is [2,4]; [time 4, batch 2] is expected"),
        ("CTCGreedyDecoder-1", ("f32 4,2", "f32 2,4"), "data is [4,2]; [time, batch, classes] is expected"),
        ("CTCGreedyDecoder-1", ("f32 4,2,0", "f32 4,2"),
         "there are 0 classes; 1 or more, with the blank, are expected"),
        ("CTCGreedyDecoderSeqLen-6", ("f32 4,2,5", "i32 2"), "sequence_length is [2]; [batch 4] is expected"),
        ("CTCGreedyDecoderSeqLen-6", ("f32 4,2,5", "i32 4", "i32 2"),
         "blank_index must be one number, found shape [2]"),
        ("CTCLoss-4", ("f32 4,2,5", "i32 4", "i32 4,3", "i32 4"),
         "labels is [4,3]; [batch 4, time 2] is expected"),
    ],
)  # fmt: skip
def test_contradictions_are_named(name: str, shapes: tuple[str, ...], message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        layer(name).infer_types(*values(shapes))
    assert caught.value.message == message


def test_index_types() -> None:
    with pytest.raises(ValidationError, match="classes_index_type must be i64 or i32, not i8"):
        layer("CTCGreedyDecoderSeqLen-6", classes_index_type="i8")


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("CTCGreedyDecoderSeqLen-6", (numbers(1, 3, 4), ints(4)),
         "sequence_length [4] must lie between 0 and 3"),
        ("CTCLoss-4", (numbers(1, 3, 4), ints(4), ints(0, 0, 0)[None], ints(1)),
         "logit_length [4] must lie between 0 and 3"),
        ("CTCLoss-4", (numbers(1, 3, 4), ints(3), ints(0, 0, 0)[None], ints(-1)),
         "label_length [-1] must lie between 0 and 3"),
        ("CTCLoss-4", (numbers(1, 3, 4), ints(1), ints(0, 0, 0)[None], ints(2)),
         "label_length [2] must not exceed logit_length [1]"),
        ("CTCLoss-4", (numbers(1, 3, 4), ints(3), ints(0, 4, 0)[None], ints(2)),
         "labels and blank_index [0, 4] must lie between 0 and 3"),
        ("CTCLoss-4", (numbers(1, 3, 4), ints(3), ints(0, 1, 0)[None], ints(2), scalar(7)),
         "labels and blank_index [7] must lie between 0 and 3"),
    ],
)  # fmt: skip
def test_numbers_that_do_not_fit(name: str, inputs: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        layer(name).evaluate(*inputs)
    assert caught.value.message == message


def decoded(path: tuple[int, ...], blank: int, merge: bool) -> list[int]:
    steps = [label for label, _ in groupby(path)] if merge else path
    return [label for label in steps if label != blank]


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("target", [[], [1], [1, 1], [0, 1], [1, 0, 1], [1, 1, 1, 1]])
def test_the_loss_counts_every_path(target: list[int], blank: int, merge: bool) -> None:
    """By the definition of the page: all paths, one by one, that are decoded to the target."""
    target = [(label + 1) % 3 if blank == 0 else label for label in target]
    logits = numbers(1, 5, 3, dtype="f64", seed=5)
    chances = (np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True))[0]
    total = sum(
        np.prod([chances[step, label] for step, label in enumerate(path)])
        for path in product(range(3), repeat=5)
        if decoded(path, blank, merge) == target
    )
    op = layer("CTCLoss-4", ctc_merge_repeated=str(merge).lower())
    labels = ints(*target, *[0] * (5 - len(target)))[None]
    found = op.evaluate(logits, ints(5), labels, ints(len(target)), scalar(blank))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(found, [-np.log(total)], rtol=1e-12)
