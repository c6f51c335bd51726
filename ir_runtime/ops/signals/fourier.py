"""Discrete Fourier transforms (DFT, IDFT, RDFT, IRDFT) along given axes."""

from __future__ import annotations

from functools import reduce
from typing import ClassVar, NamedTuple

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension, Interval
from ...ir.formula import Count, log2, product, total
from ...ir.operands import Lengths, Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_INDEX_64, T_SHORT_FLOAT, Input, Op, Output, op
from .._lengths import common_count, normalize_axes
from ._complex import PAIRS, as_complex, as_pairs, floats

COMPLEX = f"complex numbers, {PAIRS} along the last axis"


class FourierTransform(Op):
    """Base of the transforms. A member defines the transform of complex or real numbers.

    Axes refer to the complex numbers, without the axis of their parts. OpenVINO's CPU plugin fails or gives
    garbage for no axes and for an axis truncated to nothing; and for real numbers, if ``signal_size`` is -1
    or larger than the data. The package has no reference. OpenVINO does not accept f64, which the pages allow
    as far as supported.
    """

    data = Input(T_SHORT_FLOAT, COMPLEX)
    axes = Input(T_INDEX_64, "axes to transform, 1-D, in any order; negative ones count from the end")
    signal_size = Input(
        T_INDEX_64,
        "how long to make each of these axes first, by cutting or by adding zeros at the end; -1, or nothing "
        "at all, means as long as it is",
        optional=True,
    )
    transformed = Output(T_SHORT_FLOAT, COMPLEX)

    parts: ClassVar[bool] = True
    """Whether the data are complex."""

    def infer(self, data: Value, axes: Value, signal_size: Value | None = None) -> PartialShape:
        count = common_count(axes=axes, signal_size=signal_size)
        sizes = None if signal_size is None else _sizes(signal_size)
        rank = self._rank(data, axes)
        if rank is None:
            return PartialShape.dynamic()
        claims = _claims(_places(axes, rank), sizes, -1 if signal_size is None else Interval(), count)
        return self.outward(
            [self._transformed_length(axis, dim, claims) for axis, dim in enumerate(data.shape[:rank])]
        )

    def evaluate(self, data: Array, axes: Array, signal_size: Array | None = None) -> Array:
        inputs = (data, axes) if signal_size is None else (data, axes, signal_size)
        shape = self.infer(*map(Value.constant, inputs)).static
        if 0 in shape or 0 in data.shape:  # NumPy refuses to transform these
            return np.zeros(shape, data.dtype)
        rank = data.ndim - self.parts
        places = [int(a) % rank for a in axes]
        requested = [-1] * len(places) if signal_size is None else signal_size.tolist()
        sizes = [data.shape[p] if n == -1 else n for n, p in zip(requested, places, strict=True)]
        if places and requested[-1] == -1:
            sizes[-1] = self.along_last(data.shape[places[-1]])
        return self.transform(data, sizes, places).astype(data.dtype, copy=False)

    def transform(self, data: Array, sizes: list[int], places: list[int]) -> Array:
        """Transform along non-empty axes of the given sizes."""
        raise NotImplementedError

    def outward(self, lengths: list[Dimension]) -> PartialShape:
        """Return the shape of the output from the lengths of axes."""
        return PartialShape([*lengths, 2])

    def along_last(self, length: int) -> int:
        """Return the length of the signal for data of a length along the last axis."""
        return length

    def halved(self, length: Dimension) -> Dimension:
        """Return the length kept of a signal along the last axis."""
        return length

    def _rank(self, data: Value, axes: Value) -> int | None:
        if data.shape.rank is None:
            return None
        if data.shape.rank < 1 + self.parts or (self.parts and not data.shape[-1].contains(2)):
            expected = (
                f"rank 2 or more, and 2 as its last dimension, {PAIRS}" if self.parts else "rank 1 or more"
            )
            raise InferenceError(
                f"data must have {expected}, found {data.shape}",
                clause="data has at least one axis to transform, and a last axis of length 2 if it is complex",
            )
        rank = data.shape.rank - self.parts
        if axes.count.min > rank:
            rest = ", without the last one" if self.parts else ""
            raise InferenceError(
                f"axes holds {axes.count} numbers, but data {data.shape} has {rank} axes to transform{rest}",
                clause="there are no more axes than data has to transform",
            )
        return rank

    def _transformed_length(self, axis: int, dim: Dimension, claims: list[TransformedAxis]) -> Dimension:
        """Return the length of an axis after the transform, joined over all axes that may be this one."""
        own = [claim for claim in claims if claim.place == axis]
        possible = [self._resize(dim, c) for c in own or claims if c.place in (axis, None)]
        return reduce(Dimension.join, possible if own else [dim, *possible])

    def _resize(self, dim: Dimension, claim: TransformedAxis) -> Dimension:
        whole = Dimension.of(dim.map(self.along_last)) if claim.last else dim
        lowest = claim.size if isinstance(claim.size, int) else claim.size.min
        if claim.size == -1:
            length = whole
        elif lowest is None or lowest < 0:
            length = whole.join(Dimension.of(claim.size))
        else:
            length = Dimension.of(claim.size)
        return self.halved(length) if claim.last else length

    def flops(self, operands: Operands) -> Count:
        """Return 5 n log2 n FLOPs for each transform of n complex numbers, half of it for real ones."""
        *points, _ = self._complex(operands)
        axes = operands.content(1)
        places = range(len(points)) if axes is None else [int(a) % len(points) for a in axes.flat]
        return 5 * product(points) * total(log2(points[axis]) for axis in places)

    def _complex(self, operands: Operands) -> Lengths:
        """Return the lengths of the complex tensor as large as the transform."""
        return operands.outputs[0]


class TransformedAxis(NamedTuple):
    """An axis to transform: its position, its new length, and whether it is the last one."""

    place: int | None
    size: int | Interval
    last: bool


def _claims(
    places: list[int | None] | None,
    sizes: list[int | Interval] | None,
    size: int | Interval,
    count: int | None,
) -> list[TransformedAxis]:
    """Return the axes, of unknown position and size if necessary; two if even their number is unknown."""
    if count is None:
        return [TransformedAxis(None, size, False), TransformedAxis(None, size, True)]
    pairs = zip(places or [None] * count, sizes or [size] * count, strict=True)
    return [TransformedAxis(place, size, i + 1 == count) for i, (place, size) in enumerate(pairs)]


def _places(axes: Value, rank: int) -> list[int | None] | None:
    """Return the axes as far as known."""
    numbers = axes.numbers()
    if numbers is None:
        return None
    normalized = iter(normalize_axes((n for n in numbers if isinstance(n, int)), rank))
    return [next(normalized) if isinstance(n, int) else None for n in numbers]


def _sizes(signal_size: Value) -> list[int | Interval] | None:
    """Return the requested lengths as far as known."""
    numbers = signal_size.numbers()
    for n in numbers or ():
        highest = n.max if isinstance(n, Interval) else n
        if highest is not None and highest < -1:
            raise InferenceError(
                f"signal_size holds {highest}; a length is expected, or -1 for that of the data",
                clause="each of signal_size is at least -1",
            )
    return None if numbers is None else list(numbers)


@op("DFT-7")
class DFT(FourierTransform):
    """The discrete Fourier transform of ``data`` along ``axes``."""

    def transform(self, data: Array, sizes: list[int], places: list[int]) -> Array:
        return as_pairs(np.fft.fftn(as_complex(data), sizes, places))


@op("IDFT-7")
class IDFT(FourierTransform):
    """Inverse discrete Fourier transform of ``data`` along ``axes``, divided by the number of elements."""

    def transform(self, data: Array, sizes: list[int], places: list[int]) -> Array:
        return as_pairs(np.fft.ifftn(as_complex(data), sizes, places))


class RealFourierTransform(FourierTransform):
    """A transform with one real side; the other is stored by half along the last of ``axes``."""

    def _rank(self, data: Value, axes: Value) -> int | None:
        rank = super()._rank(data, axes)
        if axes.count == 0:
            raise InferenceError("axes is empty; at least one axis is expected", clause="axes is not empty")
        return rank


@op("RDFT-9")
class RDFT(RealFourierTransform):
    """The first half of the discrete Fourier transform of real ``data`` along ``axes``.

    It ends in the middle of the last of ``axes``; the rest follows by symmetry.
    """

    data = Input(T_SHORT_FLOAT, "real numbers")

    parts = False

    def halved(self, length: Dimension) -> Dimension:
        return Dimension.of(length.map(lambda n: n // 2 + 1 if n else 0))

    def transform(self, data: Array, sizes: list[int], places: list[int]) -> Array:
        return as_pairs(np.fft.rfftn(floats(data), sizes, places))


@op("IRDFT-9")
class IRDFT(RealFourierTransform):
    """Inverse of RDFT: the real signal whose transform along ``axes`` is ``data``.

    Where ``signal_size`` does not tell how many there are along the last of ``axes``, they are even.
    """

    transformed = Output(T_SHORT_FLOAT, "real numbers")

    def outward(self, lengths: list[Dimension]) -> PartialShape:
        return PartialShape(lengths)

    def along_last(self, length: int) -> int:
        return max(2 * (length - 1), 0)

    def transform(self, data: Array, sizes: list[int], places: list[int]) -> Array:
        return np.fft.irfftn(as_complex(data), sizes, places)

    def _complex(self, operands: Operands) -> Lengths:
        return operands.inputs[0]
