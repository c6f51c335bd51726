"""Enumerations of preprocessing options: colour formats, interpolation algorithms and padding modes."""

from __future__ import annotations

from enum import Enum

from ...ir.dimension import Dimension
from ...ir.shape import PartialShape
from ..layout import Layout

__all__ = ["ColorFormat", "PaddingMode", "ResizeAlgorithm", "default_layout", "plane_count", "plane_shape"]


class _Choice(Enum):
    """Base of enumerations that, like OpenVINO's, convert to int but do not equal integers."""

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__


class ColorFormat(_Choice):
    """Colour formats of images. Images in YUV formats have one plane, or several, each of which is an input.

    >>> from ir_runtime.preprocess import ColorFormat
    >>> ColorFormat.BGR.name
    'BGR'
    >>> ColorFormat.BGR.label
    'BGR'
    """

    UNDEFINED = 0
    NV12_SINGLE_PLANE = 1
    NV12_TWO_PLANES = 2
    I420_SINGLE_PLANE = 3
    I420_THREE_PLANES = 4
    RGB = 5
    BGR = 6
    GRAY = 7
    RGBX = 8
    BGRX = 9

    @property
    def label(self) -> str:
        """The name that messages and ``print(ppp)`` show."""
        base, _, planes = self.name.partition("_")
        if not planes:
            return "Unknown" if self is ColorFormat.UNDEFINED else base
        return f"{base} ({'single plane' if planes == 'SINGLE_PLANE' else 'multi-plane'})"


class ResizeAlgorithm(_Choice):
    """Interpolation algorithms, which correspond to modes of Interpolate.

    >>> from ir_runtime.preprocess import ResizeAlgorithm
    >>> ResizeAlgorithm.RESIZE_LINEAR.name
    'RESIZE_LINEAR'
    >>> ResizeAlgorithm.RESIZE_LINEAR.mode
    'linear'
    """

    RESIZE_LINEAR = 0
    RESIZE_CUBIC = 1
    RESIZE_NEAREST = 2
    RESIZE_BILINEAR_PILLOW = 3
    RESIZE_BICUBIC_PILLOW = 4

    @property
    def mode(self) -> str:
        """The mode of Interpolate-11."""
        return self.name.removeprefix("RESIZE_").lower()


class PaddingMode(_Choice):
    """Padding modes, which correspond to modes of Pad.

    >>> from ir_runtime.preprocess import PaddingMode
    >>> PaddingMode.CONSTANT.name
    'CONSTANT'
    >>> PaddingMode.CONSTANT.mode
    'constant'
    """

    CONSTANT = 0
    REFLECT = 2
    SYMMETRIC = 3

    @property
    def mode(self) -> str:
        """The mode of Pad."""
        return self.name.lower()


_COUNTS = {ColorFormat.NV12_TWO_PLANES: 2, ColorFormat.I420_THREE_PLANES: 3}
_SINGLE = (ColorFormat.NV12_SINGLE_PLANE, ColorFormat.I420_SINGLE_PLANE)


def plane_count(color: ColorFormat) -> int:
    """Return the number of inputs for an image of this format."""
    return _COUNTS.get(color, 1)


def default_layout(color: ColorFormat) -> Layout:
    """Return the default layout of images of this format."""
    return Layout() if color is ColorFormat.UNDEFINED else Layout("NHWC")


def plane_shape(color: ColorFormat, plane: int, shape: PartialShape, layout: Layout) -> PartialShape:
    """Return the shape of a plane of an image whose shape is ``shape``."""
    if shape.rank is None:
        return shape
    if color in (ColorFormat.RGB, ColorFormat.BGR):
        return shape.replace({layout.get_index_by_name("C") % len(shape): 3})
    if len(shape) != 4 or color in (ColorFormat.UNDEFINED, ColorFormat.GRAY):
        return shape
    if color in (ColorFormat.RGBX, ColorFormat.BGRX):
        return shape.replace({3: 4})
    if color in _SINGLE:
        return shape.replace({1: _scale(shape[1], 3, 2), 3: 1})
    if not plane:
        return shape.replace({3: 1})
    half = {1: _scale(shape[1], 1, 2), 2: _scale(shape[2], 1, 2)}
    return shape.replace({**half, 3: 2 if color is ColorFormat.NV12_TWO_PLANES else 1})


def _scale(length: Dimension, times: int, over: int) -> Dimension:
    return Dimension(length.get_length() * times // over) if length.is_static else length
