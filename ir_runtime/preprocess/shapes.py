"""Steps on shapes: resize, crop, and change the layout."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.dimension import Dimension
from ..openvino.layout import Layout
from ..openvino.node import Output
from .create import create, i32, i64
from .options import ResizeAlgorithm
from .permutations import axis_of, permutation, permuted, refusal, unsqueezed
from .step import Context, Planes, Step, only
from .values import shown

__all__ = ["convert_layout", "crop", "permute", "relayout", "resize"]


def resize(algorithm: ResizeAlgorithm, height: int | None, width: int | None) -> Step:
    """Resize height and width: to numbers, or to those of the model."""

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
            else -0.75,  # as Pillow has it
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
    """Keep the part from ``begin`` to before ``end``; negative numbers count from the end."""
    name = f"Crop ({_listed(begin)},{_listed(end)})"
    if len(begin) != len(end):
        raise refusal(f"{name} must have as many ends as begins, got {len(begin)} begins, {len(end)} ends")

    def apply(planes: Planes, context: Context) -> Planes:
        tensor = only(planes, "crop")
        return (create("Slice", tensor, i32(begin), i32(end), i32([1] * len(begin))),)

    return Step(name, apply)


def _listed(numbers: Sequence[int]) -> str:
    return f"[ {', '.join(map(str, numbers))} ]"


def convert_layout(layout: Layout) -> Step:
    """Transpose to a layout, that of the model if it is empty; dimensions of length 1 are added before."""

    def apply(planes: Planes, context: Context) -> Planes:
        tensor = only(planes, "convert_layout")
        target = context.target_layout if layout.empty else layout
        shape, wider, added = unsqueezed(context.layout, tensor._type.shape, target)
        order = permutation(wider, shape, target)
        if added:
            tensor = create("Unsqueeze", tensor, i64(range(added)))
        return (_reordered(tensor, order, target, layout, context),)

    return Step(f"convert layout {layout}", apply)


def relayout(layout: Layout) -> Step:
    """Transpose an output to a layout, that of the user's tensor if it is empty."""

    def apply(planes: Planes, context: Context) -> Planes:
        tensor = only(planes, "convert_layout")
        target = context.target_layout if layout.empty else layout
        order = permutation(context.layout, tensor._type.shape, target)
        return (_reordered(tensor, order, target, layout, context),)

    return Step(f"convert layout {layout}", apply)


def _reordered(
    tensor: Output, order: list[int] | None, target: Layout, named: Layout, context: Context
) -> Output:
    if order is None:
        context.layout = context.layout if named.empty else named
        return tensor
    context.layout = target
    return transposed(tensor, order)


def transposed(tensor: Output, order: Sequence[int]) -> Output:
    """Return the tensor with its dimensions in that order."""
    return create("Transpose", tensor, i64(order))


def permute(order: Sequence[int]) -> Step:
    """Transpose by the indices of dimensions."""

    def apply(planes: Planes, context: Context) -> Planes:
        tensor = only(planes, "convert_layout")
        context.layout = permuted(context.layout, order)
        return (transposed(tensor, order),)

    return Step(f"convert layout {shown(order)}", apply)
