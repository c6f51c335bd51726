"""Compiled Gather kernels equal the reference, in recorded and replayed runs as well."""

import numpy as np
import pytest
from harness.kernels import begun, draw_numbers, same_as_the_reference
from harness.other_vectors import same_with_other_vectors

import ir_runtime as ov
from ir_runtime import opset7 as op
from ir_runtime import opset8
from ir_runtime.backends import available

pytestmark = pytest.mark.skipif("native" not in available(), reason="native is not installed")


def indices(shape, length, dtype=np.int32):
    return lambda rng: rng.integers(-length, length, shape).astype(dtype)


def chosen(shape, given, asked, axis, dtype=np.float32, kind=np.int32):
    """A model that broadcasts indices and gathers elements."""
    x, index = op.parameter(list(shape), dtype), op.parameter(list(given), kind)
    places = index if given == asked else op.broadcast(index, op.constant(np.array(asked)))
    return ov.Model([op.gather_elements(x, places, axis)], [x, index])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64, np.bool_])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("shape", "given", "asked", "axis"),
    [
        ((6, 64, 64), (6, 64, 64), (6, 64, 64), -1),
        ((6, 64, 64), (1, 64, 50), (6, 64, 50), 2),
        ((3, 50, 33), (3, 20, 33), (3, 20, 33), 1),
        ((3, 50, 33), (3, 20, 1), (3, 20, 33), 1),
        ((2, 50, 400), (2, 20, 1), (2, 20, 400), 1),
        ((500,), (7000,), (7000,), 0),
        ((3, 1), (7000, 1), (7000, 1), 0),
        ((5, 4, 3, 2), (5, 1, 3, 1), (5, 4, 3, 2), 0),
        ((5, 4, 3, 2), (1, 9, 3, 1), (5, 9, 3, 2), 1),
    ],
)
def test_gather_elements(shape, given, asked, axis, dtype, kind):
    model = chosen(shape, given, asked, axis, dtype, kind)
    same_as_the_reference(model, draw_numbers(shape, dtype), indices(given, shape[axis], kind))


def test_gather_elements_is_part_of_a_replay():
    x, index = op.parameter([6, 64, 64], np.float32), op.parameter([6, 64, 64], np.int32)
    model = ov.Model([op.subtract(op.gather_elements(op.abs(x), index, 2), x)], [x, index])
    compiled = same_as_the_reference(model, draw_numbers((6, 64, 64)), indices((6, 64, 64), 64))
    assert "GatherElements" not in begun(compiled)


@pytest.mark.parametrize("wrong", [-9, 8])
def test_element_indices_out_of_range_are_refused(wrong):
    compiled = ov.compile_model(chosen((4, 8, 5), (4, 3, 5), (4, 3, 5), 1), backend="native")
    x, places = np.zeros((4, 8, 5), np.float32), np.zeros((4, 3, 5), np.int32)
    for _ in range(4):
        compiled([x, places])
    places[3, 2, 4] = wrong
    with pytest.raises(ov.IRError, match=f"indices holds {wrong}"):
        compiled([x, places])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64, np.bool_])
@pytest.mark.parametrize(
    ("shape", "asked", "axis"),
    [((64, 1), (1, 1, 64), 0), ((5, 30, 7), (4, 3), 1), ((5, 30, 7), (4,), -1), ((3, 200, 65), (50,), 1)],
)
def test_gather_in_a_replay(shape, asked, axis, dtype):
    x, places = op.parameter(list(shape), dtype), op.parameter(list(asked), np.int32)
    fetched = op.gather(x, places, op.constant(axis))
    same_as_the_reference(
        ov.Model([fetched], [x, places]), draw_numbers(shape, dtype), indices(asked, shape[axis])
    )


def test_gather_from_a_mask_is_part_of_a_replay():
    """Transformers gather booleans of masks at constant indices."""
    x, mask = op.parameter([4, 64, 64], np.float32), op.parameter([64], np.int64)
    places = op.constant(np.arange(64, dtype=np.int32).reshape(1, 64))
    kept = op.gather(op.convert(mask, np.bool_), places, op.constant(0))
    model = ov.Model([op.subtract(op.select(kept, op.abs(x), x), x)], [x, mask])
    compiled = same_as_the_reference(model, draw_numbers((4, 64, 64)), indices((64,), 2, np.int64))
    assert "Gather" not in begun(compiled)


def gathered_in_batch(shape, asked, batch, dtype, kind):
    """A model with separate indices for each batch entry."""
    x, places = op.parameter(list(shape), dtype), op.parameter(list(asked), kind)
    axis = op.constant(batch if batch > 0 else len(asked) + batch)
    return ov.Model([opset8.gather(x, places, axis, batch)], [x, places])


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("shape", "asked", "batch"),
    [
        ((16, 50, 64), (16, 70), 1),
        ((3, 5, 40, 7), (3, 5, 2, 9), 2),
        ((3, 5, 40, 7), (3, 5, 9), -1),
        ((4, 3000), (4, 5000), 1),
        ((3, 5), (3,), 1),
    ],
)
def test_batched_gather(shape, asked, batch, dtype, kind):
    axis = batch if batch > 0 else len(asked) + batch
    model = gathered_in_batch(shape, asked, batch, dtype, kind)
    same_as_the_reference(model, draw_numbers(shape, dtype), indices(asked, shape[axis], kind))


def test_batched_indices_out_of_range_give_zeros():
    compiled = ov.compile_model(
        gathered_in_batch((2, 9, 3), (2, 4), 1, np.float32, np.int64), backend="native"
    )
    x, places = np.ones((2, 9, 3), np.float32), np.zeros((2, 4), np.int64)
    for wrong in (0, 0, 0, 9, -10, 0):
        places[1, 2] = wrong
        expected = np.ones((2, 4, 3), np.float32)
        expected[1, 2] = wrong == 0
        np.testing.assert_array_equal(compiled([x, places])[0], expected)


def test_batched_gather_is_part_of_a_replay():
    x, places = op.parameter([4, 64, 64], np.float32), op.parameter([4, 64], np.int64)
    fetched = opset8.gather(op.abs(x), places, op.constant(1), 1)
    model = ov.Model([op.subtract(fetched, x)], [x, places])
    compiled = same_as_the_reference(model, draw_numbers((4, 64, 64)), indices((4, 64), 64, np.int64))
    assert "Gather" not in begun(compiled)


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
