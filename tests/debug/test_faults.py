"""The study of tests/bench/faults.py on two networks: no correct execution is accused, faults are located."""

from __future__ import annotations

import pytest
from bench.faults import findings, honest
from models.zoo import ir_path

import ir_runtime as ir

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", ["gru", "opt"])
def test_faults_are_located_and_nothing_else(name: str) -> None:
    path = ir_path(name)
    for report in honest(name, ir.read_model(path)):
        assert report.explained, str(report)
    found = list(findings(name, path))
    assert len(found) >= 6
    assert [str(each) for each in found if not each.located] == []
