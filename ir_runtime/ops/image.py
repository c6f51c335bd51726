"""Operations on images: resizing, sampling, and colour conversion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from .._util.arrays import DType, Float
from ..codes import Code
from ..errors import InferenceError
from ..ir.dimension import Dimension
from ..ir.element import ElementType as E
from ..ir.formula import Count
from ..ir.operation import Operands
from ..ir.shape import PartialShape
from ..ir.signature import FLOATS
from ..ir.tensor import Array, Value
from ..limits import check_array_size
from ._define.operation import T_INDEX, T_PLAIN, Element, Input, Op, Output, T, attr, op
from ._lengths import check_vector, lengths_of, multiples, normalize_axes, of_rank
from ._resampling import BILINEAR, resampling
from .kernels.resample import Axis, Filter, cubic_weights, resample

# The base of all versions of Interpolate: padding and costs.


class InterpolateBase(Op):
    """Base of all versions of Interpolate, which pad the data with zeros before resizing."""

    pads_begin: tuple[int, ...] = attr((0,), ge=0, doc="zeros to add before each axis; 0 for missing axes")
    pads_end: tuple[int, ...] = attr((0,), ge=0, doc="zeros to add after each axis; 0 for missing axes")
    antialias: bool = attr(False, doc="whether mode linear averages over wider windows when it shrinks data")

    def pads(self, rank: int) -> list[tuple[int, int]]:
        """Return the number of zeros before and after each of ``rank`` axes; pads for further axes are ignored."""
        before, after = ((*pads, *[0] * rank)[:rank] for pads in (self.pads_begin, self.pads_end))
        return list(zip(before, after, strict=True))

    def pad(self, data: Array) -> Array:
        """Pad the data with zeros."""
        pads = self.pads(data.ndim)
        if not any(map(any, pads)):
            return data
        check_array_size(
            math.prod(n + sum(around) for n, around in zip(data.shape, pads, strict=True)), data.itemsize
        )
        return np.pad(data, pads)

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs without antialiasing: two for each input element that contributes to an output element."""
        return resampling(vars(self)["mode"], operands)


def check_source(old: Dimension, new: Dimension, axis: int) -> None:
    """Require that an axis resized to a nonzero length is not empty."""
    if old == 0 and new.min:
        raise InferenceError(
            f"data has length 0 along axis {axis}, so it cannot be resized to {new}",
            clause="data is not empty along an axis that is enlarged",
        )


# Versions 4 and 11 of Interpolate.

LENGTHS = (E.i32, E.i64, E.u32, E.u64)
FACTORS = (E.f32, E.f16, E.bf16)
T_IMAGE = Element(
    "T", (E.f32, E.f16, E.i8, E.bf16, E.u8, E.i64, E.i32, E.f64), "f32, f16, bf16, f64, i8, u8, i32 or i64"
)
T_SIZES = Element("T_SIZES", LENGTHS, "i32, i64, u32 or u64")
T_SCALES = Element("T_SCALES", FACTORS, "f32, f16 or bf16")
T_TARGET = Element("T_TARGET", LENGTHS + FACTORS, "that of sizes or scales")
T_AXES = Element("T_AXES", LENGTHS, "i32, i64, u32 or u64")


class Resize(InterpolateBase):
    """Base of versions 4 and 11, which differ in their ports and modes.

    Mode linear_onnx accepts any axes, as in OpenVINO's plugin; the specification allows spatial axes only. An axis
    that keeps its length is skipped. In OpenVINO, NaN and infinity spread to their neighbours along such an axis, since
    they are multiplied by 0.
    """

    mode: Literal["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"] = attr(
        default_with_warning="nearest",
        doc="interpolation from the nearest element; from two elements along each axis, as in TensorFlow (linear) or "
        "ONNX; from four (cubic); or as in Pillow, from all elements in the window, along exactly two axes",
    )
    shape_calculation_mode: Literal["sizes", "scales"] = attr(
        default_with_warning="sizes",
        doc="whether lengths are given, or factors of the lengths of the padded data; products are rounded down",
    )
    coordinate_transformation_mode: Literal[
        "half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"
    ] = attr("half_pixel", doc="map from output to input coordinates; ignored by the pillow modes")
    nearest_mode: Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"] = attr(
        "round_prefer_floor",
        doc="rounding of input coordinates in mode nearest; simple: up where the axis shrinks, else down",
    )
    cube_coeff: float = attr(-0.75, doc="steepness of the curve of modes cubic and bicubic_pillow")

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the pads of all axes."""
        rank = inputs[0].rank
        if rank is None:
            return {}
        pads = self.pads(rank)
        return {"pads_begin": [before for before, _ in pads], "pads_end": [after for _, after in pads]}

    def shape(self, data: Value, target: Value, axes: Value | None) -> PartialShape:
        """Check the inputs, and return the shape after resizing ``axes`` to sizes or by scales ``target``."""
        name = self.shape_calculation_mode
        port = name if len(self.inputs) == 4 else "target"
        check_vector(target, port)
        if target.element not in (*(FACTORS if name == "scales" else LENGTHS), E.dynamic):
            kind = "floating-point numbers" if name == "scales" else "integers"
            raise InferenceError(
                f"{port} is {target.element.label}, but attribute 'shape_calculation_mode' is {name!r}, for which "
                f"{kind} are expected",
                clause="sizes are integers in mode sizes, and scales are floating-point numbers in mode scales",
            )
        if axes is not None:
            check_vector(axes, "axes")
        if data.shape.rank is None:
            return PartialShape.dynamic()
        where = self.where(None if axes is None else axes.ints(), data.shape.rank, axes is None)
        if where is None:
            return PartialShape.dynamic(data.shape.rank)
        if not self._enough(target, len(where)):
            raise InferenceError(
                f"{port} holds {target.count} {name} for {len(where)} axes {list(where)}; one for each is expected",
                hint="without input axes, all axes of the data are resized" if axes is None else "",
                clause="there is one size or scale for each axis",
            )
        lengths = [
            Dimension.of(d + (b + e))
            for d, (b, e) in zip(data.shape, self.pads(data.shape.rank), strict=True)
        ]
        new = self._lengths([lengths[axis] for axis in where], target, port)
        for axis, length in zip(where, new, strict=False):
            check_source(lengths[axis], length, axis)
        return PartialShape(lengths).replace(dict(zip(where, new, strict=False)))

    def _enough(self, target: Value, needed: int) -> bool:
        """Return whether ``target`` may have ``needed`` elements. OpenVINO ignores extra elements."""
        return target.count.max is None or target.count.max >= needed

    def where(self, axes: Sequence[int] | None, rank: int, every: bool) -> tuple[int, ...] | None:
        """Return the axes to resize, or ``None`` if unknown; ``every`` stands for all axes."""
        selected = tuple(range(rank)) if every else axes
        if selected is None:
            return None
        if min(selected, default=0) < 0:
            raise InferenceError(
                f"axes {list(selected)} must count from 0",
                hint=f"axes of rank {rank} from the front: {[a % rank for a in selected]}" if rank else "",
                clause="axes are at least 0",
            )
        if self.mode.endswith("_pillow") and len(selected) != 2:
            raise InferenceError(
                f"attribute 'mode' {self.mode!r} resizes exactly 2 axes, found {len(selected)}: {list(selected)}",
                clause="the pillow modes resize exactly two axes",
            )
        return normalize_axes(selected, rank)

    def _lengths(self, old: list[Dimension], target: Value, port: str) -> Sequence[Dimension]:
        if self.shape_calculation_mode == "sizes":
            return lengths_of(target, port) or (Dimension(),) * len(old)
        contents = target.known()
        if contents is None:
            return (Dimension(),) * len(old)
        return [scale_length(length, float(factor)) for length, factor in zip(old, contents, strict=False)]

    def resize(self, data: Array, target: Array, axes: Array | None) -> Array:
        """Return the resized data."""
        if target.dtype == np.float64:  # when a model is computed in f64 throughout
            target = target.astype(np.float32)
        known_axes = None if axes is None else Value.constant(axes)
        shape = self.shape(Value.constant(data), Value.constant(target), known_axes).static
        if 0 in shape:
            return np.zeros(shape, data.dtype)
        x = self.pad(data)
        return resample(x, self.plan(x.shape, shape, target, axes), self.filter())

    def plan(
        self, before: Sequence[int], after: Sequence[int], target: Array, axes: Array | None
    ) -> list[Axis]:
        """Return the axes to resample, for padded data of shape ``before`` and an output of shape ``after``."""
        rank = len(before)
        where = self.where(None if axes is None else axes.tolist(), rank, axes is None) or ()
        plan = []
        for axis, length in zip(where, target.astype(np.float32), strict=False):
            by_size = self.shape_calculation_mode == "sizes"
            scale = length / np.float32(max(before[axis], 1)) if by_size else length
            plan.append(Axis(axis, before[axis], after[axis], float(scale)))
        return plan

    def filter(self) -> Filter:
        """Return the interpolation filter."""
        return Filter(
            self.mode, self.coordinate_transformation_mode, self.nearest_mode, self.cube_coeff, self.antialias
        )


def scale_length(length: Dimension, factor: float) -> Dimension:
    """Scale a length as OpenVINO does: 1e-6 is added to the factor, and the f32 product is rounded down."""
    if not 0 <= factor < np.inf:
        raise InferenceError(
            f"scales hold {factor}; finite numbers of at least 0 are expected",
            clause="scales are finite and at least 0",
        )
    if factor == 1:
        return length
    more = np.float32(factor) + np.float32(1e-6)
    return Dimension.of(length.map(lambda n: int(np.float32(n) * more)))


@op("Interpolate-4")
class Interpolate4(Resize):
    """Resize ``data`` along ``axes``, to the lengths ``sizes`` or by the factors ``scales``."""

    mode: Literal["nearest", "linear", "linear_onnx", "cubic"] = attr(
        default_with_warning="nearest",
        doc="interpolation from the nearest element; from two elements along each axis, as in TensorFlow (linear) or "
        "ONNX; or from four (cubic)",
    )

    data = Input(T_IMAGE, "tensor to resize")
    sizes = Input(T_SIZES, "new lengths of the axes; ignored unless shape_calculation_mode is sizes")
    scales = Input(T_SCALES, "factors of the lengths; ignored unless shape_calculation_mode is scales")
    axes = Input(T_AXES, "axes to resize, nonnegative; all axes if absent", optional=True)
    resized = Output(T_IMAGE, "the resized data")

    def infer(self, data: Value, sizes: Value, scales: Value, axes: Value | None = None) -> PartialShape:
        return self.shape(data, scales if self.shape_calculation_mode == "scales" else sizes, axes)

    def evaluate(self, data: Array, sizes: Array, scales: Array, axes: Array | None = None) -> Array:
        return self.resize(data, scales if self.shape_calculation_mode == "scales" else sizes, axes)


@op("Interpolate-11")
class Interpolate11(Resize):
    """The same as version 4, with the pillow modes, and one port for sizes or scales."""

    data = Input(T_IMAGE, "tensor to resize")
    target = Input(T_TARGET, "new lengths of the axes, or their factors, by shape_calculation_mode")
    axes = Input(T_AXES, "axes to resize, nonnegative; all axes if absent", optional=True)
    resized = Output(T_IMAGE, "the resized data")

    def infer(self, data: Value, target: Value, axes: Value | None = None) -> PartialShape:
        return self.shape(data, target, axes)

    def evaluate(self, data: Array, target: Array, axes: Array | None = None) -> Array:
        return self.resize(data, target, axes)


@op("Interpolate-1")
class Interpolate1(InterpolateBase):
    """Resize ``data`` along ``axes`` to the lengths ``target``.

    OpenVINO does not implement mode area; here, each element is the mean of an equal part of the data. OpenVINO has a
    mode linear_onnx that the specification lacks: the same as linear, except for rounding of data of rank 5 or more.
    Axes that are not resized keep their length whatever the pads, which shift the data. Integers, which the specification
    does not allow, are rounded, as in OpenVINO's plugin; its reference does not include this version.
    """

    data = Input(T, "tensor to resize")
    target = Input(T_INDEX, "new lengths of the axes, 1-D, in the order of the axes of data")
    resized = Output(T, "the resized data")

    axes: tuple[int, ...] = attr(ge=0, doc="axes to resize")
    mode: Literal["nearest", "linear", "linear_onnx", "cubic", "area"] = attr(
        doc="interpolation; area: the mean of the elements that an output element covers"
    )
    align_corners: bool = attr(
        True, doc="whether to map the outermost elements onto each other; ignored in mode area"
    )

    def infer(self, data: Value, target: Value) -> PartialShape:
        check_vector(target, "target")
        if target.count.max is not None and target.count.max < len(self.axes):
            raise InferenceError(
                f"target holds {target.count} lengths for attribute 'axes' {list(self.axes)}; one for each is expected",
                clause="target has one length for each axis",
            )
        if data.shape.rank is None:
            return PartialShape.dynamic()
        # OpenVINO treats the axes as a set, in the order of the data; the page uses their own order.
        where = sorted(normalize_axes(self.axes, data.shape.rank, "attribute 'axes': axis"))
        new = lengths_of(target, "target") or (Dimension(),) * len(where)
        pads = self.pads(data.shape.rank)
        for axis, length in zip(where, new, strict=False):
            check_source(Dimension.of(data.shape[axis] + sum(pads[axis])), length, axis)
        return data.shape.replace(dict(zip(where, new, strict=False)))

    def filter(self, rank: int) -> Filter:
        """Return the interpolation filter for data of ``rank``, with the equivalent settings of later versions."""
        mode = self.mode
        if mode == "linear" and rank < 5:
            mode = "linear_onnx"
        planes = rank == 4 and sorted(self.axes) == [2, 3]
        coordinates = "align_corners" if self.align_corners else "asymmetric"
        if self.mode in ("linear", "linear_onnx") and not (
            self.align_corners or planes or any(self.pads_begin + self.pads_end)
        ):
            coordinates = "half_pixel"
        return Filter(mode, coordinates, "simple", antialias=self.antialias, cut=False)

    def evaluate(self, data: Array, target: Array) -> Array:
        shape = self.infer(Value.constant(data), Value.constant(target)).static
        if 0 in shape:
            return np.zeros(shape, data.dtype)
        x = self.pad(data)
        plan = [
            Axis(
                axis,
                x.shape[axis],
                shape[axis],
                float(np.float32(shape[axis]) / np.float32(max(x.shape[axis], 1))),
            )
            for axis in self.axes
        ]
        return resample(x, plan, self.filter(data.ndim))[tuple(map(slice, shape))]


# GridSample: images sampled at given points.

T_GRID = Element("T1", FLOATS, "any floating-point type")
# The number of samples per chunk, which stay in the cache.
BLOCK = 1 << 16
# Positions beyond this, and NaN, are clamped to it; f64 has no fractions there.
MOST = 2.0**52


class _Places(NamedTuple):
    """Indices of pixels along an axis, and a mask of the positions outside, which read zero."""

    pixels: Array
    outside: Array | None


@op("GridSample-9")
class GridSample(Op):
    """Sample ``data`` at the points of ``grid``, whose coordinates span the image from -1 to 1."""

    decisions = (
        "nearest takes, of two pixels equally near, the one with the even number, as in OpenVINO; the page does not say",
    )

    data = Input(T_PLAIN, "[N, C, H, W]")
    grid = Input(T_GRID, "[N, rows, columns, 2]: the coordinates x and y of each sample")
    samples = Output(T_PLAIN, "[N, C, rows, columns]")

    align_corners: bool = attr(
        False, doc="whether -1 and 1 are the centres of the outermost pixels, instead of their edges"
    )
    mode: Literal["bilinear", "bicubic", "nearest"] = attr(
        "bilinear",
        doc="interpolation from 2 x 2 pixels, from 4 x 4 pixels, or from the nearest pixel",
    )
    padding_mode: Literal["zeros", "border", "reflection"] = attr(
        "zeros", doc="values outside the image: zeros, the outermost pixels, or mirror images"
    )

    def infer(self, data: Value, grid: Value) -> PartialShape:
        batch, channels, *pixels = of_rank(data, "data", "[N, C, H, W]")
        entries, rows, columns, pair = of_rank(grid, "grid", "[N, rows, columns, 2]")
        if not pair.compatible(Dimension(2)):
            raise InferenceError(
                f"grid must be [N, rows, columns, 2], x and y last, found {grid.shape}",
                clause="grid is [N, rows, columns, 2]",
            )
        if (common := batch.merge(entries)) is None:
            raise InferenceError(
                f"data {data.shape} and grid {grid.shape} differ in batch size",
                clause="data and grid have the same batch size",
            )
        if 0 in pixels and all(d.min for d in (common, channels, rows, columns)):
            raise InferenceError(
                f"data {data.shape} has no pixels to sample",
                clause="data has pixels to sample, unless nothing is sampled",
            )
        return PartialShape([common, channels, rows, columns])

    def evaluate(self, data: Array, grid: Array) -> Array:
        shape = self.infer(Value.constant(data), Value.constant(grid)).static
        samples = np.zeros(shape, data.dtype)
        if not samples.size:
            return samples
        double = np.dtype(np.float64) in (data.dtype, grid.dtype)
        points = grid.astype(np.float64 if double else np.float32, copy=False)
        step = max(1, BLOCK * len(samples) // samples.size)
        for first in range(0, len(samples), step):
            block = slice(first, first + step)
            samples[block] = self._sample(data[block], points[block])
        return samples

    def _sample(self, images: Array, points: Array) -> Array:
        """Sample images at ``points[N, rows, columns, 2]``; return ``[N, C, rows, columns]``."""
        count, channels, height, width = images.shape
        where = points.reshape(count, 1, -1, 2)
        y, x = self._to_pixels(where[..., 1], height), self._to_pixels(where[..., 0], width)
        samples: Array = getattr(self, f"_{self.mode}")(images, y, x)
        return samples.reshape(count, channels, *points.shape[1:3])

    def _to_pixels(self, coordinates: Array, length: int) -> Array:
        """Convert coordinates to units of pixels, in which the centres of pixels are integers."""
        if self.align_corners:
            return (coordinates + 1) * (length - 1) / 2
        return ((coordinates + 1) * length - 1) / 2

    def _nearest(self, images: Array, y: Array, x: Array) -> Array:
        rows, columns = self._along(np.rint(y), images.shape[2]), self._along(np.rint(x), images.shape[3])
        return _pixels(images, rows, columns)

    def _bilinear(self, images: Array, y: Array, x: Array) -> Array:
        top, left = np.floor(y), np.floor(x)
        dy, dx = y - top, x - left
        columns = [self._along(left, images.shape[3], step) for step in (0, 1)]
        corners = []
        for step in (0, 1):
            row = self._along(top, images.shape[2], step)
            before, after = (_pixels(images, row, column) for column in columns)
            corners.append((1 - dx) * before + dx * after)
        return np.asarray(dy * corners[1] + (1 - dy) * corners[0])

    def _bicubic(self, images: Array, y: Array, x: Array) -> Array:
        """Interpolate with a single rounding, as OpenVINO's plugin does; its reference rounds each partial sum."""
        top, left = np.floor(y), np.floor(x)
        down, across = cubic_weights(y - top, -0.75), cubic_weights(x - left, -0.75)
        columns = [self._along(left, images.shape[3], step) for step in range(-1, 3)]
        total = np.zeros((), y.dtype)
        for i in range(4):
            places, row = self._along(top, images.shape[2], i - 1), np.zeros((), y.dtype)
            for j, column in enumerate(columns):
                row = row + across[..., j] * _pixels(images, places, column)
            total = total + down[..., i] * row
        return total

    def _along(self, positions: Array, length: int, step: int = 0) -> _Places:
        """Return the indices of pixels at integer positions along an axis, shifted by ``step``."""
        bounded = np.minimum(np.fmax(positions, -MOST), MOST)
        index = (bounded + step).astype(np.int64)
        inside = self._inside(index, length)
        return _Places(inside, index != inside if self.padding_mode == "zeros" else None)

    def _inside(self, index: Array, length: int) -> Array:
        if self.padding_mode == "reflection":
            if self.align_corners:
                period = max(2 * (length - 1), 1)
                index = np.abs(index) % period
                index = np.where(index >= length, period - index, index)
            else:
                index = index % (2 * length)
                index = np.where(index >= length, 2 * length - 1 - index, index)
        return index.clip(0, length - 1)

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of interpolation; bicubic samples have four times the neighbours of bilinear ones."""
        return {"nearest": 0, "bilinear": BILINEAR, "bicubic": 4 * BILINEAR}[self.mode] * operands.result


def _pixels(images: Array, rows: _Places, columns: _Places) -> Array:
    """Gather the pixels of ``images[N, C, Y, X]`` at indices ``[N, 1, points]``; return ``[N, C, points]``."""
    if len(images) == 1:  # then all channels share the indices
        pixels: Array = images[0][:, rows.pixels[0, 0], columns.pixels[0, 0]][None]
    else:
        count, channels, height, width = images.shape
        planes = np.arange(count * channels).reshape(count, channels, 1) * (height * width)
        pixels = images.reshape(-1).take(planes + (rows.pixels * width + columns.pixels))
    if rows.outside is not None and columns.outside is not None:
        np.copyto(pixels, np.zeros((), pixels.dtype), where=rows.outside | columns.outside)
    return pixels


# Colour conversion between RGB and YUV formats: NV12 and I420.
#
# NV12 interleaves U and V in one plane; I420 has a plane for each. In a single tensor, the planes are stacked along
# the height, which is one and a half times that of the image.

T_COLOR = Element("T", (E.u8, E.f32, E.f16, E.bf16, E.f64), "u8 or any floating-point type")


def image_dims(value: Value, name: str, channels: int) -> PartialShape:
    """Return the shape of an input, after checking that it is ``[N, H, W, channels]``."""
    shape = value.shape
    if shape.rank is None:
        shape = PartialShape.dynamic(4)
    if shape.rank != 4 or not shape[3].compatible(Dimension(channels)):
        raise InferenceError(
            f"{name} must be [N, H, W, {channels}], found {shape}", clause=f"{name} is [N, H, W, {channels}]"
        )
    return shape


def common(lengths: Mapping[str, Dimension], what: str) -> Dimension:
    """Return the common length of all planes; raise if they differ. ``what`` names the length in messages."""
    merged: Dimension | None = Dimension()
    for length in lengths.values():
        merged = merged and merged.merge(length)
    if merged is None:
        raise InferenceError(
            f"the planes stand for images that differ in {what}: {', '.join(f'{name} for {length}' for name, length in lengths.items())}",
            hint="planes of U and V have half the height and width of Y" if what != "batch size" else "",
            clause=f"the planes are of images of the same {what}",
        )
    return merged


def even(length: Dimension, what: str, shape: PartialShape) -> Dimension:
    """Restrict a length to even values; raise if it is odd. ``what`` names the length in messages."""
    if (halved := multiples(length, 2)) is None:
        raise InferenceError(
            f"the {what} must be even, found {length} in {shape}", clause=f"the {what} is even"
        )
    return halved


def clamp_colors(x: Array, dtype: DType) -> Array:
    """Clamp colours to [0, 255]; for integer dtypes, round halves up."""
    limited = x.clip(0, 255)
    return (np.floor(limited + np.float32(0.5)) if dtype.kind == "u" else limited).astype(dtype)


def precise(x: Array) -> Array:
    """Convert to the dtype to compute in: f64 for f64, else f32."""
    return x.astype(np.float64 if x.dtype == np.float64 else np.float32, copy=False)


class YUVToRGB(Op):
    """Base of conversions from YUV planes to three channels."""

    flops_per_element = 4

    pixels = Output(T_COLOR, "[N, H, W, 3]")

    blue_first: ClassVar[bool] = False

    def whole(self, value: Value) -> PartialShape:
        """Return the shape of the image if one tensor holds all planes."""
        image = image_dims(value, "y", 1)
        batch, height, width, _ = image
        if height.is_static and height.min % 3:
            raise InferenceError(
                f"y {image} alone must hold all planes, and so be of three halves of an even height, found {height}",
                hint="planes that come apart need an input each",
                clause="a single plane has a height that is a multiple of 3",
            )
        # A dynamic height is restricted to multiples of 3.
        longest = None if height.max is None else height.max * 2 // 3
        rows = Dimension.between(-(-height.min * 2 // 3), longest)
        return PartialShape([batch, rows, even(width, "width", image), Dimension(3)])

    def split(self, y: PartialShape, **halves: PartialShape) -> PartialShape:
        """Return the shape of the image if the planes are separate; ``halves`` are those of half the size."""
        batch = common({"y": y[0]} | {name: half[0] for name, half in halves.items()}, "batch size")
        height, width = (
            common(
                {"y": even(y[axis], what, y)}
                | {name: Dimension.of(half[axis] * 2) for name, half in halves.items()},
                what,
            )
            for axis, what in ((1, "height"), (2, "width"))
        )
        return PartialShape([batch, height, width, Dimension(3)])

    def paint(self, y: Array, u: Array, v: Array) -> Array:
        """Return the pixels ``[N, H, W, 3]`` of a plane ``y[N, H, W]`` and half-sized planes ``u`` and ``v``."""
        u, v = (precise(plane).repeat(2, 1).repeat(2, 2) - 128 for plane in (u, v))
        light = (precise(y) - 16) * light_type(y)(1.164)
        factor = light_type(y)
        red = light + factor(1.596) * v
        green = light - factor(0.391) * u - factor(0.813) * v
        blue = light + factor(2.018) * u
        colors = (blue, green, red) if self.blue_first else (red, green, blue)
        return clamp_colors(np.stack(colors, -1), y.dtype)


def light_type(x: Array) -> type[Float]:
    """Return the NumPy scalar type of conversion factors, which is that of `precise`."""
    scalar: type[Float] = precise(x[:0]).dtype.type
    return scalar


class NV12ToRGBBase(YUVToRGB):
    """Base of conversions from NV12."""

    y = Input(T_COLOR, "[N, H, W, 1], or [N, H * 3 / 2, W, 1] with all planes")
    uv = Input(T_COLOR, "[N, H / 2, W / 2, 2]; absent if y holds all planes", optional=True)

    def infer(self, y: Value, uv: Value | None = None) -> PartialShape:
        if uv is None:
            return self.whole(y)
        return self.split(image_dims(y, "y", 1), uv=image_dims(uv, "uv", 2))

    def evaluate(self, y: Array, uv: Array | None = None) -> Array:
        if uv is None:
            n, height, width, _ = self.infer(Value.constant(y)).static
            y, uv = y[:, :height], y[:, height:].reshape(n, height // 2, width // 2, 2)
        return self.paint(y[..., 0], uv[..., 0], uv[..., 1])


class I420ToRGBBase(YUVToRGB):
    """Base of conversions from I420."""

    y = Input(T_COLOR, "[N, H, W, 1], or [N, H * 3 / 2, W, 1] with all planes")
    u = Input(T_COLOR, "[N, H / 2, W / 2, 1]; absent if y holds all planes", optional=True)
    v = Input(T_COLOR, "[N, H / 2, W / 2, 1]; absent if y holds all planes", optional=True)

    def infer(self, y: Value, u: Value | None = None, v: Value | None = None) -> PartialShape:
        if u is None:
            return self.whole(y)
        if v is None:
            raise InferenceError(
                "takes 1 input (y, with all planes) or 3 inputs (y, u, v), got 2",
                code=Code.PORT_COUNT,
                clause="u and v are given together, or not at all",
            )
        return self.split(image_dims(y, "y", 1), u=image_dims(u, "u", 1), v=image_dims(v, "v", 1))

    def evaluate(self, y: Array, u: Array | None = None, v: Array | None = None) -> Array:
        if u is None or v is None:
            n, height, width, _ = self.infer(Value.constant(y)).static
            y, rest = y[:, :height], y[:, height:].reshape(n, 2, height // 2, width // 2, 1)
            u, v = rest[:, 0], rest[:, 1]
        return self.paint(y[..., 0], u[..., 0], v[..., 0])


@op("NV12toRGB-8", spec="image/nv12-to-rgb-8")
class NV12toRGB(NV12ToRGBBase):
    """Convert the planes ``y`` and ``uv`` to red, green and blue."""


@op("NV12toBGR-8", spec="image/nv12-to-bgr-8")
class NV12toBGR(NV12ToRGBBase):
    """Convert the planes ``y`` and ``uv`` to blue, green and red."""

    blue_first = True


@op("I420toRGB-8", spec="image/i420-to-rgb-8")
class I420toRGB(I420ToRGBBase):
    """Convert the planes ``y``, ``u`` and ``v`` to red, green and blue."""


@op("I420toBGR-8", spec="image/i420-to-bgr-8")
class I420toBGR(I420ToRGBBase):
    """Convert the planes ``y``, ``u`` and ``v`` to blue, green and red."""

    blue_first = True


class RGBToNV12Base(Op):
    """Base of conversions to NV12. U and V are means of the rounded values of four pixels."""

    flops_per_element = 0
    flops_per_input = {"pixels": 3}

    pixels = Input(T_COLOR, "[N, H, W, 3]")
    planes = Output(
        T_COLOR,
        "one tensor [N, H * 3 / 2, W, 1]; or Y [N, H, W, 1] and UV [N, H / 2, W / 2, 2]",
        variadic=True,
    )

    single_plane: bool = attr(True, doc="whether to return one tensor with all planes, instead of Y and UV")

    blue_first: ClassVar[bool] = False

    def infer(self, pixels: Value) -> tuple[PartialShape, ...]:
        image = image_dims(pixels, "pixels", 3)
        batch, height, width, _ = image
        height, width = even(height, "height", image), even(width, "width", image)
        if self.single_plane:
            return (PartialShape([batch, Dimension.of(height * 3) // 2, width, Dimension(1)]),)
        return (
            PartialShape([batch, height, width, Dimension(1)]),
            PartialShape([batch, height // 2, width // 2, Dimension(2)]),
        )

    def evaluate(self, pixels: Array) -> tuple[Array, ...]:
        factor = light_type(pixels)
        red, green, blue = np.moveaxis(precise(pixels), -1, 0)[:: -1 if self.blue_first else 1]

        def mix(r: float, g: float, b: float, more: float) -> Array:
            return clamp_colors(
                factor(r) * red + factor(g) * green + factor(b) * blue + factor(more), pixels.dtype
            )

        y = mix(0.257, 0.504, 0.098, 16)
        uv = np.stack([mix(-0.148, -0.291, 0.439, 128), mix(0.439, -0.368, -0.071, 128)], -1)
        n, height, width = y.shape
        blocks = precise(uv).reshape(n, height // 2, 2, width // 2, 2, 2)
        means = clamp_colors(blocks.sum((2, 4), dtype=blocks.dtype) / 4, pixels.dtype)
        if self.single_plane:
            return (np.concatenate([y, means.reshape(n, height // 2, width)], 1)[..., None],)
        return y[..., None], means


@op("RGBtoNV12-17", spec="image/rgb-to-nv12-17")
class RGBtoNV12(RGBToNV12Base):
    """Convert ``pixels`` of red, green and blue to planes Y and UV."""


@op("BGRtoNV12-17", spec="image/bgr-to-nv12-17")
class BGRtoNV12(RGBToNV12Base):
    """Convert ``pixels`` of blue, green and red to planes Y and UV."""

    blue_first = True
