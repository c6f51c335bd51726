"""The target of the build: the vector instructions, and the processor, that kernels are compiled for.

Emitters ask nothing else what there is, so the same kernels can be built for another machine. ``IR_RUNTIME_VECTORS`` forces one
of `VECTORS`; LLVM splits vectors that are wider than the registers, so every one of them runs on every machine.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from ....codes import Code
from ....errors import InputError
from ..machine_code.host import Processor, host

__all__ = ["TARGET", "VECTORS", "Target"]


_UNKNOWN = Processor()


@dataclass(frozen=True)
class Target:
    """A vector instruction set, the GEMM tiles that fill its registers, and a processor that runs it.

    Args:
        name: of the instruction set.
        lanes: f32 lanes of a vector.
        has_fma: whether there is a fused multiply-add instruction.
        wide: rows and vectors of the usual tile; accumulators, weights and a broadcast value fit the registers.
        tall: rows and vectors of the tile for few columns.
        has_masks: whether loads and stores of some lanes take as long as those of all.
        processor: the processor.
    """

    name: str
    lanes: int
    has_fma: bool
    wide: tuple[int, int]
    tall: tuple[int, int]
    has_masks: bool = False
    processor: Processor = _UNKNOWN

    def has(self, feature: str) -> bool:
        """Return whether the processor has a feature, by LLVM's name."""
        return f"+{feature}" in self.processor.features

    @property
    def is_x86(self) -> bool:
        """Whether the processor has instructions of x86."""
        return self.processor.family in ("x86_64", "amd64", "i686")

    @property
    def is_arm(self) -> bool:
        """Whether this is an AArch64 processor."""
        return self.processor.family in ("aarch64", "arm64")


VECTORS = {
    target.name: target
    for target in (
        Target("avx512", 16, True, (6, 4), (14, 2), has_masks=True),
        Target("avx2", 8, True, (6, 2), (12, 1)),
        Target("neon", 4, True, (6, 4), (12, 2)),
        Target("plain", 4, False, (4, 2), (8, 1)),
    )
}


def _best(processor: Processor) -> Target:
    """Return the widest vectors of a processor."""
    target = replace(VECTORS["plain"], processor=processor)
    if target.is_arm:
        return VECTORS["neon"]
    if target.has("avx512f") and target.has("avx512vl"):
        return VECTORS["avx512"]
    return VECTORS["avx2" if target.has("avx2") and target.has("fma") else "plain"]


def _selected() -> Target:
    processor = host()
    forced = os.environ.get("IR_RUNTIME_VECTORS")
    if not forced:
        return replace(_best(processor), processor=processor)
    if forced not in VECTORS:
        raise InputError(
            f"unknown vector target {forced!r} in IR_RUNTIME_VECTORS",
            code=Code.BAD_REQUEST,
            hint=f"must be one of {', '.join(VECTORS)}",
        )
    return replace(VECTORS[forced], processor=processor)


TARGET = _selected()
