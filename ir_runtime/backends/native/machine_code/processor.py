"""The processor of this machine: its vendor, and the features that kernel targets may use."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["IDENTIFY", "Processor", "family", "identify"]

IDENTIFY = "ir_runtime_identification_identify"
"""The symbol of the function that identifies an x86 processor; it uses only baseline instructions."""

# It fills four words for each of these leaves and subleaves of ``cpuid`` that there are: 0, 1, 7, 7.1 and 0x80000001; then
# one with the register XCR0.
_LEAVES = 5

_EAX, _EBX, _ECX, _EDX = range(4)
# Features by LLVM's names: the place of the leaf, the register and the bit.
_X86_FEATURES = {
    "sse2": (1, _EDX, 26), "fma": (1, _ECX, 12), "movbe": (1, _ECX, 22), "avx": (1, _ECX, 28), "f16c": (1, _ECX, 29),
    "lzcnt": (4, _ECX, 5), "bmi": (2, _EBX, 3), "avx2": (2, _EBX, 5), "bmi2": (2, _EBX, 8),
    "avx512f": (2, _EBX, 16), "avx512dq": (2, _EBX, 17), "avx512ifma": (2, _EBX, 21), "avx512cd": (2, _EBX, 28),
    "avx512bw": (2, _EBX, 30), "avx512vl": (2, _EBX, 31), "avx512vbmi": (2, _ECX, 1), "avx512vbmi2": (2, _ECX, 6),
    "avx512vnni": (2, _ECX, 11), "avx512bitalg": (2, _ECX, 12), "avx512vpopcntdq": (2, _ECX, 14),
    "avxvnni": (3, _EAX, 4), "avx512bf16": (3, _EAX, 5),
}  # fmt: skip
# Registers that the system must save for these to be used, by bits of XCR0: those of SSE and AVX, and of AVX-512.
_AVX_STATE, _AVX512_STATE = 0x06, 0xE6
_OF_AVX = frozenset({"avx", "avx2", "fma", "f16c", "avxvnni"})
# Bits of AT_HWCAP on Linux.
_ARM_FEATURES = {"neon": 1, "lse": 8, "dotprod": 20}
_AT_HWCAP = 16


@dataclass(frozen=True)
class Processor:
    """A processor.

    Args:
        family: the processor family: ``x86_64``, ``aarch64``, or the system's name of another.
        vendor: the vendor string of an x86 processor.
        features: the available features that targets may require, by LLVM's names.
    """

    family: str
    vendor: str
    features: frozenset[str]


def family() -> str:
    """Return the processor family that this interpreter was built for."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def identify(code: ctypes.CDLL) -> Processor:
    """Return the processor of this machine, identified by any library for its family."""
    known = family()
    if known == "x86_64":
        words = (ctypes.c_int64 * (4 * _LEAVES + 1))()
        ask = code[IDENTIFY]
        ask.argtypes, ask.restype = [ctypes.c_void_p], None
        ask(words)
        return _x86(words)
    features: Iterable[str] = ()
    if known == "aarch64":
        features = ("neon", "dotprod", "lse") if sys.platform == "darwin" else _arm_features()
    return Processor(known, "", frozenset(features))


def _x86(words: ctypes.Array[ctypes.c_int64]) -> Processor:
    leaves = [words[4 * place : 4 * place + 4] for place in range(_LEAVES)]
    state = words[4 * _LEAVES]
    vendor = b"".join(leaves[0][word].to_bytes(4, "little") for word in (_EBX, _EDX, _ECX))
    features = {name for name, (leaf, word, bit) in _X86_FEATURES.items() if leaves[leaf][word] >> bit & 1}
    if state & _AVX_STATE != _AVX_STATE:
        features -= _OF_AVX
    if state & _AVX512_STATE != _AVX512_STATE:
        features -= {name for name in features if name.startswith("avx512")}
    return Processor("x86_64", vendor.decode("ascii", "replace"), frozenset(features))


def _arm_features() -> list[str]:
    ask = ctypes.CDLL(None).getauxval
    ask.argtypes, ask.restype = [ctypes.c_ulong], ctypes.c_ulong
    bits = ask(_AT_HWCAP)
    return [name for name, bit in _ARM_FEATURES.items() if bits >> bit & 1]
