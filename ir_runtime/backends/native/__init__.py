"""The native backend: kernels in machine code, from a library built for the processor's instruction set.

Kernels are compiled from Python by way of LLVM IR with explicit SIMD vectors, and store activations in NHWC layout.
Operations without a native kernel fall back to the backend ``numpy``, which uses the same layout.

A kernel module is imported when a model contains one of its operations, as listed in `_index`.
"""

from __future__ import annotations

__all__ = ["backend"]


def __getattr__(name: str) -> object:
    """Import the backend on first use: the build imports this package before any library exists."""
    if name != "backend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._backend import backend

    globals()[name] = backend
    return backend
