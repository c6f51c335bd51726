"""Feature maps in the native backend against the reference: depthwise convolutions, pooling, normalization, chains, shuffles.

The file is rerun in a subprocess for each vector instruction set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from harness.layers import layer
from harness.other_vectors import AGAIN, same_with_other_vectors
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ir_runtime.backends import KernelTemplate
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.codegen.vectors import LANES
from ir_runtime.backends.native.kernels import depthwise, elementwise
from ir_runtime.backends.native.kernels.depthwise import GROUP_CHANNELS
from ir_runtime.backends.native.threading import parallel
from ir_runtime.errors import InferenceError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Op

quick = settings(max_examples=15 if AGAIN in os.environ else 60, deadline=None)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, 3e30, -3e30, 4.0, -1.0], np.float32)

# One channel, fewer than a vector, one more than that, and no multiple of several.
CHANNELS = (1, 3, 16, 17, 63, 64, 65, 130)
LENGTHS = (1, 2, 3, 6, 7, 8, 15, 17)


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"], autouse=True, scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        patch.setattr(elementwise, "MIN_SIZE", 0)
        with at_most(request.param):
            yield


def numbers(*shape: int, seed: int = 0, special: bool = False) -> Array:
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape).astype(np.float32)
    if special and x.size:
        x.reshape(-1)[rng.integers(0, x.size, 1 + x.size // 7)] = rng.choice(SPECIAL, 1 + x.size // 7)
    return x


def unknown(x: Array, dynamic: bool = False) -> Value:
    return Value.unknown(ElementType.f32, PartialShape.dynamic(x.ndim) if dynamic else PartialShape(x.shape))


def layouts(x: Array) -> list[Array]:
    """Return equal read-only arrays in different memory layouts."""
    found = [x, np.repeat(x, 2, axis=-1)[..., ::2]] if x.ndim else [x]
    if x.ndim > 2:
        found.append(np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1))
    for array in found:
        array.setflags(write=False)
    return found


def same(found: Any, wanted: Array, rtol: float = 1e-5) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    finite = np.abs(wanted[np.isfinite(wanted)])
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * finite.max(initial=0.0))


def fused(kernel: Any, op: Op, inputs: Sequence[Value], place: int = 0) -> Any:
    assert isinstance(kernel, KernelTemplate)
    return kernel.fuse(op, inputs, place)


def built(kernel: Any) -> Any:
    return kernel.prepare() if isinstance(kernel, KernelTemplate) else kernel


def listed(*numbers: int) -> str:
    return ",".join(map(str, numbers))


pair = st.tuples(st.integers(1, 3), st.integers(1, 3))


@quick
@given(
    st.sampled_from([0, 1, 2]), st.sampled_from(CHANNELS), st.sampled_from(LENGTHS), st.sampled_from(LENGTHS),
    st.sampled_from([(3, 3), (5, 5), (7, 7), (1, 3), (2, 4), (3, 1)]), pair, pair,
    st.tuples(*[st.integers(0, 4)] * 4), st.booleans(), st.booleans(),
)  # fmt: skip
@example(
    1, 3, 8, 7, (3, 1), (1, 2), (3, 2), (3, 0, 0, 0), True, False
)  # a row of fewer channels than a vector has
def test_depthwise(
    images: int, channels: int, height: int, width: int, kernel: tuple[int, int], strides: tuple[int, int],
    dilations: tuple[int, int], pads: tuple[int, ...], chained: bool, dynamic: bool,
) -> None:  # fmt: skip
    op = layer(
        "GroupConvolution-1", strides=listed(*strides), dilations=listed(*dilations),
        pads_begin=listed(*pads[:2]), pads_end=listed(*pads[2:]),
    )  # fmt: skip
    x, w = numbers(images, channels, height, width, special=not chained), numbers(channels, 1, 1, *kernel)
    try:
        wanted = op.evaluate(x, w)
    except InferenceError:  # no window fits
        return
    found = backend.kernel(op, [unknown(x, dynamic), Value.constant(w)])
    others: list[Array] = []
    if chained:
        ours, row, sum = unknown(wanted), numbers(1, channels, 1, 1, seed=1), numbers(*wanted.shape, seed=2)
        for name, other, constant in (
            ("Multiply-1", row, True), ("Add-1", row, True), ("Add-1", sum, False), ("ReLU-1", None, True),
            ("HSwish-4", None, True), ("Multiply-1", row, True),
        ):  # fmt: skip
            after, extra = layer(name), [] if other is None else [other]
            found = fused(
                found, after, [ours, *(Value.constant(o) if constant else unknown(o) for o in extra)]
            )
            wanted = after.evaluate(wanted, *extra)
            others += extra
    run = built(found)
    for data in layouts(x):
        same(run(data, w, *others), wanted)


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(
    ("kernel", "dilation"),
    [
        ((31, 31), 1),
        ((1, 9), 1),
        ((13, 2), 1),
        ((3, 3), 2),
        ((3, 3), 4),
        ((5, 4), 3),
        ((2, 1), 2),
        ((2, 11), 2),
    ],
)
def test_depthwise_windows_that_share_columns(kernel: tuple[int, int], dilation: int, special: bool) -> None:
    """Any width and dilation with stride 1: rows of whole blocks, of one column more, and of less than a block."""
    pads = [n // 2 * dilation for n in kernel]
    op = layer(
        "GroupConvolution-1", strides="1,1", dilations=listed(dilation, dilation),
        pads_begin=listed(*pads), pads_end=listed(*pads),
    )  # fmt: skip
    for width in (28, 29, 6):
        x, w = numbers(2, 35, 9, width, special=special), numbers(35, 1, 1, *kernel)
        values, others = [unknown(x), Value.constant(w)], list[Array]()
        found, wanted = backend.kernel(op, values), op.evaluate(x, w)
        if not special:
            found, wanted, others = chained(found, wanted)
        for data in layouts(x):
            same(built(found)(data, w, *others), wanted)


def chained(found: Any, wanted: Array) -> tuple[Any, Array, list[Array]]:
    """Return a chain (per-channel scale and bias, residual, activation), its result, and its inputs."""
    ours, others = unknown(wanted), []
    row, map = numbers(wanted.shape[1], *[1] * (wanted.ndim - 2), seed=1), numbers(*wanted.shape, seed=2)
    for name, extra, constant in (
        ("Multiply-1", [row], True), ("Add-1", [row], True), ("Add-1", [map], False), ("HSwish-4", [], True),
    ):  # fmt: skip
        after = layer(name)
        values = [Value.constant(o) if constant else unknown(o) for o in extra]
        found = fused(found, after, [ours, *values])
        wanted = after.evaluate(wanted, *extra)
        others += extra
    return found, wanted, others


@quick
@given(
    st.sampled_from([0, 1, 2]), st.sampled_from([1, 2, 3, 4]), st.sampled_from([1, 3, 4, 16, 17, 33]),
    st.lists(st.sampled_from([1, 2, 7, 9, 17]), min_size=0, max_size=3),
    st.sampled_from([None, np.nan, np.inf, -np.inf]), st.booleans(),
)  # fmt: skip
def test_group_normalization(
    images: int, groups: int, width: int, lengths: list[int], odd: float | None, more: bool
) -> None:
    op = layer("GroupNormalization-12", num_groups=str(groups), epsilon="1e-3")
    x = numbers(images, groups * width, *lengths) + np.float32(3)
    if odd is not None and x.size:
        x.reshape(-1)[x.size // 2] = odd
    scale, bias = numbers(groups * width, seed=3), numbers(groups * width, seed=4)
    wanted = op.evaluate(x, scale, bias)
    found = backend.kernel(op, [unknown(x), Value.constant(scale), Value.constant(bias)])
    others: list[Array] = []
    if more and wanted.size:
        found, wanted, others = chained(found, wanted)
    run = built(found)
    for data in layouts(x):
        same(run(data, scale, bias, *others), wanted, 1e-4)


@pytest.mark.parametrize("mode", ["inside_sqrt", "outside_sqrt"])
@pytest.mark.parametrize("variance", [False, True])
@pytest.mark.parametrize("channels", [1, 17, 130])
def test_instance_normalization(channels: int, variance: bool, mode: str) -> None:
    op = layer("MVN-6", normalize_variance=str(variance).lower(), eps="1e-3", eps_mode=mode)
    x, axes = numbers(2, channels, 9, 15) + np.float32(3), np.array([2, -1])
    kernel = backend.kernel(op, [unknown(x, dynamic=True), Value.constant(axes)])
    for data in layouts(x):
        same(built(kernel)(data, axes), op.evaluate(x, axes), 1e-4)
    found, wanted, others = chained(
        backend.kernel(op, [unknown(x), Value.constant(axes)]), op.evaluate(x, axes)
    )
    same(built(found)(x, axes, *others), wanted, 1e-4)


def test_means_of_large_maps() -> None:
    """Means of many values far from 0 keep their precision."""
    op = layer("GroupNormalization-12", num_groups="2", epsilon="1e-5")
    x = numbers(1, 4, 300, 300) + np.float32(100)
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    found = backend.kernel(op, [unknown(x), Value.constant(ones), Value.constant(zeros)])
    wanted = op.evaluate(x.astype(np.float64), ones, zeros)
    np.testing.assert_allclose(built(found)(x, ones, zeros), wanted, atol=1e-3)


@quick
@given(st.data(), st.sampled_from([0, 1, 2]), st.sampled_from(CHANNELS), st.booleans(), st.booleans())
def test_depthwise_over_volumes(
    data: st.DataObject, images: int, channels: int, more: bool, dynamic: bool
) -> None:
    def drawn(low: int, high: int) -> list[int]:
        return [data.draw(st.integers(low, high)) for _ in range(3)]

    kernel = data.draw(st.sampled_from([(3, 3, 3), (2, 3, 5), (3, 1, 1), (1, 2, 4)]))
    op = layer(
        "GroupConvolution-1", strides=listed(*drawn(1, 4)), dilations=listed(*drawn(1, 2)),
        pads_begin=listed(*drawn(0, 3)), pads_end=listed(*drawn(0, 3)),
    )  # fmt: skip
    x = numbers(images, channels, *drawn(1, 5)[:2], data.draw(st.sampled_from(LENGTHS)), special=not more)
    w = numbers(channels, 1, 1, *kernel)
    try:
        wanted = op.evaluate(x, w)
    except InferenceError:  # no window fits
        return
    found = backend.kernel(op, [unknown(x, dynamic), Value.constant(w)])
    assert found is not None
    others: list[Array] = []
    if more:
        found, wanted, others = chained(found, wanted)
    for stored in layouts(x):
        same(built(found)(stored, w, *others), wanted)


@quick
@given(
    st.data(), st.sampled_from([0, 1, 2]), st.sampled_from(GROUP_CHANNELS), st.integers(1, 3), st.integers(1, 3),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_groups_that_fill_a_vector(
    data: st.DataObject, images: int, channels: int, vectors: int, spatial: int, more: bool, dynamic: bool
) -> None:
    def drawn(low: int, high: int) -> list[int]:
        return [data.draw(st.integers(low, high)) for _ in range(spatial)]

    groups = LANES // channels * vectors + data.draw(st.sampled_from([0, 1]))
    kernel = data.draw(st.sampled_from([(3, 3, 3), (2, 3, 5), (3, 2, 1)]))[-spatial:]
    op = layer(
        "GroupConvolution-1", strides=listed(*drawn(1, 2)), dilations=listed(*drawn(1, 2)),
        pads_begin=listed(*drawn(0, 3)), pads_end=listed(*drawn(0, 3)),
    )  # fmt: skip
    lengths = *drawn(1, 5)[1:], data.draw(st.sampled_from(LENGTHS))
    x = numbers(images, groups * channels, *lengths, special=not more)
    w = numbers(groups, channels, channels, *kernel)
    try:
        wanted = op.evaluate(x, w)
    except InferenceError:  # no window fits
        return
    assert depthwise.is_by_windows(w)
    found = backend.kernel(op, [unknown(x, dynamic), Value.constant(w)])
    others: list[Array] = []
    if more:
        found, wanted, others = chained(found, wanted)
    for stored in layouts(x):
        same(built(found)(stored, w, *others), wanted)


def test_depthwise_over_one_axis() -> None:
    op = layer("GroupConvolution-1", strides="2", dilations="1", pads_begin="2", pads_end="1")
    x, w = numbers(2, 33, 29), numbers(33, 1, 1, 5)
    kernel = fused(
        backend.kernel(op, [unknown(x), Value.constant(w)]),
        layer("Swish-4"),
        [unknown(x), Value.constant(np.float32(1))],
    )
    same(built(kernel)(x, w, np.float32(1)), layer("Swish-4").evaluate(op.evaluate(x, w), np.float32(1)))


@quick
@given(
    st.sampled_from(["MaxPool-14", "AvgPool-16"]), st.sampled_from([0, 1, 2, 40]), st.sampled_from(CHANNELS),
    st.sampled_from(LENGTHS), st.sampled_from(LENGTHS), pair, pair, pair, st.tuples(*[st.integers(0, 1)] * 4),
    st.sampled_from(["floor", "ceil", "ceil_torch"]), st.booleans(),
)  # fmt: skip
def test_pooling(
    name: str, images: int, channels: int, height: int, width: int, kernel: tuple[int, int],
    strides: tuple[int, int], dilations: tuple[int, int], pads: tuple[int, ...], rounding: str, excluded: bool,
) -> None:  # fmt: skip
    more = {"exclude-pad": str(excluded).lower()} if name == "AvgPool-16" else {}
    op = layer(
        name, kernel=listed(*kernel), strides=listed(*strides), dilations=listed(*dilations),
        pads_begin=listed(*pads[:2]), pads_end=listed(*pads[2:]), rounding_type=rounding, **more,
    )  # fmt: skip
    x = numbers(images, channels, height, width, special=True)
    try:
        op.infer(unknown(x))
        wanted = op.evaluate(x)
    except InferenceError:
        return
    run = backend.kernel(op, [unknown(x)], unread=(1,))
    assert run is not None
    for data in layouts(x):
        found = run(data)
        if name == "MaxPool-14":
            same(found[0], wanted[0])
        else:
            same(found, wanted)


@pytest.mark.parametrize("shape", [(1, 3, 5, 7), (2, 33, 7, 7), (1, 130, 14, 9), (2, 64, 1, 1)])
def test_spatial_means(shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    for keep in ("true", "false"):
        op, axes = layer("ReduceMean-1", keep_dims=keep), np.array([-1, 2])
        run = backend.kernel(op, [unknown(x), Value.constant(axes)])
        assert run is not None
        for data in layouts(x):
            same(run(data, axes), op.evaluate(x, axes))
    for counts in ((1, 1), (2, 3), (7, 5)):
        op, size = layer("AdaptiveAvgPool-8"), np.array(counts)
        run = backend.kernel(op, [unknown(x), Value.constant(size)])
        assert run is not None
        for data in layouts(x):
            same(run(data, size), op.evaluate(x, size))


PAIRS = ("Add-1", "Subtract-1", "Multiply-1", "Divide-1", "Maximum-1", "Minimum-1", "SquaredDifference-1")
SINGLES = (
    "ReLU-1",
    "Sigmoid-1",
    "HSwish-4",
    "Mish-4",
    "SoftPlus-4",
    "Abs-1",
    "Negative-1",
    "Floor-1",
    "Ceiling-1",
    "Round-5",
)


@quick
@given(
    st.sampled_from([(1, 64, 14, 14), (2, 17, 5, 3), (2, 3, 1, 1), (1, 1, 9, 9), (2, 70, 64, 3), (0, 3, 4, 4)]),
    st.lists(
        st.tuples(
            st.sampled_from(PAIRS), st.integers(0, 1), st.booleans(),
            st.sampled_from(["full", "image", "row", "short", "one", "column", "map", "line", "none"]),
        ),
        min_size=1, max_size=4,
    ),
    st.sampled_from([*SINGLES, None]), st.booleans(),
)  # fmt: skip
def test_chains(
    shape: tuple[int, ...], links: list[tuple[str, int, bool, str]], single: str | None, dynamic: bool
) -> None:
    n, c, h, w = shape
    shapes = {
        "full": shape, "image": (n, c, 1, 1), "row": (1, c, 1, 1), "short": (c, 1, 1), "one": (1,),
        "column": (n, 1, h, 1), "map": (h, w), "line": (n, c, h, 1), "none": (),
    }  # fmt: skip
    x = numbers(*shape, special=True)
    wanted, inputs, place, kernel = x, [x], 0, None
    for name, where, constant, kind in links:
        op, other = layer(name), numbers(*shapes[kind], seed=len(inputs))
        values = [unknown(x, dynamic), Value.constant(other) if constant else unknown(other)]
        arrays = [wanted, other]
        if where:
            values.reverse()
            arrays.reverse()
        grown = backend.kernel(op, values) if kernel is None else fused(kernel, op, values, where)
        if grown is None:
            break
        place, inputs = (where, arrays) if kernel is None else (place, [*inputs, other])
        kernel = grown
        wanted = op.evaluate(*arrays)
    if kernel is None:
        return
    if single is not None:
        kernel = fused(kernel, layer(single), [unknown(wanted)])
        wanted = layer(single).evaluate(wanted)
    for data in layouts(x):
        inputs[place] = data
        same(kernel(*inputs), wanted)


def test_layers_that_enlarge_the_result_are_not_fused() -> None:
    x, small = numbers(1, 3, 4, 4), numbers(1, 3, 1, 1)
    kernel = backend.kernel(layer("Sigmoid-1"), [unknown(small)])
    assert fused(kernel, layer("Multiply-1"), [unknown(small), unknown(x)]) is None


def test_power_kernel_supports_only_squares() -> None:
    x, two = numbers(3, 50, special=True), np.float32([2])
    op = layer("Power-1")
    run = backend.kernel(op, [unknown(x), Value.constant(two)])
    assert run is not None
    same(run(x, two), op.evaluate(x, two))
    assert backend.kernel(op, [unknown(x), Value.constant(np.float32([3]))]) is None


@pytest.mark.parametrize("shape", [(1, 7, 40), (2, 9, 5)], ids=str)
def test_channel_slices_of_a_sequence_keep_their_memory_order(shape: tuple[int, int, int]) -> None:
    """Gated halves of channels are computed in memory order."""
    n, length, channels = shape
    op, whole = layer("Sigmoid-1"), numbers(n, length, 2 * channels)
    x = whole[..., channels:].transpose(0, 2, 1)
    run = built(backend.kernel(op, [unknown(x)]))
    same(run(x), op.evaluate(x))
    assert run(x).transpose(0, 2, 1).flags.c_contiguous


@pytest.mark.parametrize("shape", [(1, 58, 2, 28, 28), (2, 16, 2, 3, 1), (1, 33, 2, 7, 7)])
def test_shuffles_stay_channels_last(shape: tuple[int, ...]) -> None:
    n, c, groups, h, w = shape
    x = numbers(n, h, w, groups, c).transpose(0, 4, 3, 1, 2)
    op, target = layer("Reshape-1", special_zero="true"), np.array([0, groups * c, h, w])
    run = backend.kernel(op, [unknown(x), Value.constant(target)])
    assert run is not None
    for data in (x, np.ascontiguousarray(x)):
        np.testing.assert_array_equal(run(data, target), op.evaluate(x, target))
    if h * w > 1:
        assert run(x, target).transpose(0, 2, 3, 1).flags.c_contiguous


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 8, 9), (3, 7, 5), (2, 1, 40), (0, 4, 4)], ids=str)
@pytest.mark.parametrize("channels", [(1,), (3, 16), (17, 32, 5), (64, 64, 1, 7)], ids=str)
def test_concatenated_maps(shape: tuple[int, int, int], channels: tuple[int, ...]) -> None:
    """Join channels-last maps, slices of larger maps, and other layouts."""
    op, (n, h, w) = layer("Concat-1", axis="1"), shape
    last = [numbers(n, h, w, c, seed=i).transpose(0, 3, 1, 2) for i, c in enumerate(channels)]
    parts = [
        numbers(n, h, w, c + 9, seed=i).transpose(0, 3, 1, 2)[:, 2 : 2 + c] for i, c in enumerate(channels)
    ]
    run = backend.kernel(op, [unknown(x) for x in last])
    assert run is not None
    for arrays in (last, parts, [*map(np.ascontiguousarray, last)], [*last[:-1], last[-1][:, ::-1]]):
        np.testing.assert_array_equal(run(*arrays), op.evaluate(*arrays))
    if n * h * w > 1:
        assert run(*last).transpose(0, 2, 3, 1).flags.c_contiguous


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
