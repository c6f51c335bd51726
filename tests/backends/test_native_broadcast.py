"""Element-wise layers of the native backend on operands that broadcast along any axes, in any layout, against the reference."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from harness.layers import layer
from harness.other_vectors import AGAIN, same_with_other_vectors
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ir_runtime.backends import KernelTemplate
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.kernels import elementwise
from ir_runtime.backends.native.threading import parallel
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value

quick = settings(max_examples=30 if AGAIN in os.environ else 150, deadline=None)
# Of axes: shorter than a vector, of one, and of some; too long to be expanded.
LENGTHS = (1, 2, 3, 9, 16, 17, 40, 70)


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"], autouse=True, scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        patch.setattr(elementwise, "MIN_SIZE", 0)
        with at_most(request.param):
            yield


def stored(shape: Sequence[int], layout: int) -> Array:
    """Return an array that is contiguous, has reversed axes in memory, or is a slice of a larger array."""
    rng = np.random.default_rng([layout, *shape])
    if layout == 1:
        return np.ascontiguousarray(rng.standard_normal(shape).astype(np.float32).T).T
    if layout == 2:
        larger = rng.standard_normal([n + 1 for n in shape]).astype(np.float32)
        return larger[tuple(slice(1, None) for _ in shape)]
    return rng.standard_normal(shape).astype(np.float32)


def unknown(x: Array) -> Value:
    return Value.unknown(ElementType.f32, PartialShape(x.shape))


axis = st.tuples(st.sampled_from(LENGTHS), *[st.booleans()] * 3)


@quick
@given(
    st.lists(axis, min_size=1, max_size=5), st.sampled_from(["Multiply-1", "Subtract-1", "Maximum-1"]),
    st.tuples(*[st.integers(0, 2)] * 3), st.booleans(), st.booleans(),
)  # fmt: skip
def test_operands_broadcast_along_any_axes(
    axes: Sequence[tuple[Any, ...]], name: str, layouts: tuple[int, int, int], swapped: bool, constant: bool
) -> None:
    """Two operands may both broadcast; a third one is added."""
    shapes = [[n if kept else 1 for n, *all_kept in axes for kept in [all_kept[index]]] for index in range(3)]
    whole = np.broadcast_shapes(*shapes[:2])
    assume(np.prod(whole) <= 1 << 18)
    shapes[2] = [n if m != 1 else 1 for n, m in zip(shapes[2], whole, strict=True)]
    a, b, c = (stored(shape, layout) for shape, layout in zip(shapes, layouts, strict=True))
    op, add = layer(name), layer("Add-1")
    kernel = backend.kernel(op, [unknown(a), Value.constant(b) if constant else unknown(b)])
    wanted = np.asarray(op.evaluate(a, b))
    assert isinstance(kernel, KernelTemplate)
    others = [unknown(c), unknown(wanted)] if swapped else [unknown(wanted), unknown(c)]
    kernel = kernel.fuse(add, others, 1 if swapped else 0)
    assert isinstance(kernel, KernelTemplate)
    found = kernel.prepare()(a, b, c)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, wanted + c)
    assert found.shape == wanted.shape


@pytest.mark.parametrize(
    ("shape", "other"),
    [((1, 40, 1, 16), (1, 40, 32, 1)), ((70, 9), (70, 1)), ((30, 20, 3), (1, 20, 1)), ((5, 1, 100), (7, 1))],
    ids=str,
)
def test_broadcasts_do_not_run_in_numpy(
    shape: tuple[int, ...], other: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short innermost and middle axes of operands that both broadcast have native kernels."""
    a, b, op = stored(shape, 0), stored(other, 0), layer("Multiply-1")
    kernel = backend.kernel(op, [unknown(a), unknown(b)])
    assert isinstance(kernel, elementwise.ElementwiseChain)
    monkeypatch.setattr(elementwise.ElementwiseChain, "_run_in_numpy", None)
    np.testing.assert_array_equal(kernel.prepare()(a, b), a * b)


@pytest.mark.parametrize("place", [0, 1])
def test_slices_are_read_in_place(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example, the slice that Gather takes at one index of a middle axis."""
    whole, row = stored((20, 7, 16), 0), stored((20, 16), 0)
    inputs = [whole[:, 3], row] if place == 0 else [row, whole[:, 3]]
    kernel = backend.kernel(layer("Multiply-1"), [unknown(x) for x in inputs])
    assert kernel is not None
    monkeypatch.setattr(elementwise, "contiguous", None)
    np.testing.assert_array_equal(kernel(*inputs), inputs[0] * inputs[1])


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
