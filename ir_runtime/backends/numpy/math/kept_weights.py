"""A limit on the memory of a model's dequantized weights.

NumPy takes 1 to 2 ns to dequantize a number, and a GEMM that reads it from memory a fifth of that. So weights are
dequantized when a model is compiled, until they take `MAX_BYTES`; those of larger models stay quantized, which is what
such models are quantized for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from ....limits import current
from ....scoped import setting

__all__ = ["budget", "reserve"]

# The most that a model's weights take as f32, and their share of the memory that it may use.
MAX_BYTES, SHARE = 1 << 29, 8

_LEFT: ContextVar[list[int] | None] = ContextVar("bytes left", default=None)


@contextlib.contextmanager
def budget() -> Iterator[None]:
    """Let the weights of one compilation share the memory, including those of nested graphs."""
    if _LEFT.get() is not None:
        yield
        return
    with setting(_LEFT, [min(MAX_BYTES, current().memory // SHARE)]):
        yield


def reserve(size: int) -> bool:
    """Return whether the current compilation may dequantize weights to this many bytes, and count them."""
    left = _LEFT.get()
    if left is None or size > left[0]:
        return False
    left[0] -= size
    return True
