"""Convolutions and matrix products of the native backend with computed weights, against the reference."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from harness.layers import layer
from harness.other_vectors import AGAIN, same_with_other_vectors

from ir_runtime.backends import KernelTemplate
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.threading import parallel
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Op

COUNTS = [2] if AGAIN in os.environ else [1, 2]


@pytest.fixture(params=COUNTS, ids=lambda n: f"threads={n}", autouse=True, scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        with at_most(request.param):
            yield


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def unknown(x: Array) -> Value:
    return Value.unknown(ElementType.f32, PartialShape(x.shape))


def agree(op: Op, *inputs: Array, then: Sequence[Op] = ()) -> None:
    """Compare the kernel and its fused layers with the reference, for weights that change between runs."""
    kernel = backend.kernel(op, [unknown(x) for x in inputs])
    for after in then:
        assert isinstance(kernel, KernelTemplate)
        kernel = kernel.fuse(after, [unknown(np.asarray(op.evaluate(*inputs)))], 0)
    assert isinstance(kernel, KernelTemplate)
    run = kernel.prepare()
    for factor in (1, -3):
        given = [inputs[0], inputs[1] * np.float32(factor)]
        wanted = np.asarray(op.evaluate(*given))
        for after in then:
            wanted = np.asarray(after.evaluate(wanted))
        found = run(*given)
        assert isinstance(found, np.ndarray)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5 * float(np.abs(wanted).max()))


def convolution(name: str, axes: int, **attributes: Sequence[int]) -> Op:
    given = {"strides": [1], "dilations": [1], "pads_begin": [1], "pads_end": [1]} | {
        key: list(value) for key, value in attributes.items()
    }
    texts = {
        key: ",".join(map(str, value * (axes if len(value) == 1 else 1))) for key, value in given.items()
    }
    return layer(name, **texts, auto_pad="explicit")


@pytest.mark.parametrize(
    ("data", "filters"),
    [
        ((1, 32, 9, 10), (64, 32, 3, 3)),
        ((2, 17, 7, 6), (21, 17, 3, 3)),
        ((1, 5, 20), (7, 5, 3)),
        ((1, 5, 4, 5, 6), (33, 5, 3, 2, 2)),
        ((1, 3, 6, 6), (70, 3, 1, 1)),
        ((1, 40, 1, 1), (16, 40, 3, 3)),
    ],
    ids=str,
)
def test_computed_filters(data: tuple[int, ...], filters: tuple[int, ...]) -> None:
    op, x, w = convolution("Convolution-1", len(data) - 2), numbers(*data), numbers(*filters, seed=1)
    agree(op, x, w)
    agree(op, np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1), w, then=[layer("ReLU-1")])
    agree(op, x, np.ascontiguousarray(w[..., ::-1])[..., ::-1])


def test_computed_filters_of_groups() -> None:
    agree(convolution("GroupConvolution-1", 2), numbers(1, 32, 6, 7), numbers(2, 40, 16, 3, 3))
    strided = convolution("GroupConvolution-1", 2, strides=(2,), dilations=(2, 1))
    agree(strided, numbers(2, 32, 9, 9), numbers(4, 4, 8, 3, 3))


def test_infinite_filters_beside_padding() -> None:
    """Products with zero padding are NaN, as in the reference."""
    op, x, w = convolution("Convolution-1", 2), numbers(1, 16, 4, 4), numbers(16, 16, 3, 3)
    w[3, 2, 0, 0] = np.inf
    kernel = backend.kernel(op, [unknown(x), unknown(w)])
    assert isinstance(kernel, KernelTemplate)
    with np.errstate(all="ignore"):
        found, wanted = kernel.prepare()(x, w), np.asarray(op.evaluate(x, w))
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))


def test_one_other_tensor_is_fused() -> None:
    """The packed filters take the place of a second operand."""
    x, w = numbers(1, 16, 5, 5), numbers(32, 16, 3, 3)
    kernel = backend.kernel(convolution("Convolution-1", 2), [unknown(x), unknown(w)])
    same = numbers(1, 32, 5, 5)
    assert isinstance(kernel, KernelTemplate)
    kernel = kernel.fuse(layer("Add-1"), [unknown(same), unknown(same)], 0)
    assert isinstance(kernel, KernelTemplate)
    assert kernel.fuse(layer("Multiply-1"), [unknown(same), unknown(same)], 0) is None
    wanted = np.asarray(convolution("Convolution-1", 2).evaluate(x, w)) + same
    np.testing.assert_allclose(kernel.prepare()(x, w, same), wanted, rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(
    ("rows", "columns"), [((5, 40), (40, 1)), ((2, 33, 7), (7, 65)), ((40, 9), (1, 9, 16))], ids=str
)
def test_computed_matrix(
    rows: tuple[int, ...], columns: tuple[int, ...], transposed: tuple[bool, bool]
) -> None:
    op = layer("MatMul-1", transpose_a=str(transposed[0]).lower(), transpose_b=str(transposed[1]).lower())
    a, b = numbers(*rows), numbers(*columns)
    a, b = (
        np.ascontiguousarray(x.swapaxes(-1, -2)) if swapped else x
        for x, swapped in zip((a, b), transposed, strict=True)
    )
    agree(op, a, b)
    agree(op, a, b, then=[layer("ReLU-1")])


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
