"""The planes of colour formats: how many inputs an image takes, and the shape of each."""

from __future__ import annotations

from ..ir.dimension import Dimension
from ..ir.shape import PartialShape
from ..openvino.layout import Layout
from .options import ColorFormat

__all__ = ["default_layout", "plane_count", "plane_shape"]

_COUNTS = {ColorFormat.NV12_TWO_PLANES: 2, ColorFormat.I420_THREE_PLANES: 3}
_SINGLE = (ColorFormat.NV12_SINGLE_PLANE, ColorFormat.I420_SINGLE_PLANE)


def plane_count(color: ColorFormat) -> int:
    """Return how many inputs an image of that format takes."""
    return _COUNTS.get(color, 1)


def default_layout(color: ColorFormat) -> Layout:
    """Return the layout of an image of that format, unless another is set."""
    return Layout() if color is ColorFormat.UNDEFINED else Layout("NHWC")


def plane_shape(color: ColorFormat, plane: int, shape: PartialShape, layout: Layout) -> PartialShape:
    """Return the shape of one plane of an image of the given shape."""
    if shape.rank is None:
        return shape
    if color in (ColorFormat.RGB, ColorFormat.BGR):
        return shape.replace({layout.get_index_by_name("C") % len(shape): 3})
    if len(shape) != 4 or color in (ColorFormat.UNDEFINED, ColorFormat.GRAY):
        return shape
    if color in (ColorFormat.RGBX, ColorFormat.BGRX):
        return shape.replace({3: 4})
    if color in _SINGLE:
        return shape.replace({1: _scaled(shape[1], 3, 2), 3: 1})
    if not plane:
        return shape.replace({3: 1})
    half = {1: _scaled(shape[1], 1, 2), 2: _scaled(shape[2], 1, 2)}
    return shape.replace({**half, 3: 2 if color is ColorFormat.NV12_TWO_PLANES else 1})


def _scaled(length: Dimension, times: int, over: int) -> Dimension:
    return Dimension(length.get_length() * times // over) if length.is_static else length
