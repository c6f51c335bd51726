"""ROI align: features of regions by bilinear sampling of feature maps."""

from __future__ import annotations

import math
from itertools import takewhile
from typing import Literal

import numpy as np

from ..._util.arrays import Float
from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.formula import Count
from ...ir.operands import Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, T_INDEX, Input, Op, Output, attr, op
from .._lengths import check_vector, of_rank
from .._resampling import BILINEAR
from ..kernels.boxes import as_float
from ..kernels.regions import bilinear, inside, sample_offsets

# Per region; more is a mistake, and would not fit into memory.
MOST_POINTS = 1 << 24


class ROIAlignBase(Op):
    """Base of alignments. Small floating-point types are computed in f32, as in the plugin."""

    data = Input(T_FLOAT, "[N, C, H, W]: feature maps")
    rois = Input(T_FLOAT, "[regions, 4]: x1, y1, x2, y2 before spatial_scale")
    batch_indices = Input(T_INDEX, "[regions]: the batch entry of each; none from the first -1 on")
    pooled = Output(T_FLOAT, "[regions, C, pooled_h, pooled_w]")

    pooled_h: int = attr(gt=0, doc="height of the result")
    pooled_w: int = attr(gt=0, doc="width of the result")
    sampling_ratio: int = attr(
        default_with_warning="0",
        ge=0,
        doc="points along each axis of a bin; 0 means as many as there are elements",
    )
    spatial_scale: float = attr(default_with_warning="0", doc="what coordinates of regions are multiplied by")

    numbers = 4

    def infer(self, data: Value, rois: Value, batch_indices: Value) -> PartialShape:
        regions = region_count(rois, self.numbers)
        if batch_indices.shape.rank is not None:
            check_vector(batch_indices, "batch_indices")
            merged = regions.merge(batch_indices.shape[0])
            if merged is None:
                raise InferenceError(
                    f"rois {rois.shape} and batch_indices {batch_indices.shape} must be equally many",
                    clause="rois and batch_indices are equally many",
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
        """Return the result for one region of maps [C, H, W]."""
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
        """Return the value of each bin, from samples [C, bins, samples, bins, samples]."""
        return np.asarray(values.mean(axis=(2, 4), dtype=values.dtype))

    def grid(self, height: Float, width: Float) -> tuple[Array, Array]:
        """Return sampling positions relative to a region's corner: [bins, samples, 1, 1] and [bins, samples]."""
        down, across = samples_of(height, width, self.pooled_h, self.pooled_w, self.sampling_ratio)
        return (
            sample_offsets(self.pooled_h, down, height)[:, :, None, None],
            sample_offsets(self.pooled_w, across, width),
        )

    def points(self, region: Array) -> tuple[Array, Array]:
        """Rows and columns of the samples of a region; together [bins, samples, bins, samples]."""
        raise NotImplementedError

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of the bilinear samples of each bin; one sample if their number is adaptive."""
        return BILINEAR * max(self.sampling_ratio, 1) ** 2 * operands.result


class AxisAlignedROIAlign(ROIAlignBase):
    """Regions with sides along the axes."""

    mode: Literal["avg", "max"] = attr(
        default_with_warning="avg", doc="what becomes of the samples of a bin; max is 0 at least"
    )

    def shifts(self) -> tuple[float, float]:
        """Return the shifts of coordinates before and after scaling."""
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
        # OpenVINO's maximum starts at 0.
        return np.maximum(values.max(axis=(2, 4)), 0) if self.mode == "max" else super().combine(values)


@op("ROIAlign-3")
class ROIAlign3(AxisAlignedROIAlign):
    """Divide each region of ``data`` into bins, and return the mean or maximum of the samples in each."""


@op("ROIAlign-9")
class ROIAlign9(AxisAlignedROIAlign):
    """As version 3, with modes for half-pixel coordinates."""

    aligned_mode: Literal["asymmetric", "half_pixel_for_nn", "half_pixel"] = attr(
        "asymmetric",
        doc="asymmetric: scaled only, and regions are 1 by 1 at least; half_pixel_for_nn: less 0.5 after; "
        "half_pixel: also plus 0.5 before",
    )

    def shifts(self) -> tuple[float, float]:
        return {"asymmetric": (0, 0), "half_pixel_for_nn": (0, -0.5), "half_pixel": (0.5, -0.5)}[
            self.aligned_mode
        ]


@op("ROIAlignRotated-15")
class ROIAlignRotated(ROIAlignBase):
    """Divide each rotated region of ``data`` into bins, and return the mean of the samples in each."""

    rois = Input(T_FLOAT, "[regions, 5]: x and y of the centre, width, height, angle in radians")

    clockwise_mode: bool = attr(False, doc="whether angles turn clockwise")

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
    """Return the number of sampling points along each axis of a bin."""
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
    """Return the number of regions or indices, each a row of ``numbers`` elements."""
    if rois.shape.rank is None:
        return Dimension()
    if rois.shape.rank != 2 or not rois.shape[1].contains(numbers):
        raise InferenceError(
            f"{name} must be of shape [{what}, {numbers}], found {rois.shape}",
            clause=f"{name} is [{what}, {numbers}]",
        )
    return rois.shape[0]


def channels(data: Value, name: str = "data") -> Dimension:
    """Return the number of channels of feature maps."""
    return of_rank(data, name, "[N, C, H, W]")[1]


def check_entries(batch_indices: Value, data: Value) -> None:
    """Require valid batch indices up to the first -1."""
    if data.shape.rank is None or data.shape[0].max is None:
        return
    for index in takewhile(lambda n: n != -1, batch_indices.ints() or ()):
        check_entry(index, data.shape[0].max)


def check_entry(index: int, count: int) -> None:
    """Require a valid batch entry."""
    if not 0 <= index < count:
        raise InferenceError(
            f"a region is of batch entry {index}, but data has {count} of them, counted from 0",
            clause="the batch entry of each region is one of data",
        )


def batch_entry(maps: Array, index: int) -> Array:
    """Return a batch entry, or raise if it does not exist."""
    check_entry(index, len(maps))
    return np.asarray(maps[index])
