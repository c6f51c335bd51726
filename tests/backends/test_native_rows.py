"""Rows at indices in the native backend (embedding bags, scattered sums) against the reference.

The file is rerun in a subprocess for each vector instruction set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness.layers import layer, values
from harness.other_vectors import same_with_other_vectors

from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.threading import parallel
from ir_runtime.errors import InferenceError
from ir_runtime.ir.tensor import Array
from ir_runtime.ops import Op

RANDOM = np.random.default_rng(0)


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"], autouse=True, scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        with at_most(request.param):
            yield


def numbers(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def described(x: Array) -> str:
    return f"{'f32' if x.dtype == np.float32 else x.dtype.name.replace('int', 'i')} {','.join(map(str, x.shape))}"


def fast(op: Op, *arrays: Array, constant: tuple[int, ...] = ()) -> Any:
    """Return the result of the kernel."""
    known = [x if i in constant else described(x) for i, x in enumerate(arrays)]
    kernel = backend.kernel(op, values(known))
    assert kernel is not None
    for x in arrays:
        x.setflags(write=False)
    with backend.around():
        return kernel(*arrays)


def both(op: Op, *arrays: Array, constant: tuple[int, ...] = ()) -> tuple[Any, Any]:
    """Return the results of the kernel and of the reference."""
    return fast(op, *arrays, constant=constant), op.evaluate(*arrays)  # type: ignore[attr-defined]


@pytest.mark.parametrize("shape", [(7, 1), (7, 16), (9, 3, 11), (5,), (3, 0)], ids=str)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_embedding_bags_with_offsets(shape: tuple[int, ...], kind: Any, reduction: str) -> None:
    op, table = layer("EmbeddingBagOffsets-15", reduction=reduction), numbers(*shape)
    indices = RANDOM.integers(0, len(table), 12).astype(kind)
    for offsets in ([0, 3, 3, 9], [2, 2, 12], [0], []):
        for default in (-1, 1):
            arrays = [table, indices, np.array(offsets, kind), np.array(default, kind)]
            if reduction == "sum":
                arrays.append(numbers(12))
            for count in range(3, len(arrays) + 1):
                np.testing.assert_allclose(*both(op, *arrays[:count]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("shape", [(4, 3), (2, 0), (0, 3)], ids=str)
def test_packed_embedding_bags(reduction: str, shape: tuple[int, int]) -> None:
    op, table = layer("EmbeddingBagPacked-15", reduction=reduction), numbers(6, 19)
    indices, weights = RANDOM.integers(0, 6, shape), [numbers(*shape)] if reduction == "sum" else []
    np.testing.assert_allclose(*both(op, table, indices), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(*both(op, table, indices, *weights), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("indices", "offsets"),
    [
        ([0, 6], [0]),
        ([0, -1], [0]),
        ([1 << 40, 0], [0]),
        ([9, 0, 1], [1]),
        ([9], []),
        ([0, 1], [0, 3]),
        ([0, 1], [2, 1]),
        ([0, 1], [-1]),
    ],
)
def test_bag_indices_out_of_range_are_refused(indices: list[int], offsets: list[int]) -> None:
    op, table = layer("EmbeddingBagOffsetsSum-3"), numbers(6, 19)
    with pytest.raises(InferenceError):
        fast(op, table, np.array(indices), np.array(offsets, np.int64))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(6, 5, 7), (3, 70, 1), (1, 4, 130), (2, 0, 3)], ids=str)
@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_scatter_elements(reduction: str, shape: tuple[int, ...], axis: int, kind: Any) -> None:
    """Distinct and broadcast indices; negative ones count from the end."""
    op, data = layer("ScatterElementsUpdate-12", reduction=reduction), numbers(*shape)
    longer = [11 if i == axis % 3 else n for i, n in enumerate(shape)]
    length = shape[axis]
    if not length:
        return
    updates = numbers(*longer)
    column = RANDOM.integers(-length, length, longer[: axis % 3 + 1])
    repeated = np.broadcast_to(column.reshape(*column.shape, *[1] * (3 - column.ndim)).astype(kind), longer)
    for indices in (RANDOM.integers(-length, length, longer).astype(kind), repeated):
        found, wanted = both(op, data, indices, updates, np.array(axis), constant=(3,))
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("index", [4, -5, 1 << 40])
def test_scatter_indices_out_of_range_are_refused(index: int) -> None:
    op = layer("ScatterElementsUpdate-12", reduction="sum")
    for indices in (np.full((3, 5), index), np.broadcast_to(np.array([[0], [index], [1]]), (3, 5))):
        with pytest.raises(InferenceError):
            fast(op, numbers(4, 5), indices, numbers(3, 5), np.array(0), constant=(3,))


@pytest.mark.parametrize("wanted", ["i32", "f32", "boolean"])
def test_converted_broadcast_indices_stay_broadcast(wanted: str) -> None:
    """Each index is converted once, and consumers still see a broadcast array."""
    indices = np.broadcast_to(np.arange(-3, 4).reshape(7, 1), (2, 7, 300))
    found, expected = both(layer("Convert-1", destination_type=wanted), indices)
    assert found.strides[0] == found.strides[2] == 0
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
