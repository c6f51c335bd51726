"""Accepted lengths are found where refusals tell little about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from ir_runtime.analysis.constraints.constraint import Answer, Dim
from ir_runtime.analysis.constraints.feasible_point import find_feasible_point
from ir_runtime.analysis.constraints.probing import Probe
from ir_runtime.codes import Code
from ir_runtime.diagnostics import Diagnostic
from ir_runtime.ir.dimension import Dimension
from ir_runtime.ir.graph import Layer

LAST = SimpleNamespace(id=9)
"""The layer that refuses."""


class Rule:
    """Answers as inference would that accepts lengths by a rule, and says nothing about ranges.

    Args:
        accepts: the rule; if there is one for each layer, the rules in their order.
        near: the lengths that a refusal names.
        bounds: the ranges of lengths, where they have any.
        upstream: the dims that the refusing layer depends on, if it is named.
    """

    def __init__(
        self,
        accepts: Callable[..., bool | tuple[bool, ...]],
        near: tuple[int, ...] = (),
        bounds: Mapping[int, Dimension] | None = None,
        upstream: Collection[int] | None = None,
    ) -> None:
        names = accepts.__code__.co_varnames[: accepts.__code__.co_argcount]
        self.dims = tuple(Dim(number, 0) for number in range(len(names)))
        self.roles = {dim: name.rstrip("12") for dim, name in zip(self.dims, names, strict=True)}
        self.graph = SimpleNamespace(ancestors=lambda layers: {*(upstream or ()), *layers})
        self.tried: list[tuple[int, ...]] = []
        self._accepts = accepts
        self._near = near
        self._bounds = bounds or {}
        self._layer = None if upstream is None else cast(Layer, LAST)

    def bounds(self, dim: Dim) -> Dimension:
        return self._bounds.get(dim.layer, Dimension())

    def __call__(self, point: Mapping[Dim, int | Dimension]) -> Answer:
        lengths = tuple(length for dim in self.dims if isinstance(length := point.get(dim), int))
        if len(lengths) < len(self.dims):
            return Answer(0, inconclusive=True)
        self.tried.append(lengths)
        accepted = self._accepts(*lengths)
        layers = accepted if isinstance(accepted, tuple) else (accepted,)
        if all(layers):
            return Answer(len(layers))
        return Answer(layers.index(False), Diagnostic(Code.CONTRADICTION, "refused"), self._layer, self._near)

    def find(self) -> tuple[int, ...] | None:
        """Return the lengths that are found, if they are accepted."""
        point = find_feasible_point(cast(Probe, self), self.roles)
        assert not point.infeasible
        return tuple(point.lengths.values()) if point.answer.accepted else None


def exactly(*lengths: int) -> Dimension:
    return Dimension(lengths[0], lengths[-1])


GUESSED: dict[str, tuple[Rule, tuple[int, ...]]] = {
    "an image of a usual size": (
        Rule(lambda batch, channels, height, width: (batch, channels, height, width) == (1, 3, 224, 224)),
        (1, 3, 224, 224),
    ),
    "equal lengths": (Rule(lambda batch, channels, seq: batch == channels == seq == 640), (640, 640, 640)),
    "rather than ones": (Rule(lambda seq1, seq2: seq1 == seq2 and seq1 in (1, 3)), (3, 3)),
}
CLIMBED: dict[str, tuple[Rule, tuple[int, ...]]] = {
    "one that a refusal names": (Rule(lambda seq, past: (seq, past) == (77, 8), near=(50, 77)), (77, 8)),
    "the longest that is tried": (
        Rule(lambda seq, past: (seq, past) == (1 << 16, 8), near=(1 << 16,)),
        (1 << 16, 8),
    ),
    "the other's": (Rule(lambda seq, past: seq == past == 19, bounds={1: exactly(19)}), (19, 19)),
    "the sum of others": (
        Rule(lambda seq, past, total: total == seq + past, bounds={0: exactly(7), 1: exactly(40)}),
        (7, 40, 47),
    ),
    "the difference of others": (
        Rule(lambda seq, past, total: total == seq + past, bounds={1: exactly(7), 2: exactly(40)}),
        (33, 7, 40),
    ),
    "a sum with one that a refusal names": (
        Rule(lambda seq, past: (seq, past) == (78, 8), near=(70,)),
        (78, 8),
    ),
    "both of a role": (
        Rule(
            lambda height1, height2, seq: (height1, height2, seq) == (20, 20, 16),
            near=(20,),
            bounds={0: Dimension(1, 50)},
        ),
        (20, 20, 16),
    ),
    "both of a length": (
        Rule(lambda left, right, seq: (left, right, seq) == (20, 20, 16), near=(20,)),
        (20, 20, 16),
    ),
    "all that the layer depends on": (
        Rule(
            lambda seq, depth, past: (seq, depth, past) == (20, 20, 8),
            near=(20,),
            upstream=[0, 1],
        ),
        (20, 20, 8),
    ),
    "for one layer after the other": (
        Rule(lambda seq, past: (seq == 77, past == 33), near=(33, 77)),
        (77, 33),
    ),
    "a product": (
        Rule(lambda height, width, seq: height * width * seq == 211, near=(211,)),
        (211, 1, 1),
    ),
}


@pytest.mark.parametrize("name", [*GUESSED, *CLIMBED])
def test_lengths_are_found(name: str) -> None:
    rule, lengths = (GUESSED | CLIMBED)[name]
    assert rule.find() == lengths


def test_lengths_that_the_refusing_layer_does_not_read_stay() -> None:
    rule = Rule(lambda seq, past: False, near=(77,), upstream=[0])
    assert rule.find() is None
    assert 77 in {seq for seq, _ in rule.tried}
    assert 77 not in {past for _, past in rule.tried}


def test_lengths_stay_within_their_bounds() -> None:
    rule = Rule(
        lambda seq, past: False, near=(5, 77), bounds={0: Dimension(10, 20), 1: Dimension.between(30, None)}
    )
    assert rule.find() is None
    assert {seq for seq, _ in rule.tried} >= {10, 16, 20}
    assert all(10 <= seq <= 20 and past >= 30 for seq, past in rule.tried)


def test_no_length_of_0_is_tried_for_one_that_a_refusal_names() -> None:
    rule = Rule(lambda seq, past: 0 in (seq, past), near=(0, 5))
    assert rule.find() is None
    assert Rule(lambda seq, past: past == 0, bounds={0: exactly(0)}).find() is None


def test_lengths_beyond_the_longest_are_not_tried() -> None:
    rule = Rule(lambda seq, past: (seq, past) == ((1 << 16) + 1, 8), near=((1 << 16) + 1,))
    assert rule.find() is None


def test_unrelated_lengths_differ_in_the_first_guess() -> None:
    rule = Rule(lambda batch, channels, height, width, depth, seq, past, other: True)
    lengths = rule.find()
    assert lengths is not None
    assert len({*lengths}) == len(lengths)


ONES: dict[str, tuple[Rule, tuple[int, ...]]] = {
    "those of a role": (
        Rule(
            lambda height1, height2, width, seq: (
                height1 == height2 and height1 in (1, 2) and (width, seq) == (1, 1)
            )
        ),
        (2, 2, 1, 1),
    ),
    "single ones": (
        Rule(lambda height1, height2, seq: height1 in (1, 2) and (height2, seq) == (1, 1)),
        (2, 1, 1),
    ),
    "by what a refusal names": (
        Rule(lambda height, width, seq: height in (1, 23) and (width, seq) == (1, 1), near=(1, 2, 23)),
        (23, 1, 1),
    ),
    "none": (Rule(lambda height, width: (height, width) == (1, 1), near=(5,)), (1, 1)),
}


@pytest.mark.parametrize("name", ONES)
def test_lengths_of_1_are_replaced(name: str) -> None:
    """They broadcast, which hides that lengths must be equal."""
    rule, lengths = ONES[name]
    assert rule.find() == lengths
