"""With partial knowledge of inputs, no inferred shape is wider than OpenVINO's, unless OpenVINO's is wrong.

OpenVINO itself shows that it is wrong if, for possible inputs, it infers shapes that it excluded when less was known. Other
differences are listed with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any, NamedTuple

import pytest
from harness.oracle import core
from harness.partial_shapes import PARTIAL, Constant, PartialSample, partial
from harness.sample import Sample, all_samples

import ir_runtime
from ir_runtime.ir.dimension import Dimension
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value
from ir_runtime.ops.convolution import GroupConvolution

Model = tuple[bytes, bytes]

FEW, MANY = 1, 6
"""How often each sample is tried."""
INSTANCES = 400
ENDLESS = 1 << 30
"""A bound as high as that stands for none: OpenVINO divides the highest number there is."""


class Found(NamedTuple):
    """An output for which OpenVINO infers more."""

    sample: PartialSample
    index: int
    ours: PartialShape
    theirs: PartialShape

    def __str__(self) -> str:
        return f"output {self.index} of {self.sample}: {self.ours}, OpenVINO infers {self.theirs}"


@cache
def samples() -> dict[str, list[Sample]]:
    """Return samples by operation, one of those that differ only in element types or large contents."""
    found: dict[str, dict[object, Sample]] = {}
    for sample in all_samples():
        small = tuple(x.tobytes() if x.dtype.kind in "iu" and x.size < 9 else x.shape for x in sample.inputs)
        found.setdefault(sample.op, {}).setdefault((small, str(sample.attributes)), sample)
    return {op: list(different.values()) for op, different in found.items()}


def ours(model: Model) -> list[PartialShape]:
    return [port.partial_shape for port in ir_runtime.read_model(*model, strict=False).outputs]


def theirs(model: Model) -> list[PartialShape] | None:
    """Return the types that OpenVINO infers; ``None`` if it refuses."""
    try:
        return [_shape(port.get_partial_shape()) for port in core().read_model(*model).outputs]
    except RuntimeError:
        return None


def _shape(shape: Any) -> PartialShape:
    return PartialShape(None if shape.rank.is_dynamic else [_dimension(d) for d in shape])


def _dimension(dim: Any) -> Dimension:
    low, high = max(dim.get_min_length(), 0), dim.get_max_length()
    if 0 <= high < low:  # of an empty axis, for one: that is no statement
        return Dimension()
    return Dimension.between(low, None if high >= ENDLESS or high < 0 else high)


def wider(sample: PartialSample) -> Iterator[Found]:
    """Return the outputs for which OpenVINO infers more."""
    model = sample.model()
    mine, wanted = ours(model), theirs(model)
    for index, (found, other) in enumerate(zip(mine, wanted or (), strict=False)):
        if not found.refines(other):
            yield Found(sample, index, found, other)


def contradicted(found: Found) -> bool:
    """Return whether OpenVINO infers a contradicting type for some possible inputs."""
    cases = (found.sample.instance(Random(number)) for number in range(INSTANCES))
    inferred = (theirs(case.model()) for case in cases)
    return any(shapes and not shapes[found.index].compatible(found.theirs) for shapes in inferred)


def unexplained(op: str, times: int, of_each: int | None = None) -> Iterator[Found]:
    """Return the outputs for which OpenVINO infers more, and is right."""
    for sample in samples()[op][:of_each]:
        for number in range(times):
            known = partial(sample, Random(f"{sample} {number}"))
            if not all(isinstance(value, Constant) for value in known.inputs):
                yield from (found for found in wider(known) if not contradicted(found))


@pytest.mark.parametrize("op", sorted(samples()))
def test_no_shape_is_wider(op: str) -> None:
    found = [] if op in PARTIAL else list(unexplained(op, FEW, 4))
    assert not found, "\n".join(map(str, found))


@pytest.mark.oracle
@pytest.mark.parametrize("op", sorted(samples()))
def test_no_shape_is_wider_in_more_cases(op: str) -> None:
    found = unexplained(op, MANY)
    if op in PARTIAL:
        assert next(found, None), "the excuse is no longer needed"
    else:
        assert not (listed := list(found)), "\n".join(map(str, listed))


def test_a_shape_that_is_wider_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: GroupConvolution, data: Value, filters: Value) -> PartialShape:
        return PartialShape([data.shape[0], *PartialShape.dynamic(len(self.strides) + 1)])

    assert next(unexplained("GroupConvolution-1", FEW, 2), None) is None
    monkeypatch.setattr(GroupConvolution, "infer", careless)
    assert next(unexplained("GroupConvolution-1", FEW, 2), None)
