"""Attention with bf16 products in the native backend, against an emulation of its roundings in f64.

The file is rerun for each vector instruction set; only some processors have bf16 instructions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import openvino as ov
import pytest
from harness.oracle import PLUGIN, core
from harness.other_vectors import AGAIN, same_with_other_vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from openvino import opset13 as op

import ir_runtime as ir
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.kernels.sdpa import MAX_DECODE_ROWS, bf16_attention, grouped_attention
from ir_runtime.backends.native.threading import parallel
from ir_runtime.ir.tensor import Array

quick = settings(max_examples=8 if AGAIN in os.environ else 40, deadline=None)
WIDTHS = [1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 80, 130]


@pytest.fixture(
    params=[2] if AGAIN in os.environ else [1, 2],
    ids=lambda n: f"threads={n}",
    autouse=True,
    scope="module",
)
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch, at_most(request.param):
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        yield


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def rounded(x: Array) -> Array:
    return x.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)


def emulated(q: Array, k: Array, v: Array, mask: Array | None, factor: float, causal: bool) -> Array:
    """Compute attention with rounded operands; all sums, the softmax denominator included, are f64."""
    times = q.shape[1] // k.shape[1]
    keys, values = (np.repeat(rounded(x), times, 1) for x in (k, v))
    scores = rounded(q) @ keys.swapaxes(-1, -2) * factor
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    scores = scores if mask is None else scores + mask
    terms = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(rounded(terms) @ values / terms.sum(-1, keepdims=True))


@quick
@given(st.data())
def test_roundings_are_those_of_the_emulation(data: st.DataObject) -> None:
    batch, groups, times = (data.draw(st.integers(*pair)) for pair in ((1, 2), (1, 3), (1, 3)))
    rows, keys = data.draw(st.integers(MAX_DECODE_ROWS + 1, 60)), data.draw(st.integers(1, 140))
    width, depth = data.draw(st.sampled_from(WIDTHS)), data.draw(st.sampled_from(WIDTHS))
    q, k = numbers(batch, groups * times, rows, width), numbers(batch, groups, keys, width, seed=1)
    v = numbers(batch, groups, keys, depth, seed=2)
    how = data.draw(st.sampled_from(["", "causal", "mask"]))
    mask = numbers(batch, 1, rows, keys, seed=3) if how == "mask" else None
    with backend.around():
        found = bf16_attention(q, k, v, mask, 0.3, how == "causal")
        exact = grouped_attention(q, k, v, mask, 0.3, how == "causal")
    wanted = emulated(q, k, v, mask, 0.3, how == "causal")
    assert found.shape == exact.shape
    # A term that is nearly halfway between two numbers of bf16 may be rounded to either: 2^-8 of it, seldom.
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)
    assert np.abs(found - exact).max() < 0.03 * np.abs(v).max()
    if keys * width * depth > 1000:
        assert np.abs(found - wanted).max() < np.abs(found - exact).max()


def test_few_queries_stay_f32() -> None:
    q, k, v = numbers(1, 4, MAX_DECODE_ROWS, 64), numbers(1, 2, 50, 64, seed=1), numbers(1, 2, 50, 64, seed=2)
    with backend.around():
        np.testing.assert_array_equal(
            bf16_attention(q, k, v, None, 0.1, False), grouped_attention(q, k, v, None, 0.1, False)
        )


def test_numbers_that_are_not_finite_stay_in_their_rows() -> None:
    q, k, v = numbers(1, 1, 20, 33), numbers(1, 1, 30, 33, seed=1), numbers(1, 1, 30, 40, seed=2)
    q[0, 0, 3, 4] = np.nan
    v[0, 0, 5, 39] = np.inf
    with backend.around():
        found = bf16_attention(q, k, v, None, 0.1, False)[0, 0]
    assert np.isnan(found[3]).all()
    others = np.delete(found, 3, axis=0)
    assert np.isfinite(others[:, :39]).all()
    assert (others[:, 39] == np.inf).all()


def model(written_out: bool) -> ov.Model:
    """Attention as one operation, or as matrix products and a softmax."""
    q, k, v = (op.parameter([1, 2, 40, 32], np.float32, name=name) for name in "qkv")
    if not written_out:
        return ov.Model([op.scaled_dot_product_attention(q, k, v)], [q, k, v])
    scores = op.multiply(op.matmul(q, k, False, True), op.constant(np.float32(32**-0.5)))
    return ov.Model([op.matmul(op.softmax(scores, -1), v, False, False)], [q, k, v])


@pytest.mark.parametrize("written_out", [False, True], ids=["operation", "written out"])
def test_models_follow_the_precision(written_out: bool, tmp_path: str) -> None:
    ov.save_model(model(written_out), f"{tmp_path}/model.xml", compress_to_fp16=False)
    inputs = [numbers(1, 2, 40, 32, seed=seed) for seed in range(3)]
    results = {}
    for precision in ("f32", "bf16"):
        config = {"INFERENCE_PRECISION_HINT": precision, "PERF_COUNT": True}
        request = ir.compile_model(
            f"{tmp_path}/model.xml", "CPU", config, backend="native"
        ).create_infer_request()
        results[precision] = request.infer(inputs)[0]
        names = {info.exec_type for info in request.get_profiling_info()}
        assert ("sdpa_bf16" in names) is (precision == "bf16")
    wanted = emulated(*inputs, None, 32**-0.5, False)
    np.testing.assert_allclose(results["bf16"], wanted, rtol=1e-3, atol=1e-3)
    exact = core().compile_model(f"{tmp_path}/model.xml", "CPU", PLUGIN)(inputs)[0]
    np.testing.assert_allclose(results["f32"], exact, rtol=1e-4, atol=1e-5)


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
