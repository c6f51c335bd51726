"""Outcomes of other runtimes at the decisions of operations, recorded by the conformance suite.

``make engines`` runs the suite and writes `_engines.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

__all__ = ["Engines", "engines"]


class Engines(NamedTuple):
    """The outcomes of other runtimes at the decisions of an operation.

    Args:
        day: the date of the run.
        runtimes: the names and versions of the runtimes.
        outcomes: the outcome of each runtime, by decision; a decision without a test case is absent.
    """

    day: str
    runtimes: Sequence[str]
    outcomes: Mapping[str, Sequence[str]]


def engines(operation: str) -> Engines:
    """Return the recorded outcomes at the decisions of an operation such as ``ReduceMax-1``."""
    record = _load_record()
    return Engines(record["day"], record["runtimes"], record["decisions"].get(operation, {}))


@cache
def _load_record() -> Mapping[str, Any]:
    text = files("ir_runtime.ops").joinpath("_engines.json").read_text(encoding="utf-8")
    record: Mapping[str, Any] = json.loads(text)
    return record
