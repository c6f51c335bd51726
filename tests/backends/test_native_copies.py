"""Copies between arrays of any strides equal NumPy's, and write nothing outside the target."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native.kernels._copy import MAX_SIZE, copy
from ir_runtime.backends.native.kernels._nest import OUTER
from ir_runtime.backends.native.threading import parallel
from ir_runtime.backends.native.threading.parallel import pays_to_share, running, threads_for
from ir_runtime.ir.tensor import Array

LENGTHS = (1, 2, 3, 5, 8, 16, 17, 33)
BESIDE = 7


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"], autouse=True, scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest copies."""
    with pytest.MonkeyPatch.context() as patch, at_most(request.param), running():
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        yield


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(LENGTHS), min_size=1, max_size=5), st.randoms(use_true_random=False),
    st.sampled_from(["u1", "i2", "f4", "f8"]), st.sampled_from(["whole", "part", "reversed", "repeated"]),
    st.booleans(),
)  # fmt: skip
def test_any_layout_is_copied(
    lengths: list[int], random: object, dtype: str, source: str, gaps: bool
) -> None:
    order = list(range(len(lengths)))
    random.shuffle(order)  # type: ignore[attr-defined]
    wide = [2 * n + 1 for n in lengths] if source == "part" else lengths
    x = (np.arange(np.prod(wide)) % 251).astype(dtype).reshape(wide)
    if source == "part":
        x = x[tuple(slice(1, 1 + 2 * n, 2) for n in lengths)]
    elif source == "reversed":
        x = x[(slice(None, None, -1),) * x.ndim]
    elif source == "repeated":
        x = np.broadcast_to(x[:1], x.shape)
    x = x.transpose(order)
    around = np.full([n + 2 * gaps for n in x.shape], BESIDE, dtype)
    out = around[(slice(1, -1),) * x.ndim] if gaps else around
    assert copy(x, out, np.inf)
    np.testing.assert_array_equal(out, x)
    assert (around == BESIDE).sum() == (x == BESIDE).sum() + around.size - x.size


@pytest.mark.parametrize("shape", [(0,), (0, 3), (5, 0, 7)])
def test_nothing_is_copied(shape: tuple[int, ...]) -> None:
    x = np.empty(shape[::-1], np.float32).T
    assert copy(x, np.empty(shape, np.float32))


def test_what_no_task_copies_is_left_to_numpy() -> None:
    strided = np.zeros((3,) * (2 * OUTER), np.int8)[(slice(None, None, 2),) * (2 * OUTER)]
    for x in (np.array([["a"], ["b"]], object), np.zeros(3, np.complex128), strided):
        assert not copy(x, np.empty(x.shape, x.dtype), np.inf)


def test_single_elements_are_left_to_numpy_where_it_is_faster() -> None:
    x = np.zeros((MAX_SIZE, 2), np.float32)
    assert not copy(x[:, 0], np.empty(len(x), np.float32), MAX_SIZE - 1)
    assert copy(x, np.empty_like(x), 0)


def test_layers_that_take_long_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "MIN_PARALLEL_WORK", 1000)
    enough: list[dict[str, int]] = [
        {"moved": 64_000},
        {"computed": 32_000},
        {"steps": 1000},
        {"moved": 32_000, "steps": 500},
    ]
    for work in enough:
        assert pays_to_share(**work)
        assert not pays_to_share(**{name: n - 1 for name, n in work.items()})
    with at_most(2):
        assert (threads_for(steps=999), threads_for(steps=1000)) == (1, parallel.at_most_cores(2))


def test_squares_that_reach_back() -> None:
    """The last tiles of a row overlap the previous ones, and write equal values there."""
    x = np.arange(17 * 19, dtype=np.float32).reshape(17, 19)
    out: Array = np.empty((19, 17), np.float32)
    assert copy(x.T, out, 0)
    np.testing.assert_array_equal(out, x.T)
