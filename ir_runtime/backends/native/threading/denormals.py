"""Flush denormal (subnormal) values to zero, since an operation on one takes processors a hundred cycles longer.

Kernel calls set the floating-point mode, workers inherit it from the calling thread, and both restore it, so that NumPy and
the program's threads never see it.
"""

from __future__ import annotations

from contextvars import ContextVar

from ...._util.scoped import Scope
from ..codegen.language import device, instruction, types
from ..codegen.target import TARGET
from ..codegen.vectors import I64, Emit, Value

__all__ = ["FLUSHING_BITS", "float_mode", "flushing", "keep_denormals", "mode_bits", "set_float_mode"]

FLUSHING_BITS = 0x8040 if TARGET.is_x86 else 1 << 24 if TARGET.is_arm else 0
"""The mode bits that flush denormal operands and results to zero: FTZ and DAZ of MXCSR, or FZ of FPCR; 0 for other
processors."""


@instruction(returns=types.int64)
def float_mode(emit: Emit) -> Value:
    """Return the floating-point mode of this thread."""
    if TARGET.is_arm:
        return emit.builder.call(emit.function("llvm.aarch64.get.fpcr", I64), [])
    if not TARGET.is_x86:
        return emit.i64(0)
    word = emit.stack_words(1)
    _mxcsr(emit, "stmxcsr", word)
    return emit.load(word, I64)


@instruction(types.int64)
def set_float_mode(emit: Emit, mode: Value) -> None:
    """Set the floating-point mode of this thread."""
    if TARGET.is_arm:
        emit.builder.call(emit.function("llvm.aarch64.set.fpcr", None, I64), [mode])
    elif TARGET.is_x86:
        word = emit.stack_words(1)
        emit.store(mode, word)
        _mxcsr(emit, "ldmxcsr", word)


@device
def keep_denormals() -> int:
    """Stop flushing denormals in this thread; return the previous mode, to be restored by `set_float_mode`.

    Kernels that select boxes or buckets do so, so that their choice does not depend on the mode.
    """
    mode: int = float_mode()
    if mode & FLUSHING_BITS != 0:
        set_float_mode(mode - (mode & FLUSHING_BITS))
    return mode


def _mxcsr(emit: Emit, name: str, word: Value) -> None:
    pointer = emit.pointer(word)
    emit.builder.call(emit.function(f"llvm.x86.sse.{name}", None, pointer.type), [pointer])


_RUN: ContextVar[object] = ContextVar("flushing", default=None)
"""The key of the outermost run whose kernels flush denormals."""


def _begin(work: object) -> None:
    if _RUN.get() is None:
        _RUN.set(work)


def _end(work: object, interrupted: bool) -> None:
    if _RUN.get() is work:
        _RUN.set(None)


flushing = Scope(_begin, _end)
"""Flushes denormals to zero in the kernels of a run."""


def mode_bits() -> int:
    """Return the floating-point mode bits that kernels of the current run set."""
    return 0 if _RUN.get() is None else FLUSHING_BITS
