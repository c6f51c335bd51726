"""Warn about models whose declared types contradict inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codes import DECLARED, Code
from .callers import warn

if TYPE_CHECKING:
    from .model import Model

__all__ = ["accepted", "contradiction", "tolerated"]


def accepted(model: Model, strict: bool | None) -> Model:
    """Return the model, unless something is wrong with it that keeps it from running.

    Args:
        model: as it was read.
        strict: refuse contradicted declarations, too, or nothing at all. By default, warn of them.

    Raises:
        ValidationError: if it is not valid.
        UnsupportedError: if all that is wrong is operations that are not known.
    """
    if strict is False:
        return model
    model.raise_if_invalid(tolerated(model, bool(strict)))
    if message := contradiction(model, "strict=True"):
        warn(message)
    return model


def tolerated(model: Model, strict: bool) -> frozenset[Code]:
    """Return the codes of findings with which a model is run; on a page, dims are what the example is to show."""
    return frozenset() if strict or model._document.is_page else DECLARED


def contradiction(model: Model, refusing: str) -> str:
    """One line on what a model declares against inference: the first, and how many more; empty if nothing.

    Args:
        model: as it was read.
        refusing: what lets such models be refused.
    """
    first = next((error for error in model.report.errors if error.code in DECLARED), None)
    if first is None:
        return ""
    others = sum(model.report.count(code=code) for code in DECLARED) - 1
    more = f"; {others:,} more declarations are contradicted" if others else ""
    return (
        f"{first.where}: warning[{first.code}]: {first.message}{more}; inferred types and shapes are used "
        f"('ir-runtime validate' shows all, {refusing} refuses)"
    )
