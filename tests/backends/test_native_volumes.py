"""Maps with any number of spatial axes in the native backend: C-order copies, transposed convolutions, pooling, concatenation.

The file is rerun in a subprocess for each vector instruction set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
from harness.layers import layer
from harness.other_vectors import AGAIN, same_with_other_vectors
from hypothesis import given, settings
from hypothesis import strategies as st

import ir_runtime as ir
from ir_runtime import opset13
from ir_runtime.backends import KernelTemplate
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.kernels import _copy as copies
from ir_runtime.backends.native.kernels import concat as joining
from ir_runtime.backends.native.kernels._copy import contiguous
from ir_runtime.backends.native.threading import parallel
from ir_runtime.errors import InferenceError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value

quick = settings(max_examples=10 if AGAIN in os.environ else 50, deadline=None)


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"], autouse=True, scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        for module in (copies, joining):
            patch.setattr(module, "MIN_SIZE", 0)
        with at_most(request.param), backend.around():
            yield


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def unknown(x: Array) -> Value:
    return Value.unknown(ElementType.f32, PartialShape(x.shape))


def stored_last(x: Array) -> Array:
    """Return an equal array in channels-last memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)


@quick
@given(
    st.lists(st.sampled_from([1, 2, 3, 5, 15, 16, 17, 33, 70]), min_size=1, max_size=5), st.randoms(),
    st.sampled_from([np.float32, np.int32, np.float64]), st.sampled_from(["all", "part", "reversed", "repeated"]),
)  # fmt: skip
def test_copies_in_c_order(lengths: list[int], random: object, dtype: type, kind: str) -> None:
    while np.prod(lengths) > 1 << 20:
        lengths.remove(max(lengths))
    order = random.sample(range(len(lengths)), len(lengths))  # type: ignore[attr-defined]
    whole = np.arange(np.prod(lengths), dtype=dtype).reshape(lengths)
    if kind == "part":
        whole = np.repeat(whole, 2, -1)[..., : lengths[-1]]
    elif kind == "reversed":
        whole = whole[::-1]
    elif kind == "repeated":
        whole = np.broadcast_to(whole, (3, *lengths))
        order = [axis + 1 for axis in order] + [0]
    x = whole.transpose(order)
    found = contiguous(x)
    assert found.flags.c_contiguous
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x)
    assert contiguous(found) is found


def test_bits_of_numbers_stay() -> None:
    x = np.random.default_rng(0).integers(0, 1 << 32, (40, 50), np.uint32).view(np.float32).T
    np.testing.assert_array_equal(contiguous(x).view(np.uint32), np.ascontiguousarray(x).view(np.uint32))


def windows(spatial: int, draw: st.DrawFn) -> dict[str, str]:
    """Return strides and pads for some spatial axes."""
    ranges = {"strides": (1, 3), "pads_begin": (0, 2), "pads_end": (0, 2)}
    return {
        name: ",".join(str(draw(st.integers(*ends))) for _ in range(spatial)) for name, ends in ranges.items()
    }


@quick
@given(
    st.data(), st.integers(1, 3), st.sampled_from([1, 3, 16, 35]), st.sampled_from([1, 5, 33]), st.booleans()
)
def test_transposed_convolutions(
    data: st.DataObject, spatial: int, channels: int, outputs: int, odd: bool
) -> None:
    more = {"output_padding": ",".join("1" * spatial)} if data.draw(st.booleans()) else {}
    attributes = windows(spatial, data.draw)  # type: ignore[arg-type]
    op = layer("ConvolutionBackpropData-1", **attributes, dilations=",".join("1" * spatial), **more)
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=spatial, max_size=spatial))
    kernel = [data.draw(st.integers(s, s + 2)) for s in op.strides]  # type: ignore[attr-defined]
    x, w = numbers(2, channels, *lengths), numbers(channels, outputs, *kernel)
    if odd:
        x.reshape(-1)[x.size // 2] = np.inf
    given = [np.array([n + 3 for n in lengths])] if data.draw(st.booleans()) else []
    try:
        op.infer(unknown(x), Value.constant(w), *map(Value.constant, given))  # type: ignore[attr-defined]
        wanted = op.evaluate(x, w, *given)  # type: ignore[attr-defined]
    except InferenceError:
        return
    found = backend.kernel(op, [unknown(x), Value.constant(w), *map(Value.constant, given)])
    assert isinstance(found, KernelTemplate)
    row, ours = numbers(1, outputs, *[1] * spatial, seed=1), unknown(wanted)
    add, act = layer("Add-1"), layer("Sigmoid-1")
    chained = found.fuse(add, [ours, Value.constant(row)], 0).fuse(act, [ours], 0).prepare()  # type: ignore[union-attr]
    then = act.evaluate(add.evaluate(wanted, row))  # type: ignore[attr-defined]
    for stored in (x, stored_last(x)):
        np.testing.assert_allclose(found(stored, w, *given), wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(chained(stored, w, *given, row), then, rtol=1e-4, atol=1e-4)


@quick
@given(st.data(), st.integers(1, 3), st.sampled_from([1, 3, 16, 35]), st.sampled_from([1, 5, 8, 33]))
def test_transposed_convolutions_whose_windows_do_not_overlap(
    data: st.DataObject, spatial: int, channels: int, outputs: int
) -> None:
    kernel, lengths = (
        data.draw(st.lists(st.integers(1, most), min_size=spatial, max_size=spatial)) for most in (3, 9)
    )
    zeros, ones = (",".join(digit * spatial) for digit in "01")
    op = layer(
        "ConvolutionBackpropData-1", strides=",".join(map(str, kernel)), dilations=ones, pads_begin=zeros,
        pads_end=zeros,
    )  # fmt: skip
    x, w = numbers(2, channels, *lengths), numbers(channels, outputs, *kernel)
    x.reshape(-1)[x.size // 2] = np.nan
    wanted = op.evaluate(x, w)  # type: ignore[attr-defined]
    found = backend.kernel(op, [unknown(x), Value.constant(w)])
    assert isinstance(found, KernelTemplate)
    row, ours = numbers(1, outputs, *[1] * spatial, seed=1), unknown(wanted)
    layers = [(layer("Multiply-1"), [row]), (layer("Sigmoid-1"), []), (layer("Add-1"), [row])]
    then, chained = wanted, found
    for each, more in layers:
        then = each.evaluate(then, *more)  # type: ignore[attr-defined]
        chained = chained.fuse(each, [ours, *map(Value.constant, more)], 0)  # type: ignore[assignment]
    for stored in (x, stored_last(x)):
        np.testing.assert_allclose(found(stored, w), wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(chained.prepare()(stored, w, row, row), then, rtol=1e-4, atol=1e-4)


def test_what_a_transposed_convolution_does_not_compute() -> None:
    """The kernel declines dilated filters, filters smaller than their strides, and post-ops with another map."""
    x, w = unknown(numbers(1, 4, 5, 5)), numbers(4, 6, 2, 2)
    attributes = {"pads_begin": "0,0", "pads_end": "0,0"}
    for strides, dilations in (("1,1", "2,1"), ("1,3", "1,1")):
        op = layer("ConvolutionBackpropData-1", strides=strides, dilations=dilations, **attributes)
        assert backend.kernel(op, [x, Value.constant(w)]) is None
    op = layer("ConvolutionBackpropData-1", strides="2,2", dilations="1,1", **attributes)
    found = backend.kernel(op, [x, Value.constant(w)])
    assert isinstance(found, KernelTemplate)
    result = unknown(numbers(1, 6, 10, 10))
    assert found.fuse(layer("Add-1"), [result, result], 0) is None


@pytest.mark.parametrize("rounding", ["floor", "ceil"])
@pytest.mark.parametrize(
    "shape", [(2, 1, 7, 9, 8), (1, 17, 7, 9, 8), (2, 17, 7, 9, 8), (2, 17, 1, 9, 8)], ids=str
)
@pytest.mark.parametrize("name", ["MaxPool-14", "AvgPool-16"])
@pytest.mark.parametrize("stride", [1, 2, 4])
def test_pooling_of_planes(stride: int, name: str, shape: tuple[int, ...], rounding: str) -> None:
    """With windows of one plane, volumes are maps with more channels or images."""
    more = {"exclude-pad": "true"} if name == "AvgPool-16" else {"dilations": "1,1,1"}
    op = layer(
        name, kernel="1,3,2", strides=f"{stride},2,1", pads_begin="0,1,0", pads_end="0,1,1", rounding_type=rounding, **more
    )  # fmt: skip
    x = numbers(*shape)
    wanted, run = op.evaluate(x), backend.kernel(op, [unknown(x)], unread=(1,))
    for stored in (x, stored_last(x), x[:, :, ::-1].copy()[:, :, ::-1]):
        found = run(stored)
        pair = (found[0], wanted[0]) if name == "MaxPool-14" else (found, wanted)
        np.testing.assert_allclose(*pair, rtol=1e-6, atol=1e-6)


@quick
@given(
    st.data(), st.sampled_from(["MaxPool-14", "AvgPool-16"]), st.sampled_from([1, 3]), st.sampled_from([1, 16, 35]),
    st.booleans(), st.sampled_from(["floor", "ceil"]),
)  # fmt: skip
def test_pooling_of_rows_and_volumes(
    data: st.DataObject, name: str, spatial: int, channels: int, excluded: bool, rounding: str
) -> None:
    more = {"exclude-pad": str(excluded).lower()} if name == "AvgPool-16" else {}
    kernel = [data.draw(st.integers(1, 3)) for _ in range(spatial)]
    if name == "MaxPool-14":
        more["dilations"] = ",".join(str(data.draw(st.integers(1, 2))) for _ in range(spatial))
    attributes = windows(spatial, data.draw) | {"rounding_type": rounding}  # type: ignore[arg-type]
    op = layer(name, kernel=",".join(map(str, kernel)), **attributes, **more)
    x = numbers(2, channels, *data.draw(st.lists(st.integers(1, 9), min_size=spatial, max_size=spatial)))
    x.reshape(-1)[x.size // 2] = np.nan
    try:
        op.infer(unknown(x))  # type: ignore[attr-defined]
        wanted = op.evaluate(x)  # type: ignore[attr-defined]
    except InferenceError:
        return
    run = backend.kernel(op, [unknown(x)], unread=(1,))
    assert run is not None
    for stored in (x, stored_last(x)):
        found, expected = run(stored), wanted
        if name == "MaxPool-14":
            found, expected = found[0], wanted[0]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lengths", [(7,), (3, 4), (2, 3, 4), (1, 1, 1), (1, 5, 1)], ids=str)
def test_channels_of_any_maps_joined(lengths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    op = layer("Concat-1", axis="1")
    parts = [stored_last(numbers(2, channels, *lengths)) for channels in (3, 17, 1)]
    halves = [stored_last(numbers(2, 2 * x.shape[1], *lengths))[:, : x.shape[1]] for x in parts]
    run = backend.kernel(op, [unknown(x) for x in parts])
    assert run is not None
    for arrays in (
        parts,
        halves,
        [np.ascontiguousarray(x) for x in parts],
        [*parts[:2], parts[2][..., ::-1]],
    ):
        np.testing.assert_array_equal(run(*arrays), op.evaluate(*arrays))  # type: ignore[attr-defined]


@pytest.mark.parametrize("lengths", [(3, 40), (2, 3, 9)], ids=str)
@pytest.mark.parametrize(
    "names", ["Multiply-1 Add-1 ReLU-1", "Add-1", "Sigmoid-1 Multiply-1", "Add-1 map"], ids=str
)
def test_layers_after_channels_that_are_joined(lengths: tuple[int, ...], names: str) -> None:
    op, parts = layer("Concat-1", axis="1"), [numbers(2, channels, *lengths) for channels in (3, 17, 40)]
    found, wanted = backend.kernel(op, [unknown(x) for x in parts]), op.evaluate(*parts)  # type: ignore[attr-defined]
    others: list[Array] = []
    for place, name in enumerate(names.split()):
        if name == "map":
            other = [numbers(*wanted.shape, seed=place)]
            after, values = layer("Add-1"), [unknown(wanted), unknown(other[0])]
        else:
            other = [numbers(60, *[1] * len(lengths), seed=place)] if name[0] in "AM" else []
            after, values = layer(name), [unknown(wanted), *map(Value.constant, other)]
        assert isinstance(found, KernelTemplate)
        found, wanted = found.fuse(after, values, 0), after.evaluate(wanted, *other)  # type: ignore[attr-defined]
        others += other
    assert isinstance(found, KernelTemplate)
    run = found.prepare()
    for arrays in (parts, [stored_last(x) for x in parts], [parts[0], *map(stored_last, parts[1:])]):
        np.testing.assert_allclose(run(*arrays, *others), wanted, rtol=1e-5, atol=1e-5)


def test_results_of_a_model_are_copied_by_its_steps() -> None:
    """Results with other consumers are not copied; those read them as stored."""
    x = opset13.parameter([1, 8, 6, 5], np.float32, name="x")
    w = numbers(20, 8, 3, 3)
    first = opset13.convolution(x, w, [1, 1], [1, 1], [1, 1], [1, 1])
    second = opset13.convolution(first, numbers(4, 20, 1, 1), [1, 1], [0, 0], [0, 0], [1, 1])
    moved = opset13.transpose(second, np.array([0, 2, 3, 1]))
    model = ir.Model([first, opset13.relu(second), moved], [x])
    data = numbers(1, 8, 6, 5)
    plan = ir.compile_model(model, backend="native")._plan
    found = plan.run([data])
    assert [array.flags.c_contiguous for array in found] == [False, True, True]
    for array, wanted in zip(found, ir.compile_model(model, backend="reference")(data).values(), strict=True):
        np.testing.assert_allclose(array, wanted, rtol=1e-4, atol=1e-4)


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
