"""What runtimes do at the decisions of operations, from the last run of the conformance suite.

``make engines`` writes `_engines.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

__all__ = ["Engines", "engines"]


class Engines(NamedTuple):
    """The outcomes of runtimes at the decisions of an operation.

    Args:
        day: when they were asked.
        runtimes: their names and versions.
        outcomes: for each decision, the outcome of each runtime; none for decisions that no case shows.
    """

    day: str
    runtimes: Sequence[str]
    outcomes: Mapping[str, Sequence[str]]


def engines(operation: str) -> Engines:
    """Return what runtimes do at the decisions of an operation such as ``ReduceMax-1``."""
    record = _record()
    return Engines(record["day"], record["runtimes"], record["decisions"].get(operation, {}))


@cache
def _record() -> Mapping[str, Any]:
    text = files("ir_runtime.ops").joinpath("_engines.json").read_text(encoding="utf-8")
    record: Mapping[str, Any] = json.loads(text)
    return record
