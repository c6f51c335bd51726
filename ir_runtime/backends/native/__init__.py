"""The native backend: kernels in machine code, from a library that was built for the instruction set of the processor.

The innermost loops are LLVM IR for SIMD vectors, on activations in NHWC layout, as in the backend ``numpy``, to which
this one falls back.

Kernel modules are imported when a model has their operations: `_index` lists them.
"""

from __future__ import annotations

__all__ = ["backend"]


def __getattr__(name: str) -> object:
    """Import the backend when it is wanted: what builds the library imports this package before there is one."""
    if name != "backend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._backend import backend

    globals()[name] = backend
    return backend
