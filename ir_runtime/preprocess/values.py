"""Steps on values: convert the element type, subtract the mean, divide by the scale, pad, run a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.element import ElementType
from ..ir.tensor import Array
from ..openvino.node import Node, Output
from .create import create, i64, numbers
from .options import PaddingMode
from .permutations import axis_of, refusal
from .step import Context, Planes, Step, only

__all__ = ["convert_type", "custom", "mean", "pad", "scale", "shown"]


def convert_type(element: ElementType) -> Step:
    """Convert every plane; ``dynamic`` stands for the type of the model."""

    def apply(planes: Planes, context: Context) -> Planes:
        target = context.target_type if element is ElementType.dynamic else element
        return tuple(converted(plane, target) for plane in planes)

    return Step(f"convert type ({element.label})", apply)


def converted(tensor: Output, element: ElementType) -> Output:
    """Return the tensor as one of that element type."""
    if tensor.element_type is ElementType.dynamic:
        raise refusal("a tensor of unknown element type cannot be converted", "set_element_type first")
    if tensor.element_type is element:
        return tensor
    if element is ElementType.dynamic:
        raise refusal("a tensor cannot be converted to an unknown element type", "set_element_type first")
    return create("Convert", tensor, destination_type=element)


def mean(values: Sequence[float]) -> Step:
    """Subtract one number, or one per channel."""

    def apply(planes: Planes, context: Context) -> Planes:
        return (create("Subtract", *_per_channel(planes, context, values, "mean")),)

    return Step(f"mean {shown(values)}", apply)


def scale(values: Sequence[float]) -> Step:
    """Divide by one number, or by one per channel; but for f64, multiply by the reciprocal, as OpenVINO does."""

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
    """Pad every dimension at its begin and its end."""

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
    """Apply a function that takes the tensor and returns another: an output, or a node with one."""

    def apply(planes: Planes, context: Context) -> Planes:
        found = operation(only(planes, "a custom step"))
        if isinstance(found, Node):
            found = found.output(0)
        if not isinstance(found, Output):
            raise refusal(f"a custom step must return an output of a node, got {found!r}")
        return (found,)

    return Step("custom", apply)


def shown(values: Sequence[float]) -> str:
    """Return numbers as OpenVINO shows them: ``(1,2.5)``, with six digits; nothing for none."""
    return f"({','.join(f'{value:g}' for value in values)})" if len(values) else ""
