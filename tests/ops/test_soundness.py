"""Inference is monotonic: results from less knowledge contain those from more.

Hypothesis draws the seed of random choices rather than each choice, which would take most of the time.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from harness.sample import Sample, all_samples, is_sampled
from harness.session import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_runtime.ir.dimension import Dimension, Interval
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Bounds, TensorType, Value, objects
from ir_runtime.ops import registry

BY_OP: dict[str, list[Sample]] = {}
for _sample in all_samples():
    BY_OP.setdefault(_sample.op, []).append(_sample)


def relax(random: Random, value: Value) -> Value:
    """Forget part of a value: dims, the rank, elements, or all contents."""
    around = {
        n: (Dimension(n), Dimension(), Dimension.between(max(n - 1, 0), n + 2)) for n in value.shape.static
    }
    dims = [random.choice(around[n]) for n in value.shape.static]
    contents = value.data
    real = contents is not None and contents.dtype == np.float32 and np.isfinite(contents).all()
    if contents is not None and real and random.getrandbits(1):
        return Value(TensorType(value.element, value.shape), bounds=Bounds(contents - 1, contents + 2))
    if contents is None or random.getrandbits(1):
        shape = PartialShape(dims if random.randrange(6) else None)
        return Value(TensorType(value.element, shape))
    if contents.dtype.kind in "iu" and contents.size <= 16 and random.getrandbits(1):
        numbers = [random.choice((int(n), Interval(int(n) - 1, int(n) + 2))) for n in contents.flat]
        return Value.bounded(value.element, objects(map(dimension, numbers), contents.shape))
    return value


def dimension(number: int | Interval) -> int | Interval:
    """Return non-negative intervals as dimensions, as shape arithmetic does."""
    if isinstance(number, Interval) and number.min is not None and number.min >= 0:
        return Dimension.of(number)
    return number


@pytest.mark.parametrize("name", sorted(BY_OP))
@settings(max_examples=examples(40, thorough=120))
@given(random=st.randoms(use_true_random=True))
def test_inference_contains_the_truth(name: str, random: Random) -> None:
    sample = random.choice(BY_OP[name])
    op, values = sample.layer(), sample.values()
    loose = [relax(random, v) for v in values]
    found = op.infer_values(*loose)
    # How many outputs a variadic port has follows from an input in some operations, and is unknown with it.
    assert found or any(port.variadic for port in op.outputs)
    for inferred, array in zip(found, sample.evaluate(), strict=bool(found)):
        assert inferred.shape.contains(array.shape), f"{inferred.shape} excludes {array.shape}"
        if inferred.bounds is not None:
            within = (inferred.bounds.lower <= array) & (array <= inferred.bounds.upper)
            assert (within | np.isnan(array)).all()
        for bound, number in zip(inferred.numbers() or (), array.flat, strict=False):
            if isinstance(bound, Interval):
                assert bound.min is None or bound.min <= number
                assert bound.max is None or number <= bound.max
            else:
                assert bound == number


def test_every_operation_has_samples() -> None:
    names = {cls.versioned_name() for cls in registry if is_sampled(cls)}
    few = {name: len(BY_OP.get(name, [])) for name in names if len(BY_OP.get(name, [])) < 8}
    assert not few, "each operation version needs at least 8 samples under tests/samples"
