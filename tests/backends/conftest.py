"""Fixtures for tests of the backends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ir_runtime.backends.numpy import parallel


@pytest.fixture(params=[1, 3], ids=["1 thread", "3 threads"], scope="module")
def one_and_three_threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test of a module with one thread, and with three threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "max_threads", request.param)
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        yield
