"""For every sample, with any partial knowledge of the shapes, our inferred types equal or refine OpenVINO's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from zlib import crc32

import pytest
from harness.files import model_of
from harness.partial_shapes import LAXER, SAMPLES, STRICTER, Both, patterns
from harness.sample import Sample, every_sample

from ir_runtime.ir.shape import PartialShape

# OpenVINO refuses constant ends of texts where the starts are not known.
UNREAD = ("StringTensorPack-15",)


def shapes_of(sample: Sample, constant: Collection[int]) -> list[PartialShape]:
    return [PartialShape(x.shape) for i, x in enumerate(sample.inputs) if i not in constant]


def compare(sample: Sample, both: Both, pattern: str) -> bool:
    """Require that no type is wider, unless the difference is listed."""
    found = both.wider()
    listed = sample.wider or (sample.op, pattern) in SAMPLES
    assert listed or not found, f"{pattern}: wider, or of another type: {'; '.join(map(str, found))}"
    return bool(found)


def compare_after_reshape(sample: Sample, both: Both, pattern: str, shapes: Sequence[PartialShape]) -> bool:
    answers = both.reshape(shapes)
    if not answers.ours and not answers.theirs:
        return compare(sample, both, pattern)
    listed = LAXER if answers.theirs else STRICTER
    assert answers.agree or sample.cls.name in listed, f"{pattern} {list(map(str, shapes))}: {answers}"
    both.restore()
    return False


def variants(sample: Sample, constant: Collection[int]) -> Iterator[tuple[str, list[PartialShape]]]:
    """Return inputs for a fully dynamic model: those of the sample, and similar ones."""
    shapes = shapes_of(sample, constant)
    yield "as written", shapes
    yield from patterns(shapes).items()


@every_sample
def test_refines_what_openvino_infers(sample: Sample) -> None:
    """Fully dynamic, as written, and with two further patterns that vary from sample to sample."""
    both = Both(*model_of(sample, sample.constant, dynamic=True))
    compare(sample, both, "any length")
    written, _, *others = variants(sample, sample.constant)
    turn = crc32(str(sample).encode())
    for pattern, shapes in (written, others[turn % len(others)], others[turn // 8 % len(others)]):
        compare_after_reshape(sample, both, pattern, shapes)


@pytest.mark.oracle
@every_sample
def test_refines_what_openvino_infers_in_all_shapes(sample: Sample) -> None:
    """All inputs but the first may be constants, as in most models."""
    wider, written = False, set(sample.constant)
    mostly = written if sample.op in UNREAD else {*written, *range(1, len(sample.inputs))}
    for constant in (written, mostly):
        both = Both(*model_of(sample, constant))
        wider |= compare(sample, both, "as written")
        for pattern, shapes in variants(sample, constant):
            wider |= compare_after_reshape(sample, both, pattern, shapes)
    assert wider or not sample.wider, "the excuse is no longer needed"
