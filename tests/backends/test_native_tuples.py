"""GatherND and ScatterNDUpdate of the native backend equal the reference, in recorded and replayed runs as well."""

import numpy as np
import pytest
from harness.kernels import begun, draw_numbers, same_as_the_reference
from harness.other_vectors import same_with_other_vectors

import ir_runtime as ov
from ir_runtime import opset8 as op
from ir_runtime import opset15
from ir_runtime.backends import available

pytestmark = pytest.mark.skipif("native" not in available(), reason="native is not installed")

TYPES = [np.float32, np.int8, np.int64]


def tuples(shape, lengths, kind=np.int64):
    """Return index tuples, some of them negative."""
    return lambda rng: np.stack([rng.integers(-n, n, shape) for n in lengths], -1).astype(kind)


def chosen(shape, asked, width, batch=0, dtype=np.float32, kind=np.int64):
    x, index = op.parameter(list(shape), dtype), op.parameter([*asked, width], kind)
    return ov.Model([op.gather_nd(x, index, batch)], [x, index])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("shape", "asked", "width", "batch"),
    [
        ((20, 30), (7000,), 2, 0),
        ((20, 30, 64), (5, 60), 2, 0),
        ((20, 30, 64), (300,), 1, 0),
        ((3, 20, 30, 5), (3, 70), 2, 1),
        ((3, 2, 30), (3, 2, 4000), 1, 2),
        ((2, 3, 4, 5, 6, 2), (50,), 6, 0),
        ((4, 5), (), 2, 0),
    ],
)
def test_what_tuples_name(shape, asked, width, batch, dtype, kind):
    draw = tuples(asked, shape[batch : batch + width], kind)
    same_as_the_reference(chosen(shape, asked, width, batch, dtype, kind), draw_numbers(shape, dtype), draw)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.float64])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("shape", "asked", "width"),
    [
        ((20, 30), (7000,), 2),
        ((200, 30, 64), (5, 60), 2),
        ((20, 30, 65), (300,), 1),
        ((9000,), (300,), 1),
        ((4, 5, 3), (), 2),
    ],
)
def test_updates_are_written_in_order(shape, asked, width, dtype, kind):
    updates = (*asked, *shape[width:])
    x, index = op.parameter(list(shape), dtype), op.parameter([*asked, width], kind)
    value = op.parameter(list(updates), dtype)
    model = ov.Model([op.scatter_nd_update(x, index, value)], [x, index, value])
    same_as_the_reference(
        model, draw_numbers(shape, dtype), tuples(asked, shape[:width], kind), draw_numbers(updates, dtype)
    )


@pytest.mark.parametrize(("shape", "width"), [((20, 30), 2), ((20, 30, 65), 2), ((40, 3), 1)])
def test_updates_are_added_in_order(shape, width):
    updates = (900, *shape[width:])
    x, index = op.parameter(list(shape), np.float32), op.parameter([900, width], np.int64)
    value = op.parameter(list(updates), np.float32)
    model = ov.Model([opset15.scatter_nd_update(x, index, value, "sum")], [x, index, value])
    same_as_the_reference(model, draw_numbers(shape), tuples((900,), shape[:width]), draw_numbers(updates))


def test_a_replay_does_not_end_at_tuples():
    x, index = op.parameter([64, 64, 8], np.float32), op.parameter([700, 2], np.int64)
    found = op.gather_nd(op.abs(x), index, 0)
    model = ov.Model([op.abs(op.scatter_nd_update(op.abs(x), index, op.negative(found)))], [x, index])
    compiled = same_as_the_reference(model, draw_numbers((64, 64, 8)), tuples((700,), (64, 64)))
    assert not {"GatherND", "ScatterNDUpdate"} & set(begun(compiled))


@pytest.mark.parametrize("wrong", [-9, 8])
@pytest.mark.parametrize("scatters", [False, True])
def test_tuples_that_name_nothing_are_refused(wrong, scatters):
    x, index = op.parameter([4, 8, 5], np.float32), op.parameter([3, 2], np.int32)
    value = op.constant(np.zeros((3, 5), np.float32))
    node = op.scatter_nd_update(x, index, value) if scatters else op.gather_nd(x, index, 0)
    compiled = ov.compile_model(ov.Model([node], [x, index]), backend="native")
    data, places = np.zeros((4, 8, 5), np.float32), np.zeros((3, 2), np.int32)
    for _ in range(4):
        compiled([data, places])
    places[2, 1] = wrong
    with pytest.raises(ov.IRError, match=f"indices holds {wrong}"):
        compiled([data, places])


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
