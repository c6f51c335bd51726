"""Invalid models derived from valid ones, reproducible by recipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from lxml import etree

from . import booleans, empties, floods, growth, lengths, manifests, names, raw, structure
from .corpus import Case
from .structure import Element, Work

__all__ = ["KINDS", "OF_FILES", "Kind", "Recipe", "mutant", "recipe"]

Kind = Literal["structure", "raw", "floods", "lengths", "empties", "booleans", "manifests", "names"]
OF_FILES: tuple[Kind, ...] = ("structure", "raw", "floods")
"""What is changed in files."""
_OF_INPUTS: dict[Kind, Callable[[Case, Sequence[int]], Case]] = {
    "lengths": lengths.opened,
    "empties": empties.emptied,
    "booleans": booleans.overwritten,
}
"""What changes what a good model is fed."""
KINDS: tuple[Kind, ...] = (*OF_FILES, *_OF_INPUTS, "manifests", "names")

_STEPS = (1, 1, 1, 2, 2, 3, 5, 8)

_CHANGES: dict[Callable[[Work], None], int] = {
    structure.attribute: 6,
    structure.number_in_list: 8,
    structure.attribute_gone: 2,
    structure.attribute_new: 3,
    structure.attribute_of_another: 2,
    structure.dim: 5,
    structure.rank: 3,
    structure.shape: 8,
    structure.element_type: 5,
    structure.contents: 8,
    structure.bin_size: 1,
    structure.place: 3,
    structure.edge: 4,
    structure.identity: 2,
    structure.operation: 5,
    structure.name: 2,
    structure.port_map: 8,
    structure.removed: 3,
    structure.doubled: 3,
    structure.moved: 2,
    structure.swapped: 3,
    structure.grafted: 2,
    structure.rewritten: 2,
    structure.information: 1,
    growth.chained: 3,
    growth.multiplied: 2,
    growth.wrapped: 4,
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe of an invalid model: the valid one, and a seed for each change.

    ``open`` first leaves types and shapes to inference, so that changes get past the comparison with declarations.
    """

    kind: Kind
    base: int
    donor: int
    steps: tuple[int, ...]
    open: bool = False

    def without(self, place: int) -> Recipe:
        """Return the recipe without one of its changes."""
        return replace(self, steps=self.steps[:place] + self.steps[place + 1 :])


def recipe(corpus: Sequence[Case], kind: Kind, seed: int, number: int) -> Recipe:
    """Return a numbered recipe. Every other one starts from a whole network, if there are any."""
    rng = Random(f"{kind} {seed} {number}")
    whole = [i for i, case in enumerate(corpus) if _serves(case, kind)]
    networks = [i for i in whole if not corpus[i].name[0].isupper()]
    pool = networks if networks and rng.random() < 0.5 else whole
    base, donor = rng.choice(pool), whole[rng.randrange(len(whole))]
    steps = tuple(rng.randrange(1 << 32) for _ in range(rng.choice(_STEPS)))
    return Recipe(kind, base, donor, steps, kind == "structure" and rng.random() < 0.5)


def _serves(case: Case, kind: Kind) -> bool:
    """Return whether changes of a kind apply to a case."""
    if case.manifest_of:
        return kind == "manifests"
    if case.inputs is None:
        return kind in OF_FILES or (
            kind == "names" and not case.xml[:1].isalpha() and b"<net" in case.xml[:300]
        )
    return kind in _OF_INPUTS and (kind != "booleans" or any(x.dtype == bool for x in case.inputs))


def mutant(corpus: Sequence[Case], recipe: Recipe) -> Case:
    """Return the model of a recipe."""
    base, donor = corpus[recipe.base], corpus[recipe.donor]
    if recipe.kind in _OF_INPUTS:
        return _OF_INPUTS[recipe.kind](base, recipe.steps)
    if recipe.kind == "manifests":
        return manifests.changed(base, donor, recipe.steps)
    if recipe.kind == "names":
        return names.hostile(base, recipe.steps)
    root, other = _tree(base.xml), _tree(donor.xml)
    if recipe.kind == "raw" or root is None:
        return _raw(base, donor, recipe)
    if recipe.kind == "floods":
        work = Work(root, bytearray(base.weights), root, Random())
        return Case(base.name, floods.several(work, recipe.steps), bytes(work.weights))
    work = Work(root, bytearray(base.weights), root if other is None else other, Random())
    if recipe.open:
        structure.undeclared(work)
    for step in recipe.steps:
        work.rng = Random(step)
        (change,) = work.rng.choices(list(_CHANGES), list(_CHANGES.values()))
        change(work)
    return Case(base.name, etree.tostring(work.root, encoding="utf-8"), bytes(work.weights))


def _raw(base: Case, donor: Case, recipe: Recipe) -> Case:
    xml, weights = base.xml, base.weights
    for step in recipe.steps:
        rng = Random(step)
        if weights and rng.random() < 0.15:
            weights = raw.change(weights, donor.weights, rng)
        else:
            xml = raw.change(xml, donor.xml, rng)
    return Case(base.name, xml, weights)


def _tree(xml: bytes) -> Element | None:
    try:
        return etree.fromstring(xml)
    except etree.XMLSyntaxError:  # a page
        return None
