"""Debugging tools: explain why two executions of a model differ, and which one is right."""

from __future__ import annotations

from .._util.absent import list_public
from .bisect import Bisection, bisect
from .budget import Budget, LayerCost, Measured, budget
from .command_side import Command
from .compare import compare
from .diff import Change, Difference, diff
from .extract import extract
from .measure import measure, old_model
from .observation import Observation, Repeated, Side
from .oracle import Truth, oracle
from .progress import Interrupted, TimedOut
from .reduce import Reduced, reduce
from .results import Comparison, DecisionResult, Likeness, OutputResult, UnitResult
from .step import Stepping, Stop, step
from .trace_nan import NanTrace, Origin, Peak, trace_nan

__all__ = [
    "Bisection",
    "Budget",
    "Change",
    "Command",
    "Comparison",
    "DecisionResult",
    "Difference",
    "Interrupted",
    "LayerCost",
    "Likeness",
    "Measured",
    "NanTrace",
    "Observation",
    "Origin",
    "OutputResult",
    "Peak",
    "Reduced",
    "Repeated",
    "Side",
    "Stepping",
    "Stop",
    "TimedOut",
    "Truth",
    "UnitResult",
    "bisect",
    "budget",
    "compare",
    "diff",
    "extract",
    "measure",
    "old_model",
    "oracle",
    "reduce",
    "step",
    "trace_nan",
]


list_public(__name__)
