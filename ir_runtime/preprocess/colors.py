"""Steps on colours: convert between formats, and reverse the order of the channels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..ir.element import ElementType
from ..openvino.layout import Layout
from ..openvino.node import Output
from .create import create, i32, i64
from .options import ColorFormat
from .permutations import axis_of, permutation, refusal
from .shapes import transposed
from .step import Context, Planes, Step, only

__all__ = ["convert_color", "reverse_channels"]

_RGB, _BGR, _GRAY = ColorFormat.RGB, ColorFormat.BGR, ColorFormat.GRAY
_YUV = (
    ColorFormat.NV12_SINGLE_PLANE,
    ColorFormat.NV12_TWO_PLANES,
    ColorFormat.I420_SINGLE_PLANE,
    ColorFormat.I420_THREE_PLANES,
)
# The weights of OpenCV's conversion to grey (ITU-R BT.601), for red, green and blue.
_LUMA = (0.299, 0.587, 0.114)


def convert_color(target: ColorFormat) -> Step:
    """Convert an image to another colour format."""

    def apply(planes: Planes, context: Context) -> Planes:
        if context.color is target:
            return planes
        found = _conversion(context.color, target)(planes, context, target)
        context.color = target
        return (found,)

    return Step(f"convert color ({target.label})", apply)


_Conversion = Callable[[Planes, Context, ColorFormat], Output]


def _conversion(source: ColorFormat, target: ColorFormat) -> _Conversion:
    if source in _YUV and target in (_RGB, _BGR):
        return _from_yuv
    if source in _YUV and target is _GRAY:
        return _luma_plane
    if (source, target) in ((_RGB, _BGR), (_BGR, _RGB)):
        return lambda planes, context, target: _reversed(only(planes, "convert_color"), context)
    if source in (_RGB, _BGR) and target is _GRAY:
        return _to_gray
    if source in (ColorFormat.RGBX, ColorFormat.BGRX) and target in (_RGB, _BGR):
        return _without_last_channel
    raise refusal(f"colour format {source.label!r} is not convertible to {target.label!r}")


def _from_yuv(planes: Planes, context: Context, target: ColorFormat) -> Output:
    return create(f"{context.color.name[:4]}to{target.name}", *planes)


def _luma_plane(planes: Planes, context: Context, target: ColorFormat) -> Output:
    """Return the brightness: the first plane, or the first two thirds of the lines of the only one."""
    if len(planes) > 1:
        return planes[0]
    lines = create("Gather", create("ShapeOf", planes[0]), i32([1]), i32(0))
    height = create("Divide", create("Multiply", lines, i64([2])), i64([3]))
    return create("Slice", planes[0], i32([0]), height, i32([1]), i32([1]))


def _to_gray(planes: Planes, context: Context, target: ColorFormat) -> Output:
    tensor = only(planes, "convert_color")
    element, shape = tensor.element_type, tensor._type.shape
    if shape.rank != 4:
        raise refusal(f"an image to be converted to GRAY must have 4 dimensions, got {shape}")
    channels = axis_of(context.layout, "channels", shape)
    if shape[channels] != 3:
        raise refusal(f"an image to be converted to GRAY must have 3 channels, got {shape[channels]}")
    first = Layout("NC...")
    is_last = channels == 3
    order = permutation(context.layout, shape, first) if is_last else None
    if order:
        tensor = transposed(tensor, order)
    if not element.is_real():
        tensor = create("Convert", tensor, destination_type=ElementType.f32)
    tensor = _weighted(tensor, context.color)
    if not element.is_real():
        tensor = create("Convert", create("Round", tensor, mode="half_to_even"), destination_type=element)
    back = permutation(first, shape, context.layout) if is_last else None
    return transposed(tensor, back) if back else tensor


def _weighted(tensor: Output, color: ColorFormat) -> Output:
    weights = np.array(_LUMA if color is _RGB else _LUMA[::-1], np.float32).reshape(1, 3, 1, 1)
    zeros, ones = [0, 0], [1, 1]
    return create(
        "Convolution", tensor, weights, strides=ones, pads_begin=zeros, pads_end=zeros, dilations=ones
    )


def _without_last_channel(planes: Planes, context: Context, target: ColorFormat) -> Output:
    tensor = only(planes, "convert_color")
    _check_channels(context.layout)
    axis = context.layout.get_index_by_name("C")
    cut = create("Slice", tensor, i32([0]), i32([-1]), i32([1]), i32([axis]))
    return cut if context.color.name[:3] == target.name else _reversed(cut, context)


def reverse_channels() -> Step:
    """Reverse the order of the channels, as from RGB to BGR."""

    def apply(planes: Planes, context: Context) -> Planes:
        return (_reversed(only(planes, "reverse_channels"), context),)

    return Step("reverse channels", apply)


def _reversed(tensor: Output, context: Context) -> Output:
    _check_channels(context.layout)
    shape, axis = tensor._type.shape, context.layout.get_index_by_name("C")
    if shape.rank is not None:
        axis = axis_of(context.layout, "channels", shape)
        if shape[axis].is_static:
            return create("Gather", tensor, i32(range(shape[axis].get_length())[::-1]), i32([axis]))
    count = create("Gather", create("ShapeOf", tensor), i32(axis), i32(0))
    downward = create("Range", create("Add", count, i64(-1)), i64(-1), i64(-1), output_type=ElementType.i32)
    return create("Gather", tensor, downward, i32([axis]))


def _check_channels(layout: Layout) -> None:
    if not layout.has_name("C"):
        raise refusal(
            f"layout {layout} has no channels dimension", "a layout must name its channels, as NCHW does"
        )
