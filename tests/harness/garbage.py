"""Collections of garbage that visit what a test has made, and nothing else."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["only_new_objects"]


@contextmanager
def only_new_objects() -> Iterator[None]:
    """Leave what is there out of collections: with the millions of objects that pytest has, each takes seconds."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
