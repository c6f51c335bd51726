"""Information about inputs and outputs: the user's tensors, those of the model, and the steps between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..openvino.layout import Layout
from ..openvino.node import Node
from ..openvino.tensor import Tensor
from .arguments import expected, integers, layout_of, length
from .options import ColorFormat
from .permutations import refusal
from .planes import plane_count
from .step_lists import PostProcessSteps, PreProcessSteps

__all__ = [
    "InputInfo",
    "InputModelInfo",
    "InputTensorInfo",
    "OutputInfo",
    "OutputModelInfo",
    "OutputTensorInfo",
]


class _HasLayout:
    """What a tensor of the user or of the model has."""

    def __init__(self) -> None:
        self._layout: Layout | None = None

    def set_layout(self, layout: Layout | str) -> Self:
        """Say which layout the tensor has; for that of the model, whatever its file says.

        Raises:
            InputError: if a text is not a layout; anything else is a TypeError.
        """
        self._layout = layout_of(layout)
        return self


class InputModelInfo(_HasLayout):
    """What an input of the model expects.

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
    """What an output of the model has.

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
    """What the user's tensor has."""

    def __init__(self) -> None:
        super().__init__()
        self._type: ElementType | None = None

    def set_element_type(self, type: ElementType) -> Self:
        """Say which element type the user's tensor has.

        Raises:
            TypeError: if it is not a Type.
        """
        self._type = expected(type, ElementType)
        return self


class OutputTensorInfo(_TensorInfo):
    """What the user wants of an output.

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
    """What the user gives for an input.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> from ir_runtime.preprocess import PrePostProcessor
    >>> x = opset1.parameter([1, 3, 2, 2], np.float32, name="x")
    >>> ppp = PrePostProcessor(ov.Model([opset1.relu(x)], [x]))
    >>> found = ppp.input().tensor().set_element_type(ov.Type.u8)
    >>> ppp.build().input().element_type
    <Type: 'uint8_t'>

    The same about shapes, layouts and colours:

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
        """Say which shape the user's tensor has; -1 is any length.

        Raises:
            InputError: if height and width were set.
        """
        found = PartialShape(shape if isinstance(shape, PartialShape) else integers(shape))
        if self._size is not None:
            raise refusal("a shape cannot be set besides a height and a width", "use either")
        self._shape = found
        return self

    def set_from(self, tensor: Tensor | np.ndarray[Any, Any]) -> Self:
        """Take shape and element type from a tensor.

        Raises:
            InputError: if height and width were set.
        """
        found = Tensor(tensor) if isinstance(tensor, np.ndarray) else expected(tensor, Tensor)
        return self.set_shape(PartialShape(found.shape)).set_element_type(found.element_type)

    def set_spatial_dynamic_shape(self) -> Self:
        """Say that height and width of the user's tensor may be any.

        Raises:
            InputError: if a shape was set.
        """
        return self._set_size(-1, -1)

    def set_spatial_static_shape(self, height: int, width: int) -> Self:
        """Say which ``height`` and ``width`` the user's tensor has, in pixels.

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
        """Say how the colours of the user's image are stored.

        Args:
            format: the format. Each of its planes becomes an input.
            sub_names: what to add to the name of the input for each of several planes.

        Raises:
            InputError: if the numbers of names and planes differ.
        """
        if isinstance(sub_names, str):
            raise TypeError(f"expected a sequence of names, got {sub_names!r}")
        names = tuple(expected(name, str) for name in sub_names)
        count = plane_count(expected(format, ColorFormat))
        if names and len(names) != (count if count > 1 else 0):
            raise refusal(
                f"colour format {format.label!r} has {count} planes, got {len(names)} names",
                "give one name per plane, and none for a single plane",
            )
        self._color, self._plane_names = format, names
        return self

    def set_memory_type(self, memory_type: str) -> Self:
        """Say in which memory the user's tensor is: a note in the rt_info of the input, for other devices.

        Raises:
            TypeError: if it is not a string.
        """
        self._memory = expected(memory_type, str)
        return self


class InputInfo:
    """Information about an input, and the steps that lead to it.

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
        """Return the information about the user's tensor."""
        return self._tensor

    def preprocess(self) -> PreProcessSteps:
        """Return the steps between both."""
        return self._steps

    def model(self) -> InputModelInfo:
        """Return the information about the tensor of the model."""
        return self._model


class OutputInfo:
    """Information about an output, and the steps that follow it.

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
        """Return the information about the user's tensor."""
        return self._tensor

    def postprocess(self) -> PostProcessSteps:
        """Return the steps between both."""
        return self._steps

    def model(self) -> OutputModelInfo:
        """Return the information about the tensor of the model."""
        return self._model
