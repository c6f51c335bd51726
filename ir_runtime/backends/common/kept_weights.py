"""A memory budget for weights that are dequantized or widened to f32 at compile time.

Converting weights in every run takes time; keeping them as f32 takes memory. So weights are converted at compile time until
they take `MAX_BYTES` as f32, and the remaining ones stay compressed, which is why large models are compressed at all.
Backends decide which weights are worth it: NumPy takes 1 to 2 ns to dequantize a value, and a GEMM that reads it from memory
a fifth of that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from ..._util.scoped import setting
from ...limits import current

__all__ = ["budget", "reserve"]

# The budget in bytes, and its largest share of the memory limit (one eighth).
MAX_BYTES, SHARE = 1 << 29, 8

_LEFT: ContextVar[list[int] | None] = ContextVar("bytes left", default=None)


@contextlib.contextmanager
def budget() -> Iterator[None]:
    """Give the compilation in the block one memory budget, shared by nested graphs."""
    if _LEFT.get() is not None:
        yield
        return
    with setting(_LEFT, [min(MAX_BYTES, current().memory // SHARE)]):
        yield


def reserve(size: int) -> bool:
    """Take ``size`` bytes from the budget of the current compilation; return False if less is left."""
    left = _LEFT.get()
    if left is None or size > left[0]:
        return False
    left[0] -= size
    return True
