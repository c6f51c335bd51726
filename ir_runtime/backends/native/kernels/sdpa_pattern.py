"""Scaled dot product attention (SDPA) that models write as MatMul, Multiply, Add, SoftMax and MatMul, or with Einsum."""

from __future__ import annotations

from dataclasses import dataclass

from ....ir.graph import Layer
from ....ir.tensor import Array
from ....ops.matrix.einsum import Einsum
from ....ops.matrix.matmul import MatMul
from ... import Fusion, Kernel, MatchContext, Refusal
from ...common.sdpa import Factor
from ...patterns.attention import match_attention
from ...patterns.attention_kernel import AttentionKernel, HeadsLayout
from .._backend import backend
from ..threading.capture import replayed
from ..threading.recording import uses_constant

__all__: list[str] = []


@backend.pattern(MatMul, Einsum)
def sdpa(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match ``softmax((q @ kᵀ) * factor + masks) @ v``, f32, of matrices in batches of heads."""
    return match_attention(context, layer, _kernel)


def _kernel(factor: Factor, added: Array | None, given: bool, layout: HeadsLayout) -> Kernel:
    """Return the kernel for the precision of the current compilation."""
    from .sdpa import followed  # most matrix products are not those of attention

    attend, name = followed()
    run = _AttentionKernel(factor, added, given, layout, attend)
    return Kernel(run, name=name, replay=replayed())


@dataclass(frozen=True)
class _AttentionKernel(AttentionKernel):
    """A kernel whose runs are replayed."""

    def __call__(self, *arrays: Array) -> Array:
        if self.added is not None:
            uses_constant(self.added)
        return super().__call__(*arrays)
