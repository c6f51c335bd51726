"""Colour conversion between RGB and YUV formats: NV12 and I420.

NV12 interleaves U and V in one plane, I420 has a plane for each. In a single tensor, the planes are stacked
to one and a half times the height of the image.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ..._util.arrays import DType, Float
from ...codes import Code
from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.element import ElementType as E
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import Element, Input, Op, Output, attr, op
from .._lengths import multiples

T_COLOR = Element("T", (E.u8, E.f32, E.f16, E.bf16, E.f64), "u8 or any floating-point type")


def image_dims(value: Value, name: str, channels: int) -> PartialShape:
    """Return the shape of an image, ``[N, H, W, channels]``."""
    shape = value.shape
    if shape.rank is None:
        shape = PartialShape.dynamic(4)
    if shape.rank != 4 or not shape[3].compatible(Dimension(channels)):
        raise InferenceError(
            f"{name} must be [N, H, W, {channels}], found {shape}", clause=f"{name} is [N, H, W, {channels}]"
        )
    return shape


def common(lengths: Mapping[str, Dimension], what: str) -> Dimension:
    """Return the common length of several planes."""
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
    """Restrict a length to even numbers."""
    if (halved := multiples(length, 2)) is None:
        raise InferenceError(
            f"the {what} must be even, found {length} in {shape}", clause=f"the {what} is even"
        )
    return halved


def clamp_colors(x: Array, dtype: DType) -> Array:
    """Clamp colours to 0..255, rounding integers half up."""
    limited = x.clip(0, 255)
    return (np.floor(limited + np.float32(0.5)) if dtype.kind == "u" else limited).astype(dtype)


def precise(x: Array) -> Array:
    """Convert to the precision of computation."""
    return x.astype(np.float64 if x.dtype == np.float64 else np.float32, copy=False)


class YUVToRGB(Op):
    """Base of conversions to three channels."""

    flops_per_element = 4

    pixels = Output(T_COLOR, "[N, H, W, 3]")

    blue_first: ClassVar[bool] = False

    def whole(self, value: Value) -> PartialShape:
        """Return the shape of the image if one tensor has all planes."""
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
        """Return the shape of the image if planes are separate."""
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
        """Return the pixels from planes ``[N, H, W]`` and half-sized U and V."""
        u, v = (precise(plane).repeat(2, 1).repeat(2, 2) - 128 for plane in (u, v))
        light = (precise(y) - 16) * light_type(y)(1.164)
        factor = light_type(y)
        red = light + factor(1.596) * v
        green = light - factor(0.391) * u - factor(0.813) * v
        blue = light + factor(2.018) * u
        colors = (blue, green, red) if self.blue_first else (red, green, blue)
        return clamp_colors(np.stack(colors, -1), y.dtype)


def light_type(x: Array) -> type[Float]:
    """Return the NumPy scalar type of the factors."""
    scalar: type[Float] = precise(x[:0]).dtype.type
    return scalar


class NV12ToRGBBase(YUVToRGB):
    """Conversions from NV12."""

    y = Input(T_COLOR, "[N, H, W, 1], or [N, H * 3 / 2, W, 1] with all planes")
    uv = Input(T_COLOR, "[N, H / 2, W / 2, 2]; absent where the other input has all planes", optional=True)

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
    """Conversions from I420."""

    y = Input(T_COLOR, "[N, H, W, 1], or [N, H * 3 / 2, W, 1] with all planes")
    u = Input(T_COLOR, "[N, H / 2, W / 2, 1]; absent where the first input has all planes", optional=True)
    v = Input(T_COLOR, "[N, H / 2, W / 2, 1]; absent where the first input has all planes", optional=True)

    def infer(self, y: Value, u: Value | None = None, v: Value | None = None) -> PartialShape:
        if u is None:
            return self.whole(y)
        if v is None:
            raise InferenceError(
                "takes 1 input (y, with all planes) or 3 inputs (y, u, v), got 2",
                code=Code.PORT_COUNT,
                clause="u and v come together",
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
    """Base of conversions to NV12. U and V are means over four pixels, each rounded first."""

    flops_per_element = 0
    flops_per_input = {"pixels": 3}

    pixels = Input(T_COLOR, "[N, H, W, 3]")
    planes = Output(
        T_COLOR,
        "all planes, [N, H * 3 / 2, W, 1]; or Y, [N, H, W, 1], and UV, [N, H / 2, W / 2, 2]",
        variadic=True,
    )

    single_plane: bool = attr(True, doc="whether all planes come in one tensor; else in two")

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
        fours = precise(uv).reshape(n, height // 2, 2, width // 2, 2, 2)
        means = clamp_colors(fours.sum((2, 4), dtype=fours.dtype) / 4, pixels.dtype)
        if self.single_plane:
            return (np.concatenate([y, means.reshape(n, height // 2, width)], 1)[..., None],)
        return y[..., None], means


@op("RGBtoNV12-17", spec="image/rgb-to-nv12-17")
class RGBtoNV12(RGBToNV12Base):
    """Convert ``pixels`` of red, green and blue to planes."""


@op("BGRtoNV12-17", spec="image/bgr-to-nv12-17")
class BGRtoNV12(RGBToNV12Base):
    """Convert ``pixels`` of blue, green and red to planes."""

    blue_first = True
