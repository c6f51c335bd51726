"""The special functions against the standard library."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from ir_runtime.kernels.special import erf

EDGES = [0.0, -0.0, 5e-324, -1e-300, 0.46875, np.nextafter(0.46875, 1), 4.0, np.nextafter(4, 5), 6.0, 30.0]


def truth(x: np.ndarray) -> np.ndarray:
    return np.array([math.erf(v) for v in x.astype(float).flat]).reshape(x.shape)


def test_erf_in_f64() -> None:
    x = np.concatenate([np.linspace(-7, 7, 20001), np.geomspace(1e-300, 10, 2001), EDGES])
    np.testing.assert_allclose(erf(x), truth(x), rtol=5e-16, atol=0)  # two ulps


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_erf_in_narrow_types_is_rounded_once(dtype: type) -> None:
    x = np.linspace(-5, 5, 4001).astype(dtype)
    assert erf(x).dtype == dtype
    np.testing.assert_array_equal(erf(x), truth(x).astype(dtype))


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
