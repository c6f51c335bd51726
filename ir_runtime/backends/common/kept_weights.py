"""A limit on the memory of weights that are dequantized or widened to f32 at compile time.

Kernels that convert weights in every run take more time, those that read them as f32 more memory. So weights are
converted once until they take `MAX_BYTES`; what exceeds that stays as stored, which is what large models are
compressed for. Backends decide which weights are worth it: NumPy takes 1 to 2 ns to dequantize a number, and a GEMM that
reads it from memory a fifth of that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from ..._util.scoped import setting
from ...limits import current

__all__ = ["budget", "reserve"]

# The most that a model's weights take as f32, and their share of the memory that it may use.
MAX_BYTES, SHARE = 1 << 29, 8

_LEFT: ContextVar[list[int] | None] = ContextVar("bytes left", default=None)


@contextlib.contextmanager
def budget() -> Iterator[None]:
    """Share one memory budget among the weights of a compilation, including nested graphs."""
    if _LEFT.get() is not None:
        yield
        return
    with setting(_LEFT, [min(MAX_BYTES, current().memory // SHARE)]):
        yield


def reserve(size: int) -> bool:
    """Return whether the current compilation may convert weights to this many bytes of f32, and count them."""
    left = _LEFT.get()
    if left is None or size > left[0]:
        return False
    left[0] -= size
    return True
