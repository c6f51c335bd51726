"""Convert reports to records and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from .._util.records import Record
from .likeness import Likeness
from .overflow import Overflow
from .report import Comparison
from .results import DecisionResult, OutputResult, UnitResult

__all__ = ["decision_of", "report_of", "saved", "saved_decision"]

_Result = TypeVar("_Result")


def saved(report: Comparison) -> Record:
    """Return a record of all fields of a report."""
    return asdict(report)


def report_of(record: Mapping[str, Any]) -> Comparison:
    """Restore a report from a record of `saved`."""
    parts = {
        "outputs": [_restore(OutputResult, entry) for entry in record["outputs"]],
        "units": [_restore(UnitResult, entry) for entry in record["units"]],
        "decisions": [decision_of(entry) for entry in record["decisions"]],
        "overflow": _restore(Overflow, record["overflow"]) if record["overflow"] else None,
    }
    likeness = _restore(Likeness, record["likeness"]) if record["likeness"] else None
    return _restore(Comparison, {**record, **parts, "likeness": likeness})


def saved_decision(decision: DecisionResult) -> Record:
    """Return a record of all fields of a decision."""
    return asdict(decision)


def decision_of(record: Mapping[str, Any]) -> DecisionResult:
    """Restore a decision from a record of `saved_decision`."""
    return _restore(DecisionResult, record)


def _restore(cls: type[_Result], fields: Mapping[str, Any]) -> _Result:
    return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})
