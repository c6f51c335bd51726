"""The host that kernels are compiled for: its processor, and a few C functions of this process."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import llvmlite.binding as llvm

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

__all__ = ["RUNTIME_SYMBOLS", "Processor", "host", "target_machine"]


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


@dataclass(frozen=True)
class Processor:
    """A processor that kernels are compiled for.

    Args:
        family: its instructions, as `platform.machine` names them, in lower case.
        name: LLVM's name of it.
        features: LLVM's names of features, each after ``+`` or ``-``.
    """

    family: str = ""
    name: str = ""
    features: tuple[str, ...] = ()


def host() -> Processor:
    """Return the processor of this machine."""
    features = llvm.get_host_cpu_features().flatten().split(",")
    return Processor(platform.machine().lower(), llvm.get_host_cpu_name(), tuple(features))


# LLVM else replaces some dot products of pairs by two instructions, for a shorter latency; tiles have enough sums to hide it.
_WHOLE_PAIRS = "+fast-dpwssd"
_WITH_PAIRS = {"+avx512vnni", "+avxvnni"}


def target_machine(processor: Processor) -> llvm.TargetMachine:
    """Return LLVM's target machine for a processor of this machine's kind."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    more = () if _WITH_PAIRS.isdisjoint(processor.features) else (_WHOLE_PAIRS,)
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=processor.name,
        features=",".join([*processor.features, *more]),
        opt=3,
        reloc="default",
        codemodel="jitdefault",
        jit=True,
    )
