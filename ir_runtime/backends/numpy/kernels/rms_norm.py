"""RMS normalization of rows, block by block."""

from __future__ import annotations

import numpy as np

from ....ir.graph import Layer
from ....ir.tensor import Array
from ....ops.arithmetic.binary import Divide, Multiply
from ... import Fusion, Kernel, MatchContext, Refusal
from ...common.epilogue import RowEpilogue, RowKernel
from ...core.lengths import any_lengths
from ...patterns.rms_norm import RMSNorm, match_rms_norm
from .._backend import backend
from ..math.gemm import for_row_blocks

__all__: list[str] = []


@backend.pattern(Multiply, Divide)
def rms_norm(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match ``x / sqrt(mean(x²) + eps)`` over the last axis, f32; the epilogue is applied block by block."""
    found = match_rms_norm(context, layer)
    if not isinstance(found, RMSNorm):
        return found
    return Fusion(found.layers, found.reads, _rms_norm_kernel(found.epsilon, len(found.reads)))


def _rms_norm_kernel(epsilon: float, arity: int) -> Kernel:
    eps = np.array(epsilon, np.float32)

    def compute(x: Array, *arrays: object) -> Array:
        epilogue: RowEpilogue = arrays[-1]  # type: ignore[assignment]
        y = np.empty(x.shape, np.float32)
        if not y.size:
            return y
        length = x.shape[-1]
        count = np.array(length, np.float32)
        source, target = x.reshape(-1, length), y.reshape(-1, length)

        def work(block: slice) -> None:
            rows, out = source[block], target[block]
            means = np.vecdot(rows, rows)
            np.divide(means, count, means)
            np.sqrt(np.add(means, eps, means), means)
            np.divide(rows, means[:, None], out)
            epilogue(out, block.start)

        for_row_blocks(work, *target.shape)
        return y

    return RowKernel(compute, arity, accepts=any_lengths)
