"""Interpolate: resize tensors along some of their axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.element import ElementType as E
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_INDEX, Element, Input, Output, T, attr, op
from .._lengths import check_vector, lengths_of, normalize_axes
from ..kernels.resample import Axis, Filter, resample
from ._padded import InterpolateBase, check_source

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
    """Base of versions 4 and 11, which differ only in their ports.

    Mode linear_onnx accepts any axes, as in OpenVINO's plugin; the page allows spatial ones only. An axis
    that keeps its length is skipped: in OpenVINO, NaN and infinity spread to their neighbours along it, as
    they are multiplied by 0.
    """

    mode: Literal["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"] = attr(
        default_with_warning="nearest",
        doc="how to compute elements between those there are: as the nearest one; from the nearest two "
        "along each axis, as TensorFlow or ONNX do; from four; or as the library Pillow, from all that "
        "become one, along exactly two axes",
    )
    shape_calculation_mode: Literal["sizes", "scales"] = attr(
        default_with_warning="sizes",
        doc="whether lengths are given, or what to multiply those of the padded data with; rounded down",
    )
    coordinate_transformation_mode: Literal[
        "half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"
    ] = attr("half_pixel", doc="the position of an element on the data; ignored by the pillow modes")
    nearest_mode: Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"] = attr(
        "round_prefer_floor",
        doc="which element is nearest, for mode nearest; simple: the next one where the data shrinks, else "
        "the one before",
    )
    cube_coeff: float = attr(-0.75, doc="steepness of the curve of modes cubic and bicubic_pillow")

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the padding of every axis."""
        rank = inputs[0].rank
        if rank is None:
            return {}
        pads = self.pads(rank)
        return {"pads_begin": [before for before, _ in pads], "pads_end": [after for _, after in pads]}

    def shape(self, data: Value, target: Value, axes: Value | None) -> PartialShape:
        """Return the shape after resizing ``axes`` as ``target`` says."""
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
        """Return whether there may be enough numbers for the axes. OpenVINO ignores extra numbers."""
        return target.count.max is None or target.count.max >= needed

    def where(self, axes: Sequence[int] | None, rank: int, every: bool) -> tuple[int, ...] | None:
        """Return the axes to resize, if known."""
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
        """Return the data, resized."""
        if target.dtype == np.float64:  # of a model computed in f64 throughout
            target = target.astype(np.float32)
        known_axes = None if axes is None else Value.constant(axes)
        shape = self.shape(Value.constant(data), Value.constant(target), known_axes).static
        if 0 in shape:
            return np.zeros(shape, data.dtype)
        x = self.padded(data)
        return resample(x, self.plan(x.shape, shape, target, axes), self.filter())

    def plan(
        self, before: Sequence[int], after: Sequence[int], target: Array, axes: Array | None
    ) -> list[Axis]:
        """Return the axes to resample, of padded data of one shape into another."""
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
    """Scale a length, rounding as OpenVINO: the factor is increased by a millionth, in f32."""
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
    """Resize ``data`` along ``axes`` to given ``sizes`` or by given ``scales``."""

    mode: Literal["nearest", "linear", "linear_onnx", "cubic"] = attr(
        default_with_warning="nearest",
        doc="how to compute elements between those there are: as the nearest one; from the nearest two "
        "along each axis, as TensorFlow or ONNX do; or from four",
    )

    data = Input(T_IMAGE, "tensor to resize")
    sizes = Input(T_SIZES, "new lengths, for shape_calculation_mode sizes; else ignored")
    scales = Input(T_SCALES, "factors of lengths, for shape_calculation_mode scales; else ignored")
    axes = Input(T_AXES, "axes to resize, from 0; all when absent", optional=True)
    resized = Output(T_IMAGE, "the data with other lengths along the axes")

    def infer(self, data: Value, sizes: Value, scales: Value, axes: Value | None = None) -> PartialShape:
        return self.shape(data, scales if self.shape_calculation_mode == "scales" else sizes, axes)

    def evaluate(self, data: Array, sizes: Array, scales: Array, axes: Array | None = None) -> Array:
        return self.resize(data, scales if self.shape_calculation_mode == "scales" else sizes, axes)


@op("Interpolate-11")
class Interpolate11(Resize):
    """As version 4, with two more modes, and sizes or scales on one port."""

    data = Input(T_IMAGE, "tensor to resize")
    target = Input(T_TARGET, "new lengths or factors of lengths, as shape_calculation_mode says")
    axes = Input(T_AXES, "axes to resize, from 0; all when absent", optional=True)
    resized = Output(T_IMAGE, "the data with other lengths along the axes")

    def infer(self, data: Value, target: Value, axes: Value | None = None) -> PartialShape:
        return self.shape(data, target, axes)

    def evaluate(self, data: Array, target: Array, axes: Array | None = None) -> Array:
        return self.resize(data, target, axes)


@op("Interpolate-1")
class Interpolate1(InterpolateBase):
    """Resize ``data`` along axes to ``target`` lengths.

    OpenVINO implements no mode area, and a mode linear_onnx that the page does not have: as linear, but for rounding
    where more than four axes are resized. For mode area, here, each element is the mean of an equal part of the data.
    Axes that are not resized keep their length, whatever the pads, which shift the data.
    Integers, which the page does not have, are rounded, as in OpenVINO's plugin; its reference for this
    version is not part of it.
    """

    data = Input(T, "tensor to resize")
    target = Input(T_INDEX, "1-D; the length of each of the axes")
    resized = Output(T, "the data with other lengths along the axes")

    axes: tuple[int, ...] = attr(
        ge=0, doc="axes to resize; the target has their lengths in the order of the data"
    )
    mode: Literal["nearest", "linear", "linear_onnx", "cubic", "area"] = attr(
        doc="how to compute elements between those there are; area: as the mean of what becomes one"
    )
    align_corners: bool = attr(True, doc="whether the outermost elements stay so; not for mode area")

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

    def how(self, rank: int) -> Filter:
        """Return the equivalent settings of later versions."""
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
        x = self.padded(data)
        plan = [
            Axis(
                axis,
                x.shape[axis],
                shape[axis],
                float(np.float32(shape[axis]) / np.float32(max(x.shape[axis], 1))),
            )
            for axis in self.axes
        ]
        return resample(x, plan, self.how(data.ndim))[tuple(map(slice, shape))]
