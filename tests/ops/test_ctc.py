"""Connectionist temporal classification: inference from partial shapes, and the loss by its definition."""

from __future__ import annotations

from itertools import groupby, product

import numpy as np
import pytest
from harness.layers import layer, values
from harness.sample import ints, numbers, scalar


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


def decoded(path: tuple[int, ...], blank: int, merge: bool) -> list[int]:
    steps = [label for label, _ in groupby(path)] if merge else path
    return [label for label in steps if label != blank]


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("target", [[], [1], [1, 1], [0, 1], [1, 0, 1], [1, 1, 1, 1]])
def test_the_loss_counts_every_path(target: list[int], blank: int, merge: bool) -> None:
    """The definition sums over all paths that decode to the target."""
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
