"""Matrix products and convolutions of the native backend, with fused layers, against the reference.

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
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_runtime.backends import KernelTemplate
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.codegen.vectors import LANES
from ir_runtime.backends.native.kernels import _gemm, _winograd
from ir_runtime.backends.native.kernels.convolution import neighbours
from ir_runtime.backends.native.threading import parallel
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Op

quick = settings(max_examples=8 if AGAIN in os.environ else 30, deadline=None)


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


def unknown(x: Array, dynamic: bool = False) -> Value:
    return Value.unknown(ElementType.f32, PartialShape.dynamic(x.ndim) if dynamic else PartialShape(x.shape))


def layouts(x: Array) -> list[Array]:
    """Return equal arrays in different memory layouts."""
    found = [x, np.repeat(x, 2, axis=-1)[..., ::2]]
    if x.ndim > 2:
        found.append(np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1))
    return found


def largest(x: Array) -> float:
    return float(np.abs(x[np.isfinite(x)]).max(initial=0.0))


def same(found: Any, wanted: Array, rtol: float = 2e-5, scale: float = 0.0) -> None:
    """Require errors that are small relative to the largest result, or intermediate result before a clamp."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * max(largest(wanted), scale))


def follow(result: Array, names: Sequence[str], axis: int) -> list[tuple[Op, Array | None, bool]]:
    """Return post-ops by name, each with its other operand and whether that is constant."""
    along = [1] * result.ndim
    along[axis] = result.shape[axis]
    made: dict[str, tuple[Op, Array | None, bool]] = {
        "bias": (layer("Add-1"), numbers(*along, seed=1), True),
        "scale": (layer("Multiply-1"), numbers(*along, seed=2), True),
        "less": (layer("Subtract-1"), numbers(*along, seed=3), True),
        "sum": (layer("Add-1"), numbers(*result.shape, seed=4), False),
        "gate": (layer("Multiply-1"), numbers(*result.shape, seed=5), False),
        "relu": (layer("ReLU-1"), None, True),
        "clamp": (layer("Clamp-1", min="-0.5", max="0.75"), None, True),
        "gelu": (layer("Gelu-7"), None, True),
        "swish": (layer("Swish-4"), None, True),
    }
    return [made[name] for name in names]


def agree(
    op: Op,
    x: Array,
    w: Array,
    names: Sequence[str] = (),
    axis: int = -1,
    dynamic: bool = False,
    rtol: float = 2e-5,
) -> None:
    """Compare the kernel and its fused layers with the reference, for several memory layouts of ``x``."""
    kernel = backend.kernel(op, [unknown(x, dynamic), Value.constant(w)])
    assert kernel is not None
    with np.errstate(all="ignore"):
        wanted = np.asarray(op.evaluate(x, w))
        extras, scale = [], largest(wanted)
        for after, other, constant in follow(wanted, names if wanted.size else (), axis):
            inputs = [unknown(wanted)]
            if other is not None:
                inputs.append(Value.constant(other) if constant else unknown(other))
                extras.append(other)
            assert isinstance(kernel, KernelTemplate)
            grown = kernel.fuse(after, inputs, 0)
            assert grown is not None, after
            kernel = grown
            wanted = np.asarray(
                after.evaluator([v.element for v in inputs])(
                    wanted, *extras[-1:] if other is not None else ()
                )
            )
        for stored in layouts(x):
            stored.setflags(write=False)
            with backend.around():
                same(kernel(stored, w, *extras), wanted, rtol, scale)


CHAINS = [
    (), ("bias",), ("scale", "bias", "relu"), ("bias", "sum", "relu"), ("less", "scale", "gelu"),
    ("bias", "relu", "sum"), ("bias", "swish", "gate", "scale", "less"), ("sum", "gate", "clamp"),
    ("clamp", "bias", "sum"),
]  # fmt: skip
chains = st.sampled_from(CHAINS)
EDGES = [1, 2, 3, LANES - 1, LANES, LANES + 1, 4 * LANES - 1, 4 * LANES, 4 * LANES + 1, 7 * LANES + 3]


@quick
@given(st.data(), chains, st.booleans())
def test_matrix_product(data: st.DataObject, names: Sequence[str], dynamic: bool) -> None:
    rows, depth = data.draw(st.integers(1, 100)), data.draw(st.integers(1, 70))
    columns = data.draw(st.sampled_from(EDGES))
    ta, tb = data.draw(st.booleans()), data.draw(st.booleans())
    op = layer("MatMul-1", transpose_a=str(ta).lower(), transpose_b=str(tb).lower())
    batch = data.draw(st.sampled_from([(), (1,), (2, 3)]))
    x = numbers(*batch, depth, rows) if ta else numbers(*batch, rows, depth)
    w = numbers(columns, depth) if tb else numbers(depth, columns)
    agree(op, x, w, () if dynamic else names, dynamic=dynamic)


def text(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def windows(spatial: int, data: st.DataObject) -> dict[str, str]:
    def each(low: int, high: int) -> str:
        return text(data.draw(st.lists(st.integers(low, high), min_size=spatial, max_size=spatial)))

    auto = data.draw(st.sampled_from(["explicit", "explicit", "same_upper", "same_lower", "valid"]))
    return {
        "strides": each(1, 3), "pads_begin": each(0, 2), "pads_end": each(0, 2), "dilations": each(1, 2),
        "auto_pad": auto,
    }  # fmt: skip


@quick
@given(st.data(), chains, st.booleans())
def test_convolution(data: st.DataObject, names: Sequence[str], dynamic: bool) -> None:
    spatial = data.draw(st.integers(1, 3))
    kernel = data.draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial))
    lengths = data.draw(st.lists(st.integers(6, 9), min_size=spatial, max_size=spatial))
    batch, channels = data.draw(st.integers(1, 2)), data.draw(st.sampled_from([1, 3, 4, 5, LANES, 33]))
    x, w = numbers(batch, channels, *lengths), numbers(data.draw(st.sampled_from(EDGES)), channels, *kernel)
    op = layer("Convolution-1", **windows(spatial, data))
    agree(op, x, w, () if dynamic else names, 1, dynamic)


@quick
@given(st.data(), chains)
def test_groups_of_several_channels(data: st.DataObject, names: Sequence[str]) -> None:
    spatial = data.draw(st.integers(1, 3))
    kernel = data.draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial))
    lengths = data.draw(st.lists(st.integers(6, 9), min_size=spatial, max_size=spatial))
    groups, channels, outputs = (data.draw(st.integers(2, n)) for n in (4, 6, 40))
    x, w = numbers(2, groups * channels, *lengths), numbers(groups, outputs, channels, *kernel)
    agree(layer("GroupConvolution-1", **windows(spatial, data)), x, w, names, 1)


@quick
@given(st.data(), chains, st.sampled_from([(1, 3), (3, 3), (2, 5), (1, 9)]))
def test_few_output_channels(data: st.DataObject, names: Sequence[str], kernel: tuple[int, int]) -> None:
    """Several neighbouring pixels of a row share a vector."""
    outputs, channels = data.draw(st.integers(1, LANES // 4)), data.draw(st.sampled_from([1, 4, 5, 17]))
    pad, stride, step = (data.draw(st.integers(low, 2)) for low in (0, 1, 1))
    columns = 4 * data.draw(st.integers(1, 5))
    width = (columns - 1) * step + kernel[1] - pad
    x, w = numbers(2, channels, 7, width), numbers(outputs, channels, *kernel)
    how = {"strides": f"{stride},{step}", "dilations": "1,1", "pads_begin": f"1,{pad}", "pads_end": "0,0"}
    op = layer("Convolution-1", **how)
    saves = step == 1 or kernel[1] > 3
    assert LANES < 8 or outputs > LANES // 8 or not saves or neighbours(op, unknown(x), w) > 1
    agree(op, x, w, names, 1)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 3e38])
def test_neighbours_of_numbers_that_are_not_finite(number: float) -> None:
    """A non-finite element affects only the windows that contain it."""
    x, w = numbers(1, 2, 5, 8), numbers(1, 2, 3, 3)
    x[0, 1, 2, 4] = number
    op = layer("Convolution-1", strides="1,1", dilations="1,1", pads_begin="0,0", pads_end="0,2")
    assert neighbours(op, unknown(x), w) > 1
    agree(op, x, w / 100, ("bias", "relu"), 1)


@pytest.mark.parametrize("rate", [3, 7, 11])
@pytest.mark.parametrize("number", [1, np.inf, np.nan])
def test_taps_in_padding(rate: int, number: float) -> None:
    """Taps in the padding are skipped, unless zero times the weight is not zero."""
    x, w = numbers(1, 5, 9, 20), numbers(LANES + 3, 5, 3, 3)
    w[1, 2, 0, 1] = number
    each = f"{rate},{rate}"
    op = layer("Convolution-1", strides="1,1", dilations=each, pads_begin=each, pads_end=each)
    agree(op, x, w, ("bias", "relu"), 1)


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "before", "after"),
    [
        ((2, 5, 400), (3,), 1, 1, 2), ((2, 5, 40), (4,), 3, 3, 0), ((1, 6, 4, 400), (3, 3), 1, 1, 1),
        ((2, 8, 13, 30), (3, 3), 2, 1, 2), ((2, 3, 14, 15), (5, 2), 1, 0, 1), ((1, 1, 12, 11, 20), (3, 3, 3), 1, 1, 1),
        ((3, 4, 7, 3, 5), (2, 1, 3), 1, 1, 0), ((1, 7, 12, 12, 12), (3, 3, 3), 2, 2, 1),
    ],
)  # fmt: skip
def test_lines_that_are_copied_between_zeros(
    shape: tuple[int, ...], kernel: tuple[int, ...], stride: int, before: int, after: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Rows copied into zero padding give the same bits as windows with per-element lookup."""
    x, w = numbers(*shape), numbers(LANES + 3, shape[1], *kernel)
    x[(0, 0, *(1 for _ in kernel))] = np.nan
    each = {"strides": stride, "dilations": 1, "pads_begin": before, "pads_end": after}
    op = layer("Convolution-1", **{name: text([n] * len(kernel)) for name, n in each.items()})
    agree(op, x, w, ("bias", "relu"), 1)
    found = []
    for copies in (True, False):
        monkeypatch.setattr(_gemm, "are_better_copied", lambda *_, copies=copies: copies)
        run = backend.kernel(op, [unknown(x), Value.constant(w)])
        assert run is not None
        with backend.around():
            found.append(np.asarray(run(x, w)).tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("columns", [1, LANES + 3, 6 * LANES + 5])
@pytest.mark.parametrize(
    "shape", [(50, 48), (7, 60), (1, 53), (2, 5, 9, 9), (1, 30, 12, 12), (1, 4, 6, 300)], ids=str
)
def test_panels_that_are_used_in_parts(
    shape: tuple[int, ...], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partial sums accumulate; residual and clamp follow the last part."""
    x = numbers(*shape)
    x[(0, 1, *[2] * (x.ndim - 2))] = np.nan
    is_matrix = x.ndim == 2
    w = numbers(shape[1], columns) if is_matrix else numbers(columns, shape[1], 3, 3)
    op = layer("MatMul-1") if is_matrix else by_three((1, 1), (0, 2))
    for least in (1 << 12, 0):
        monkeypatch.setattr(_gemm, "MIN_PARTED_WORDS", least)
        monkeypatch.setattr(_gemm, "PART_WORDS", 12)
        agree(op, x, w, ("bias", "sum", "clamp"), -1 if is_matrix else 1)


@pytest.mark.parametrize("shape", [(50, 700), (2, 90, 9, 9)], ids=str)
def test_a_large_bias_takes_no_digits_from_products(shape: tuple[int, ...]) -> None:
    """The bias is added to the finished sum, which rounds once instead of once per product."""
    x, bias = numbers(*shape), np.full(7, 1000, np.float32)
    is_matrix = x.ndim == 2
    w = numbers(shape[1], 7) if is_matrix else numbers(7, shape[1], 3, 3)
    op = layer("MatMul-1") if is_matrix else by_three((1, 1), (1, 1))
    inputs = [unknown(x), Value.constant(w)]
    run = backend.kernel(op, inputs)
    assert isinstance(run, KernelTemplate)
    shift = bias if is_matrix else bias.reshape(7, 1, 1)
    with backend.around():
        plain = np.asarray(run(x, w))
        sums = Value.unknown(ElementType.f32, PartialShape(plain.shape))
        fused = run.fuse(layer("Add-1"), [sums, Value.constant(shift)], 0)
        assert isinstance(fused, KernelTemplate)
        found = np.asarray(fused(x, w, shift))
    np.testing.assert_array_equal(found, plain + shift)


def by_three(before: tuple[int, int], after: tuple[int, int]) -> Op:
    how = {"pads_begin": text(before), "pads_end": text(after), "strides": "1,1", "dilations": "1,1"}
    return layer("Convolution-1", **how)


@quick
@given(st.data(), chains)
def test_winograd(data: st.DataObject, names: Sequence[str]) -> None:
    pad = st.tuples(*[st.integers(0, 2)] * 2)
    op = by_three(data.draw(pad), data.draw(pad))
    batch, height, width = data.draw(st.integers(1, 2)), *(data.draw(st.integers(12, 30)) for _ in range(2))
    channels, outputs = (
        LANES * data.draw(st.integers(-(-16 // LANES), 5)),
        LANES * data.draw(st.integers(1, 5)),
    )
    w = numbers(outputs, channels, 3, 3)
    assert _winograd.is_profitable(w.shape, [height - 2, width - 2])
    agree(op, numbers(batch, channels, height, width), w, names, 1, rtol=5e-5)


@pytest.mark.parametrize(("channels", "side"), [(16, 16), (32, 16), (64, 12), (32, 50)])
def test_winograd_has_the_same_bits_with_any_number_of_threads(
    channels: int, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads take a block each, or share each phase where a block would have too few tiles."""
    monkeypatch.setattr(parallel, "parallelism", lambda: 8)
    op, x = by_three((1, 1), (1, 1)), numbers(1, channels, side, side)
    w = numbers(channels, channels, 3, 3)
    run = backend.kernel(op, [unknown(x), Value.constant(w)])
    assert run is not None
    found = set()
    for threads in (1, 2, 3, 8):
        with at_most(threads), backend.around():
            found.add(np.asarray(run(x, w)).tobytes())
    assert len(found) == 1


def test_winograd_where_numbers_are_not_finite_or_too_large() -> None:
    op, w = by_three((1, 1), (1, 1)), numbers(32, 32, 3, 3)
    x = numbers(1, 32, 15, 14)
    x[0, 3, 5, 5], x[0, 1, 9, 9], x[0, 1, 0, 9], x[0, 2, 13, 11] = np.inf, np.nan, -np.inf, 3e38
    agree(op, x, w, ("bias", "sum", "relu"), 1)


def test_numbers_that_are_not_finite_stay_where_they_are() -> None:
    x, w = numbers(20, 30), numbers(30, 50)
    x[3, 4], x[5, 5], x[11, 0] = np.nan, np.inf, -np.inf
    for names in CHAINS[:4]:
        agree(layer("MatMul-1"), x, w, names)


@pytest.mark.parametrize("shape", [(0, 8), (2, 0, 8), (1, 8), (3, 0, 2, 8)])
def test_empty_and_single_rows(shape: tuple[int, ...]) -> None:
    agree(layer("MatMul-1"), numbers(*shape), numbers(8, 40), ("bias", "relu"))


def test_no_images() -> None:
    op = by_three((1, 1), (1, 1))
    agree(op, numbers(0, 4, 9, 9), numbers(8, 4, 3, 3), axis=1)
    agree(op, numbers(0, 32, 19, 19), numbers(32, 32, 3, 3), axis=1)


def test_one_kernel_for_any_number_of_rows() -> None:
    w = numbers(40, 70)
    op = layer("MatMul-1")
    kernel = backend.kernel(op, [Value.unknown(ElementType.f32, PartialShape("?,40")), Value.constant(w)])
    assert kernel is not None
    for rows in (*range(1, 50), 200, 43, 1):
        x = numbers(rows, 40)
        same(kernel(x, w), x @ w)


def test_more_tensors_than_a_kernel_can_read_are_not_fused() -> None:
    x, w = numbers(5, 8), numbers(8, 9)
    kernel: Any = backend.kernel(layer("MatMul-1"), [unknown(x), Value.constant(w)])
    result = unknown(numbers(5, 9))
    for _ in range(2):
        kernel = kernel.fuse(layer("Add-1"), [result, result], 0)
    assert kernel.fuse(layer("Add-1"), [result, result], 0) is None


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
