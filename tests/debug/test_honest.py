"""The study of tests/bench/honest.py on a part of its networks and operations: no correct execution is accused."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.honest import accused, executions

pytestmark = pytest.mark.oracle


def test_no_honest_execution_is_accused(tmp_path: Path) -> None:
    names = ["transformer_nf4", "fake_quantize", "lstm_sequences", "detector", "masked"]
    for name, side, report in executions(names, ["openvino", "openvino:default", "numpy"], tmp_path):
        assert not accused(report), f"{name} {side}: {report}"
