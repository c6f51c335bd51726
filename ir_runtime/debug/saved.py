"""Reports as records, and reports from such records."""

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
    """Return the report that a record of `saved` describes."""
    parts = {
        "outputs": [_made(OutputResult, each) for each in record["outputs"]],
        "units": [_made(UnitResult, each) for each in record["units"]],
        "decisions": [decision_of(each) for each in record["decisions"]],
        "overflow": _made(Overflow, record["overflow"]) if record["overflow"] else None,
    }
    likeness = _made(Likeness, record["likeness"]) if record["likeness"] else None
    return _made(Comparison, {**record, **parts, "likeness": likeness})


def saved_decision(decision: DecisionResult) -> Record:
    """Return a record of all fields of a decision."""
    return asdict(decision)


def decision_of(record: Mapping[str, Any]) -> DecisionResult:
    """Return the decision that a record of `saved_decision` describes."""
    return _made(DecisionResult, record)


def _made(cls: type[_Result], fields: Mapping[str, Any]) -> _Result:
    return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})
