"""Every operation with every attribute of its samples, saved and read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pytest
from harness.files import Writer, add_sample
from harness.oracle import Ours, assert_identical, seen_by_openvino
from harness.sample import Sample, all_samples, text

import ir_runtime as ir

SIZE = 50  # samples in a model


def batches(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    rest = iter(samples)
    while batch := list(islice(rest, SIZE)):
        yield batch


def distinct() -> list[Sample]:
    """Return one sample for each set of attributes; values do not affect saving."""
    found = {}
    for sample in all_samples():
        attributes = ",".join(f"{name}={text(value)}" for name, value in sorted(sample.attributes.items()))
        found.setdefault((sample.op, attributes), sample)
    return list(found.values())


def check(batch: list[Sample], folder: Path, dynamic: bool = False) -> None:
    """Combine samples in one model, and require OpenVINO to see the same model and us to compute the same bits."""
    writer = Writer()
    for sample in batch:
        add_sample(writer, sample, sample.constant, dynamic)
    first, second, third = (folder / f"{name}.xml" for name in ("first", "second", "third"))
    first.write_bytes(writer.xml())
    first.with_suffix(".bin").write_bytes(writer.weights)
    ir.save_model(ir.read_model(first), second)
    again = ir.read_model(second)
    assert list(again.report) == []
    ir.save_model(again, third)
    for suffix in (".xml", ".bin"):
        assert second.with_suffix(suffix).read_bytes() == third.with_suffix(suffix).read_bytes()
    assert seen_by_openvino(second) == seen_by_openvino(first)
    fed = [x for sample in batch for i, x in enumerate(sample.inputs) if i not in sample.constant]
    results = [Ours(p.read_bytes(), p.with_suffix(".bin").read_bytes()).run(fed) for p in (first, second)]
    for wanted, found in zip(*results, strict=True):
        assert_identical(found, wanted)


@pytest.mark.parametrize("batch", list(batches(distinct())), ids=lambda batch: batch[0].op)
def test_each_set_of_attributes(batch: list[Sample], tmp_path: Path) -> None:
    check(batch, tmp_path)


@pytest.mark.oracle
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("batch", list(batches(all_samples())), ids=lambda batch: batch[0].op)
def test_all(batch: list[Sample], dynamic: bool, tmp_path: Path) -> None:
    check(batch, tmp_path, dynamic)
