"""Constants packed by kernels are dropped from memory, and can still be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ir_runtime.ir.pages import MappedFile, held, is_mapped, let_go
from ir_runtime.ir.tensor import Array

SIZE = 64 << 20


@pytest.fixture
def weights(tmp_path: Path) -> Array:
    path = tmp_path / "weights.bin"
    np.arange(SIZE // 4, dtype=np.int32).tofile(path)
    with path.open("rb") as file:
        return np.frombuffer(MappedFile.of(file, str(path)), np.uint8)


def resident() -> int:
    """Return the resident bytes of mapped files of this process."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("the system does not say what is in memory")
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["RssFile"].split()[0]) << 10


def test_pages_leave_memory_and_come_back(weights: Array) -> None:
    constant = weights[100:-100].view(np.int32)
    total = int(constant.sum(dtype=np.int64))
    before = resident()
    let_go(constant)
    assert before - resident() > SIZE * 0.9
    assert int(constant.sum(dtype=np.int64)) == total


def test_what_lies_elsewhere_stays(weights: Array) -> None:
    own = np.ones(1 << 20, np.float32)
    let_go(own)
    let_go(own[::2])
    let_go(weights[:8])
    assert own.all()
    assert weights[4] == 1


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x[3:7],
        lambda x: x.T,
        lambda x: x[::2, ::-1],
        lambda x: np.broadcast_to(x[:1], (9, 8)),
    ],
)
def test_views_of_the_file_are_copied_as_they_are(weights: Array, view: Callable[[Array], Array]) -> None:
    constant = view(weights[:256].view(np.int32).reshape(8, 8))
    copy = held(constant)
    np.testing.assert_array_equal(copy, constant)
    assert is_mapped(constant)
    assert not is_mapped(copy)
    assert not copy.flags.writeable
