"""The clauses of operations: what their pages demand of a layer, each stated by the check that holds it.

An error that a check raises has its clause (``clause=...``). ``make index`` writes `_clauses.json`: the clauses that
refused layers of the tests violate, in the order of the declaration; their numbers are their places in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

__all__ = ["cite", "clauses"]


def clauses(operation: str) -> Sequence[str]:
    """Return the clauses of an operation such as ``ReduceL2-4``, in the order of their numbers; extensions have none."""
    return _every().get(operation, ())


def cite(operation: str, clause: str) -> str:
    """Return a clause with its number, counted from 1; without number if it has none.

    >>> cite("ReduceL2-4", "no axis is named twice").partition(":")[2]
    ' no axis is named twice'
    >>> cite("MyOwn-1", "data is finite"), cite("MyOwn-1", "")
    ('data is finite', '')
    """
    numbered = clauses(operation)
    return f"{operation} C{numbered.index(clause) + 1}: {clause}" if clause in numbered else clause


@cache
def _every() -> Mapping[str, Sequence[str]]:
    text = files("ir_runtime.ops").joinpath("_clauses.json").read_text(encoding="utf-8")
    every: Mapping[str, Sequence[str]] = json.loads(text)
    return every
