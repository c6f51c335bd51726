"""Pooling of regions of interest: ROIAlign, ROIPooling, PSROIPooling and DeformablePSROIPooling."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import ClassVar, Literal

import numpy as np

from ..._util.arrays import Float
from ...errors import InferenceError, ValidationError
from ...ir.dimension import Dimension
from ...ir.formula import Count
from ...ir.operation import Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, T_INDEX, Input, Op, Output, attr, op
from .._lengths import check_vector, of_rank
from .._resampling import BILINEAR
from ..kernels.boxes import as_float

# Bilinear sampling of feature maps, for ROI pooling.


def sample_offsets(bins: int, samples: int, size: Array | Float) -> Array:
    """Return positions ``[bins, samples]`` of equidistant samples in ``bins`` equal parts of ``size``."""
    step = size / bins
    spacing = step / max(samples, 1)
    return np.asarray(np.arange(bins, dtype=step.dtype)[:, None] * step) + spacing * (
        np.arange(samples, dtype=step.dtype) + step.dtype.type(0.5)
    )


def inside(y: Array, x: Array, height: int, width: int) -> Array:
    """Return a mask of the points inside a map, or at most 1 element outside."""
    return np.asarray((y >= -1) & (y <= height) & (x >= -1) & (x <= width))


def bilinear(maps: Array, y: Array, x: Array, *, each: bool = False) -> Array:
    """Interpolate feature maps bilinearly; points outside are clamped to the edge.

    Args:
        maps: feature maps ``[C, H, W]``.
        y: row coordinates, which broadcast against ``x``.
        x: column coordinates.
        each: whether point ``i`` samples map ``i`` only.

    Returns:
        ``[C, ...]`` with the shape of the points, or ``[C]`` with ``each``.
    """
    height, width = maps.shape[1:]
    (top, bottom, low), (left, right, near) = _find_neighbours(y, height), _find_neighbours(x, width)
    of = np.arange(len(maps)) if each else slice(None)
    upper = maps[of, top, left] * (1 - near) + maps[of, top, right] * near
    lower = maps[of, bottom, left] * (1 - near) + maps[of, bottom, right] * near
    return np.asarray(upper * (1 - low) + lower * low)


def _find_neighbours(positions: Array, length: int) -> tuple[Array, Array, Array]:
    """Return the indices of the two elements around each position, and its distance from the first."""
    positions = np.clip(positions, 0, max(length - 1, 0))
    first = np.nan_to_num(np.floor(positions)).astype(np.int64)
    return first, np.minimum(first + 1, length - 1), positions - first.astype(positions.dtype)


# ROIAlign: features of regions by bilinear sampling.


# The maximum number of samples of a region; more are a mistake, and would not fit into memory.
MOST_POINTS = 1 << 24


class ROIAlignBase(Op):
    """Base of ROIAlign and ROIAlignRotated. f16 and bf16 are computed in f32, as in OpenVINO's plugin."""

    data = Input(T_FLOAT, "[N, C, H, W]: feature maps")
    rois = Input(T_FLOAT, "[regions, 4]: x1, y1, x2, y2 before spatial_scale")
    batch_indices = Input(T_INDEX, "[regions]: the batch entry of each region; the first -1 ends the list")
    pooled = Output(T_FLOAT, "[regions, C, pooled_h, pooled_w]")

    pooled_h: int = attr(gt=0, doc="height of the result")
    pooled_w: int = attr(gt=0, doc="width of the result")
    sampling_ratio: int = attr(
        default_with_warning="0",
        ge=0,
        doc="samples along each axis of a bin; 0 means one for each element of the feature map",
    )
    spatial_scale: float = attr(default_with_warning="0", doc="factor of the coordinates of regions")

    numbers = 4

    def infer(self, data: Value, rois: Value, batch_indices: Value) -> PartialShape:
        regions = region_count(rois, self.numbers)
        if batch_indices.shape.rank is not None:
            check_vector(batch_indices, "batch_indices")
            merged = regions.merge(batch_indices.shape[0])
            if merged is None:
                raise InferenceError(
                    f"rois {rois.shape} and batch_indices {batch_indices.shape} must be equally many",
                    clause="there are as many rois as batch_indices",
                )
            regions = merged
        check_entries(batch_indices, data)
        return PartialShape([regions, channels(data), self.pooled_h, self.pooled_w])

    def evaluate(self, data: Array, rois: Array, batch_indices: Array) -> Array:
        maps, regions = as_float(data), as_float(rois)
        pooled = np.zeros((len(rois), data.shape[1], self.pooled_h, self.pooled_w), maps.dtype)
        for index, entry in enumerate(batch_indices.tolist()):
            if entry == -1:
                break
            pooled[index] = self.pool(batch_entry(maps, entry), regions[index])
        return pooled.astype(data.dtype, copy=False)

    def pool(self, maps: Array, region: Array) -> Array:
        """Return the features ``[C, pooled_h, pooled_w]`` of a region of ``maps[C, H, W]``."""
        y, x = self.points(region)
        height, width = maps.shape[1:]
        if not (y.size and x.size and maps.size):
            return np.zeros((len(maps), self.pooled_h, self.pooled_w), maps.dtype)
        within = inside(y, x, height, width)
        step = max(MOST_POINTS // within.size, 1)  # maps per chunk, so that their samples fit into memory
        blocks = (maps[start : start + step] for start in range(0, len(maps), step))
        return np.concatenate([self._bins(block, y, x, within) for block in blocks])

    def _bins(self, maps: Array, y: Array, x: Array, within: Array) -> Array:
        return self.combine(np.where(within, bilinear(maps, y, x), maps.dtype.type(0)))

    def combine(self, values: Array) -> Array:
        """Reduce samples ``[C, bins, samples, bins, samples]`` to one value per bin."""
        return np.asarray(values.mean(axis=(2, 4), dtype=values.dtype))

    def grid(self, height: Float, width: Float) -> tuple[Array, Array]:
        """Return offsets of samples from the region's corner: rows [bins, samples, 1, 1], columns [bins, samples]."""
        down, across = samples_of(height, width, self.pooled_h, self.pooled_w, self.sampling_ratio)
        return (
            sample_offsets(self.pooled_h, down, height)[:, :, None, None],
            sample_offsets(self.pooled_w, across, width),
        )

    def points(self, region: Array) -> tuple[Array, Array]:
        """Return row and column coordinates of a region's samples, which broadcast to [bins, samples, bins, samples]."""
        raise NotImplementedError

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of all bilinear samples; an adaptive number of samples counts as one per bin."""
        return BILINEAR * max(self.sampling_ratio, 1) ** 2 * operands.result


class AxisAlignedROIAlign(ROIAlignBase):
    """Base of the versions of ROIAlign, whose regions have sides along the axes."""

    decisions = ("the maximum of a bin is at least 0, where OpenVINO's begins; the pages do not say",)

    mode: Literal["avg", "max"] = attr(
        default_with_warning="avg", doc="reduction of the samples of a bin; the maximum is at least 0"
    )

    def shifts(self) -> tuple[float, float]:
        """Return the terms added to coordinates before and after scaling."""
        return 0, 0

    def points(self, region: Array) -> tuple[Array, Array]:
        of = region.dtype.type
        before, after = map(of, self.shifts())
        scaled = (region + before) * of(self.spatial_scale) + after
        width, height = scaled[2] - scaled[0], scaled[3] - scaled[1]
        if not after:
            width, height = np.maximum(width, of(1)), np.maximum(height, of(1))
        y, x = self.grid(height, width)
        return scaled[1] + y, scaled[0] + x

    def combine(self, values: Array) -> Array:
        # OpenVINO starts the maximum at 0.
        return np.maximum(values.max(axis=(2, 4)), 0) if self.mode == "max" else super().combine(values)


@op("ROIAlign-3")
class ROIAlign3(AxisAlignedROIAlign):
    """Divide each region of ``data`` into bins, and return the mean or maximum of the samples in each."""


@op("ROIAlign-9")
class ROIAlign9(AxisAlignedROIAlign):
    """The same as version 3, with a choice of the coordinate transformation."""

    aligned_mode: Literal["asymmetric", "half_pixel_for_nn", "half_pixel"] = attr(
        "asymmetric",
        doc="asymmetric: coordinates are only scaled, and regions are at least 1 by 1; half_pixel_for_nn: 0.5 is "
        "subtracted after scaling; half_pixel: 0.5 is also added before",
    )

    def shifts(self) -> tuple[float, float]:
        return {"asymmetric": (0, 0), "half_pixel_for_nn": (0, -0.5), "half_pixel": (0.5, -0.5)}[
            self.aligned_mode
        ]


@op("ROIAlignRotated-15")
class ROIAlignRotated(ROIAlignBase):
    """Divide each rotated region of ``data`` into bins, and return the mean of the samples in each."""

    rois = Input(T_FLOAT, "[regions, 5]: x and y of the centre, width, height, angle in radians")

    clockwise_mode: bool = attr(False, doc="whether angles are clockwise")

    numbers = 5

    def points(self, region: Array) -> tuple[Array, Array]:
        of = region.dtype.type
        x, y, width, height = region[:4] * of(self.spatial_scale)
        angle = -region[4] if self.clockwise_mode else region[4]
        cosine, sine = np.cos(angle), np.sin(angle)
        down, across = self.grid(height, width)
        down, across = down - height / 2, across - width / 2
        half = of(0.5)
        return down * cosine - across * sine + (y - half), down * sine + across * cosine + (x - half)


def samples_of(height: Float, width: Float, down: int, across: int, ratio: int) -> tuple[int, int]:
    """Return the number of samples of a bin along height and width.

    Args:
        height: the height of the region.
        width: the width of the region.
        down: the number of bins along the height.
        across: the number of bins along the width.
        ratio: the attribute ``sampling_ratio``.
    """
    if not (math.isfinite(height) and math.isfinite(width)):
        raise InferenceError(
            f"rois hold a region of {height:g} by {width:g}; a finite size is expected",
            clause="regions are of finite size",
        )
    counts = (ratio or max(math.ceil(height / down), 0), ratio or max(math.ceil(width / across), 0))
    if counts[0] * down * counts[1] * across > MOST_POINTS:
        raise InferenceError(
            f"rois hold a region of {height:g} by {width:g}, which takes {counts[0] * down * counts[1] * across} points; "
            f"at most {MOST_POINTS} are allowed",
            hint="a 'sampling_ratio' above 0 takes as many points of a large region as of a small one",
            clause=f"a region takes at most {MOST_POINTS} points",
        )
    return counts


def region_count(rois: Value, numbers: int, name: str = "rois", what: str = "regions") -> Dimension:
    """Return the number of rows of ``rois``, after checking that each has ``numbers`` elements."""
    if rois.shape.rank is None:
        return Dimension()
    if rois.shape.rank != 2 or not rois.shape[1].contains(numbers):
        raise InferenceError(
            f"{name} must be of shape [{what}, {numbers}], found {rois.shape}",
            clause=f"{name} is [{what}, {numbers}]",
        )
    return rois.shape[0]


def channels(data: Value, name: str = "data", of_any: str = "") -> Dimension:
    """Return the number of channels of feature maps, after checking their rank; see `of_rank`."""
    return of_rank(data, name, "[N, C, H, W]", of_any)[1]


def check_entries(batch_indices: Value, data: Value) -> None:
    """Require that known batch indices are valid up to the first -1."""
    if data.shape.rank is None or data.shape[0].max is None:
        return
    for index in takewhile(lambda n: n != -1, batch_indices.ints() or ()):
        check_entry(index, data.shape[0].max)


def check_entry(index: int, count: int) -> None:
    """Require that ``index`` is one of ``count`` batch entries."""
    if not 0 <= index < count:
        raise InferenceError(
            f"a region is of batch entry {index}, but data has {count} of them, counted from 0",
            clause="the batch entry of each region is one of data",
        )


def batch_entry(maps: Array, index: int) -> Array:
    """Return the maps of a batch entry; raise if it does not exist."""
    check_entry(index, len(maps))
    return np.asarray(maps[index])


# The bins of ROI pooling: their elements and sampling points.


def round_half_away(numbers: Array) -> Array:
    """Round to the nearest integers, halves away from zero."""
    return np.asarray(np.trunc(numbers + np.copysign(numbers.dtype.type(0.5), numbers)))


def bins(first: Float, last: Float, count: int, length: int) -> list[tuple[int, int]]:
    """Split the elements from ``first`` to ``last`` (inclusive) into ``count`` bins; return their starts and ends.

    Bins may overlap. They are clipped to an axis of the given length.
    """
    size = np.maximum(last - first + 1, 1) / count
    steps = np.arange(count + 1, dtype=first.dtype) * size
    begins = np.clip(np.floor(steps[:-1]) + first, 0, length).astype(int)
    ends = np.clip(np.ceil(steps[1:]) + first, 0, length).astype(int)
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def covers(first: Float, last: Float, count: int, length: int) -> list[tuple[int, int]]:
    """Split the range from ``first`` to ``last`` into ``count`` bins; return starts and ends of the elements they touch."""
    size = (last - first) / count
    steps = first + np.arange(count + 1, dtype=first.dtype) * size
    begins = np.clip(np.floor(steps[:-1]), 0, max(length - 1, 0)).astype(int)
    ends = np.clip(np.ceil(first + np.arange(1, count + 1, dtype=first.dtype) * size), 0, length).astype(int)
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def points(first: Float, last: Float, count: int, length: int, *, exact: bool = True) -> Array:
    """Return ``count`` equidistant positions between two fractions of an axis; a single one is in the middle.

    Args:
        first: the first position, as a fraction of the axis.
        last: the last position, as a fraction of the axis.
        count: the number of positions.
        length: the length of the axis.
        exact: whether the last position is computed from ``last``, without accumulated rounding.
    """
    of = first.dtype.type
    far = of(length - 1)
    if count == 1:
        return np.array([of(0.5) * (first + last) * far])
    positions = np.arange(count, dtype=first.dtype) * ((last - first) * far / of(count - 1)) + first * far
    if exact:
        positions[-1] = last * far
    return np.asarray(positions)


# ROI pooling, including position-sensitive pooling (PSROI).

REGIONS = "[regions, 5]: batch entry, x1, y1, x2, y2"


class ROIPoolingBase(Op):
    """Base of ROI pooling operations, computed in at least f32."""

    flops_per_element = 1

    data = Input(T_FLOAT, "[N, C, H, W]: feature maps")
    rois = Input(T_FLOAT, REGIONS)

    spatial_scale: float = attr(gt=0, doc="factor of the coordinates of regions")

    ends: ClassVar[bool] = False
    """Whether the list of regions ends at the first batch entry of -1."""
    skips: ClassVar[bool] = False
    """Whether regions of negative batch entries give zeros."""

    def pool_all(self, data: Array, rois: Array, depth: int, height: int, width: int, *more: Array) -> Array:
        """Return the features ``[regions, depth, height, width]`` of all regions; zeros if the maps are empty.

        ``more`` are further inputs with an entry for each region.
        """
        maps, regions = as_float(data), as_float(rois)
        pooled = np.zeros((len(rois), depth, height, width), maps.dtype)
        for index, entry in self.entries(regions, len(maps)):
            if maps[entry].size:
                pooled[index] = self.pool(maps[entry], regions[index, 1:], *(extra[index] for extra in more))
        return pooled.astype(data.dtype, copy=False)

    def entries(self, regions: Array, count: int) -> Iterator[tuple[int, int]]:
        """Yield the index and the batch entry, of ``count``, of each region to pool."""
        for index, region in enumerate(regions):
            if not np.isfinite(region).all():
                raise InferenceError(
                    f"rois hold a region {region.tolist()}; finite numbers are expected",
                    clause="rois are finite",
                )
            entry = int(region[0])
            if entry == -1 and self.ends:
                return
            if entry >= 0 or not self.skips:
                check_entry(entry, count)
                yield index, entry

    def count_regions(self, data: Value, rois: Value) -> Dimension:
        """Return the number of regions, after checking known batch entries."""
        number, contents = region_count(rois, 5), rois.known()
        if contents is not None and data.shape.rank is not None and data.shape[0].max is not None:
            deque(self.entries(as_float(contents), data.shape[0].max), maxlen=0)
        return number

    def pool(self, maps: Array, region: Array, *more: Array) -> Array:
        """Return the features of a region of ``maps[C, H, W]``; ``more`` are its entries of further inputs."""
        raise NotImplementedError


@op("ROIPooling-1")
class ROIPooling(ROIPoolingBase):
    """The maximum of each bin of each region of ``data``, or an interpolated sample.

    The first batch entry of -1 ends the list of regions, as in OpenVINO's plugin; the remaining rows are zero.
    """

    decisions = (
        "regions end with the first of batch entry -1, as in OpenVINO's plugin, and those after it give 0; the page does not say",
    )

    pooled = Output(T_FLOAT, "[regions, C, pooled_h, pooled_w]")

    pooled_h: int = attr(gt=0, doc="height of the result")
    pooled_w: int = attr(gt=0, doc="width of the result")
    method: Literal["max", "bilinear"] = attr(
        "max",
        doc="bilinear: sample between elements; coordinates are then fractions of the image, and not scaled",
    )

    output_size: tuple[int, ...] = attr((), doc="pooled_h and pooled_w, repeated as OpenVINO writes them")
    output_roi: tuple[int, ...] = attr((), doc="pooled_h and pooled_w, repeated as OpenVINO writes them")

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the size under both names."""
        return {name: [self.pooled_h, self.pooled_w] for name in ("output_size", "output_roi")}

    ends = True

    def verify(self) -> None:
        """Require that all attributes give the same size."""
        for name, size in (("output_size", self.output_size), ("output_roi", self.output_roi)):
            if size not in ((), (self.pooled_h, self.pooled_w)):
                raise ValidationError(
                    f"attributes 'pooled_h' {self.pooled_h} and 'pooled_w' {self.pooled_w} contradict {name!r} {list(size)}",
                    clause="attributes 'pooled_h' and 'pooled_w' agree with 'output_size'",
                )

    def infer(self, data: Value, rois: Value) -> PartialShape:
        return PartialShape([self.count_regions(data, rois), channels(data), self.pooled_h, self.pooled_w])

    def evaluate(self, data: Array, rois: Array) -> Array:
        return self.pool_all(data, rois, data.shape[1], self.pooled_h, self.pooled_w)

    def pool(self, maps: Array, region: Array, *more: Array) -> Array:
        return self._between(maps, region) if self.method == "bilinear" else self._largest(maps, region)

    def _largest(self, maps: Array, region: Array) -> Array:
        x1, y1, x2, y2 = round_half_away(region * maps.dtype.type(self.spatial_scale))
        rows = bins(y1, y2, self.pooled_h, maps.shape[1])
        columns = bins(x1, x2, self.pooled_w, maps.shape[2])
        result = np.zeros((len(maps), self.pooled_h, self.pooled_w), maps.dtype)
        for i, (top, bottom) in enumerate(rows):
            for j, (left, right) in enumerate(columns):
                if top < bottom and left < right:
                    lowest = np.finfo(maps.dtype).min
                    window = maps[:, top:bottom, left:right]
                    result[:, i, j] = np.fmax.reduce(window, axis=(1, 2), initial=lowest)
        return result

    def _between(self, maps: Array, region: Array) -> Array:
        x1, y1, x2, y2 = region
        height, width = maps.shape[1:]
        y = points(y1, y2, self.pooled_h, height)[:, None]
        x = points(x1, x2, self.pooled_w, width)
        within = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
        return np.where(within, bilinear(maps, y, x), maps.dtype.type(0))

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of one bilinear sample per bin; in mode max, one per bin, as bin sizes are unknown."""
        return (BILINEAR if self.method == "bilinear" else 1) * operands.result


@op("PSROIPooling-1")
class PSROIPooling(ROIPoolingBase):
    """The mean of each bin of each region of ``data``, where every bin reads its own channels."""

    rois = Input(T_FLOAT, REGIONS, mixed=True)
    pooled = Output(T_FLOAT, "[regions, output_dim, group_size, group_size]")

    output_dim: int = attr(gt=0, doc="channels of the result")
    group_size: int = attr(gt=0, doc="height and width of the result")
    mode: Literal["average", "bilinear"] = attr(
        "average",
        doc="bilinear: the mean of interpolated samples of the parts of a region, each from its own channels",
    )
    spatial_bins_x: int = attr(1, ge=0, le=1024, doc="parts of a region along x, in mode bilinear")
    spatial_bins_y: int = attr(1, ge=0, le=1024, doc="parts of a region along y, in mode bilinear")

    def verify(self) -> None:
        """Require positive numbers of spatial bins in mode bilinear."""
        for name in ("spatial_bins_x", "spatial_bins_y"):
            if self.mode == "bilinear" and not vars(self)[name]:
                raise ValidationError(
                    f"attribute {name!r} must be above 0 in mode 'bilinear'",
                    clause="attributes 'spatial_bins_x' and 'spatial_bins_y' are greater than 0 in mode bilinear",
                )

    def infer(self, data: Value, rois: Value) -> PartialShape:
        parts = self.spatial_bins_x * self.spatial_bins_y if self.mode == "bilinear" else self.group_size**2
        if not channels(data).contains(parts * self.output_dim):
            which = (
                "spatial_bins_x * spatial_bins_y" if self.mode == "bilinear" else "group_size * group_size"
            )
            raise InferenceError(
                f"data must have {parts * self.output_dim} channels, found {data.shape[1]} in {data.shape}",
                hint=f"in mode {self.mode!r}, that is output_dim * {which}",
                clause="data has output_dim channels for each part",
            )
        return PartialShape(
            [self.count_regions(data, rois), self.output_dim, self.group_size, self.group_size]
        )

    def evaluate(self, data: Array, rois: Array) -> Array:
        return self.pool_all(data, rois, self.output_dim, self.group_size, self.group_size)

    def pool(self, maps: Array, region: Array, *more: Array) -> Array:
        scale = maps.dtype.type(self.spatial_scale)
        if self.mode == "bilinear":
            return self._between(maps, region * scale)
        corners = round_half_away(region)
        corners[2:] += 1
        x1, y1, x2, y2 = corners * scale
        size = self.group_size
        by_bin = maps.reshape(self.output_dim, size, size, *maps.shape[1:])
        result = np.zeros((self.output_dim, size, size), maps.dtype)
        for i, (top, bottom) in enumerate(covers(y1, y2, size, maps.shape[1])):
            for j, (left, right) in enumerate(covers(x1, x2, size, maps.shape[2])):
                window = by_bin[:, i, j, top:bottom, left:right]
                if window.shape[1] and window.shape[2]:
                    result[:, i, j] = window.mean(axis=(1, 2), dtype=maps.dtype)
        return result

    def _between(self, maps: Array, region: Array) -> Array:
        x1, y1, x2, y2 = region
        height, width = maps.shape[1:]
        down, across, size = self.spatial_bins_y, self.spatial_bins_x, self.group_size
        by_part = maps.reshape(down, across, self.output_dim, height, width)
        total = np.zeros((self.output_dim, size, size), maps.dtype)
        part_height, part_width = (y2 - y1) / down, (x2 - x1) / across
        for i in range(down):
            top = y1 + i * part_height
            y = points(top, top + part_height, size, height, exact=False)[:, None]
            for j in range(across):
                left = x1 + j * part_width
                x = points(left, left + part_width, size, width, exact=False)
                within = (y < height) & (x < width) & (y > -1) & (x > -1)
                total += np.where(within, bilinear(by_part[i, j], y, x), maps.dtype.type(0))
        return np.asarray(total / maps.dtype.type(down * across))

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of all bilinear samples; in mode average, one per bin, as bin sizes are unknown."""
        samples = BILINEAR * self.spatial_bins_x * self.spatial_bins_y
        return (samples if self.mode == "bilinear" else 1) * operands.result


@op("DeformablePSROIPooling-1")
class DeformablePSROIPooling(ROIPoolingBase):
    """The mean of the samples in each shifted bin of each region of ``data``, where every bin reads its own channels."""

    data = Input(T_FLOAT, "[N, C, H, W]: feature maps", unchecked=True)
    rois = Input(T_FLOAT, REGIONS, mixed=True, unchecked=True)
    offsets = Input(
        T_FLOAT,
        "[regions, 2 * classes, part_size, part_size]: shifts of bins along x, then y",
        optional=True,
        mixed=True,
        unchecked=True,
    )
    pooled = Output(T_FLOAT, "[regions, output_dim, group_size, group_size]")

    output_dim: int = attr(gt=0, doc="channels of the result")
    group_size: int = attr(1, gt=0, doc="height and width of the result")
    mode: Literal["bilinear_deformable"] = attr("bilinear_deformable", doc="the only mode")
    spatial_bins_x: int = attr(1, gt=0, le=1024, doc="samples of a bin along x")
    spatial_bins_y: int = attr(1, gt=0, le=1024, doc="samples of a bin along y")
    trans_std: float = attr(1.0, doc="factor of offsets, in addition to the sides of the region")
    part_size: int = attr(1, gt=0, doc="height and width of offsets")

    skips = True

    def infer(self, data: Value, rois: Value, offsets: Value | None = None) -> PartialShape:
        depth, regions = channels(data), self.count_regions(data, rois)
        least = self.output_dim * self.group_size**2
        if depth.max is not None and depth.max < least:
            raise InferenceError(
                f"data must have at least {least} channels, found {depth} in {data.shape}",
                hint="that is output_dim * group_size * group_size",
                clause="data has at least output_dim channels for each group",
            )
        if offsets is not None:
            expected = PartialShape([regions, -1, self.part_size, self.part_size])
            if not offsets.shape.compatible(expected):
                raise InferenceError(
                    f"offsets must be [regions, 2 * classes, part_size, part_size], {expected}, found {offsets.shape}",
                    clause="offsets is [regions, 2 * classes, part_size, part_size]",
                )
            self._check_classes(offsets.shape)
        return PartialShape([regions, self.output_dim, self.group_size, self.group_size])

    def evaluate(self, data: Array, rois: Array, offsets: Array | None = None) -> Array:
        size, depth = self.group_size, self.output_dim
        if offsets is None:
            moves = np.zeros((len(rois), depth, 2, size, size), as_float(data).dtype)
        else:
            # The channels of a class share offsets, and so do the bins of a part.
            kinds = offsets.shape[1] // 2
            part = np.arange(size) * self.part_size // size
            of_bins = as_float(offsets).reshape(len(rois), kinds, 2, self.part_size, self.part_size)
            moves = of_bins[..., part[:, None], part].repeat(depth // kinds, axis=1)
        return self.pool_all(data, rois, depth, size, size, moves)

    def _check_classes(self, offsets: PartialShape) -> None:
        if offsets.rank is None or offsets[1].is_dynamic:
            return
        numbers = offsets[1].__index__()
        if numbers < 2 or numbers % 2 or self.output_dim % (numbers // 2):
            raise InferenceError(
                f"offsets {offsets} must have 2 channels for each of some classes into which attribute 'output_dim' "
                f"{self.output_dim} divides, found {numbers}",
                clause="offsets has 2 channels for each class, and output_dim is a multiple of the classes",
            )

    def pool(self, maps: Array, region: Array, *more: Array) -> Array:
        of, (moves,), size = maps.dtype.type, more, self.group_size
        corners = round_half_away(region)
        corners[2:] += 1
        x1, y1, x2, y2 = corners * of(self.spatial_scale) - of(0.5)
        width, height = np.maximum(x2 - x1, of(0.1)), np.maximum(y2 - y1, of(0.1))
        by_bin = maps[: self.output_dim * size**2]
        at = np.arange(size, dtype=maps.dtype)
        moved = moves * of(self.trans_std)
        left = x1 + at * (width / size) + moved[:, 0] * width
        top = y1 + at[:, None] * (height / size) + moved[:, 1] * height
        total, count = np.zeros(len(by_bin), maps.dtype), np.zeros(len(by_bin), maps.dtype)
        for i in range(self.spatial_bins_y):
            y = (top + i * (height / size / self.spatial_bins_y)).ravel()
            for j in range(self.spatial_bins_x):
                x = (left + j * (width / size / self.spatial_bins_x)).ravel()
                half = of(0.5)
                within = (
                    (y >= -half) & (y <= maps.shape[1] - half) & (x >= -half) & (x <= maps.shape[2] - half)
                )
                total += np.where(within, bilinear(by_bin, y, x, each=True), of(0))
                count += within
        return (total / np.maximum(count, 1)).reshape(self.output_dim, size, size)

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of the bilinear samples of each bin."""
        return BILINEAR * self.spatial_bins_x * self.spatial_bins_y * operands.result
