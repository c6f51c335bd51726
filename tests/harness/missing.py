"""Packages that seem not to be installed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def missing(*packages: str) -> Iterator[None]:
    """Imports of these packages fail.

    What is imported meanwhile stays. `mock.patch.dict` of `sys.modules` would drop it when it
    ends, and the next import would make a second class of each name.
    """
    with pytest.MonkeyPatch.context() as patch:
        for package in packages:
            patch.setitem(sys.modules, package, None)
        yield
