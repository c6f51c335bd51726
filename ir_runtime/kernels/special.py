"""Special functions that NumPy lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["erf", "log_softmax", "sigmoid", "softmax"]

Floats = NDArray[Any]

# W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969): numerators
# and denominators, the highest power first. Near zero in x squared, then in x, then in 1 / x squared.
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

ONE = 6.0  # from here on, erf is 1 in f64


def erf(x: Floats) -> Floats:
    """The error function, within two ulps; computed in f64, returned in the type of ``x``.

    >>> erf(np.array([0.0, 0.5, -1.0, np.inf]))
    array([ 0.        ,  0.52049988, -0.84270079,  1.        ])
    """
    given = np.asarray(x)
    size = np.minimum(np.abs(given.astype(np.float64)), ONE)
    found = np.empty_like(size)
    near, far = size <= 0.46875, size > 4
    for part, function in ((near, _near), (far, _far), (~(near | far), _middle)):
        found[part] = function(size[part])
    return np.asarray(np.copysign(found, given).astype(given.dtype))


def _near(x: Floats) -> Floats:
    return x * _ratio(NEAR, x * x)


def _middle(x: Floats) -> Floats:
    return np.asarray(1 - np.exp(-x * x) * _ratio(MIDDLE, x))


def _far(x: Floats) -> Floats:
    inverse = 1 / (x * x)
    tail = (1 / np.sqrt(np.pi) - inverse * _ratio(FAR, inverse)) / x
    return np.asarray(1 - np.exp(-x * x) * tail)


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Floats) -> Floats:
    above, below = (np.polyval(np.asarray(c), x) for c in coefficients)
    return np.asarray(above / below)


def sigmoid(x: Floats) -> Floats:
    """One over one plus the exponential of ``-x``."""
    return np.asarray(1 / (1 + np.exp(-x)))


def softmax(x: Floats, axis: int) -> Floats:
    """Exponentials, scaled so that they sum to one along ``axis``."""
    powers = np.exp(x - _largest(x, axis))
    return np.asarray(powers / _sum(powers, axis))


def log_softmax(x: Floats, axis: int) -> Floats:
    """The logarithm of `softmax`, also where that is too small to be a number."""
    below = x - _largest(x, axis)
    return np.asarray(below - np.log(_sum(np.exp(below), axis)))


def _largest(x: Floats, axis: int) -> Floats:
    return np.asarray(np.max(x, axis=axis, keepdims=True, initial=-np.inf))


def _sum(x: Floats, axis: int) -> Floats:
    return np.asarray(np.sum(x, axis=axis, keepdims=True, dtype=np.float64)).astype(x.dtype)
