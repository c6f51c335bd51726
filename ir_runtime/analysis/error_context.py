"""Which layer failed, and why, in words that make sense to who has only the model at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..codes import Code
from ..errors import ExecutionError, IRError, LimitError
from ..ir.graph import Layer
from ..ir.tensor import Array
from .expected import Expected, RefusedInputError

__all__ = ["Failing", "blame", "is_placed"]


class Failing(Protocol):
    """A step, as far as its failure is concerned."""

    @property
    def layer(self) -> Layer:
        """The first layer it computes."""

    @property
    def also(self) -> tuple[Layer, ...]:
        """Those that run as one with it."""

    @property
    def expected(self) -> Expected | None:
        """What inference says about it."""


def is_placed(reason: Exception) -> bool:
    """Whether a layer, of a body perhaps, is blamed already."""
    return isinstance(reason, ExecutionError | LimitError) and reason.where is not None


def blame(step: Failing, arrays: Sequence[Array], reason: Exception) -> IRError:
    """What happened, and in which layer, or in which layers that run as one.

    Where it is NumPy that complains, inference is asked about the inputs: its words are better.
    """
    where = step.layer.where
    if isinstance(reason, LimitError):
        return LimitError(reason.message, limit=reason.limit, where=where, hint=reason.hint)
    together = f", together with {', '.join(map(str, step.also))}" if step.also else ""
    if isinstance(reason, MemoryError):
        message = f"not enough memory for the outputs of the layer{together}"
        said = f": {reason}" if str(reason) else ""
        return ExecutionError(message + said, code=Code.LAYER_FAILED, where=where)
    if isinstance(reason, IRError):
        message = f"failed on the data it was given{together}: {reason.message}"
        return ExecutionError(message, code=Code.LAYER_FAILED, where=where, hint=reason.hint)
    known = step.expected
    refusal = reason if isinstance(reason, RefusedInputError) else known.refusal(arrays) if known else None
    if refusal is not None:
        message = f"failed on the data it was given: {refusal.reason.message}"
        hint = refusal.reason.hint
        return ExecutionError(message, code=Code.LAYER_FAILED, where=refusal.layer.where, hint=hint)
    message = f"failed on the data it was given{together}: {_text(reason)}{_shapes(arrays, known)}"
    hint = "the code of the operation does not handle such inputs"
    return ExecutionError(message, code=Code.LAYER_FAILED, where=where, hint=hint)


def _text(reason: Exception) -> str:
    return f"{type(reason).__name__}: {reason}"


def _shapes(arrays: Sequence[Array], known: Expected | None) -> str:
    if known is None:
        return ""
    found = (f"{e}{list(a.shape)}" for e, a in zip(known.elements, arrays, strict=False))
    return f"; its inputs were {', '.join(found)}" if arrays else ""
