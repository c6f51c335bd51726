"""Denormals are flushed to zero by the kernels of a run, in its thread, workers and replays, and nowhere else."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset13 as op
from ir_runtime._util.scoped import inside
from ir_runtime.backends.native.threading.denormals import FLUSHING_BITS, flushing, mode_bits
from ir_runtime.ir.tensor import Array

TINY, RUNS = 3e-39, 5
FLUSH = {"CPU_DENORMALS_OPTIMIZATION": True}
FAST = {"EXECUTION_MODE_HINT": "PERFORMANCE"}

pytestmark = pytest.mark.skipif(not FLUSHING_BITS, reason="the mode of this processor is not known")


def halving(*shape: int) -> ir.Model:
    """A model that halves each element and transposes the result."""
    x = op.parameter(list(shape), np.float32, name="x")
    halves = op.multiply(x, op.constant(np.float32(0.5)))
    return ir.Model([op.result(op.einsum([halves], "ij->ji"))], [x], "halving")


def product(rows: int, width: int) -> ir.Model:
    """A model with a matrix product whose sums are denormal."""
    x = op.parameter([rows, width], np.float32, name="x")
    weights = op.constant(np.full((width, width), 1e-20, np.float32))
    return ir.Model([op.result(op.matmul(x, weights, False, False))], [x], "product")


def results(model: ir.Model, data: float, threads: int, **config: Any) -> list[Array]:
    """Return the results of the first run, a recorded run, and replays."""
    compiled = ir.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, **config}, backend="native")
    feed = np.full(compiled.input(0).shape, data, np.float32)
    return [compiled(feed)[0].copy() for _ in range(RUNS)]


def keeps_denormals() -> bool:
    return bool((np.full(64, TINY, np.float32) * np.float32(0.5)).all())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("model", "data"), [(halving(2, 300_000), TINY), (product(256, 256), 1e-20)])
@pytest.mark.parametrize("config", [FLUSH, FAST])
def test_all_runs_flush_on_all_threads(
    model: ir.Model, data: float, threads: int, config: dict[str, Any]
) -> None:
    assert not np.concatenate(results(model, data, threads, **config)).any()
    assert keeps_denormals()


@pytest.mark.parametrize("config", [{}, {**FAST, "CPU_DENORMALS_OPTIMIZATION": False}])
def test_denormals_are_kept_unless_asked_otherwise(config: dict[str, Any]) -> None:
    assert np.concatenate(results(halving(2, 300_000), TINY, 2, **config)).all()


def test_a_small_model_of_one_replay_flushes() -> None:
    assert not np.concatenate(results(product(8, 64), 1e-20, 1, **FLUSH)).any()


def test_normal_numbers_are_what_they_were() -> None:
    data = np.random.default_rng(0).standard_normal((64, 256), np.float32)
    plain, fast = (
        ir.compile_model(product(64, 256), "CPU", config, backend="native")(data)[0] for config in ({}, FLUSH)
    )
    assert (plain == fast).all()


def test_models_beside_each_other_each_have_their_mode() -> None:
    data = np.full((2, 300_000), TINY, np.float32)
    kept, flushed = (
        ir.compile_model(halving(2, 300_000), "CPU", config, backend="native") for config in ({}, FLUSH)
    )
    for _ in range(RUNS):
        assert kept(data)[0].all()
        assert not flushed(data)[0].any()


def test_workers_that_flushed_keep_denormals_in_the_next_run() -> None:
    assert not np.concatenate(results(product(256, 256), 1e-20, 2, **FLUSH)).any()
    assert np.concatenate(results(product(256, 256), 1e-20, 2)).all()


def test_a_run_that_fails_ends_the_mode() -> None:
    def fail() -> None:
        assert mode_bits() == FLUSHING_BITS
        raise ValueError("as a kernel may")

    with pytest.raises(ValueError, match="as a kernel may"):
        inside((flushing,), fail)
    assert not mode_bits()


def test_runs_within_runs_leave_the_mode_to_the_outer_one() -> None:
    def outer() -> None:
        inside((flushing,), lambda: None)
        assert mode_bits() == FLUSHING_BITS

    inside((flushing,), outer)
    assert not mode_bits()


def test_what_runs_can_be_read() -> None:
    def read(backend: str, **config: Any) -> bool:
        compiled = ir.compile_model(product(4, 4), "CPU", config, backend=backend)
        return bool(compiled.get_property("CPU_DENORMALS_OPTIMIZATION"))

    assert read("native", **FLUSH)
    assert read("native", **FAST)
    assert not read("native")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not read("numpy", **FAST)
    with pytest.warns(
        match="CPU_DENORMALS_OPTIMIZATION is ignored: the backend numpy computes with denormal"
    ):
        assert not read("numpy", **FLUSH)


def overlapping(scale: float, count: int) -> tuple[Array, Array]:
    """Return boxes whose areas are denormal, and scores."""
    rng = np.random.default_rng(count)
    corner, side = rng.uniform(0, 1, (1, count, 2)), rng.uniform(0, 0.3, (1, count, 2))
    boxes = np.concatenate([corner, corner + side], -1) * scale
    return boxes.astype(np.float32), rng.uniform(0, 1, (1, 1, count)).astype(np.float32)


@pytest.mark.parametrize(("scale", "scores"), [(1e-19, 1.0), (1e-19, 1e-39), (1.0, 1e-39)])
@pytest.mark.parametrize("count", [12, 300, 9000])
@pytest.mark.parametrize("config", [FLUSH, FAST])
def test_which_boxes_are_kept_does_not_depend_on_the_mode(
    scale: float, scores: float, count: int, config: dict[str, Any]
) -> None:
    boxes, given = op.parameter([1, count, 4], np.float32), op.parameter([1, 1, count], np.float32)
    most, iou, threshold = (op.constant(n) for n in (np.int64(count), np.float32(0.5), np.float32(0)))
    found = op.non_max_suppression(boxes, given, most, iou, threshold)
    model = ir.Model([found.output(0), found.output(2)], [boxes, given], "nms")
    feeds = [
        (x * np.float32(factor)) for x, factor in zip(overlapping(scale, count), (1, scores), strict=True)
    ]
    wanted = ir.compile_model(model, backend="reference")(feeds).to_tuple()
    compiled = ir.compile_model(model, "CPU", config, backend="native")
    for _ in range(RUNS):
        for ours, theirs in zip(compiled(feeds).to_tuple(), wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("bounds", [5, 300])
@pytest.mark.parametrize("count", [8, 5000])
@pytest.mark.parametrize("config", [{}, FAST])
def test_buckets_do_not_depend_on_the_mode_or_the_run(
    bounds: int, count: int, config: dict[str, Any]
) -> None:
    """Unsorted boundaries are covered as well."""
    rng = np.random.default_rng(0)
    feeds = [(rng.uniform(-9, 9, n) * 1e-39).astype(np.float32) for n in (count, bounds)]
    x, buckets = (op.parameter([n], np.float32) for n in (count, bounds))
    model = ir.Model(
        [op.bucketize(x, buckets, "i64", right) for right in (True, False)], [x, buckets], "buckets"
    )
    wanted = ir.compile_model(model, backend="reference")(feeds).to_tuple()
    compiled = ir.compile_model(model, "CPU", config, backend="native")
    for _ in range(RUNS):
        for ours, theirs in zip(compiled(feeds).to_tuple(), wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)
