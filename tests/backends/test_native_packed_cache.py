"""Quantized rows of KV caches in the native backend, and attention to them, against a NumPy emulation.

The file is rerun for each vector instruction set; only some have byte masks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
from harness.other_vectors import AGAIN, same_with_other_vectors
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.kernels import quantized_cache, sdpa
from ir_runtime.backends.native.kernels.quantized_cache import pack, packed_attention, unpack
from ir_runtime.backends.native.threading import parallel
from ir_runtime.ir.quantized_cache import PREFIX, pack_rows, unpack_rows
from ir_runtime.ir.tensor import Array

quick = settings(max_examples=8 if AGAIN in os.environ else 40, deadline=None)
WIDTHS = [1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 80, 130, 257]


@pytest.fixture(
    params=[2] if AGAIN in os.environ else [1, 2],
    ids=lambda n: f"threads={n}",
    autouse=True,
    scope="module",
)
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest caches."""
    with pytest.MonkeyPatch.context() as patch, at_most(request.param), backend.around():
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        patch.setattr(quantized_cache, "CHUNK", 64)
        yield


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("width", WIDTHS)
def test_packed_rows_match_the_emulation(width: int) -> None:
    x = numbers(2, 3, 5, width) * np.float32(10) ** np.arange(-2, 3, dtype=np.float32)[:, None]
    x[0, 0, 0], x[0, 0, 1], x[0, 0, 2] = 7, 0, np.linspace(-3e38, 3e30, width)
    np.testing.assert_array_equal(pack(x), pack_rows(x))


@pytest.mark.parametrize("width", WIDTHS)
def test_unpacked_rows(width: int) -> None:
    packed = pack_rows(numbers(2, 3, 5, width))
    wanted = unpack_rows(packed)
    np.testing.assert_allclose(unpack(packed), wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(unpack(packed).min(axis=-1), wanted.min(axis=-1))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_error_is_at_most_half_a_level(width: int) -> None:
    x = numbers(4, 9, width)
    bound = (x.max(axis=-1, keepdims=True) - x.min(axis=-1, keepdims=True)) / 255 / 2
    assert (np.abs(unpack(pack(x)) - x) <= bound * 1.0001 + 1e-6).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 16, 35])
def test_a_row_with_an_infinity_or_nan_becomes_nan(wrong: float, place: int) -> None:
    x = numbers(3, 36)
    x[1, place] = wrong
    for found in (unpack(pack(x)), unpack_rows(pack_rows(x))):
        assert np.isnan(found[1]).all()
        assert np.isfinite(found[[0, 2]]).all()


def test_a_row_whose_range_overflows_f32_becomes_nan() -> None:
    x = np.float32([[3e38, -3e38, 0], [1, 2, 3]])
    for found in (unpack(pack(x)), unpack_rows(pack_rows(x))):
        assert np.isnan(found[0]).all()
        assert np.isfinite(found[1]).all()


@pytest.mark.parametrize("shape", [(0, 4), (2, 0, 4), (2, 3, 0)])
def test_empty_rows(shape: tuple[int, ...]) -> None:
    packed = pack(np.empty(shape, np.float32))
    assert packed.shape == pack_rows(np.empty(shape, np.float32)).shape == (*shape[:-1], shape[-1] + PREFIX)
    assert unpack(packed).shape == shape


def attention(q: Array, k: Array, v: Array, mask: Array | None, factor: float, causal: bool) -> Array:
    """Attention by its definition, in f64."""
    times = q.shape[1] // k.shape[1]
    keys, values = (np.repeat(unpack_rows(x).astype(np.float64), times, 1) for x in (k, v))
    scores = q.astype(np.float64) @ keys.swapaxes(-1, -2) * factor
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    scores = scores if mask is None else scores + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True) @ values)


@quick
@given(st.data())
def test_attention(data: st.DataObject) -> None:
    batch, groups, times = (data.draw(st.integers(*pair)) for pair in ((1, 3), (1, 3), (1, 9)))
    rows, keys = data.draw(st.integers(1, sdpa.MAX_DECODE_ROWS + 2)), data.draw(st.integers(1, 80))
    width, depth = data.draw(st.sampled_from(WIDTHS)), data.draw(st.sampled_from(WIDTHS))
    q = numbers(batch, groups * times, rows, width)
    k, v = (
        pack_rows(numbers(batch, groups, keys, width, seed=1)),
        pack_rows(numbers(batch, groups, keys, depth)),
    )
    how = data.draw(st.sampled_from(["", "causal", "mask", "boolean"]))
    mask = None
    if how in ("mask", "boolean"):
        mask = numbers(batch, 1, rows, keys, seed=2)
    wanted = attention(
        q, k, v, np.where(mask > 0, 0, -1e9) if how == "boolean" else mask, 0.3, how == "causal"
    )
    given = None if mask is None else mask > 0 if how == "boolean" else mask
    if how == "boolean" and not (mask > 0).any(-1).all():
        return  # rows that see nothing are NaN
    found = packed_attention(q, k, v, given, 0.3, how == "causal")
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=3e-5, atol=3e-5)


def test_attention_over_part_of_a_buffer() -> None:
    """A growing cache is the first rows of a larger buffer."""
    k, v = (pack_rows(numbers(2, 2, 50, 24, seed=seed)) for seed in (1, 2))
    q = numbers(2, 4, 1, 24)
    part = (slice(None), slice(None), slice(37))
    found = packed_attention(q, k[part], v[part], None, 0.2, False)
    np.testing.assert_allclose(found, attention(q, k[part], v[part], None, 0.2, False), rtol=3e-5, atol=3e-5)


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
