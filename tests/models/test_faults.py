"""Two hundred seeded faults: the first finding of `validate` is at the faulty layer.

It is an error, or a warning if no layer computes with the contradicted declaration.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import islice

import pytest

import ir_runtime as ir
from models.collection import COLLECTION, saved
from models.faults import Fault, faults

COUNT = 200

# Faults whose first finding is elsewhere, or which are no fault, by model and number, and why.
JOINED = "Concat joins the constant into a shape; the layer that reads the shape refuses it, and names the constant"
SAME = "the edge starts at another tensor of the same type: that is a valid model, with a layer that nobody reads"
RING = "the edge makes a ring of four layers, which is reported at the one with the lowest id"
ELSEWHERE = {
    ("gated", 0): JOINED,
    ("gated_of_any_length", 1): JOINED,
    ("tagger", 1): JOINED,
    ("old_versions", 1): SAME,
    ("input_before", 2): SAME,
    ("plain", 2): RING,
}


def seeded() -> list[tuple[str, int]]:
    """Yield faults of the models in turn, until there are enough."""
    names = sorted(COLLECTION)
    return [(names[i % len(names)], i // len(names)) for i in range(COUNT)]


@cache
def fault(name: str, number: int) -> Fault:
    rng = random.Random(f"{name} {number}")
    return next(iter(islice(faults(saved(name), rng), 1)))


@pytest.mark.parametrize(("name", "number"), seeded())
def test_the_first_finding_is_at_the_faulty_layer(name: str, number: int) -> None:
    found = fault(name, number)
    report = ir.validate(found.xml, found.weights)
    where = next((finding.layer for finding in [*report.errors, *report.warnings]), None)
    if (name, number) in ELSEWHERE:
        assert where not in found.layers, "it is found by now: take it off the list"
    else:
        assert where in found.layers, f"{found.kind}: {found.what} in {found.layers}"


def test_few_are_found_elsewhere() -> None:
    assert len(ELSEWHERE) <= COUNT // 20


@pytest.mark.parametrize(("name", "number"), seeded())
def test_consequences_are_not_reported(name: str, number: int) -> None:
    """One change gives one error, except that each consumer of a changed constant may have its own."""
    found = fault(name, number)
    errors = ir.validate(found.xml, found.weights).errors
    if found.kind == "axis":
        led_back = [{error.layer, *(cause.where.layer for cause in error.causes)} for error in errors]
        assert all(layers & set(found.layers) for layers in led_back)
    else:
        assert len(errors) <= 1
    assert len({error.layer for error in errors}) == len(errors)
