"""Why two executions of a model differ, and which one is right."""

from __future__ import annotations

from .compare import compare
from .observation import Observation, Side
from .oracle import Truth, oracle
from .report import Comparison, DecisionResult, OutputResult, UnitResult

__all__ = [
    "Comparison",
    "DecisionResult",
    "Observation",
    "OutputResult",
    "Side",
    "Truth",
    "UnitResult",
    "compare",
    "oracle",
]
