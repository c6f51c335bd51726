"""Planted faults: the expressions still exist, and cases find them."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest
from harness.sample import all_samples

from conformance.faults import FAULTS, Fault, find, plant
from conformance.values import cases_of


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_faults_change_one_expression(fault: Fault, tmp_path: Path) -> None:
    plant(fault, tmp_path)
    planted = tmp_path / "ir_runtime" / "ops" / fault.file
    assert fault.wrong in planted.read_text()


def test_faults_in_what_is_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the file has the expression 0 times"):
        plant(Fault("tie", "TopK-11", "sort/topk.py", "no such thing", "another"), tmp_path)


def test_cases_find_a_fault_and_nothing_without_one(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.zip"
    with ZipFile(corpus, "w") as archive:
        for number, sample in enumerate(s for s in all_samples() if s.op == "Round-5"):
            for case in cases_of(f"Round-5/{number:04}", sample):
                for name, contents in case.files():
                    archive.writestr(f"{case.id}/{name}", contents)
    tie = next(fault for fault in FAULTS if fault.operation == "Round-5" and "np.rint" in fault.right)
    assert find(tie, corpus)
    harmless = tie._replace(wrong=f"({tie.right})")
    assert find(harmless, corpus) == []
