"""No run contradicts a confirmed constraint, whatever the dims of its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import pytest
from analysis.test_constraints import decoder
from models.collection import COLLECTION, saved, zoo

import ir_runtime as ir
from ir_runtime.analysis.constraints.constraint import Constraint, Constraints, Dim
from ir_runtime.analysis.random_inputs import random_array
from ir_runtime.ir.graph import Port

Lengths = Mapping[Dim, int]

# Lengths that broadcast, small and odd ones, and those that halve often.
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 16, 32)

# Files with more weights than this take too long to run many times.
LARGEST = 10 << 20


def points(found: Constraints, rng: Random, count: int) -> Iterator[Lengths]:
    """Yield lengths: all equal, equal where the names are, and with one that differs."""
    for length in LENGTHS:
        yield dict.fromkeys(found.symbols, length)
    for _ in range(count):
        by_name = {name: rng.choice(LENGTHS) for name in found.symbols.values()}
        point = {dim: by_name[name] for dim, name in found.symbols.items()}
        yield point
        yield {**point, rng.choice(list(point)): rng.choice(LENGTHS)}
    for trial in found.accepted:
        yield trial.lengths
        yield {**trial.lengths, rng.choice(list(trial.lengths)): rng.choice(LENGTHS)}


def holds(constraint: Constraint, found: Constraints, at: Lengths) -> bool:
    """Return whether lengths satisfy a constraint; a broadcast dim may be 1 where the text says so."""
    if constraint.kind == "sum":
        return True  # which lengths are added is only in its text
    lengths = [
        {
            n
            for dim, n in at.items()
            if found.symbols[dim] == name and (n != 1 or "1 instead" not in str(constraint))
        }
        for name in constraint.symbols
    ]
    if constraint.kind == "equal":
        return len(lengths[0]) <= 1
    if constraint.kind == "multiple" and "plus" not in str(constraint) and "leave" not in str(constraint):
        return all(n % (constraint.number or 1) == 0 for some in lengths for n in some)
    if constraint.kind == "at most" and constraint.number is None:
        return all(small <= large for small in lengths[0] for large in lengths[1])
    if constraint.number is None:
        return True
    by_kind = {
        "at least": constraint.number.__le__,
        "at most": constraint.number.__ge__,
        "fixed": constraint.number.__eq__,
    }
    return (
        all(by_kind[constraint.kind](n) for some in lengths for n in some)
        if constraint.kind in by_kind
        else True
    )


def runs(model: ir.Model, compiled: ir.CompiledModel, at: Lengths) -> bool:
    """Return whether the model runs from its initial state on random inputs of these lengths."""
    arrays = []
    for layer, type in model._parameter_types.items():
        shape = tuple(at.get(Dim(layer, axis), dim.min) for axis, dim in enumerate(type.shape))
        if not all(dim.contains(n) for dim, n in zip(type.shape, shape, strict=True)):
            return False
        arrays.append(random_array(model._graph, Port(layer, 0), type.element, shape))
    try:
        compiled.create_infer_request().infer(arrays)
    except ir.IRError:
        return False
    return True


def contradictions(model: ir.Model, count: int) -> list[str]:
    found = model.constraints()
    if not any(c.confirmed for c in found):
        return []
    compiled = ir.compile_model(model, backend="numpy")
    rng = Random(0)
    return [
        f"{constraint}: runs at {[f'{found.inputs[dim]} = {n}' for dim, n in at.items()]}"
        for at in points(found, rng, count)
        if not all(holds(c, found, at) for c in found if c.confirmed) and runs(model, compiled, at)
        for constraint in found
        if constraint.confirmed and not holds(constraint, found, at)
    ]


def test_a_decoder() -> None:
    net = decoder()
    assert contradictions(ir.read_model(net.xml(), net.weights), 2) == []


@pytest.mark.oracle
@pytest.mark.parametrize("name", COLLECTION)
def test_models(name: str) -> None:
    assert contradictions(ir.read_model(saved(name)), 5) == []


def small() -> list[Path]:
    return [path for path in zoo() if path.with_suffix(".bin").stat().st_size < LARGEST]


@pytest.mark.oracle
@pytest.mark.parametrize("path", small(), ids=lambda path: path.stem)
def test_networks(path: Path) -> None:
    assert contradictions(ir.read_model(path), 5) == []
