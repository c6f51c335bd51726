"""What the vectors of this machine are like: how many numbers they hold, and how many there are.

``IR_RUNTIME_VECTORS`` forces one of `VECTORS`; LLVM makes do with narrower registers where it must, so
each can be tried on any machine.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

import llvmlite.binding as llvm

from ....codes import Code
from ....errors import InputError

__all__ = ["TARGET", "VECTORS", "Target"]


@dataclass(frozen=True)
class Target:
    """A kind of vector registers, and the tiles of a matrix product that fill them.

    Args:
        name: what it is called.
        lanes: f32 numbers in a vector.
        fused: whether multiplying and adding is one instruction.
        wide: rows and vectors of the usual tile; accumulators, weights and one factor fit the registers.
        tall: rows and vectors of the tile for few columns.
    """

    name: str
    lanes: int
    fused: bool
    wide: tuple[int, int]
    tall: tuple[int, int]


VECTORS = {
    target.name: target
    for target in (
        Target("avx512", 16, True, (6, 4), (14, 2)),
        Target("avx2", 8, True, (6, 2), (12, 1)),
        Target("neon", 4, True, (6, 4), (12, 2)),
        Target("plain", 4, False, (4, 2), (8, 1)),
    )
}


def _host() -> Target:
    if platform.machine().lower() in ("aarch64", "arm64"):
        return VECTORS["neon"]
    features = llvm.get_host_cpu_features()
    if features.get("avx512f") and features.get("avx512vl"):
        return VECTORS["avx512"]
    return VECTORS["avx2" if features.get("avx2") and features.get("fma") else "plain"]


def _chosen() -> Target:
    forced = os.environ.get("IR_RUNTIME_VECTORS")
    if not forced:
        return _host()
    if forced not in VECTORS:
        raise InputError(
            f"IR_RUNTIME_VECTORS is {forced!r}, which is no kind of vectors",
            code=Code.BAD_REQUEST,
            hint=f"there are {', '.join(VECTORS)}",
        )
    return VECTORS[forced]


TARGET = _chosen()
