"""The vector target: how many lanes and registers the SIMD unit of this machine has.

``IR_RUNTIME_VECTORS`` forces one of `VECTORS`; LLVM splits vectors that are wider than the registers, so every target
runs on every machine.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

import llvmlite.binding as llvm

from ....codes import Code
from ....errors import InputError

__all__ = ["IS_ARM", "IS_X86", "TARGET", "VECTORS", "Target"]


@dataclass(frozen=True)
class Target:
    """A vector instruction set, and the GEMM tiles that fill its registers.

    Args:
        name: its name.
        lanes: f32 lanes of a vector.
        has_fma: whether there is a fused multiply-add instruction.
        wide: rows and vectors of the usual tile; accumulators, weights and a broadcast value fit the registers.
        tall: rows and vectors of the tile for few columns.
        has_masks: whether loads and stores of some lanes take as long as those of all.
    """

    name: str
    lanes: int
    has_fma: bool
    wide: tuple[int, int]
    tall: tuple[int, int]
    has_masks: bool = False


_PROCESSOR = platform.machine().lower()
IS_X86, IS_ARM = _PROCESSOR in ("x86_64", "amd64", "i686"), _PROCESSOR in ("aarch64", "arm64")
"""Which instructions that LLVM has no general form of there are."""

VECTORS = {
    target.name: target
    for target in (
        Target("avx512", 16, True, (6, 4), (14, 2), has_masks=True),
        Target("avx2", 8, True, (6, 2), (12, 1)),
        Target("neon", 4, True, (6, 4), (12, 2)),
        Target("plain", 4, False, (4, 2), (8, 1)),
    )
}


def _host() -> Target:
    if IS_ARM:
        return VECTORS["neon"]
    features = llvm.get_host_cpu_features()
    if features.get("avx512f") and features.get("avx512vl"):
        return VECTORS["avx512"]
    return VECTORS["avx2" if features.get("avx2") and features.get("fma") else "plain"]


def _selected() -> Target:
    forced = os.environ.get("IR_RUNTIME_VECTORS")
    if not forced:
        return _host()
    if forced not in VECTORS:
        raise InputError(
            f"unknown vector target {forced!r} in IR_RUNTIME_VECTORS",
            code=Code.BAD_REQUEST,
            hint=f"must be one of {', '.join(VECTORS)}",
        )
    return VECTORS[forced]


TARGET = _selected()
