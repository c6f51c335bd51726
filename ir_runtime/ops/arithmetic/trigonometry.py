"""Trigonometric and hyperbolic functions, and their inverses.

For integers, OpenVINO's reference rounds the result, except for Sin and Asin, where it truncates; its plugin
rounds all.
"""

from __future__ import annotations

import numpy as np

from ...ir.tensor import Array
from .._define.operation import op
from ..elementwise import RealUnary


@op("Sin-1")
class Sin(RealUnary):
    """Sine of ``data``, in radians."""

    ufunc = np.sin
    rounds = False


@op("Cos-1")
class Cos(RealUnary):
    """Cosine of ``data``, in radians."""

    ufunc = np.cos


@op("Tan-1")
class Tan(RealUnary):
    """Tangent of ``data``, in radians."""

    ufunc = np.tan


@op("Asin-1")
class Asin(RealUnary):
    """Inverse sine of ``data``, in radians; NaN beyond -1 and 1."""

    ufunc = np.arcsin
    rounds = False


@op("Acos-1")
class Acos(RealUnary):
    """Inverse cosine of ``data``, in radians; NaN beyond -1 and 1."""

    ufunc = np.arccos


@op("Atan-1")
class Atan(RealUnary):
    """Inverse tangent of ``data``, in radians."""

    ufunc = np.arctan


@op("Sinh-1")
class Sinh(RealUnary):
    """Hyperbolic sine of ``data``."""

    ufunc = np.sinh


@op("Cosh-1")
class Cosh(RealUnary):
    """Hyperbolic cosine of ``data``."""

    ufunc = np.cosh


@op("Tanh-1")
class Tanh(RealUnary):
    """Hyperbolic tangent of ``data``."""

    ufunc = np.tanh


# The pages name version 3, but opset3 lacks these three; files say opset4.


@op("Asinh-4", spec="arithmetic/asinh-3")
class Asinh(RealUnary):
    """Inverse hyperbolic sine of ``data``."""

    ufunc = np.arcsinh


@op("Acosh-4", spec="arithmetic/acosh-3")
class Acosh(RealUnary):
    """Inverse hyperbolic cosine of ``data``; NaN below 1."""

    ufunc = np.arccosh


@op("Atanh-4", spec="arithmetic/atanh-3")
class Atanh(RealUnary):
    """Inverse hyperbolic tangent of ``data``; infinite at -1 and 1, NaN beyond."""

    ufunc = np.arctanh

    def evaluate(self, data: Array) -> Array:
        if data.dtype.kind not in "iu":
            return super().evaluate(data)
        # As in the reference: integers other than 0 give the ends of their type.
        ends = np.iinfo(data.dtype)
        return np.where(data > 0, ends.max, np.where(data < 0, ends.min, 0)).astype(data.dtype)
