"""Constraints on the dynamic lengths of inputs, and the answers of inference that they are derived from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..._util.markup import Shown
from ...diagnostics import Diagnostic
from ...ir.dimension import Dimension
from ...ir.graph import Layer

__all__ = [
    "Answer",
    "BudgetExceededError",
    "Constraint",
    "Constraints",
    "Dim",
    "Lengths",
    "Trial",
]


# The oracle of the constraint solver: answers queries about dynamic lengths by inference.


class Dim(NamedTuple):
    """A dynamic length of an input: the id of its Parameter, and the axis."""

    layer: int
    axis: int


Lengths = Mapping[Dim, int | Dimension]


class BudgetExceededError(Exception):
    """The budget of queries, or of layers inferred for them, is used up."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of inference at given lengths."""

    steps: int
    """Number of layers inferred before one refused, or of all layers."""
    refusal: Diagnostic | None = None
    layer: Layer | None = None
    """The layer that refused."""
    near: tuple[int, ...] = ()
    """Lengths in the inputs of the layer that refused, often including the expected one."""
    inconclusive: bool = False
    """Whether inference decides nothing, as values known at the reference point are too large to propagate here."""

    @property
    def accepted(self) -> bool | None:
        """Whether the graph accepts the lengths; ``None`` if undecided."""
        return False if self.refusal else None if self.inconclusive else True


# Constraints on the dynamic lengths of inputs.


# Maximum number of feasible points in a JSON record.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """Lengths to run the model with: feasible, or violating exactly one constraint."""

    lengths: Mapping[Dim, int]
    accepted: bool
    size: int = 0
    """Number of elements computed, up to the layer that refuses."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint on the dynamic lengths of inputs, with the fields of its JSON record.

    >>> str(Constraint("at most", ("seq",), "seq ≤ 512"))
    'seq ≤ 512'
    """

    kind: str
    """``fixed``, ``equal``, ``sum``, ``multiple``, ``at least``, ``at most`` or ``one of``."""
    symbols: tuple[str, ...]
    text: str
    number: int | None = None
    """The bound, the divisor or the fixed length."""
    reason: Diagnostic | None = None
    """Why a layer refuses other lengths."""
    proved: bool = False
    """Whether inference refuses all other lengths, not only the sampled ones."""
    confirmed: bool | None = None
    """Whether running the model agrees with inference; ``None`` if it was not run."""
    remark: str = ""
    """The reason why the model was not run, or how the run differs."""
    trials: tuple[Trial, ...] = field(default=(), repr=False)

    def record(self) -> dict[str, object]:
        """Return a dict for JSON."""
        return {
            "kind": self.kind,
            "symbols": list(self.symbols),
            "text": self.text,
            "number": self.number,
            "refused_by": self.reason.record() if self.reason else None,
            "proved": self.proved,
            "confirmed": self.confirmed,
            "remark": self.remark or None,
        }

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Constraints(Shown):
    """The constraints on the dynamic lengths of a model's inputs; iterating yields each."""

    found: tuple[Constraint, ...] = ()
    symbols: Mapping[Dim, str] = field(default_factory=dict)
    """The name of each dynamic dim; equal dims share a name, and sums are written out."""
    inputs: Mapping[Dim, str] = field(default_factory=dict)
    """Each dynamic dim by input and axis: ``input_ids[1]``."""
    undecided: tuple[str, ...] = ()
    """Undecided questions with reasons."""
    error: Diagnostic | None = None
    """Set if no lengths are accepted."""
    accepted: tuple[Trial, ...] = field(default=(), repr=False)
    """Feasible lengths, small ones first."""
    questions: int = 0
    """Number of queries to inference."""

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "symbols": {self.inputs[dim]: name for dim, name in self.symbols.items()},
            "constraints": [constraint.record() for constraint in self.found],
            "undecided": list(self.undecided),
            "error": self.error.record() if self.error else None,
            "accepted": [
                {self.inputs[dim]: n for dim, n in trial.lengths.items()} for trial in self.accepted[:SHOWN]
            ],
            "questions": self.questions,
        }

    def __str__(self) -> str:
        lines = [str(self.error)] if self.error else [str(c) for c in self.found]
        return "\n".join([*lines, *(f"undecided: {text}" for text in self.undecided)])
