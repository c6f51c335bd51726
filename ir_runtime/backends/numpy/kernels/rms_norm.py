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
from ..math.gemm import EPILOGUE_COST, row_blocks
from ..threading.parallel import parallel_for

__all__: list[str] = []


@backend.pattern(Multiply, Divide)
def rms_norm(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match ``x / sqrt(mean(x²) + eps)`` over the last axis, f32; the epilogue is applied block by block."""
    found = match_rms_norm(context, layer)
    if not isinstance(found, RMSNorm):
        return found
    return Fusion(found.layers, found.reads, _rms_norm_kernel(found.epsilon, len(found.reads)))


def _rms_norm_kernel(epsilon: float, arity: int) -> Kernel:
    eps = np.float32(epsilon)

    def compute(x: Array, *arrays: object) -> Array:
        epilogue: RowEpilogue = arrays[-1]  # type: ignore[assignment]
        y = np.empty(x.shape, np.float32)
        if not y.size:
            return y
        length = x.shape[-1]
        source, target = x.reshape(-1, length), y.reshape(-1, length)

        def work(block: slice) -> None:
            rows, out = source[block], target[block]
            means = np.einsum("ij,ij->i", rows, rows) / np.float32(length)
            np.multiply(rows, (np.float32(1) / np.sqrt(means + eps))[:, None], out=out)
            epilogue(out, block.start)

        parallel_for(work, row_blocks(target), y.size * EPILOGUE_COST)
        return y

    return RowKernel(compute, arity, accepts=any_lengths)
