"""Slices of tensors at constant positions, read or updated, and products of two computed inputs; also in replays."""

import numpy as np
import pytest
from harness.kernels import draw_numbers, program_of, same_as_the_reference
from harness.other_vectors import same_with_other_vectors

import ir_runtime as ov
from ir_runtime import opset7, opset15
from ir_runtime.backends import available
from ir_runtime.backends.native.kernels._indices import index_grid

pytestmark = pytest.mark.skipif("native" not in available(), reason="native is not installed")

SHORT = np.arange(7)
WINDOWS = 20 * np.arange(5)[:, None] + np.arange(50)


def as_the_reference(model, *shapes, dtype=np.float32, exact=True, scale=50):
    """Compare both backends on normally distributed values; return the compiled model."""
    return same_as_the_reference(model, *[draw_numbers(shape, dtype, scale) for shape in shapes], exact=exact)


def replays(compiled):
    """Return the number of instructions in the recorded run."""
    return len(program_of(compiled).starts)


@pytest.mark.parametrize(
    ("indices", "lengths", "steps"),
    [
        (SHORT + 3, (7,), (1,)),
        (9 - SHORT, (7,), (-1,)),
        (WINDOWS, (5, 50), (20, 1)),
        (
            10 * np.arange(4)[:, None, None] + 100 * np.arange(3)[:, None] + 2 * np.arange(5),
            (4, 3, 5),
            (10, 100, 2),
        ),
        (np.array(4), (), ()),
        (np.zeros((2, 3), int), (6,), (0,)),
    ],
)
def test_a_grid(indices, lengths, steps):
    grid = index_grid(indices, 3)
    assert (grid.lengths, grid.steps) == (lengths, steps)
    assert grid.bounds == (indices.min(), indices.max())
    x = np.random.default_rng(0).standard_normal((3, 400, 2))
    np.testing.assert_array_equal(grid.view(x, 1).reshape(3, *indices.shape, 2), x.take(indices, 1))


@pytest.mark.parametrize("indices", [[], [0, 1, 3], [0, 1, 2, 4, 5, 7], [0, 1, 3, 4, 7, 8]])
def test_no_grid(indices):
    assert index_grid(np.array(indices, int), 3) is None


def test_a_grid_of_too_many_axes():
    assert index_grid(WINDOWS, 1) is None


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.float16])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(
    "indices", [SHORT, SHORT[::-1], 3 * SHORT, WINDOWS, WINDOWS.ravel(), [2], [[0, 1], [5, 6]]]
)
def test_chosen(indices, axis, dtype):
    shape = [3, 5, 4]
    shape[axis] = 140
    x = opset7.parameter(shape, dtype)
    chosen = opset7.gather(x, np.array(indices), np.array(axis))
    as_the_reference(ov.Model([chosen], [x]), shape, dtype=dtype)


def test_a_replay_does_not_end_at_windows():
    """Programs restride tensors by gathering windows with one axis of indices."""
    x = opset7.parameter([140, 32], np.float32)
    chosen = opset7.gather(opset7.sin(x), WINDOWS.ravel(), np.array(0))
    model = ov.Model([opset7.sin(opset7.reshape(chosen, np.array([5, -1]), False))], [x])
    assert replays(as_the_reference(model, (140, 32), exact=False)) == 1


def test_chosen_beyond_the_end():
    """Out-of-range indices into data of dynamic length give zeros, as the operation defines."""
    x = opset7.parameter(ov.PartialShape([-1, 3]), np.float32)
    model = ov.Model([opset7.gather(x, SHORT, np.array(0))], [x])
    for length in (7, 5):
        as_the_reference(model, (length, 3))


def tuples(shape, region):
    """Return the index tuples of a region, as exporters write an assignment to it."""
    return np.stack(
        np.meshgrid(*[np.arange(n)[part] for n, part in zip(shape, region, strict=True)], indexing="ij"), -1
    )


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.float16])
@pytest.mark.parametrize("version", [4, 15])
@pytest.mark.parametrize(
    ("shape", "named", "region"),
    [
        ((40, 30), 2, np.s_[3:20, 4:]),
        ((40, 30), 1, np.s_[1:40:2]),
        ((4, 30, 40), 3, np.s_[1:3, ::-2, 4:37]),
        ((4, 30, 40), 2, np.s_[:, 5]),
        ((2, 6, 40, 40), 4, np.s_[1:, 1:5, 3:, :]),
        ((50,), 1, np.s_[7:8]),
    ],
)
def test_replaced(shape, named, region, version, dtype):
    region = region if isinstance(region, tuple) else (region,)
    region = tuple(slice(part, part + 1) if isinstance(part, int) else part for part in region)
    places = tuples(shape[:named], region)
    x = opset15.parameter(list(shape), dtype)
    updates = (*places.shape[:-1], *shape[named:])
    y = opset15.parameter(list(updates), dtype)
    if version == 15:
        made = opset15.scatter_nd_update(x, places, y)
    else:
        made = opset7.scatter_nd_update(x, places - np.array(shape[:named]), y)  # from the end
    as_the_reference(ov.Model([made], [x, y]), shape, updates, dtype=dtype)


@pytest.mark.parametrize("places", [[[0], [1], [0], [1]], [[0], [2], [1]]])
def test_places_that_are_no_part(places):
    """The last of equal positions wins."""
    x, y = opset15.parameter([5, 40], np.float32), opset15.parameter([len(places), 40], np.float32)
    made = opset15.scatter_nd_update(x, np.array(places), y)
    as_the_reference(ov.Model([made], [x, y]), (5, 40), (len(places), 40))


def test_a_replay_does_not_end_at_what_is_replaced():
    x, y = opset15.parameter([40, 64], np.float32), opset15.parameter([8, 64], np.float32)
    made = opset15.scatter_nd_update(opset15.sin(x), np.arange(3, 11)[:, None], opset15.cos(y))
    model = ov.Model([opset15.sin(made)], [x, y])
    assert replays(as_the_reference(model, (40, 64), (8, 64), exact=False)) == 1


@pytest.mark.parametrize(
    ("equation", "shape", "other"),
    [
        ("bcxd,bcyd->bcxy", (2, 3, 64, 32), (2, 3, 32, 32)),
        ("bcwd,bcdh->bcwh", (2, 3, 64, 48), (2, 3, 48, 32)),
        ("bxnd,bynd->bnxy", (2, 30, 3, 32), (2, 20, 3, 32)),
        ("bnxy,bynd->bxnd", (2, 3, 30, 20), (2, 20, 3, 32)),
        ("ij,jk->ki", (30, 40), (40, 50)),
        ("abcd,dcef->abef", (2, 30, 4, 8), (8, 4, 5, 20)),
        ("bi,bj->bij", (6, 30), (6, 40)),
        ("bij,bj->bi", (6, 30, 40), (6, 40)),
        ("...ij,...jk->...ik", (2, 3, 30, 40), (3, 40, 50)),
        ("ij,jk->ik", (30, 1), (40, 50)),
        ("bij,bjk->bik", (1, 30, 40), (5, 40, 6)),
    ],
)
def test_products(equation, shape, other):
    x, y = opset7.parameter(list(shape), np.float32), opset7.parameter(list(other), np.float32)
    as_the_reference(ov.Model([opset7.einsum([x, y], equation)], [x, y]), shape, other, exact=False)


def test_a_replay_does_not_end_at_a_product():
    x, y = opset7.parameter([2, 40, 3, 32], np.float32), opset7.parameter([2, 30, 3, 32], np.float32)
    scores = opset7.einsum([opset7.sin(x), opset7.cos(y)], "bxnd,bynd->bnxy")
    model = ov.Model([opset7.sin(scores)], [x, y])
    assert replays(as_the_reference(model, (2, 40, 3, 32), (2, 30, 3, 32), exact=False)) == 1


@pytest.mark.parametrize("shape", [(40, 30), (3, 4, 5), (2, 30, 40, 3)])
def test_a_replay_does_not_end_at_a_reshape_that_copies(shape):
    """This includes small tensors and few axes."""
    x = opset7.parameter(list(shape), np.float32)
    turned = opset7.transpose(opset7.sin(x), np.arange(len(shape))[::-1].copy())
    model = ov.Model([opset7.sin(opset7.reshape(turned, np.array([-1]), False))], [x])
    assert replays(as_the_reference(model, shape, exact=False)) == 1


def test_a_replay_does_not_end_at_many_joined_numbers():
    """Some inputs are broadcast, such as a query joined with each element of a history."""
    x, y = opset7.parameter([32, 1, 16], np.float32), opset7.parameter([32, 70, 16], np.float32)
    query = opset7.broadcast(opset7.sin(x), np.array([32, 70, 16]))
    joined = opset7.concat([query, opset7.sin(y), opset7.cos(y)], 2)
    model = ov.Model([opset7.sin(joined)], [x, y])
    assert replays(as_the_reference(model, (32, 1, 16), (32, 70, 16), exact=False)) == 1


@pytest.mark.parametrize("lengths", [[1, 1], [1, 0]])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_sequences_of_one_step(kind, lengths):
    """Decoders call a model for each step; a sequence of length 0 leaves the states unchanged."""
    rng, gates = np.random.default_rng(0), 3 if kind == "gru" else 4
    x = opset7.parameter([2, 1, 24], np.float32)
    states = [opset7.parameter([2, 1, 40], np.float32) for _ in range(gates - 2)]
    w, r, b = (
        rng.standard_normal((1, gates * 40, *more)).astype(np.float32) * np.float32(0.2)
        for more in ((24,), (40,), ())
    )
    make = opset7.gru_sequence if kind == "gru" else opset7.lstm_sequence
    node = make(opset7.sin(x), *states, np.array(lengths), w, r, b, 40, "FORWARD")
    outputs = [opset7.sin(node.output(0)), *[opset7.cos(node.output(1 + at)) for at in range(len(states))]]
    model = ov.Model(outputs, [x, *states])
    compiled = as_the_reference(model, (2, 1, 24), *[(2, 1, 40)] * len(states), exact=False, scale=1)
    assert replays(compiled) == 1 or not all(lengths)


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
