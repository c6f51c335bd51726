"""Fixtures of tests of scaling."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ir_runtime as ov

from .models import X, dense


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a model and its data."""
    monkeypatch.chdir(tmp_path)
    ov.save_model(dense(), "dense.xml", compress_to_fp16=False)
    np.save("x.npy", X)
    return tmp_path
