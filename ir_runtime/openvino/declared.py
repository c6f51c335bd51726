"""Warn about models whose declarations contradict inference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..codes import DECLARED, Code
from ..diagnostics import Severity
from ..errors import ValidationError
from .callers import warn

if TYPE_CHECKING:
    from .model import Model

__all__ = ["accept", "check", "contradiction"]


def accept(model: Model, strict: bool | None) -> Model:
    """Return the model; raise if it has errors.

    Args:
        model: the model as read.
        strict: True also refuses contradicted declarations, False refuses nothing; by default, warn about them.

    Raises:
        ValidationError: if it is not valid.
        UnsupportedError: if the only errors are unknown operations.
    """
    if strict is False:
        return model
    check(model, bool(strict))
    if message := contradiction(model, "strict=True"):
        warn(message)
    return model


def check(model: Model, strict: bool, allowed: frozenset[Code] = frozenset()) -> None:
    """Raise if a model has errors; on pages, contradicted declarations count as errors.

    Args:
        model: the model as read.
        strict: also raise contradicted declarations of unused ports.
        allowed: codes of further findings to ignore.

    Raises:
        ValidationError: if it is not valid.
        UnsupportedError: if the only errors are unknown operations.
    """
    model.raise_if_invalid(allowed if strict or model._document.is_page else allowed | DECLARED)
    contradicted = [
        replace(finding, severity=Severity.ERROR) for finding in model.report if finding.code in DECLARED
    ]
    if strict and contradicted:
        raise ValidationError.of(contradicted, model.report.more)


def contradiction(model: Model, refusing: str) -> str:
    """Summarize contradicted declarations in one line: the first, and the number of others; or return "".

    Args:
        model: the model as read.
        refusing: the option that refuses such models.
    """
    first = next((error for error in model.report.errors if error.code in DECLARED), None)
    if first is None:
        return ""
    others = sum(model.report.count(Severity.ERROR, code) for code in DECLARED) - 1
    more = f"; {others:,} more declarations are contradicted" if others else ""
    return (
        f"{first.where}: warning[{first.code}]: {first.message}{more}; inferred types and shapes are used "
        f"('ir-runtime validate' shows all, {refusing} refuses)"
    )
