"""Special functions that NumPy lacks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..._util.arrays import Array, DType

__all__ = ["erf", "erfinv", "gelu", "log_softmax", "sigmoid", "softmax"]

Floats = Array

# W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969): numerators and
# denominators, the highest power first. Polynomials are in x squared near zero, then in x, then in 1 / x squared.
NEAR = (
    (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2,
     3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)  # fmt: skip
MIDDLE = (
    (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
     2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
     1.23033935479799725e3),
    (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
     3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3),
)  # fmt: skip
FAR = (
    (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
     1.60837851487422766e-2, 6.58749161529837803e-4),
    (1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1, 6.05183413124413191e-2,
     2.33520497626869185e-3),
)  # fmt: skip

# M. J. Wichura, "Algorithm AS 241: The percentage points of the normal distribution", Appl. Statist. 37
# (1988): as above, around the median and for the tails.
CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
TAIL = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
     3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0),
)  # fmt: skip
FAR_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990,
     6.65790464350110377720),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0),
)  # fmt: skip

ONE = 6.0  # erf is 1 in f64 from here on

# For f32 and narrower types: erf(x) / x in x squared for x up to 4, with an error below 3e-9.
SHORT = (
    (6.790476498917082e-6, 4.112576394322302e-4, 4.226584502365594e-3, 5.574956853224069e-2,
     1.9288272348760208e-1, 1.1283791699503933),
    (2.604400877334968e-7, 7.255734312624946e-5, 1.4211999677581082e-3, 1.6295266265434073e-2,
     1.1749655441879438e-1, 5.042712964128515e-1, 1.0),
)  # fmt: skip
SHORT_ONE = 4.0  # erf is 1 in f32 from here on

BLOCK = 1 << 13  # elements per block, which fits into the cache


def erf(x: Floats) -> Floats:
    """Compute the error function, with an error of at most two ulps in f64 and one ulp in narrower types.

    >>> erf(np.array([0.0, 0.5, -1.0, np.inf]))
    array([ 0.        ,  0.52049988, -0.84270079,  1.        ])
    """
    return _blockwise(_erf(x.dtype), x)


def erfinv(x: Floats) -> Floats:
    """Compute the inverse of `erf` in f64, rounded to the dtype of ``x``; infinite at -1 and 1, NaN beyond.

    >>> erfinv(np.array([0.5, 0.0, -1.0, 2.0]))
    array([0.47693628, 0.        ,       -inf,        nan])
    """
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        depth = np.sqrt(-np.log((1 - np.abs(wide)) / 2))  # from the probability of one tail
        tail = np.where(depth <= 5, _ratio(TAIL, depth - 1.6), _ratio(FAR_TAIL, depth - 5))
        centre = wide / 2 * _ratio(CENTRE, 0.180625 - wide * wide / 4)
    inverse = np.where(np.abs(wide) <= 0.85, centre, np.copysign(tail, wide)) / np.sqrt(2)
    inverse = np.where(np.abs(wide) == 1, np.copysign(np.inf, wide), inverse)
    return np.asarray(inverse.astype(x.dtype))


def gelu(x: Floats) -> Floats:
    """Compute GELU: each element times the normal cumulative distribution function of it."""
    inner = _erf(x.dtype)
    return _blockwise(lambda wide: 0.5 * wide * (1 + inner(wide / math.sqrt(2))), x)


def _blockwise(function: Callable[[Floats], Floats], x: Floats) -> Floats:
    """Apply a function of f64 arrays block by block, and round the results to the dtype of ``x``."""
    flat, result = x.ravel(), np.empty(x.size, x.dtype)
    for start in range(0, x.size, BLOCK):
        block = slice(start, start + BLOCK)
        result[block] = function(flat[block].astype(np.float64))
    return result.reshape(x.shape)


def _erf(dtype: DType) -> Callable[[Floats], Floats]:
    return _long if dtype.itemsize == 8 else _short


def _short(x: Floats) -> Floats:
    inside = np.clip(x, -SHORT_ONE, SHORT_ONE)
    return np.where(np.abs(x) < SHORT_ONE, inside * _ratio(SHORT, inside * inside), np.sign(x))


def _long(x: Floats) -> Floats:
    size = np.minimum(np.abs(x), ONE)
    result = np.empty_like(size)
    near, far = size <= 0.46875, size > 4
    for part, function in ((near, _near), (far, _far), (~(near | far), _middle)):
        result[part] = function(size[part])
    return np.asarray(np.copysign(result, x))


def _near(x: Floats) -> Floats:
    return x * _ratio(NEAR, x * x)


def _middle(x: Floats) -> Floats:
    return np.asarray(1 - np.exp(-x * x) * _ratio(MIDDLE, x))


def _far(x: Floats) -> Floats:
    inverse = 1 / (x * x)
    tail = (1 / math.sqrt(math.pi) - inverse * _ratio(FAR, inverse)) / x
    return np.asarray(1 - np.exp(-x * x) * tail)


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Floats) -> Floats:
    above, below = (_polynomial(c, x) for c in coefficients)
    above /= below
    return above


def _polynomial(coefficients: tuple[float, ...], x: Floats) -> Floats:
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value *= x
        value += coefficient
    return value


def sigmoid(x: Floats) -> Floats:
    """Compute the logistic function, ``1 / (1 + exp(-x))``."""
    return np.asarray(1 / (1 + np.exp(-x)))


def softmax(x: Floats, axis: int) -> Floats:
    """Compute softmax along ``axis``."""
    powers = np.exp(x - _largest(x, axis))
    return np.asarray(powers / _sum(powers, axis))


def log_softmax(x: Floats, axis: int) -> Floats:
    """Compute the logarithm of `softmax`, without underflow."""
    below = x - _largest(x, axis)
    return np.asarray(below - np.log(_sum(np.exp(below), axis)))


def _largest(x: Floats, axis: int) -> Floats:
    return np.asarray(np.max(x, axis=axis, keepdims=True, initial=-np.inf))


def _sum(x: Floats, axis: int) -> Floats:
    return np.asarray(np.sum(x, axis=axis, keepdims=True, dtype=np.float64)).astype(x.dtype)
