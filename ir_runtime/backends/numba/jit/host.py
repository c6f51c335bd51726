"""The host that kernels are compiled for: its processor, and a few C functions of this process."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import llvmlite.binding as llvm

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

__all__ = ["RUNTIME_SYMBOLS", "target_machine"]


def _yield() -> CFuncPtr:
    """Return the C function that lets another thread run."""
    if sys.platform == "win32":
        return ctypes.windll.kernel32.SwitchToThread
    return ctypes.CDLL(None).sched_yield


RUNTIME_SYMBOLS: dict[str, Callable[[], CFuncPtr]] = {
    "ir_runtime_allocate": lambda: ctypes.pythonapi.PyMem_RawMalloc,
    "ir_runtime_free": lambda: ctypes.pythonapi.PyMem_RawFree,
    "ir_runtime_yield": _yield,
}
"""C functions that kernels may call; the raw memory functions of Python need no lock of the interpreter."""


# LLVM else replaces some dot products of pairs by two instructions, for a shorter latency; tiles have enough sums to hide it.
_WHOLE_PAIRS = ("+fast-dpwssd",)


def _has_pairs(features: llvm.FeatureMap) -> bool:
    """Return whether the processor has the instruction."""
    return bool(features.get("avx512vnni") or features.get("avxvnni"))


def target_machine() -> llvm.TargetMachine:
    """Return LLVM's target machine for this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    features = llvm.get_host_cpu_features()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=",".join([features.flatten(), *(_WHOLE_PAIRS if _has_pairs(features) else ())]),
        opt=3,
        reloc="default",
        codemodel="jitdefault",
        jit=True,
    )
