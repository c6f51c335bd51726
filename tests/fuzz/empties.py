"""Models fed empty tensors with huge dims, which take no memory.

No backend may exceed its memory limit, or iterate over dims that a 0 makes irrelevant; and all must agree with the
reference, or refuse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from harness.files import model_of
from harness.memory import Allocations, counting
from harness.sample import named_samples
from harness.subjects import difference
from lxml import etree

import ir_runtime as ir
from ir_runtime.ir.tensor import Array

from .corpus import Case
from .lengths import DRAWING, REFERENCE, DisagreementError, is_limited, is_refused, operations, outcome_of
from .structure import Element, Work, undeclared

__all__ = ["LIMITS", "SINGLE", "TOGETHER", "cases", "compare", "emptied"]

LIMITS = ir.Limits(memory=1 << 26, trips=200, seconds=0.5)
SINGLE, TOGETHER = LIMITS.memory + (1 << 22), 4 * LIMITS.memory
"""Bytes that one array may take, and all of a run: the limit is for tensors, beside which kernels have scratch memory."""
HUGE = (1 << 20, 1 << 21, 3_000_001, (1 << 23) + 1, 1 << 31, 1 << 59)
NUMBERS = (0, 1, 1 << 16, 1 << 31, 1 << 59)
"""Lengths in contents and attributes: tensors with elements are well within the limit then, or far beyond it.

Scratch memory for results with elements may be several times as large as they are, where types are wider."""
LARGEST_INPUT = 1 << 16
"""Elements of an input that is not empty."""


def cases() -> Iterator[Case]:
    """Yield samples of all operations, with valid inputs."""
    for name, sample in named_samples().items():
        xml, weights = model_of(sample, sample.constant)
        inputs = tuple(x for i, x in enumerate(sample.inputs) if i not in sample.constant)
        if inputs and not any(drawing in xml for drawing in DRAWING):
            yield Case(name, xml, weights, inputs)


def emptied(base: Case, steps: Sequence[int]) -> Case:
    """Return a model with static or dynamic shapes, depending on the first step; each further step changes its dims once."""
    first, *rest = map(Random, steps)
    root = etree.fromstring(base.xml)
    undeclared(Work(root, bytearray(), root, first))
    assert base.inputs is not None
    shapes, inputs = [list(x.shape) for x in base.inputs], list(base.inputs)
    for rng in rest or [first]:
        _change_lengths(shapes, rng)
        if rng.random() < 0.3:
            _change_numbers(inputs, rng)
        if rng.random() < 0.2:
            _change_attribute(root, rng)
    for shape in shapes:
        _bound(shape, first)
    made = tuple(_resized(x, shape) for x, shape in zip(inputs, shapes, strict=True))
    is_open = first.random() < 0.5
    for layer, x in zip(root.iterfind("layers/layer[@type='Parameter']"), made, strict=True):
        layer.find("data").set("shape", ",".join("?" if is_open else str(n) for n in x.shape))
        for dim in layer.findall("output/port/dim"):
            dim.getparent().remove(dim)
    return replace(base, xml=etree.tostring(root, encoding="utf-8"), inputs=made, kind="empties")


def _change_lengths(shapes: list[list[int]], rng: Random) -> None:
    """Set one dim to 0 and another to a huge value or 1, in one place or in all."""
    for other in (0, rng.choice((*HUGE, *HUGE, 1))):
        places = [(i, axis) for i, shape in enumerate(shapes) for axis in range(len(shape))]
        if not places:
            return
        index, axis = rng.choice(places)
        length = shapes[index][axis]
        if rng.random() < 0.5:
            places = [(i, a) for i, a in places if shapes[i][a] == length]
        else:
            places = [(index, axis)]
        for i, a in places:
            shapes[i][a] = other


def _change_numbers(inputs: list[Array], rng: Random) -> None:
    """Change an integer in an input such as a shape."""
    small = [i for i, x in enumerate(inputs) if x.dtype.kind in "iu" and x.ndim <= 1 and x.size]
    if small:
        index = rng.choice(small)
        array = inputs[index].copy()
        most = int(np.iinfo(array.dtype).max)
        array.reshape(-1)[rng.randrange(array.size)] = min(rng.choice(NUMBERS), most)
        inputs[index] = array


def _change_attribute(root: Element, rng: Random) -> None:
    """Change an integer in an attribute of an operation."""
    places = [
        (data, name)
        for layer in root.iterfind("layers/layer")
        if layer.get("type") not in ("Parameter", "Const", "Result")
        and (data := layer.find("data")) is not None
        for name, text in data.items()
        if text.replace(",", "").replace(" ", "").isdigit()
    ]
    if places:
        data, name = rng.choice(places)
        numbers = data.get(name).split(",")
        numbers[rng.randrange(len(numbers))] = str(rng.choice(NUMBERS))
        data.set(name, ",".join(numbers))


def _bound(shape: list[int], rng: Random) -> None:
    """Make a large array empty; NumPy requires the product of its nonzero dims to fit 64 bits."""
    while math.prod(n for n in shape if n) >= 1 << 60:
        shape[max(range(len(shape)), key=shape.__getitem__)] = 1 << rng.choice((10, 22))
    if math.prod(shape) > LARGEST_INPUT:
        shape[rng.randrange(len(shape))] = 0
    if math.prod(shape) > LARGEST_INPUT:
        shape[:] = [0] * len(shape)


def _resized(x: Array, shape: Sequence[int]) -> Array:
    """Return the values repeated or truncated."""
    return x if list(x.shape) == list(shape) else np.resize(x, tuple(shape)).copy()


def compare(case: Case, backends: Sequence[str]) -> str:
    """Run on all backends within a limit; return ``"result"``, or the code of the reference's error.

    Raises:
        DisagreementError: if a backend exceeds the limit, differs from the reference, or is the only one to refuse.
        Exception: any exception that is not an error of the package.
    """
    try:
        model = ir.read_model(case.xml, case.weights, limits=LIMITS)
    except ir.IRError as refusal:
        return str(refusal.code)
    wanted: Any = None
    for backend in (REFERENCE, *(name for name in backends if name != REFERENCE)):
        with counting(most=TOGETHER) as memory:
            found = outcome_of(model, backend, case.inputs or (), LIMITS)
        if problem := _excess(memory):
            raise DisagreementError(f"memory on {backend}: {operations(model)}", problem)
        wanted = found if backend == REFERENCE else wanted
        if is_limited(found) or is_limited(wanted) or (isinstance(found, ir.IRError) and is_refused(case)):
            continue
        if problem := difference(found, wanted, backend, 0.0):
            raise DisagreementError(f"{backend} differs: {operations(model)}", problem)
    return str(wanted.code) if isinstance(wanted, ir.IRError) else "result"


def _excess(memory: Allocations) -> str:
    """Return a complaint about the memory used; empty if it is within bounds."""
    if memory.largest > SINGLE:
        return f"an array of {memory.largest} bytes"
    return f"arrays would have taken more than {TOGETHER} bytes together" if memory.refused else ""
