"""The steps of preprocessing, each of which creates the nodes of an operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array
from ..layout import Layout
from ..node import Node, Output
from .options import ColorFormat, PaddingMode, ResizeAlgorithm
from .permutations import axis_of, permutation, permute_layout, refusal, unsqueeze_layout

__all__ = [
    "Context",
    "Planes",
    "Step",
    "convert_color",
    "convert_layout",
    "convert_type",
    "create",
    "crop",
    "custom",
    "i32",
    "i64",
    "mean",
    "numbers",
    "only",
    "pad",
    "permute",
    "relayout",
    "resize",
    "reverse_channels",
    "scale",
    "shown",
]

Planes: TypeAlias = "tuple[Output, ...]"
"""The tensors of an image: one, or one per plane."""


@dataclass
class Context:
    """The state of lowering: layout, type and colours of the current tensor, and of the target."""

    layout: Layout
    target_layout: Layout = field(default_factory=Layout)
    target_type: ElementType = ElementType.dynamic
    model_shape: PartialShape = field(default_factory=PartialShape.dynamic)
    color: ColorFormat = ColorFormat.UNDEFINED


@dataclass(frozen=True)
class Step:
    """A step: its name, as ``print(ppp)`` shows it, and the function that creates its nodes."""

    name: str
    apply: Callable[[Planes, Context], Planes]


def only(planes: Planes, what: str) -> Output:
    """Return the plane of a single-plane image.

    Raises:
        InputError: if there are several.
    """
    if len(planes) > 1:
        raise refusal(
            f"{what} does not apply to images of several planes", "convert_color to RGB or BGR first"
        )
    return planes[0]


def create(type: str, *inputs: Output | Array, opset: int = 8, **attributes: Any) -> Output:
    """Create an operation with one output, and return the output. Arrays become Constants."""
    return Node.create(type, opset, inputs, attributes).output(0)


def i32(values: Any) -> Array:
    """Return integers as an array of ``i32``."""
    return np.asarray(values, np.int32)


def i64(values: Any) -> Array:
    """Return integers as an array of ``i64``."""
    return np.asarray(values, np.int64)


def numbers(values: Any, element: ElementType) -> Array:
    """Return the arguments of a step, which are f32 values, as an array of another type."""
    return np.asarray(values, np.float32).astype(element.dtype)


def convert_type(element: ElementType) -> Step:
    """Convert every plane to an element type, or to that of the target if ``dynamic``."""

    def apply(planes: Planes, context: Context) -> Planes:
        target = context.target_type if element is ElementType.dynamic else element
        return tuple(convert_tensor(plane, target) for plane in planes)

    return Step(f"convert type ({element.label})", apply)


def convert_tensor(tensor: Output, element: ElementType) -> Output:
    """Convert the tensor to an element type."""
    if tensor.element_type is ElementType.dynamic:
        raise refusal("a tensor of unknown element type cannot be converted", "set_element_type first")
    if tensor.element_type is element:
        return tensor
    if element is ElementType.dynamic:
        raise refusal("a tensor cannot be converted to an unknown element type", "set_element_type first")
    return create("Convert", tensor, destination_type=element)


def mean(values: Sequence[float]) -> Step:
    """Subtract a number, or one number per channel."""

    def apply(planes: Planes, context: Context) -> Planes:
        return (create("Subtract", *_per_channel(planes, context, values, "mean")),)

    return Step(f"mean {shown(values)}", apply)


def scale(values: Sequence[float]) -> Step:
    """Divide by a number, or one number per channel. As in OpenVINO, multiply by the reciprocal unless it is f64."""

    def apply(planes: Planes, context: Context) -> Planes:
        tensor, divisors = _per_channel(planes, context, values, "scale")
        if tensor.element_type is ElementType.f64:
            return (create("Divide", tensor, divisors),)
        with np.errstate(divide="ignore", over="ignore"):
            return (create("Multiply", tensor, np.reciprocal(divisors)),)

    return Step(f"scale {shown(values)}", apply)


def _per_channel(
    planes: Planes, context: Context, values: Sequence[float], what: str
) -> tuple[Output, Array]:
    tensor = only(planes, what)
    shape = (1,) if len(values) == 1 else _channel_shape(tensor, context, len(values), what)
    _check_real(tensor, what)
    return tensor, numbers(values, tensor.element_type).reshape(shape)


def _channel_shape(tensor: Output, context: Context, count: int, what: str) -> tuple[int, ...]:
    shape = tensor._type.shape
    channels = axis_of(context.layout, "channels", shape)
    if shape[channels].is_static and shape[channels] != count:
        raise refusal(
            f"{what} has {count} numbers, but a tensor of shape {shape} and layout {context.layout} has "
            f"{shape[channels]} channels",
            "give one number, or one per channel",
        )
    return tuple(count if axis == channels else 1 for axis in range(len(shape)))


def _check_real(tensor: Output, what: str) -> None:
    if not tensor.element_type.is_real():
        raise refusal(
            f"{what} does not apply to a tensor of {tensor.element_type.label}", "convert_element_type first"
        )


def pad(begin: Sequence[int], end: Sequence[int], values: Sequence[float], mode: PaddingMode) -> Step:
    """Pad every dimension at its start and end."""

    def apply(planes: Planes, context: Context) -> Planes:
        tensor = only(planes, "pad")
        _check_real(tensor, "pad")
        if len(values) != 1:
            raise refusal(f"pad takes one number, got {len(values)}")
        number = numbers(values[0], tensor.element_type)
        return (create("Pad", tensor, i64(begin), i64(end), number, pad_mode=mode.mode),)

    how = {
        PaddingMode.CONSTANT: f"with {shown(values)}",
        PaddingMode.REFLECT: "reflected from tensor",
        PaddingMode.SYMMETRIC: "symmetrically added from tensor",
    }[mode]
    return Step(f"pad(begin {shown(begin)}, end {shown(end)}, {how})", apply)


def custom(operation: Callable[[Output], Any]) -> Step:
    """Apply a function that takes the tensor and returns an output, or a node with one output."""

    def apply(planes: Planes, context: Context) -> Planes:
        result = operation(only(planes, "a custom step"))
        if isinstance(result, Node):
            result = result.output(0)
        if not isinstance(result, Output):
            raise refusal(f"a custom step must return an output of a node, got {result!r}")
        return (result,)

    return Step("custom", apply)


def shown(values: Sequence[float]) -> str:
    """Format numbers as OpenVINO does, such as ``(1,2.5)`` with up to six digits; an empty string for none."""
    return f"({','.join(f'{value:g}' for value in values)})" if len(values) else ""


def resize(algorithm: ResizeAlgorithm, height: int | None, width: int | None) -> Step:
    """Resize to a height and width, by default those of the model."""

    def apply(planes: Planes, context: Context) -> Planes:
        tensor = only(planes, "resize")
        shape = tensor._type.shape
        axes = [axis_of(context.layout, name, shape) for name in ("height", "width")]
        sizes = [
            _model_length(context, name) if length is None else length
            for name, length in (("height", height), ("width", width))
        ]
        how = {
            "mode": algorithm.mode,
            "shape_calculation_mode": "sizes",
            "pads_begin": [0, 0],
            "pads_end": [0, 0],
            "cube_coeff": -0.5
            if algorithm is ResizeAlgorithm.RESIZE_BICUBIC_PILLOW
            else -0.75,  # as in Pillow
        }
        return (create("Interpolate", tensor, i64(sizes), i64(axes), opset=11, **how),)

    if height and width:
        return Step(f"resize to ({height}, {width})", apply)
    return Step("resize to model width/height", apply)


def _model_length(context: Context, name: str) -> int:
    length: Dimension = context.model_shape[axis_of(context.target_layout, name, context.model_shape)]
    if length.is_dynamic:
        raise refusal(
            f"the {name} of the model is not known: {context.model_shape}", "give resize the lengths"
        )
    return length.get_length()


def crop(begin: Sequence[int], end: Sequence[int]) -> Step:
    """Slice from ``begin`` up to, not including, ``end``. Negative indices count from the end."""
    name = f"Crop ({_list_numbers(begin)},{_list_numbers(end)})"
    if len(begin) != len(end):
        raise refusal(f"{name} must have as many ends as begins, got {len(begin)} begins, {len(end)} ends")

    def apply(planes: Planes, context: Context) -> Planes:
        tensor = only(planes, "crop")
        return (create("Slice", tensor, i32(begin), i32(end), i32([1] * len(begin))),)

    return Step(name, apply)


def _list_numbers(numbers: Sequence[int]) -> str:
    return f"[ {', '.join(map(str, numbers))} ]"


def convert_layout(layout: Layout) -> Step:
    """Transpose to a layout, or to the model's if empty, and prepend missing dimensions with length 1."""

    def apply(planes: Planes, context: Context) -> Planes:
        tensor = only(planes, "convert_layout")
        target = context.target_layout if layout.empty else layout
        shape, wider, added = unsqueeze_layout(context.layout, tensor._type.shape, target)
        order = permutation(wider, shape, target)
        if added:
            tensor = create("Unsqueeze", tensor, i64(range(added)))
        return (_reorder(tensor, order, target, layout, context),)

    return Step(f"convert layout {layout}", apply)


def relayout(layout: Layout) -> Step:
    """Transpose an output to a layout, or to that of the user's tensor if empty."""

    def apply(planes: Planes, context: Context) -> Planes:
        tensor = only(planes, "convert_layout")
        target = context.target_layout if layout.empty else layout
        order = permutation(context.layout, tensor._type.shape, target)
        return (_reorder(tensor, order, target, layout, context),)

    return Step(f"convert layout {layout}", apply)


def _reorder(
    tensor: Output, order: list[int] | None, target: Layout, layout: Layout, context: Context
) -> Output:
    if order is None:
        context.layout = context.layout if layout.empty else layout
        return tensor
    context.layout = target
    return transpose(tensor, order)


def transpose(tensor: Output, order: Sequence[int]) -> Output:
    """Return the tensor with its dimensions permuted."""
    return create("Transpose", tensor, i64(order))


def permute(order: Sequence[int]) -> Step:
    """Transpose by a permutation of dimensions."""

    def apply(planes: Planes, context: Context) -> Planes:
        tensor = only(planes, "convert_layout")
        context.layout = permute_layout(context.layout, order)
        return (transpose(tensor, order),)

    return Step(f"convert layout {shown(order)}", apply)


_RGB, _BGR, _GRAY = ColorFormat.RGB, ColorFormat.BGR, ColorFormat.GRAY
_YUV = (
    ColorFormat.NV12_SINGLE_PLANE,
    ColorFormat.NV12_TWO_PLANES,
    ColorFormat.I420_SINGLE_PLANE,
    ColorFormat.I420_THREE_PLANES,
)
# The weights of red, green and blue in OpenCV's conversion to grey (ITU-R BT.601).
_LUMA = (0.299, 0.587, 0.114)


def convert_color(target: ColorFormat) -> Step:
    """Convert an image to another colour format."""

    def apply(planes: Planes, context: Context) -> Planes:
        if context.color is target:
            return planes
        converted_planes = _conversion(context.color, target)(planes, context, target)
        context.color = target
        return (converted_planes,)

    return Step(f"convert color ({target.label})", apply)


_Conversion = Callable[[Planes, Context, ColorFormat], Output]


def _conversion(source: ColorFormat, target: ColorFormat) -> _Conversion:
    if source in _YUV and target in (_RGB, _BGR):
        return _from_yuv
    if source in _YUV and target is _GRAY:
        return _luma_plane
    if (source, target) in ((_RGB, _BGR), (_BGR, _RGB)):
        return lambda planes, context, target: _reverse_channels(only(planes, "convert_color"), context)
    if source in (_RGB, _BGR) and target is _GRAY:
        return _to_gray
    if source in (ColorFormat.RGBX, ColorFormat.BGRX) and target in (_RGB, _BGR):
        return _drop_last_channel
    raise refusal(f"colour format {source.label!r} is not convertible to {target.label!r}")


def _from_yuv(planes: Planes, context: Context, target: ColorFormat) -> Output:
    return create(f"{context.color.name[:4]}to{target.name}", *planes)


def _luma_plane(planes: Planes, context: Context, target: ColorFormat) -> Output:
    """Return the luma plane: the first of several planes, or the first two thirds of the rows of a single plane."""
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
        tensor = transpose(tensor, order)
    if not element.is_real():
        tensor = create("Convert", tensor, destination_type=ElementType.f32)
    tensor = _weigh_channels(tensor, context.color)
    if not element.is_real():
        tensor = create("Convert", create("Round", tensor, mode="half_to_even"), destination_type=element)
    back = permutation(first, shape, context.layout) if is_last else None
    return transpose(tensor, back) if back else tensor


def _weigh_channels(tensor: Output, color: ColorFormat) -> Output:
    weights = np.array(_LUMA if color is _RGB else _LUMA[::-1], np.float32).reshape(1, 3, 1, 1)
    zeros, ones = [0, 0], [1, 1]
    return create(
        "Convolution", tensor, weights, strides=ones, pads_begin=zeros, pads_end=zeros, dilations=ones
    )


def _drop_last_channel(planes: Planes, context: Context, target: ColorFormat) -> Output:
    tensor = only(planes, "convert_color")
    _check_channels(context.layout)
    axis = context.layout.get_index_by_name("C")
    cut = create("Slice", tensor, i32([0]), i32([-1]), i32([1]), i32([axis]))
    return cut if context.color.name[:3] == target.name else _reverse_channels(cut, context)


def reverse_channels() -> Step:
    """Reverse the order of the channels, as from RGB to BGR."""

    def apply(planes: Planes, context: Context) -> Planes:
        return (_reverse_channels(only(planes, "reverse_channels"), context),)

    return Step("reverse channels", apply)


def _reverse_channels(tensor: Output, context: Context) -> Output:
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
