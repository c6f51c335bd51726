"""Simulate packages that are not installed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def missing(*packages: str) -> Iterator[None]:
    """Let imports of these packages fail inside the block.

    Modules imported meanwhile stay. `mock.patch.dict` of `sys.modules` would drop them at the end, and the next import would
    create each class a second time.
    """
    with pytest.MonkeyPatch.context() as patch:
        for package in packages:
            patch.setitem(sys.modules, package, None)
        yield
