"""The choices of preprocessing steps: colour formats, ways to resize and to pad. As OpenVINO's."""

from __future__ import annotations

from enum import Enum

__all__ = ["ColorFormat", "PaddingMode", "ResizeAlgorithm"]


class _Choice(Enum):
    """A name with a number, as OpenVINO's enumerations: it equals no integer, but converts to one."""

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__


class ColorFormat(_Choice):
    """How the colours of an image are stored. YUV formats have one plane, or several inputs.

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
    """How an image is resized: the modes of Interpolate.

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
    """What a tensor is padded with: the modes of Pad.

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
