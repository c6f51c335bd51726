"""Add context to a failure in a kernel: the layer, its inputs, and inference's message about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..codes import Code
from ..errors import ExecutionError, IRError, LimitError
from ..ir.graph import Layer
from ..ir.tensor import Array
from .expected import Expected, RefusedInputError

__all__ = ["Failing", "with_context", "is_placed"]


class Failing(Protocol):
    """A step that failed."""

    @property
    def layer(self) -> Layer:
        """The first layer that it computes."""

    @property
    def also(self) -> tuple[Layer, ...]:
        """The other layers fused into it."""

    @property
    def expected(self) -> Expected | None:
        """The inference of the step, if available."""


def is_placed(reason: Exception) -> bool:
    """Return whether an error already names a layer."""
    return isinstance(reason, ExecutionError | LimitError) and reason.where is not None


def with_context(step: Failing, arrays: Sequence[Array], reason: Exception) -> IRError:
    """Return an error that names the layer, or the fused layers, that failed.

    For an error from NumPy, inference's message about the same inputs is preferred, as it is clearer.
    """
    where = step.layer.where
    if isinstance(reason, LimitError):
        return LimitError(reason.message, limit=reason.limit, where=where, hint=reason.hint)
    together = f", together with {', '.join(map(str, step.also))}" if step.also else ""
    if isinstance(reason, MemoryError):
        message = f"not enough memory for the outputs of the layer{together}"
        detail = f": {reason}" if str(reason) else ""
        return ExecutionError(message + detail, code=Code.LAYER_FAILED, where=where)
    if isinstance(reason, IRError):
        message = f"failed on the data it was given{together}: {reason.message}"
        return ExecutionError(
            message,
            code=Code.LAYER_FAILED,
            where=where,
            hint=reason.hint,
            clause=_cite(step.layer, reason.clause),
        )
    inference = step.expected
    refusal = (
        reason if isinstance(reason, RefusedInputError) else inference.refusal(arrays) if inference else None
    )
    if refusal is not None:
        message = f"failed on the data it was given: {refusal.reason.message}"
        return ExecutionError(
            message,
            code=Code.LAYER_FAILED,
            where=refusal.layer.where,
            hint=refusal.reason.hint,
            clause=_cite(refusal.layer, refusal.reason.clause),
        )
    message = f"failed on the data it was given{together}: {_text(reason)}{_shapes(arrays, inference)}"
    hint = "the code of the operation does not handle such inputs"
    return ExecutionError(message, code=Code.LAYER_FAILED, where=where, hint=hint)


def _cite(layer: Layer, clause: str) -> str:
    return clause if layer.op is None else layer.op.cite(clause)


def _text(reason: Exception) -> str:
    return f"{type(reason).__name__}: {reason}"


def _shapes(arrays: Sequence[Array], inference: Expected | None) -> str:
    if inference is None:
        return ""
    texts = (f"{e.label}{list(a.shape)}" for e, a in zip(inference.elements, arrays, strict=False))
    return f"; its inputs were {', '.join(texts)}" if arrays else ""
