"""Padding and broadcasting on the NumPy backend: views if nothing is copied."""

from __future__ import annotations

import numpy as np
import pytest
from harness.layers import layer, values

from ir_runtime.backends.numpy import backend
from ir_runtime.ir.tensor import Array


def numbers(*shape: int) -> Array:
    return np.random.default_rng(list(shape)).standard_normal(shape).astype(np.float32)


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


def test_a_padding_of_nothing_is_the_tensor_itself() -> None:
    op, x, nothing = layer("Pad-12", pad_mode="constant"), numbers(3, 4), np.array([0, 0])
    kernel = backend.kernel(op, values(["f32 3,4", nothing, nothing]))
    assert kernel is not None
    assert kernel(x, nothing, nothing) is x
    assert backend.kernel(op, values(["f32 3,4", np.array([0, 1]), nothing])) is None
