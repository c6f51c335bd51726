"""Inputs of several floating-point types: which of them OpenVINO accepts, for every operation, and the result types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from harness.files import model_of
from harness.oracle import read
from harness.sample import Sample, is_sampled, named_samples

from ir_runtime.errors import ValidationError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.signature import FLOATS
from ir_runtime.ops import Op, registry

ops = pytest.mark.parametrize("cls", list(registry), ids=lambda cls: cls.versioned_name())


@cache
def forms() -> Mapping[str, list[Sample]]:
    """Yield a small sample for each operation and each set of floating-point inputs."""
    found: dict[tuple[str, int, tuple[int, ...]], Sample] = {}
    for sample in named_samples().values():
        key = sample.op, len(sample.inputs), floats(sample)
        if key not in found or size(sample) < size(found[key]):
            found[key] = sample
    by_op: dict[str, list[Sample]] = {}
    for (op, *_), sample in found.items():
        by_op.setdefault(op, []).append(sample)
    return by_op


def floats(sample: Sample) -> tuple[int, ...]:
    return tuple(i for i, value in enumerate(sample.values()) if value.element in FLOATS)


def size(sample: Sample) -> int:
    return sum(x.size for x in sample.inputs)


def typed(sample: Sample, types: Mapping[int, ElementType]) -> Sample:
    with np.errstate(over="ignore"):  # a number too large for f16 is infinity
        inputs = tuple(x.astype(types[i].dtype) if i in types else x for i, x in enumerate(sample.inputs))
    return replace(sample, inputs=inputs)


def ours(sample: Sample) -> tuple[str, ...] | None:
    """Return the element types that we infer; ``None`` if we refuse the inputs."""
    try:
        return tuple(t.element.label for t in sample.layer().infer_types(*sample.values()))
    except ValidationError:
        return None


def theirs(sample: Sample, plain: Sample) -> tuple[str, ...] | None:
    """Return the element types that OpenVINO infers, which ignores declared output types."""
    declared = plain.layer().infer_types(*plain.values())
    try:
        model = read(*model_of(sample, sample.constant, outputs=declared))
    except RuntimeError:
        return None
    return tuple(output.get_element_type().to_string() for output in model.outputs)


def assert_read_alike(sample: Sample, places: Sequence[int], pairs: Sequence[tuple[str, str]]) -> None:
    plain = typed(sample, dict.fromkeys(places, ElementType.f32))
    for pair in pairs:
        for types in product(map(ElementType.parse, pair), repeat=len(places)):
            mixed = typed(sample, dict(zip(places, types, strict=True)))
            assert ours(mixed) == theirs(mixed, plain), f"{sample.op} of {', '.join(map(str, types))}"


@ops
def test_samples_have_every_pair(cls: type[Op]) -> None:
    """Any two inputs that may be floating-point are both so in some sample, so that OpenVINO is asked about them."""
    if not is_sampled(cls):  # bodies take inputs of any types
        return
    count = len(cls.inputs) + any(port.variadic for port in cls.inputs)
    ports = [i for i in range(count) if (port := cls.port_of(i)) and {*port.element.allowed} & {*FLOATS}]
    asked = {pair for sample in forms()[cls.versioned_name()] for pair in combinations(floats(sample), 2)}
    assert {*combinations(ports, 2)} <= asked


@ops
def test_f16_and_f32(cls: type[Op]) -> None:
    """All combinations for up to five inputs; pairs for more."""
    for sample in forms().get(cls.versioned_name(), []):
        if len(places := floats(sample)) <= 5:
            assert_read_alike(sample, places, [("f32", "f16")])
            continue
        for pair in combinations(places, 2):
            assert_read_alike(sample, pair, [("f32", "f16")])


@pytest.mark.oracle
@ops
def test_all_types(cls: type[Op]) -> None:
    for sample in forms().get(cls.versioned_name(), []):
        others = list(combinations(("f32", "f16", "bf16", "f64"), 2))
        places = floats(sample)
        assert_read_alike(sample, places if len(places) <= 7 else places[:3], others)


@pytest.mark.parametrize(
    "cls",
    [cls for cls in registry if any(port.mixed for port in cls.inputs)],
    ids=lambda cls: cls.versioned_name(),
)
def test_results_have_the_inferred_type(cls: type[Op]) -> None:
    """They are computed in the widest type and rounded to the inferred one."""
    f16_or_f32 = ElementType.f16, ElementType.f32
    for sample in forms().get(cls.versioned_name(), []):
        places = floats(sample)[:4]
        for types in product(f16_or_f32, repeat=len(places)):
            mixed = typed(sample, dict(zip(places, types, strict=True)))
            if (inferred := ours(mixed)) is not None:
                results = mixed.evaluate()
                assert tuple(ElementType.from_dtype(x.dtype).label for x in results) == inferred
