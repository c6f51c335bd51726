"""Every port of every test model: our inferred type equals or refines OpenVINO's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from harness.partial_shapes import LAXER, MODELS, STRICTER, Both, length_around, patterns

from ir_runtime.ir.shape import PartialShape
from models.collection import COLLECTION, saved, zoo

MIXED = 4


def compare(both: Both, pattern: str) -> None:
    problems = [w for w in both.wider() if (w.found.operation, pattern) not in MODELS]
    assert not problems, f"{pattern}: wider, or of another type: {'; '.join(map(str, problems[:5]))}"


def reshape_and_compare(both: Both, pattern: str, shapes: Sequence[PartialShape]) -> None:
    answers = both.reshape(shapes)
    if answers.ours or answers.theirs:
        listed = LAXER if answers.theirs else STRICTER
        assert answers.agree or answers.operation in listed, f"{pattern} {shapes}: {answers}"
        both.restore()
    else:
        compare(both, pattern)


def mixed(shapes: Sequence[PartialShape], rng: Random) -> list[PartialShape]:
    """Return shapes with random static, dynamic and bounded dims; some ranks are unknown."""
    return [
        PartialShape.dynamic()
        if shape.rank is None or rng.random() < 0.07
        else PartialShape([length_around(d.min or rng.choice((1, 2, 4)), rng) for d in shape])
        for shape in shapes
    ]


def compare_in_all_shapes(path: Path) -> None:
    """Compare as written, with dynamic, bounded or unknown dims, and with other batch sizes."""
    both = Both(path)
    compare(both, "as written")
    written = [port.partial_shape for port in both.ours.inputs]
    for pattern, shapes in patterns(written).items():
        reshape_and_compare(both, pattern, shapes)
    for number in range(MIXED):
        reshape_and_compare(both, "mixed", mixed(written, Random(f"{path.stem} {number}")))


@pytest.mark.parametrize("name", COLLECTION)
def test_refines_what_openvino_infers(name: str) -> None:
    compare_in_all_shapes(saved(name))


@pytest.mark.oracle
@pytest.mark.parametrize("path", zoo(), ids=lambda path: path.stem)
def test_refines_what_openvino_infers_of_whole_networks(path: Path) -> None:
    compare_in_all_shapes(path)
