"""Image and region operations of the native backend, and single recurrent cells, against the reference; also in replays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from harness.other_vectors import same_with_other_vectors

import ir_runtime as ir
from ir_runtime import opset15 as op
from ir_runtime.backends import available
from ir_runtime.backends.native.threading import parallel
from ir_runtime.ir.tensor import Array

pytestmark = pytest.mark.skipif("native" not in available(), reason="native is not installed")

Build = Callable[..., ir.Node]


@pytest.fixture(autouse=True, params=[1, 2], ids=["1 thread", "2 threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[dict[str, int]]:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        yield {"INFERENCE_NUM_THREADS": request.param}


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng((*shape, seed)).standard_normal(shape, np.float32)


def compared(
    build: Build, arrays: Sequence[Array], config: dict[str, int], atol: float = 0.0
) -> ir.CompiledModel:
    """Run a model on both backends, on native also as a replay; check that inputs are unchanged."""
    ports = [op.parameter(x.shape, x.dtype) for x in arrays]
    found = build(*ports)
    model = ir.Model(list(found.outputs()), ports)
    wanted = ir.compile_model(model, backend="reference")(list(arrays))
    compiled = ir.compile_model(model, backend="native", config=config)
    given = [x.copy() for x in arrays]
    for _ in range(4):
        results = compiled(given)
        for index in range(len(model.outputs)):
            np.testing.assert_allclose(results[index], wanted[index], rtol=1e-5 if atol else 0, atol=atol)
    for x, before in zip(given, arrays, strict=True):
        np.testing.assert_array_equal(x, before)
    return compiled


def replayed(compiled: ir.CompiledModel) -> bool:
    """Return whether a run is a single call into machine code."""
    (program,) = compiled._plan.programs.recorded.values()
    return list(program.starts) == [0] and program.direct is not None


@pytest.mark.parametrize(
    ("lengths", "kernel", "strides", "dilations", "begins", "ends"),
    [
        ((9, 11), (4, 4), (2, 2), (1, 1), (1, 1), (1, 1)),
        ((5, 30), (3, 5), (2, 1), (1, 1), (0, 2), (1, 0)),
        ((7, 4), (2, 3), (3, 4), (1, 1), (0, 1), (0, 1)),
        ((6, 8), (3, 4), (2, 3), (3, 2), (2, 1), (1, 2)),
        ((12,), (5,), (3,), (1,), (2,), (1,)),
        ((1, 1), (8, 8), (4, 4), (1, 1), (2, 2), (2, 2)),
    ],
)
@pytest.mark.parametrize("channels", [1, 21, 48])
def test_depthwise_transposed_convolutions(
    lengths: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...],
    begins: tuple[int, ...], ends: tuple[int, ...], channels: int, threads: dict[str, int],
) -> None:  # fmt: skip
    filters, bias = numbers(channels, 1, 1, *kernel), numbers(1, channels, *(1 for _ in kernel))

    def build(x: ir.Node) -> ir.Node:
        found = op.group_convolution_backprop_data(x, filters, strides, None, begins, ends, dilations)
        return op.sigmoid(op.relu(op.add(found, bias)))

    compared(build, [numbers(2, channels, *lengths)], threads, 1e-5)


def test_depthwise_transposed_convolution_fuses_a_residual(threads: dict[str, int]) -> None:
    def build(x: ir.Node, y: ir.Node) -> ir.Node:
        filters = numbers(32, 1, 1, 4, 4)
        return op.add(op.group_convolution_backprop_data(x, filters, [2, 2], None, [1, 1], [1, 1], [1, 1]), y)

    compared(build, [numbers(1, 32, 6, 7), numbers(1, 32, 12, 14)], threads, 1e-5)


@pytest.mark.parametrize("kind", ["lstm", "gru", "gru_before", "rnn"])
@pytest.mark.parametrize(("batch", "inputs", "hidden"), [(1, 5, 7), (8, 64, 128), (20, 33, 70)])
def test_cells_are_replayed(kind: str, batch: int, inputs: int, hidden: int, threads: dict[str, int]) -> None:
    gates = {"lstm": 4, "rnn": 1}.get(kind, 3)
    w, r = numbers(gates * hidden, inputs) / 5, numbers(gates * hidden, hidden) / 5
    b = numbers((gates + (kind == "gru_before")) * hidden)

    def build(x: ir.Node, *states: ir.Node) -> ir.Node:
        if kind == "lstm":
            return op.lstm_cell(x, *states, w, r, b, hidden)
        if kind == "rnn":
            return op.rnn_cell(x, *states, w, r, b, hidden, ["tanh"], [], [])
        return op.gru_cell(x, *states, w, r, b, hidden, linear_before_reset=kind == "gru_before")

    states = [numbers(batch, hidden, seed=n) for n in range(1 + (kind == "lstm"))]
    assert replayed(compared(build, [numbers(batch, inputs), *states], threads, 1e-5))


@pytest.mark.parametrize("method", ["max", "bilinear"])
@pytest.mark.parametrize("channels", [3, 20, 150])
def test_roi_pooling(method: str, channels: int, threads: dict[str, int]) -> None:
    rng = np.random.default_rng(channels)
    corners = rng.uniform(-0.1, 1.1, (9, 4)) * (1 if method == "bilinear" else 30)
    rois = np.concatenate([rng.integers(0, 2, (9, 1)), corners], 1).astype(np.float32)
    rois[7, 0] = -1  # the end of the regions
    x = numbers(2, channels, 17, 13)
    x[0, 0, 3, 4] = np.nan if method == "max" else 7

    def build(data: ir.Node, regions: ir.Node) -> ir.Node:
        return op.roi_pooling(data, regions, [3, 5], 0.5, method)

    compared(build, [x, rois], threads, 0 if method == "max" else 1e-5)


def test_position_sensitive_roi_pooling(threads: dict[str, int]) -> None:
    rng = np.random.default_rng(0)
    rois = np.concatenate([rng.integers(0, 2, (9, 1)), rng.uniform(-5, 60, (9, 4))], 1).astype(np.float32)

    def build(data: ir.Node, regions: ir.Node) -> ir.Node:
        return op.psroi_pooling(data, regions, 5, 3, 0.5, 1, 1, "average")

    compared(build, [numbers(2, 45, 20, 37), rois], threads, 1e-6)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize(
    ("shape", "begins", "ends", "order"),
    [
        ((2, 5, 9, 40), [0, 0, 2, 3], [0, 0, 1, 2], None),
        ((2, 40, 9, 5), [0, 0, 2, 3], [0, 0, 1, 2], [0, 3, 1, 2]),
        ((3, 4, 5, 6, 7), [1, 0, 2, 0, 3], [0, 2, 1, 0, 1], None),
        ((6, 50), [-1, 3], [2, -2], None),
        ((70,), [5], [6], None),
        ((4, 6, 3), [2, 0, 1], [1, 3, 0], [2, 0, 1]),
    ],
)
def test_padding_in_any_memory_order(
    mode: str, shape: tuple[int, ...], begins: list[int], ends: list[int], order: list[int] | None,
    threads: dict[str, int],
) -> None:  # fmt: skip
    def build(x: ir.Node) -> ir.Node:
        data = x if order is None else op.transpose(x, order)
        fill = [np.float32(1.5)] if mode == "constant" else []
        return op.negative(op.pad(data, begins, ends, mode, *fill))

    compared(build, [numbers(*shape)], threads)


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize("name", ["nv12_to_rgb", "nv12_to_bgr", "i420_to_rgb", "i420_to_bgr"])
@pytest.mark.parametrize("single", [False, True])
def test_color_conversions_are_bit_identical(
    kind: type, name: str, single: bool, threads: dict[str, int]
) -> None:
    shapes = [(2, 6, 46, 1), (2, 3, 23, 2)] if name[0] == "n" else [(2, 6, 46, 1), *[(2, 3, 23, 1)] * 2]
    rng = np.random.default_rng(0)
    planes = [rng.uniform(0, 255, shape).astype(kind) for shape in ([(2, 9, 46, 1)] if single else shapes)]
    if kind is np.float32:
        planes[0][0, 0, ::5] = np.nan
    compared(getattr(op, name), planes, threads)


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("more", [0, 1, 2])
def test_embedding_segments(ascending: bool, more: int, threads: dict[str, int]) -> None:
    rng = np.random.default_rng(more)
    ids = rng.integers(0, 30, 50)
    arrays = [numbers(40, 33), rng.integers(0, 40, 50), np.sort(ids) if ascending else ids]
    default, weights = [np.int64(3)] if more else [], [numbers(50)] if more > 1 else []

    def build(table: ir.Node, rows: ir.Node, groups: ir.Node, *factors: ir.Node) -> ir.Node:
        return op.embedding_segments_sum(table, rows, groups, np.int64(32), *default, *factors)

    compared(build, [*arrays, *weights], threads, 1e-5)


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
