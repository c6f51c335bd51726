"""Native kernels that move elements: Reshape of transposed data, Roll, SpaceToBatch and the like."""

from itertools import permutations

import numpy as np
import pytest
from harness.kernels import draw_numbers, program_of, same_as_the_reference

import ir_runtime as ov
from ir_runtime import opset7 as op
from ir_runtime.backends import available

pytestmark = pytest.mark.skipif("native" not in available(), reason="native is not installed")


def as_the_reference(model, shape):
    """Compare both backends on normally distributed values; return the compiled model."""
    return same_as_the_reference(model, draw_numbers(shape, scale=1))


def replayed(compiled):
    """Return the first step of each instruction of the recorded run."""
    return list(program_of(compiled).starts)


def last_of(type, compiled):
    """Return the index of the last step of a type."""
    return max(i for i, step in enumerate(compiled._plan.steps) if step.layer.type == type)


def rolled(shape, shifts, axes):
    x = op.parameter(list(shape), np.float32)
    moved = op.roll(op.relu(x), op.constant(np.array(shifts)), op.constant(np.array(axes)))
    return ov.Model([op.softmax(moved, 1)], [x])


@pytest.mark.parametrize(
    ("shape", "shifts", "axes"),
    [
        ((1, 28, 28, 96), [-3, -3], [1, 2]),
        ((1, 28, 28, 96), [3, 60], [1, -2]),
        ((2, 7, 300), 5, [2]),
        ((2, 7, 300), 5, 2),
        ((2, 7, 300), [5, -7], [2, 2]),
        ((2, 7, 300), [-2, 9], [1, -1]),
        ((4, 50, 40), [1, 2, 3], [0, 1, 2]),
        ((3, 50, 64), [0, 50], [0, 1]),
        ((3, 1000, 2), [1, 1], [0, 1]),
    ],
)
def test_roll(shape, shifts, axes):
    as_the_reference(rolled(shape, shifts, axes), shape)


def test_roll_is_part_of_a_replay():
    compiled = as_the_reference(rolled((1, 28, 28, 96), [-3, -3], [1, 2]), (1, 28, 28, 96))
    assert last_of("Roll", compiled) not in replayed(compiled)


@pytest.mark.parametrize("target", [[24, 700], [8, 3, 700], [-1], [2, 12, 700], [12, 5, 280], [0, 0, -1]])
def test_reshapes_of_transposed_data(target):
    shape = 4, 6, 20, 35
    for order in permutations(range(4)):
        x = op.parameter(list(shape), np.float32)
        data = op.transpose(op.relu(x), op.constant(list(order)))
        as_the_reference(ov.Model([op.softmax(op.reshape(data, op.constant(target), True), 0)], [x]), shape)


def test_window_partitioning_is_part_of_a_replay():
    x = op.parameter([1, 28, 28, 96], np.float32)
    windows = op.reshape(op.softmax(x, 3), op.constant([1, 4, 7, 4, 7, 96]), False)
    rows = op.reshape(
        op.transpose(windows, op.constant([0, 1, 3, 2, 4, 5])), op.constant([16, 49, 96]), False
    )
    compiled = as_the_reference(ov.Model([op.softmax(rows, 2)], [x]), (1, 28, 28, 96))
    assert last_of("Reshape", compiled) not in replayed(compiled)


@pytest.mark.parametrize("mode", ["blocks_first", "depth_first"])
@pytest.mark.parametrize(
    ("shape", "block"),
    [
        ((1, 9, 160, 160), 3),
        ((2, 8, 30, 20, 10), 2),
        ((2, 64, 31, 17), 4),
        ((1, 12, 5000), 2),
        ((1, 8, 40, 20), 1),
    ],
)
def test_depth_to_space(shape, block, mode):
    x = op.parameter(list(shape), np.float32)
    as_the_reference(ov.Model([op.depth_to_space(op.softmax(x, 1), mode, block)], [x]), shape)


@pytest.mark.parametrize("mode", ["blocks_first", "depth_first"])
@pytest.mark.parametrize(
    ("shape", "block"), [((2, 3, 160, 96), 2), ((1, 3, 30, 21, 12), 3), ((3, 5, 400), 4), ((1, 2, 2, 2), 1)]
)
def test_space_to_depth(shape, block, mode):
    x = op.parameter(list(shape), np.float32)
    as_the_reference(ov.Model([op.space_to_depth(op.softmax(x, 1), mode, block)], [x]), shape)


@pytest.mark.parametrize(
    ("shape", "block", "before", "after"),
    [
        ((2, 8, 30, 42), [1, 1, 2, 3], [0, 0, 0, 0], [0, 0, 0, 0]),
        ((1, 8, 29, 40), [1, 1, 2, 3], [0, 0, 1, 0], [0, 0, 0, 2]),
        ((2, 7, 5, 6), [1, 2, 2, 3], [0, 1, 1, 0], [0, 0, 0, 0]),
        ((2, 12), [1, 4], [0, 0], [0, 0]),
        ((2, 4, 6, 8, 3), [1, 2, 3, 2, 1], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]),
    ],
)
def test_space_to_batch_and_back(shape, block, before, after):
    x = op.parameter(list(shape), np.float32)
    settings = [op.constant(np.array(lengths)) for lengths in (block, before, after)]
    apart = op.space_to_batch(op.relu(x), *settings)
    as_the_reference(ov.Model([op.negative(apart)], [x]), shape)
    as_the_reference(ov.Model([op.negative(op.batch_to_space(op.negative(apart), *settings))], [x]), shape)


@pytest.mark.parametrize(("shape", "stride"), [((2, 8, 26, 26), 2), ((1, 6, 26, 26), 2), ((2, 18, 9, 12), 3)])
def test_reorg_yolo(shape, stride):
    x = op.parameter(list(shape), np.float32)
    as_the_reference(ov.Model([op.reorg_yolo(op.relu(x), [stride])], [x]), shape)


def test_space_to_depth_is_part_of_a_replay():
    x = op.parameter([1, 64, 28, 28], np.float32)
    moved = op.space_to_depth(op.relu(x), "blocks_first", 2)
    compiled = as_the_reference(ov.Model([op.softmax(moved, 3)], [x]), (1, 64, 28, 28))
    assert last_of("SpaceToDepth", compiled) not in replayed(compiled)


def divided(shape, inner, order, target):
    """A model that splits, permutes and joins axes of channels-last maps before a convolution."""
    x = op.parameter(list(shape), np.float32)
    same = op.constant(np.eye(shape[1], dtype=np.float32)[..., None, None])
    stored = op.convolution(x, same, [1, 1], [0, 0], [0, 0], [1, 1])
    parts = op.transpose(op.reshape(stored, op.constant(inner), False), op.constant(order))
    return ov.Model([op.relu(op.reshape(parts, op.constant(target), False))], [x])


PIXELS = [2, 16, 2, 3, 5, 7], [0, 1, 4, 2, 5, 3], [2, 16, 10, 21]
BLOCKS = [2, 96, 3, 2, 4, 2], [0, 1, 3, 5, 2, 4], [2, 384, 3, 4]
GROUPS = [2, 3, 32, 5, 7], [0, 2, 1, 3, 4], [2, 96, 5, 7]
FEW = [2, 4, 4, 6, 5, 7], [0, 1, 4, 2, 5, 3], [2, 4, 20, 42]


@pytest.mark.parametrize(
    ("shape", "parts", "last"),
    [
        ((2, 96, 5, 7), PIXELS, True),
        ((2, 96, 6, 8), BLOCKS, True),
        ((2, 96, 5, 7), GROUPS, True),
        ((2, 96, 5, 7), FEW, False),
        ((2, 96, 5, 7), ([2, 96, 35, 1], [0, 2, 1, 3], [2, 35, 96, 1]), False),
    ],
    ids=["pixel shuffle", "pixel unshuffle", "channel shuffle", "few channels", "as stored"],
)
def test_channels_last_maps_stay_channels_last(shape, parts, last):
    inner, order, target = parts
    compiled = as_the_reference(divided(shape, inner, order, target), shape)
    index = last_of("Reshape", compiled)
    kernel = compiled._plan.steps[index].kernel
    x = np.zeros((shape[0], *shape[2:], shape[1]), np.float32).transpose(0, 3, 1, 2)
    found = kernel(x.reshape(inner).transpose(order), np.array(target))
    assert found.transpose(0, 2, 3, 1).flags.c_contiguous == last
