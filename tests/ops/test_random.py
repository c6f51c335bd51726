"""Random operations: unseeded sequences, and Multinomial against a linear search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.sample import numbers, value

from ir_runtime.ir.dimension import Dimension
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.tensor import Value, objects
from ir_runtime.ops.generation import Multinomial, RandomUniform
from ir_runtime.ops.kernels.random import mersenne_twister, mersenne_twister_of_sequence, philox

LIMITS = np.float32(0), np.float32(1)


def test_philox_as_published() -> None:
    """The authors' known answers for counters and keys of zeros, ones, and digits of pi."""
    zeros = philox(0, 0, 4)
    assert [f"{n:08x}" for n in zeros] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    assert philox(5, 7, 11).tolist() == philox(5, 7, 12).tolist()[:11]


def test_seeds_of_64_bits() -> None:
    """OpenVINO writes large seeds as negative numbers."""
    large, negative = (RandomUniform(output_type=E.f32, global_seed=n, op_seed=n) for n in (2**64 - 2, -2))
    shape = np.array([5])
    np.testing.assert_array_equal(large.evaluate(shape, *LIMITS), negative.evaluate(shape, *LIMITS))


def test_mersenne_twister_as_published() -> None:
    """The C++ standard specifies the 10000th number for the default seed."""
    assert mersenne_twister(5489, 10000)[-1] == 4123659995
    assert mersenne_twister(5489 + 2**32, 3).tolist() == mersenne_twister(5489, 3).tolist()


@pytest.mark.parametrize("alignment", ["tensorflow", "pytorch"])
def test_without_seeds_numbers_are_others_each_time(alignment: str) -> None:
    op = RandomUniform.parse({"output_type": "f32", "alignment": alignment.upper()})
    first, second = (op.evaluate(np.array([50]), *LIMITS) for _ in range(2))
    assert not (first == second).all()
    for numbers_ in (first, second):
        assert ((numbers_ >= 0) & (numbers_ < 1)).all()


def test_random_numbers_are_not_folded() -> None:
    op = RandomUniform(output_type=E.f32, global_seed=1)
    (found,) = op.infer_values(*map(Value.constant, (np.array([3]), *LIMITS)))
    assert str(found.type) == "f32[3]"
    assert found.known() is None


def shape(lengths: Any, low: Any = "f32", high: Any = "f32", output: E = E.f32) -> str:
    if isinstance(lengths, list):
        lengths = Value.bounded(E.i64, objects(lengths, (len(lengths),)))
    (found,) = RandomUniform(output_type=output).infer_types(value(lengths), value(low), value(high))
    return str(found)


def test_shapes() -> None:
    assert shape([3, Dimension(1, 8), Dimension()]) == "f32[3,1..8,?]"
    assert shape("i32 2", "f32 ...", "f32 ?") == "f32[?,?]"
    assert shape("i32 ...") == shape("i32 ?") == "f32[...]"


def one_by_one(op: Multinomial, probs: Any, count: int) -> Any:
    """Apply the algorithm of the specification to one number at a time."""
    one, probs = np.float32(1), probs.astype(np.float32)
    words = mersenne_twister_of_sequence((op.global_seed, op.op_seed), len(probs) * count)
    drawn = (words.astype(np.float32) / np.float32(2**32 - 1)).reshape(len(probs), count)
    found = np.zeros(drawn.shape, int)
    for entry, row in enumerate(np.exp(probs) if op.log_probs else probs):
        sums = [row[0]]
        for chance in row[1:]:
            sums.append(sums[-1] + chance)
        sums = [s / sums[-1] for s in sums]
        for i, number in enumerate(drawn[entry]):
            k = next(k for k, s in enumerate(sums) if number <= s)
            found[entry, i] = k
            if not op.with_replacement:
                chance = sums[k] - sums[k - 1] if k else sums[0]
                sums = [(s - chance if j >= k else s) / (one - chance) for j, s in enumerate(sums)]
    return found


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_classes_as_the_page_says(dtype: str, log: bool, again: bool) -> None:
    op = Multinomial(convert_type=E.i32, with_replacement=again, log_probs=log, global_seed=3, op_seed=4)
    probs = numbers(4, 7, dtype=dtype, low=-2 if log else 0.1, high=2)
    found = op.evaluate(probs, np.array([6]))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, one_by_one(op, probs, 6))
    if not again:
        assert all(len(set(row)) == 6 for row in found.tolist())


def drawn(probs: str, count: Any, again: bool = True) -> str:
    op = Multinomial(convert_type=E.i64, with_replacement=again, log_probs=False)
    (found,) = op.infer_types(value(probs), value(count if isinstance(count, str) else np.array(count)))
    return str(found.shape)


def test_shapes_of_classes() -> None:
    assert drawn("f32 ?,3", 5) == drawn("f32 ...", [5]) == "[?,5]"
    assert drawn("f32 2,3", "i32", again=False) == "[2,?]"
