"""The steps of an input or an output, in the order in which they are added."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

from ..ir.dimension import Dimension
from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..openvino.layout import Layout
from ..openvino.node import Output
from .arguments import expected, floats, integers, layout_of, length
from .colors import convert_color, reverse_channels
from .options import ColorFormat, PaddingMode, ResizeAlgorithm
from .permutations import permuted, refusal
from .shapes import convert_layout, crop, permute, relayout, resize
from .step import Step
from .values import convert_type, custom, mean, pad, scale

__all__ = ["PostProcessSteps", "PreProcessSteps"]

_LONGEST = 2**31 - 1


class _Steps(ABC):
    """Steps that inputs and outputs have in common."""

    def __init__(self) -> None:
        self._steps: list[Step] = []

    def convert_element_type(self, type: ElementType = ElementType.dynamic) -> Self:
        """Convert to an element type; by default to the one that follows: the model's, or the user's tensor's.

        Raises:
            TypeError: if it is not a Type.
            InputError: when the model is built, if no element type is given or follows.
        """
        return self._add(convert_type(expected(type, ElementType)))

    def convert_layout(
        self, dst_layout: Layout | str | Sequence[int] | None = None, *, dims: Sequence[int] | None = None
    ) -> Self:
        """Transpose to a layout, or by the indices of dimensions.

        An empty layout is the one that follows: the model's, or the user's tensor's.

        Args:
            dst_layout: the layout, or the indices of the dimensions in their new order.
            dims: these indices by name.

        Raises:
            InputError: if a text is not a layout; when the model is built, if the layouts do not fit.
            TypeError: if neither is given, or an index is negative.
        """
        given = dst_layout if dims is None else dims
        if given is None:
            raise TypeError("expected a Layout, or a sequence of indices of dimensions")
        if isinstance(given, Layout | str):
            return self._add(self._to_layout(layout_of(given)))
        order = integers(given, least=0)
        return self._add(self._by_order(order)) if order else self

    @abstractmethod
    def _to_layout(self, layout: Layout) -> Step:
        """Return the step that transposes to a layout."""

    def _by_order(self, order: tuple[int, ...]) -> Step:
        """Return the step that transposes by the indices of dimensions."""
        return permute(order)

    def custom(self, operation: Callable[[Output], Any]) -> Self:
        """Apply a function that takes an output of a node and returns another, or a node.

        Raises:
            TypeError: if it cannot be called.
            InputError: when the model is built, if the function returns something else.
        """
        if not callable(operation):
            raise TypeError(f"expected a function that takes an output of a node, got {operation!r}")
        return self._add(custom(operation))

    def _add(self, step: Step) -> Self:
        self._steps.append(step)
        return self


class PreProcessSteps(_Steps):
    """The steps from the user's tensor to the input of the model.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> from ir_runtime.preprocess import PrePostProcessor
    >>> x = opset1.parameter([1, 3, 2, 2], np.float32, name="x")
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> found = ppp.input().preprocess().scale(255.0)
    >>> ov.compile_model(ppp.build())(np.full((1, 3, 2, 2), 51, np.float32))[0].max()
    np.float32(0.20000002)

    Steps follow each other in the order in which they are called:

    >>> x = opset1.parameter([1, 3, 2, 2], np.float32, name="x")
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> info = ppp.input().tensor().set_shape([1, 6, 8, 3]).set_layout("NHWC")
    >>> info = ppp.input().model().set_layout("NCHW")
    >>> steps = ppp.input().preprocess().mean([1, 2, 3]).reverse_channels().crop([0, 0, 0, 0], [1, 4, 4, 3])
    >>> steps = steps.pad([0, 1, 1, 0], [0, 1, 1, 0], 0.0, PaddingMode.CONSTANT)
    >>> steps = steps.resize(ResizeAlgorithm.RESIZE_NEAREST).convert_layout("NCHW").custom(opset1.abs)
    >>> ov.compile_model(ppp.build())(np.ones((1, 6, 8, 3), np.float32))[0].shape
    (1, 3, 2, 2)
    >>> from ir_runtime.preprocess import ColorFormat
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> info = ppp.input().tensor().set_color_format(ColorFormat.BGR).set_layout("NCHW")
    >>> steps = ppp.input().preprocess().convert_color(ColorFormat.RGB)
    >>> ppp.build().input().shape
    <Shape: [1,3,2,2]>
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> info = ppp.input().tensor().set_element_type(ov.Type.u8)
    >>> steps = ppp.input().preprocess().convert_element_type(ov.Type.f32)
    >>> ppp.build().input().element_type
    <Type: 'uint8_t'>
    """

    def __init__(self) -> None:
        super().__init__()
        self._orders: list[tuple[int, ...]] = []
        self._last_layout: Layout | None = None
        self._orders_since: list[tuple[int, ...]] = []

    def mean(self, value: Any = None, *, values: Any = None) -> Self:
        """Subtract ``value`` (or ``values``): a number, or one number per channel.

        Raises:
            TypeError: if they are not numbers.
        """
        return self._add(mean(floats(value if values is None else values)))

    def scale(self, value: Any = None, *, values: Any = None) -> Self:
        """Divide by ``value`` (or ``values``): a number, or one number per channel.

        Raises:
            TypeError: if they are not numbers.
        """
        return self._add(scale(floats(value if values is None else values)))

    def convert_color(self, dst_format: ColorFormat) -> Self:
        """Convert to another colour format.

        Raises:
            TypeError: if it is not a ColorFormat.
            InputError: when the model is built, if the conversion is not supported.
        """
        return self._add(convert_color(expected(dst_format, ColorFormat)))

    def reverse_channels(self) -> Self:
        """Reverse the order of the channels.

        Raises:
            InputError: when the model is built, if the channels of the tensor are unknown.
        """
        return self._add(reverse_channels())

    def resize(
        self, alg: ResizeAlgorithm, dst_height: int | None = None, dst_width: int | None = None
    ) -> Self:
        """Resize an image: to a height and a width, or to those of the model.

        Args:
            alg: how to interpolate.
            dst_height: the height, in pixels.
            dst_width: the width.

        Raises:
            InputError: if a length does not fit 32 bits.
        """
        if (dst_height is None) != (dst_width is None):
            raise TypeError("resize takes both a height and a width, or neither")
        lengths = [None if n is None else length(n) for n in (dst_height, dst_width)]
        if any(n is not None and n > _LONGEST for n in lengths):
            raise refusal(
                f"an image cannot be resized to ({dst_height}, {dst_width})",
                f"a length must be at most {_LONGEST}",
            )
        return self._add(resize(expected(alg, ResizeAlgorithm), *lengths))

    def crop(self, begin: Sequence[int], end: Sequence[int]) -> Self:
        """Keep the part from ``begin`` to before ``end``; negative numbers count from the end.

        Raises:
            InputError: if the numbers of begins and ends differ.
        """
        return self._add(crop(integers(begin), integers(end)))

    def pad(self, pads_begin: Sequence[int], pads_end: Sequence[int], value: Any, mode: PaddingMode) -> Self:
        """Pad every dimension.

        Args:
            pads_begin: the elements to add at the begin of each dimension.
            pads_end: those at its end.
            value: what to pad with, for mode constant.
            mode: how to pad.

        Raises:
            TypeError: if pads are not integers, the value is not a number, or the mode not a PaddingMode.
            InputError: when the model is built, if the numbers of pads and dimensions differ.
        """
        return self._add(
            pad(integers(pads_begin), integers(pads_end), floats(value), expected(mode, PaddingMode))
        )

    def _to_layout(self, layout: Layout) -> Step:
        self._last_layout, self._orders_since = layout, []
        return convert_layout(layout)

    def _by_order(self, order: tuple[int, ...]) -> Step:
        self._orders.append(order)
        self._orders_since.append(order)
        return super()._by_order(order)

    def _layout_after(self, layout: Layout) -> Layout:
        """Return the layout after all steps of a tensor that has ``layout`` before."""
        found = layout if self._last_layout is None else self._last_layout
        for order in self._orders_since:
            found = permuted(found, order)
        return found

    def _before(self, shape: PartialShape, layout: Layout) -> tuple[PartialShape, Layout]:
        """Return shape and layout of the user's tensor, from those of the model: undo what transposes by index."""
        if shape.rank is None:
            return shape, layout
        dims = list(shape)
        for order in reversed(self._orders):
            if max(order) >= len(dims):
                raise refusal(f"{list(order)} is not an order of the dimensions of {shape}")
            former = [Dimension()] * len(dims)
            for index, source in enumerate(order):
                former[source] = dims[index]
            dims = former
            layout = permuted(layout, [order.index(i) if i in order else i for i in range(len(order))])
        return PartialShape(dims), layout


class PostProcessSteps(_Steps):
    """The steps from an output of the model to the user's tensor.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> from ir_runtime.preprocess import PrePostProcessor
    >>> x = opset1.parameter([1, 3, 2, 2], np.float32, name="x")
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> found = ppp.output().postprocess().convert_element_type(ov.Type.f16)
    >>> ppp.build().output().element_type
    <Type: 'float16'>
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> steps = ppp.output().postprocess().convert_layout([0, 2, 3, 1]).custom(opset1.abs)
    >>> ppp.build().output().shape
    <Shape: [1,2,2,3]>
    """

    def _to_layout(self, layout: Layout) -> Step:
        return relayout(layout)
