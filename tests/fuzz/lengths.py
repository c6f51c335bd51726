"""Dynamic models fed slightly wrong dims: backends must agree with the reference, or refuse.

A fast kernel must not read out of bounds when a model runs with dims that it was not made for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from harness.subjects import all_subjects, difference
from lxml import etree

import ir_runtime as ir
from ir_runtime.analysis.random_inputs import random_array
from ir_runtime.codes import Code
from ir_runtime.debug.reference import Reference
from ir_runtime.ir.tensor import Array

from .corpus import LARGEST, Case
from .structure import Element, Work, undeclared

__all__ = [
    "DRAWING",
    "REFERENCE",
    "DisagreementError",
    "cases",
    "compare",
    "is_limited",
    "is_refused",
    "opened",
    "operations",
    "outcome_of",
]

REFERENCE = "reference"
LIMITS = ir.Limits(memory=1 << 28, trips=200, seconds=0.5)
LARGEST_INPUT = 1 << 16
"""Elements of an input; wrong lengths are made smaller where they come to more."""
USUAL = 3
"""A length of a network's input that its file leaves open."""
# Where inputs cancel out, what remains is rounding; relative to the largest input.
ROUNDING = 1e-6
# Unless it has seeds, it draws other numbers each time.
DRAWING = (b'type="RandomUniform"', b'type="Multinomial"')


class DisagreementError(Exception):
    """A backend disagrees with the reference; equal ``signature`` means the same mistake."""

    def __init__(self, signature: str, detail: str) -> None:
        super().__init__(f"{signature}: {detail}")
        self.signature = signature


def cases() -> Iterator[Case]:
    """Yield samples of operations with fast kernels, fused patterns, and networks, with valid inputs."""
    for subject in all_subjects():
        if not any(drawing in subject.xml for drawing in DRAWING):
            yield Case(subject.name, subject.xml, subject.weights, subject.inputs)
    yield from _networks()


def _networks() -> Iterator[Case]:
    from models.collection import COLLECTION, saved

    for name in COLLECTION:
        path = saved(name)
        if path.stat().st_size > LARGEST:
            continue
        model, weights = ir.read_model(path), path.with_suffix(".bin")
        shapes = [tuple(d.min or USUAL for d in port.partial_shape) for port in model.inputs]
        inputs = tuple(
            random_array(model._graph, model._port(port), port.element_type, shape)
            for port, shape in zip(model.inputs, shapes, strict=True)
        )
        yield Case(name, path.read_bytes(), weights.read_bytes() if weights.exists() else b"", inputs)


def opened(base: Case, steps: Sequence[int]) -> Case:
    """Return a dynamic model, chosen by the first step, and inputs whose dims each further step changes."""
    first, *rest = map(Random, steps)
    root = etree.fromstring(base.xml)
    undeclared(Work(root, bytearray(), root, first))
    share = first.choice((1, 1, 1, 0.5, 0.2))
    for layer in root.iterfind("layers/layer[@type='Parameter']"):
        _open(layer, share, first)
    inputs = base.inputs
    for rng in rest:
        inputs = _changed(inputs, rng)
    return replace(base, xml=etree.tostring(root, encoding="utf-8"), inputs=inputs)


def _open(layer: Element, share: float, rng: Random) -> None:
    """Make some dims of an input dynamic."""
    data = layer.find("data")
    lengths = [text.strip() for text in data.get("shape", "").split(",") if text.strip()]
    data.set("shape", ",".join("?" if rng.random() < share else length for length in lengths))
    for port in layer.iter("port"):
        for dim in port.findall("dim"):
            port.remove(dim)


def _changed(inputs: tuple[Array, ...], rng: Random) -> tuple[Array, ...]:
    """Change one dim, swap two dims of an input, or change all equal dims alike."""
    axes = [(i, axis) for i, x in enumerate(inputs) for axis in range(x.ndim)]
    if not axes:
        return inputs
    index, axis = rng.choice(axes)
    shapes = [list(x.shape) for x in inputs]
    length, kind = shapes[index][axis], rng.random()
    other = rng.choice((length + 1, length - 1, 2 * length, 3 * length, length // 2, 0, 1))
    if kind < 0.15:
        second = rng.randrange(inputs[index].ndim)
        shapes[index][axis], shapes[index][second] = shapes[index][second], length
    elif kind < 0.4:
        shapes = [[max(other, 0) if n == length else n for n in shape] for shape in shapes]
    else:
        shapes[index][axis] = max(other, 0)
    return tuple(_shaped(x, shape) for x, shape in zip(inputs, shapes, strict=True))


def _shaped(x: Array, shape: Sequence[int]) -> Array:
    """Return the values repeated or truncated; no memory follows the last one."""
    if list(x.shape) == list(shape) or np.prod(shape, dtype=object) > LARGEST_INPUT:
        return x
    return np.resize(x, tuple(shape)).copy()


def compare(case: Case, backends: Sequence[str]) -> str:
    """Run on all backends, and compare with the reference.

    Returns:
        ``"result"``, or the code of the reference's error.

    Raises:
        DisagreementError: if a backend gives something else, or is the only one to refuse.
        Exception: any exception that is not an error of the package.
    """
    try:
        model = ir.read_model(case.xml, case.weights, limits=LIMITS)
    except ir.IRError as refusal:
        return str(refusal.code)
    wanted = outcome_of(model, REFERENCE, case.inputs)
    for backend in backends:
        found = wanted if backend == REFERENCE else outcome_of(model, backend, case.inputs)
        if is_limited(found) or is_limited(wanted):
            continue
        if isinstance(found, ir.IRError) and is_refused(case):
            continue
        if problem := difference(found, wanted, backend, _rounding(case.inputs)):
            raise DisagreementError(f"{_kind(found, wanted)} on {backend}: {operations(model)}", problem)
    return str(wanted.code) if isinstance(wanted, ir.IRError) else "result"


def outcome_of(model: ir.Model, backend: str, inputs: Sequence[Array], limits: ir.Limits = LIMITS) -> Any:
    """Return results, or an error of the package. The reference computes f16 in f32, as the other backends do."""
    try:
        definitions = Reference(model, f16_in_f32=True) if backend == REFERENCE else None
        if definitions is not None and definitions.f16_in_f32:
            return definitions.run(definitions.feeds(list(inputs)))
        found = ir.compile_model(model, backend=backend, limits=limits)(list(inputs))
    except ir.IRError as refusal:
        return refusal
    return list(found.to_tuple())


def is_limited(outcome: Any) -> bool:
    """Return whether a limit of time or memory was hit, which backends reach at different points."""
    return isinstance(outcome, ir.IRError) and outcome.code == Code.LIMIT


def is_refused(case: Case) -> bool:
    """Return whether inference refuses these dims, although the reference computes or runs out of time."""
    try:
        model = ir.read_model(case.xml, case.weights, limits=LIMITS)
        model.reshape({index: list(x.shape) for index, x in enumerate(case.inputs)})
    except ir.IRError:
        return True
    return False


def _rounding(inputs: Sequence[Array]) -> float:
    reals = [np.abs(x[np.isfinite(x)]).astype(np.float64) for x in inputs if x.dtype.kind == "f"]
    return ROUNDING * max((float(x.max(initial=0.0)) for x in reals), default=0.0)


def _kind(found: Any, wanted: Any) -> str:
    if isinstance(found, ir.IRError):
        return "refused"
    return "not refused" if isinstance(wanted, ir.IRError) else "other results"


def operations(model: ir.Model) -> str:
    """Return the operations of a model, to group findings."""
    kinds = {node.get_type_name() for node in model.get_ops()} - {"Parameter", "Result", "Constant"}
    return " ".join(sorted(kinds))[:80]
