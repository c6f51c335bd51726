"""Padding and broadcasting of the numpy backend against the reference, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from harness.layers import layer, values

from ir_runtime.backends.numpy import backend
from ir_runtime.errors import InferenceError
from ir_runtime.ir.tensor import Array

PADS = [
    ((0, 0, 1, 2), (0, 0, 2, 1)),
    ((0, 0, 3, 0), (0, 0, 0, 3)),
    ((1, 2, 0, 0), (1, 0, 0, 0)),
    ((0, 0, 0, 0), (0, 0, 0, 4)),
]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(list(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("pads", PADS, ids=str)
@pytest.mark.parametrize("open_lengths", [False, True])
def test_pads(mode: str, pads: tuple[tuple[int, ...], ...], open_lengths: bool) -> None:
    op, x, (before, after) = layer("Pad-12", pad_mode=mode), numbers(2, 3, 4, 5), map(np.array, pads)
    more = [np.array(7, np.float32)] if mode == "constant" else []
    kernel = backend.kernel(
        op, values(["f32 ?,?,?,?" if open_lengths else "f32 2,3,4,5", before, after, *more])
    )
    assert kernel is not None
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for data in (x, last, x[:, :, ::-1]):
        for fill in ([], more):
            np.testing.assert_array_equal(
                kernel(data, before, after, *fill), op.evaluate(data, before, after, *fill)
            )
    assert kernel(last, before, after).transpose(0, 2, 3, 1).flags.c_contiguous


@pytest.mark.parametrize(("mode", "least"), [("edge", 1), ("reflect", 4), ("symmetric", 3)])
def test_a_mirror_that_is_too_short_is_refused(mode: str, least: int) -> None:
    op, before, after = layer("Pad-12", pad_mode=mode), np.array([3]), np.array([2])
    kernel = backend.kernel(op, values(["f32 ?", before, after]))
    assert kernel is not None
    np.testing.assert_array_equal(
        kernel(numbers(least), before, after), op.evaluate(numbers(least), before, after)
    )
    with pytest.raises(InferenceError):
        kernel(numbers(least - 1), before, after)


@pytest.mark.parametrize("mode", ["numpy", "bidirectional"])
@pytest.mark.parametrize("shape", [(3, 1), (1,), (3, 4), ()], ids=str)
def test_broadcasts_are_views(mode: str, shape: tuple[int, ...]) -> None:
    op, target, x = layer("Broadcast-3", mode=mode), np.array([2, 3, 4]), numbers(*shape)
    kernel = backend.kernel(op, values([f"f32 {','.join(map(str, shape))}", target]))
    assert kernel is not None
    found = kernel(x, target)
    assert isinstance(found, np.ndarray)
    assert np.shares_memory(found, x)
    np.testing.assert_array_equal(found, op.evaluate(x, target))
    assert not found.flags.writeable
    strided = np.repeat(x, 2, 0)[::2] if x.ndim else x
    np.testing.assert_array_equal(np.asarray(kernel(strided, target)), op.evaluate(x, target))
