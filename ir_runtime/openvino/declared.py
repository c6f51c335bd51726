"""Warn about models whose declared types contradict inference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..codes import DECLARED, Code
from ..diagnostics import Severity
from ..errors import ValidationError
from .callers import warn

if TYPE_CHECKING:
    from .model import Model

__all__ = ["accepted", "check", "contradiction"]


def accepted(model: Model, strict: bool | None) -> Model:
    """Return the model; raise if an error keeps it from running.

    Args:
        model: as it was read.
        strict: refuse contradicted declarations, too, or nothing at all. By default, warn of them.

    Raises:
        ValidationError: if it is not valid.
        UnsupportedError: if all that is wrong is operations that are not known.
    """
    if strict is False:
        return model
    check(model, bool(strict))
    if message := contradiction(model, "strict=True"):
        warn(message)
    return model


def check(model: Model, strict: bool, allowed: frozenset[Code] = frozenset()) -> None:
    """Raise if an error keeps a model from running; on a page, declared dims count, as the example is to show them.

    Args:
        model: as it was read.
        strict: raise any declaration that is contradicted, also where no layer computes with it.
        allowed: codes of further findings to let pass.

    Raises:
        ValidationError: if it is not valid.
        UnsupportedError: if all that is wrong is operations that are not known.
    """
    model.raise_if_invalid(allowed if strict or model._document.is_page else allowed | DECLARED)
    contradicted = [
        replace(found, severity=Severity.ERROR) for found in model.report if found.code in DECLARED
    ]
    if strict and contradicted:
        raise ValidationError.of(contradicted, model.report.more)


def contradiction(model: Model, refusing: str) -> str:
    """One line on what a model declares against inference: the first, and how many more; empty if nothing.

    Args:
        model: as it was read.
        refusing: what lets such models be refused.
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
