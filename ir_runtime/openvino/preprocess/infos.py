"""The user's description of inputs and outputs: tensor and model formats, and the steps between them."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, TypeVar

import numpy as np

from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ..layout import Layout
from ..node import Node, Output
from ..tensor import Tensor
from .options import ColorFormat, PaddingMode, ResizeAlgorithm, plane_count
from .permutations import permute_layout, refusal
from .steps import (
    Step,
    convert_color,
    convert_layout,
    convert_type,
    crop,
    custom,
    mean,
    pad,
    permute,
    relayout,
    resize,
    reverse_channels,
    scale,
)

__all__ = [
    "InputInfo",
    "InputModelInfo",
    "InputTensorInfo",
    "OutputInfo",
    "OutputModelInfo",
    "OutputTensorInfo",
    "PostProcessSteps",
    "PreProcessSteps",
    "expect",
    "floats",
    "integers",
    "layout_of",
    "length",
]

_Kind = TypeVar("_Kind")


def expect(value: Any, kind: type[_Kind]) -> _Kind:
    """Return the value if it is an instance of ``kind``, and raise TypeError otherwise."""
    if not isinstance(value, kind):
        name = "Type" if kind is ElementType else kind.__name__  # its public name
        raise TypeError(f"expected {name}, got {value!r}")
    return value


def layout_of(value: Any) -> Layout:
    """Return a Layout, or parse a string as one.

    Raises:
        InputError: if a string is not a layout.
    """
    return Layout(value) if isinstance(value, str) else expect(value, Layout)


def floats(value: Any) -> tuple[float, ...]:
    """Return a number or a sequence of numbers as floats rounded to f32."""
    single = hasattr(value, "__float__") and np.ndim(value) == 0
    items = [value] if single else list(_check_sequence(value))
    if any(isinstance(item, str) or not hasattr(item, "__float__") for item in items):
        raise TypeError(f"expected a number or a sequence of numbers, got {value!r}")
    return tuple(np.array(list(map(float, items)), np.float32).tolist())


def integers(values: Any, least: int | None = None) -> tuple[int, ...]:
    """Return a sequence of integers as a tuple, and raise TypeError if one is less than ``least``."""
    numbers = tuple(operator.index(value) for value in _check_sequence(values))
    if least is not None and min(numbers, default=least) < least:
        raise TypeError(f"expected integers of at least {least}, got {values!r}")
    return numbers


def length(value: Any) -> int:
    """Return a length as an integer, and raise TypeError if it is negative."""
    return integers([value], least=0)[0]


def _check_sequence(values: Any) -> Iterable[Any]:
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        raise TypeError(f"expected a sequence of numbers, got {values!r}")
    return values


_LONGEST = 2**31 - 1


class _Steps(ABC):
    """Base class with the steps common to inputs and outputs."""

    def __init__(self) -> None:
        self._steps: list[Step] = []

    def convert_element_type(self, type: ElementType = ElementType.dynamic) -> Self:
        """Convert to an element type: by default, that of the model for inputs, of the user's tensor for outputs.

        Raises:
            TypeError: if it is not a Type.
            InputError: when the model is built, if the default type is unknown.
        """
        return self._add(convert_type(expect(type, ElementType)))

    def convert_layout(
        self, dst_layout: Layout | str | Sequence[int] | None = None, *, dims: Sequence[int] | None = None
    ) -> Self:
        """Transpose to a layout, or by a permutation of dimensions.

        An empty layout stands for that of the model in case of inputs, of the user's tensor in case of outputs.

        Args:
            dst_layout: the layout, or the indices of the dimensions in their new order.
            dims: the indices, as a keyword.

        Raises:
            InputError: if a string is not a layout; when the model is built, if the layouts do not fit.
            TypeError: if neither is given, or an index is negative.
        """
        target = dst_layout if dims is None else dims
        if target is None:
            raise TypeError("expected a Layout, or a sequence of indices of dimensions")
        if isinstance(target, Layout | str):
            return self._add(self._layout_step(layout_of(target)))
        order = integers(target, least=0)
        return self._add(self._permute_step(order)) if order else self

    @abstractmethod
    def _layout_step(self, layout: Layout) -> Step:
        """Return the step that transposes to a layout."""

    def _permute_step(self, order: tuple[int, ...]) -> Step:
        """Return the step that transposes by a permutation of dimensions."""
        return permute(order)

    def custom(self, operation: Callable[[Output], Any]) -> Self:
        """Apply a function from an output to an output or a node.

        Raises:
            TypeError: if it is not callable.
            InputError: when the model is built, if the function returns neither an output nor a node.
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

    Steps run in the order of the calls:

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
        """Subtract ``value`` or ``values``: a number, or one number per channel.

        Raises:
            TypeError: if they are not numbers.
        """
        return self._add(mean(floats(value if values is None else values)))

    def scale(self, value: Any = None, *, values: Any = None) -> Self:
        """Divide by ``value`` or ``values``: a number, or one number per channel.

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
        return self._add(convert_color(expect(dst_format, ColorFormat)))

    def reverse_channels(self) -> Self:
        """Reverse the order of the channels.

        Raises:
            InputError: when the model is built, if the channels of the tensor are unknown.
        """
        return self._add(reverse_channels())

    def resize(
        self, alg: ResizeAlgorithm, dst_height: int | None = None, dst_width: int | None = None
    ) -> Self:
        """Resize an image to a height and width, by default those of the model.

        Args:
            alg: the interpolation algorithm.
            dst_height: the height in pixels.
            dst_width: the width in pixels.

        Raises:
            InputError: if the height or the width does not fit 32 bits.
        """
        if (dst_height is None) != (dst_width is None):
            raise TypeError("resize takes both a height and a width, or neither")
        lengths = [None if n is None else length(n) for n in (dst_height, dst_width)]
        if any(n is not None and n > _LONGEST for n in lengths):
            raise refusal(
                f"an image cannot be resized to ({dst_height}, {dst_width})",
                f"a length must be at most {_LONGEST}",
            )
        return self._add(resize(expect(alg, ResizeAlgorithm), *lengths))

    def crop(self, begin: Sequence[int], end: Sequence[int]) -> Self:
        """Slice each dimension from ``begin`` up to, not including, ``end``. Negative indices count from the end.

        Raises:
            InputError: if ``begin`` and ``end`` differ in length.
        """
        return self._add(crop(integers(begin), integers(end)))

    def pad(self, pads_begin: Sequence[int], pads_end: Sequence[int], value: Any, mode: PaddingMode) -> Self:
        """Pad every dimension.

        Args:
            pads_begin: the number of elements to add at the start of each dimension.
            pads_end: the number of elements to add at the end of each dimension.
            value: the padding value for mode ``CONSTANT``.
            mode: the padding mode.

        Raises:
            TypeError: if pads are not integers, the value is not a number, or the mode is not a PaddingMode.
            InputError: when the model is built, if the number of pads is not the rank of the tensor.
        """
        return self._add(
            pad(integers(pads_begin), integers(pads_end), floats(value), expect(mode, PaddingMode))
        )

    def _layout_step(self, layout: Layout) -> Step:
        self._last_layout, self._orders_since = layout, []
        return convert_layout(layout)

    def _permute_step(self, order: tuple[int, ...]) -> Step:
        self._orders.append(order)
        self._orders_since.append(order)
        return super()._permute_step(order)

    def _layout_after(self, layout: Layout) -> Layout:
        """Return the layout that a tensor of the initial ``layout`` has after all steps."""
        result = layout if self._last_layout is None else self._last_layout
        for order in self._orders_since:
            result = permute_layout(result, order)
        return result

    def _undo_steps(self, shape: PartialShape, layout: Layout) -> tuple[PartialShape, Layout]:
        """Return the shape and layout that the user's tensor must have, so that its transposes give those of the model."""
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
            layout = permute_layout(layout, [order.index(i) if i in order else i for i in range(len(order))])
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

    def _layout_step(self, layout: Layout) -> Step:
        return relayout(layout)


class _HasLayout:
    """Base class of tensor descriptions with a layout."""

    def __init__(self) -> None:
        self._layout: Layout | None = None

    def set_layout(self, layout: Layout | str) -> Self:
        """Set the layout of the tensor. For a tensor of the model, it replaces the layout in the file.

        Raises:
            InputError: if a string is not a layout. Other arguments raise TypeError.
        """
        self._layout = layout_of(layout)
        return self


class InputModelInfo(_HasLayout):
    """Description of the tensor that the model expects as input.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> from ir_runtime.preprocess import PrePostProcessor
    >>> x = opset1.parameter([1, 3, 2, 2], np.float32, name="x")
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> found = ppp.input().tensor().set_layout(ov.Layout("NHWC"))
    >>> found = ppp.input().model().set_layout(ov.Layout("NCHW"))
    >>> ppp.build().input().shape
    <Shape: [1,2,2,3]>
    """


class OutputModelInfo(_HasLayout):
    """Description of the tensor that the model produces as output.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> from ir_runtime.preprocess import PrePostProcessor
    >>> x = opset1.parameter([1, 3, 2, 2], np.float32, name="x")
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> found = ppp.output().model().set_layout(ov.Layout("NCHW"))
    >>> found = ppp.output().tensor().set_layout(ov.Layout("NHWC"))
    >>> ppp.build().output().shape
    <Shape: [1,2,2,3]>
    """


class _TensorInfo(_HasLayout):
    """Base class of descriptions of the user's tensors, with an element type."""

    def __init__(self) -> None:
        super().__init__()
        self._type: ElementType | None = None

    def set_element_type(self, type: ElementType) -> Self:
        """Set the element type of the user's tensor.

        Raises:
            TypeError: if it is not a Type.
        """
        self._type = expect(type, ElementType)
        return self


class OutputTensorInfo(_TensorInfo):
    """Description of the tensor that the user reads as output.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> from ir_runtime.preprocess import PrePostProcessor
    >>> x = opset1.parameter([1, 3, 2, 2], np.float32, name="x")
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> found = ppp.output().tensor().set_element_type(ov.Type.i32)
    >>> ppp.build().output().element_type
    <Type: 'int32_t'>
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> found = ppp.output().tensor().set_layout("NHWC")
    >>> found = ppp.output().model().set_layout("NCHW")
    >>> ppp.build().output().shape
    <Shape: [1,2,2,3]>
    """


class InputTensorInfo(_TensorInfo):
    """Description of the tensor that the user provides as input.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> from ir_runtime.preprocess import PrePostProcessor
    >>> x = opset1.parameter([1, 3, 2, 2], np.float32, name="x")
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> found = ppp.input().tensor().set_element_type(ov.Type.u8)
    >>> ppp.build().input().element_type
    <Type: 'uint8_t'>

    Shapes, layouts and colours are described in the same way:

    >>> from ir_runtime.preprocess import ColorFormat, ResizeAlgorithm
    >>> x = opset1.parameter([1, 3, 2, 2], np.float32, name="x")
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> tensor = ppp.input().tensor().set_from(np.zeros((1, 4, 4, 3), np.uint8)).set_layout("NHWC")
    >>> tensor = tensor.set_color_format(ColorFormat.BGR).set_memory_type("")
    >>> steps = ppp.input().preprocess().convert_color(ColorFormat.RGB).resize(ResizeAlgorithm.RESIZE_LINEAR)
    >>> info = ppp.input().model().set_layout("NCHW")
    >>> ppp.build().input().shape
    <Shape: [1,4,4,3]>
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> tensor = ppp.input().tensor().set_layout("NCHW").set_spatial_static_shape(8, 8)
    >>> tensor = tensor.set_spatial_dynamic_shape()
    >>> other = PrePostProcessor(ov.Model([opset1.relu(x)], [x])).input().tensor().set_shape([1, 3, -1, -1])
    >>> steps = ppp.input().preprocess().resize(ResizeAlgorithm.RESIZE_LINEAR)
    >>> info = ppp.input().model().set_layout("NCHW")
    >>> ppp.build().input().partial_shape
    <PartialShape: [1,3,?,?]>
    """

    def __init__(self) -> None:
        super().__init__()
        self._shape: PartialShape | None = None
        self._size: tuple[int, int] | None = None
        self._color = ColorFormat.UNDEFINED
        self._plane_names: tuple[str, ...] = ()
        self._memory: str | None = None

    def set_shape(self, shape: PartialShape | Sequence[int]) -> Self:
        """Set the shape of the user's tensor, with -1 for dynamic dims.

        Raises:
            InputError: if height and width were set.
        """
        wanted_shape = PartialShape(shape if isinstance(shape, PartialShape) else integers(shape))
        if self._size is not None:
            raise refusal("a shape cannot be set besides a height and a width", "use either")
        self._shape = wanted_shape
        return self

    def set_from(self, tensor: Tensor | np.ndarray[Any, Any]) -> Self:
        """Set shape and element type to those of a tensor.

        Raises:
            InputError: if height and width were set.
        """
        source = Tensor(tensor) if isinstance(tensor, np.ndarray) else expect(tensor, Tensor)
        return self.set_shape(PartialShape(source.shape)).set_element_type(source.element_type)

    def set_spatial_dynamic_shape(self) -> Self:
        """Make height and width of the user's tensor dynamic.

        Raises:
            InputError: if a shape was set.
        """
        return self._set_size(-1, -1)

    def set_spatial_static_shape(self, height: int, width: int) -> Self:
        """Set ``height`` and ``width`` of the user's tensor, in pixels.

        Raises:
            InputError: if a shape was set.
        """
        return self._set_size(length(height), length(width))

    def _set_size(self, height: int, width: int) -> Self:
        if self._shape is not None:
            raise refusal("height and width cannot be set besides a shape", "use either")
        self._size = height, width
        return self

    def set_color_format(self, format: ColorFormat, sub_names: Sequence[str] = ()) -> Self:
        """Set the colour format of the user's image.

        Args:
            format: the format. Each of its planes becomes a separate input.
            sub_names: a suffix of the input's name for each plane, if there are several.

        Raises:
            InputError: if the numbers of names and planes differ.
        """
        if isinstance(sub_names, str):
            raise TypeError(f"expected a sequence of names, got {sub_names!r}")
        names = tuple(expect(name, str) for name in sub_names)
        count = plane_count(expect(format, ColorFormat))
        if names and len(names) != (count if count > 1 else 0):
            raise refusal(
                f"colour format {format.label!r} has {count} planes, got {len(names)} names",
                "give one name per plane, and none for a single plane",
            )
        self._color, self._plane_names = format, names
        return self

    def set_memory_type(self, memory_type: str) -> Self:
        """Set the memory type of the user's tensor, which is stored in the rt_info of the input for use by other devices.

        Raises:
            TypeError: if it is not a string.
        """
        self._memory = expect(memory_type, str)
        return self


class InputInfo:
    """Describes an input: the user's tensor, the tensor of the model, and the steps between them.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> from ir_runtime.preprocess import PrePostProcessor
    >>> x = opset1.parameter([1, 3, 2, 2], np.float32, name="x")
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> found = ppp.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
    >>> found = ppp.input().model().set_layout(ov.Layout("NCHW"))
    >>> ppp.build().input().shape
    <Shape: [1,2,2,3]>
    """

    def __init__(self, parameter: Node) -> None:
        self._parameter = parameter
        self._tensor, self._steps, self._model = InputTensorInfo(), PreProcessSteps(), InputModelInfo()

    def tensor(self) -> InputTensorInfo:
        """Return the description of the user's tensor."""
        return self._tensor

    def preprocess(self) -> PreProcessSteps:
        """Return the steps between the tensors of user and model."""
        return self._steps

    def model(self) -> InputModelInfo:
        """Return the description of the model's tensor."""
        return self._model


class OutputInfo:
    """Describes an output: the tensor of the model, the user's tensor, and the steps between them.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> from ir_runtime.preprocess import PrePostProcessor
    >>> x = opset1.parameter([1, 3, 2, 2], np.float32, name="x")
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> found = ppp.output().tensor().set_element_type(ov.Type.f64)
    >>> ppp.build().output().element_type
    <Type: 'double64'>
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> ppp.output().postprocess().convert_layout([0, 2, 3, 1]) is ppp.output().postprocess()
    True
    >>> ppp.output().model().set_layout("NCHW") is ppp.output().model()
    True
    >>> ppp.build().output().shape
    <Shape: [1,2,2,3]>
    """

    def __init__(self, result: Node) -> None:
        self._result = result
        self._tensor, self._steps, self._model = OutputTensorInfo(), PostProcessSteps(), OutputModelInfo()

    def tensor(self) -> OutputTensorInfo:
        """Return the description of the user's tensor."""
        return self._tensor

    def postprocess(self) -> PostProcessSteps:
        """Return the steps between the tensors of user and model."""
        return self._steps

    def model(self) -> OutputModelInfo:
        """Return the description of the model's tensor."""
        return self._model
