"""Separable resampling: each output element is a weighted sum of a few input elements (taps).

The indices and the weights of taps are two matrices ``[positions, taps]`` per axis. Coordinates and weights are
computed in f32, as in OpenVINO; another precision would select other neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..._util.arrays import Array, DType
from ...limits import check_array_size
from .matmul import from_accumulator

__all__ = ["Axis", "Filter", "Taps", "along_each", "cubic_weights", "resample", "rounded"]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis to resample: its index, its lengths before and after, and the scale, the factor by which it grows."""

    number: int
    before: int
    after: int
    scale: float

    @property
    def stays(self) -> bool:
        """Whether the axis is unchanged."""
        return self.scale == 1 or self.before == self.after


@dataclass(frozen=True, slots=True)
class Taps:
    """The input positions and their weights for each output position along an axis."""

    number: int
    index: Array
    weight: Array

    def __len__(self) -> int:
        return int(self.index.shape[1])

    def take(self, x: Array, tap: int) -> Array:
        """Gather the input elements of a tap for all output positions."""
        return np.asarray(x.take(self.index[:, tap], self.number, mode="clip"))

    def normalize(self) -> Taps:
        """Return the taps with weights scaled to a sum of 1."""
        return Taps(self.number, self.index, _normalize(self.weight))

    def compact(self) -> Taps:
        """Move taps of weight 0 to the end, and drop as many as all positions have."""
        is_zero = self.weight == 0
        count = max(1, int(np.count_nonzero(~is_zero, axis=1).max(initial=1)))
        order = np.argsort(is_zero, axis=1, kind="stable")[:, :count]
        return Taps(
            self.number, np.take_along_axis(self.index, order, 1), np.take_along_axis(self.weight, order, 1)
        )

    def column(self, tap: int, rank: int) -> Array:
        """Return the weights of a tap, shaped to broadcast to an array of ``rank``."""
        return self.weight[:, tap].reshape((-1,) + (1,) * (rank - self.number - 1))


_HALF = np.float32(0.5)


def _half_pixel(x: Array, a: Axis) -> Array:
    return (x + _HALF) / np.float32(a.scale) - _HALF


# Coordinate transformation modes: output position to input coordinate.
_COORDINATES: Mapping[str, Callable[[Array, Axis], Array]] = {
    "half_pixel": _half_pixel,
    "pytorch_half_pixel": lambda x, a: _half_pixel(x, a) if a.after > 1 else x * 0,
    "asymmetric": lambda x, a: x / np.float32(a.scale),
    "tf_half_pixel_for_nn": lambda x, a: (x + _HALF) / np.float32(a.scale),
    "align_corners": lambda x, a: x * np.float32(a.before - 1) / np.float32(max(a.after - 1, 1)),
}


def rounded(x: Array) -> Array:
    """Round to the nearest integers, halves away from zero."""
    wide = x.astype(np.float64)  # in f32, adding 0.5 to the largest number below 0.5 gives 1
    return np.asarray(np.trunc(wide + np.copysign(0.5, wide)))


# Nearest modes: input coordinate to input position; the second argument is whether the axis shrinks.
_NEAREST: Mapping[str, Callable[[Array, bool], Array]] = {
    "round_prefer_floor": lambda x, _: np.where(x == np.trunc(x) + _HALF, np.floor(x), rounded(x)),
    "round_prefer_ceil": lambda x, _: rounded(x),
    "floor": lambda x, _: np.floor(x),
    "ceil": lambda x, _: np.ceil(x),
    "simple": lambda x, shrinks: np.ceil(x) if shrinks else np.trunc(x),
}


@dataclass(frozen=True, slots=True)
class Filter:
    """An interpolation filter, with the settings of Interpolate."""

    mode: str
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cube_coeff: float = -0.75
    antialias: bool = False
    cut: bool = True
    """Whether 8-bit integers are truncated in modes linear_onnx and cubic, instead of rounded."""

    def steps(self, axes: Sequence[Axis]) -> list[Taps]:
        """Return the taps of each axis that is resampled."""
        # In mode linear, a single axis that shrinks stretches the triangles of all axes.
        stretch = self.antialias and any(a.scale < 1 for a in axes)
        pillow = self.mode.endswith("_pillow")
        return [self.taps(a, stretch) for a in axes if not (a.before == a.after if pillow else a.stays)]

    def taps(self, axis: Axis, stretch: bool) -> Taps:
        """Return the taps of an axis; ``stretch`` widens the triangles of mode linear (antialiasing)."""
        if self.mode == "linear":
            return self._linear(axis, stretch)
        return {
            "nearest": self._nearest,
            "linear_onnx": self._linear_onnx,
            "cubic": self._cubic,
            "bilinear_pillow": self._pillow,
            "bicubic_pillow": self._pillow,
            "area": self._area,
        }[self.mode](axis)

    @staticmethod
    def _neighbours(axis: Axis, first: int, stop: int) -> Array:
        """Return the offsets of taps from ``first`` up to, not including, ``stop``, after checking that the taps of an axis fit into memory."""
        check_array_size(axis.after * (stop - first), 8)
        return np.arange(first, stop)

    def _at(self, axis: Axis) -> Array:
        return _COORDINATES[self.coordinates](np.arange(axis.after, dtype=np.float32), axis)

    def _nearest(self, axis: Axis) -> Taps:
        index = _NEAREST[self.nearest](self._at(axis), axis.scale < 1)[:, None]
        return Taps(axis.number, _inside(index, axis), np.ones(index.shape, np.float32))

    def _linear_onnx(self, axis: Axis) -> Taps:
        at = self._at(axis).clip(0, axis.before - 1)
        index = np.floor(at)[:, None] + self._neighbours(axis, 0, 2)
        part = at - np.floor(at)
        return Taps(axis.number, _inside(index, axis), np.stack([1 - part, part], 1))

    def _cubic(self, axis: Axis) -> Taps:
        at = self._at(axis)
        low = np.floor(at)
        index = low[:, None] + self._neighbours(axis, -1, 3)
        return Taps(axis.number, _inside(index, axis), cubic_weights(at - low, self.cube_coeff))

    def _linear(self, axis: Axis, stretch: bool) -> Taps:
        """Return the taps of a triangle around each coordinate, all of which may have weight 0 if it is narrow."""
        slope = np.float32(axis.scale if stretch else 1)
        reach = 2 if axis.scale > 1 else int(np.ceil(np.float32(2) / slope))
        at = self._at(axis)
        if reach > axis.before:  # for a tiny scale, take every element once
            index = np.broadcast_to(self._neighbours(axis, 0, axis.before), (axis.after, axis.before))
        else:
            index = rounded(at)[:, None] + self._neighbours(axis, -reach, reach + 1)
        weight = np.maximum(1 - np.abs(slope * (at[:, None] - index.astype(np.float32))), 0)
        weight[(index < 0) | (index >= axis.before)] = 0
        return Taps(axis.number, _inside(index, axis), weight)

    def _pillow(self, axis: Axis) -> Taps:
        """Return the taps of Pillow's filters, computed in f64 with a scale that follows from the lengths."""
        ratio = axis.before / axis.after
        width = max(ratio, 1.0)
        support = (1 if self.mode == "bilinear_pillow" else 2) * width
        centre = (np.arange(axis.after) + 0.5) * ratio
        first = np.maximum(np.trunc(centre - support + 0.5), 0)[:, None]
        end = np.minimum(np.trunc(centre + support + 0.5), axis.before)[:, None]
        index = first + self._neighbours(axis, 0, int(np.ceil(support)) * 2 + 1)
        distance = np.abs((index - centre[:, None] + 0.5) / width)
        if self.mode == "bilinear_pillow":
            weight = np.maximum(1 - distance, 0)
        else:
            a = self.cube_coeff
            near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
            far = (((distance - 5) * distance + 8) * distance - 4) * a
            weight = np.where(distance < 1, near, np.where(distance < 2, far, 0))
        return Taps(axis.number, _inside(index, axis), _normalize(np.where(index < end, weight, 0)))

    def _area(self, axis: Axis) -> Taps:
        """Return the taps of means over equal parts of the input axis, weighted by coverage."""
        ratio = axis.before / axis.after
        begin = np.arange(axis.after)[:, None] * ratio
        index = np.floor(begin) + self._neighbours(axis, 0, int(np.ceil(ratio)) + 1)
        weight = np.minimum(index + 1, begin + ratio) - np.maximum(index, begin)
        return Taps(axis.number, _inside(index, axis), _normalize(weight.clip(0).astype(np.float32)))


def cubic_weights(part: Array, a: float) -> Array:
    """Return the cubic convolution weights (Keys 1981) of positions -1, 0, 1 and 2 at the coordinate ``part``.

    Args:
        part: coordinates in [0, 1).
        a: the coefficient of the kernel.
    """
    coeff = part.dtype.type(a)

    def near(d: Array) -> Array:
        return np.asarray(((coeff + 2) * d - (coeff + 3)) * d * d + 1)

    def far(d: Array) -> Array:
        return np.asarray(((coeff * d - 5 * coeff) * d + 8 * coeff) * d - 4 * coeff)

    return np.stack([far(part + 1), near(part), near(1 - part), far(2 - part)], -1)


def _inside(index: Array, axis: Axis) -> Array:
    return index.clip(0, axis.before - 1).astype(np.int64)


def _normalize(weight: Array) -> Array:
    """Scale the weights of each position to a sum of 1, unless all are 0."""
    total = weight.sum(1, keepdims=True, dtype=weight.dtype)
    return np.asarray(np.divide(weight, total, out=np.zeros_like(weight), where=total != 0))


def resample(x: Array, axes: Sequence[Axis], how: Filter) -> Array:
    """Resample ``x`` along axes; axes that keep their length are skipped."""
    pillow = how.mode.endswith("_pillow")
    steps = how.steps(axes)
    if how.mode == "nearest":
        for step in steps:
            x = step.take(x, 0)
        return x
    if not steps:
        return x
    if pillow:
        # The last axis comes first, and each result is converted back to the type of the data.
        for step in reversed(steps):
            x = _to_dtype(_along(x.astype(np.float64), step), x.dtype, nearest=True)
        return x
    whole = x.dtype.kind in "iu"
    work = np.float64 if x.dtype.itemsize > (2 if whole else 4) else np.float32
    averages = how.mode in ("linear", "area")
    if whole:  # integers are finite, so taps of weight 0 contribute nothing
        total = _sum_over_all_axes(
            x, [step.compact() for step in steps], np.dtype(work), divide=how.mode == "linear"
        )
        return _to_dtype(total, x.dtype, nearest=averages or not (how.cut and x.dtype.itemsize == 1))
    wide = along_each(x.astype(work, copy=False), [step.normalize() for step in steps] if averages else steps)
    return np.asarray(wide.astype(x.dtype, copy=False))


def along_each(x: Array, steps: Sequence[Taps]) -> Array:
    """Resample along one axis after another, those that shrink most first."""
    for step in sorted(steps, key=lambda s: len(s.index) / x.shape[s.number]):
        x = _along(x, step)
    return x


def _along(x: Array, taps: Taps) -> Array:
    total = taps.take(x, 0)
    total *= taps.column(0, x.ndim)
    for tap in range(1, len(taps)):
        part = taps.take(x, tap)
        part *= taps.column(tap, x.ndim)
        total += part
    return total


def _sum_over_all_axes(x: Array, steps: Sequence[Taps], dtype: DType, divide: bool) -> Array:
    """Return the sum of all taps, weighted by the products of their weights, over all axes at once.

    The order of summation is OpenVINO's, since the last bit decides how integers are truncated. With ``divide``, the sum is
    divided by the sum of the weights.
    """
    total, weights = np.zeros((), dtype), np.zeros((), np.float32)
    for weight, values in _terms(x, steps, np.ones((), np.float32)):
        weights = weights + weight
        part = values.astype(dtype)
        part *= weight
        total = np.add(total, part, out=part)
    if divide:
        total = np.divide(total, weights, out=np.zeros_like(total), where=weights != 0)
    return total


def _terms(x: Array, steps: Sequence[Taps], weight: Array) -> Iterator[tuple[Array, Array]]:
    if not steps:
        yield weight, x
        return
    first, *rest = steps
    for tap in range(len(first)):
        yield from _terms(first.take(x, tap), rest, weight * first.column(tap, x.ndim))


def _to_dtype(x: Array, dtype: DType, nearest: bool) -> Array:
    if dtype.kind not in "iu":
        return np.asarray(x.astype(dtype))
    if not nearest:
        return from_accumulator(x, dtype)
    limits = np.iinfo(dtype)
    return from_accumulator(rounded(x).clip(limits.min, limits.max), dtype)
