"""The special functions against the standard library."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from ir_runtime.ops.kernels.special import erf, erfinv, gelu, log_softmax, softmax

EDGES = [0.0, -0.0, 5e-324, -1e-300, 0.46875, np.nextafter(0.46875, 1), 4.0, np.nextafter(4, 5), 6.0, 30.0]


def truth(x: np.ndarray) -> np.ndarray:
    return np.array([math.erf(v) for v in x.astype(float).flat]).reshape(x.shape)


def test_erf_in_f64() -> None:
    x = np.concatenate([np.linspace(-7, 7, 20001), np.geomspace(1e-300, 10, 2001), EDGES])
    np.testing.assert_allclose(erf(x), truth(x), rtol=5e-16, atol=0)  # two ulps


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_erf_in_narrow_types_is_off_by_one_ulp_at_most(dtype: type) -> None:
    x = np.concatenate([np.linspace(-5, 5, 20001), np.geomspace(1e-30, 1, 101)]).astype(dtype)
    found, wanted = erf(x), truth(x).astype(dtype)
    assert found.dtype == dtype
    code = np.int32 if dtype is np.float32 else np.int16
    apart = found.view(code).astype(int) - wanted.view(code).astype(int)
    assert np.abs(apart).max() <= 1
    assert (apart != 0).mean() < 0.03


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-16), (np.float32, 2e-8)])
def test_gelu_below_zero(dtype: type, atol: float) -> None:
    x = np.linspace(-8, 3, 2001).astype(dtype)
    wanted = [v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x.astype(float)]
    np.testing.assert_allclose(gelu(x), wanted, rtol=2e-7 if dtype is np.float32 else 1e-15, atol=4 * atol)


def test_erf_of_what_is_no_ordinary_number() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0])
    found = erf(x)
    np.testing.assert_array_equal(found, [np.nan, 1, -1, 0, 0])
    assert np.signbit(found[3])
    assert not np.signbit(found[4])


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
def test_erf_keeps_the_shape(shape: tuple[int, ...]) -> None:
    found = erf(np.ones(shape, np.float32))
    assert isinstance(found, np.ndarray)
    assert found.shape == shape


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_and_its_logarithm(axis: int) -> None:
    x = np.random.default_rng(0).normal(0, 5, (3, 4, 5))
    found = softmax(x, axis)
    np.testing.assert_allclose(found.sum(axis), 1)
    np.testing.assert_allclose(np.log(found), log_softmax(x, axis))


def test_softmax_does_not_overflow() -> None:
    x = np.array([1e38, 1e38, -1e38], np.float32)
    np.testing.assert_array_equal(softmax(x, 0), np.array([0.5, 0.5, 0], np.float32))


def test_erfinv_undoes_erf() -> None:
    x = np.concatenate(
        [np.linspace(-1, 1, 20001)[1:-1], np.geomspace(1e-300, 0.9, 2001), 1 - np.geomspace(1e-15, 0.1, 99)]
    )
    np.testing.assert_allclose(truth(erfinv(x)), x, rtol=1e-15, atol=0)
    far = 1 - np.geomspace(1e-15, 0.1, 99)
    # Out here, an error of y is 2 y^2 (up to 60) times as large in erfc(y).
    np.testing.assert_allclose([math.erfc(y) for y in erfinv(far)], 1 - far, rtol=3e-14, atol=0)


def test_erfinv_of_what_is_no_ordinary_number() -> None:
    found = erfinv(np.array([np.nan, 1, -1, 1.5, -np.inf, 0, -0.0], np.float32))
    np.testing.assert_array_equal(found, [np.nan, np.inf, -np.inf, np.nan, np.nan, 0, 0])
    assert found.dtype == np.float32
    assert np.signbit(found[-1])
