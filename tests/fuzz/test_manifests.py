"""A reproducible sample of damaged manifests; ``make fuzz FUZZ="--kind manifests"`` tries more."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime.dask.manifest import Manifest

from . import manifests
from .corpus import Corpus
from .mutations import mutant, recipe
from .target import probe
from .worker import MEMORY, SECONDS, guarded

INPUTS = 80


@cache
def corpus() -> Corpus:
    return list(manifests.cases())


def test_the_outcome_is_the_right_result_or_an_error() -> None:
    outcomes = set()
    for number in range(INPUTS):
        made = recipe(corpus(), "manifests", 0, number)
        result = guarded(mutant(corpus(), made), seconds=4 * SECONDS)
        assert not result.finding, f"{result.finding}\n{made}\n{result.detail}"
        assert result.memory < MEMORY
        outcomes.add(result.outcome)
    assert outcomes == {"model", "IR401"}, "some are taken, some are refused"


def test_good_manifests_lead_to_a_result() -> None:
    assert {probe(case) for case in corpus()} == {"model"}


def test_wrong_rows_and_other_files_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    case = corpus()[0]
    with monkeypatch.context() as patch:
        patch.setattr(manifests, "_read", lambda path: np.zeros((10, 2)))
        with pytest.raises(manifests.WrongResultError, match="rows are wrong"):
            probe(case)
    with monkeypatch.context() as patch:
        patch.setattr(manifests, "_complete", lambda path: Path(path.parent, "mine.part").write_bytes(b""))
        with pytest.raises(manifests.WrongResultError, match="other files"):
            probe(case)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"null",
        b"[]",
        b"1",
        b'"x"',
        b"NaN",
        b"{}",
        b"\xff\xfe",
        b"\0" * 5000,
        b"[" * 200_000,
        b"1" * 10_000,
    ],
    ids=lambda text: repr(text[:9]),
)
def test_what_no_run_has_written_is_refused(tmp_path: Path, text: bytes) -> None:
    """Such values used to be reported as bugs of the package."""
    target = tmp_path / "out.npy"
    for rest in (b"", b"\n"):
        Manifest.path_of(target).write_bytes(text + rest)
        with pytest.raises(ir.InputError, match=r"out\.npy\.manifest\.jsonl is damaged") as caught:
            Manifest.resume(target, manifests.HEADER, (), 5)
        assert "run without --resume" in caught.value.hint
        assert Manifest.path_of(target).read_bytes() == text + rest
