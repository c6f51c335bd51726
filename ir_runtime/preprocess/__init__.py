"""Preprocessing and postprocessing steps that are inserted into a model, as ``openvino.preprocess``.

Steps become ordinary operations, so the resulting model can be saved, validated and compiled like any other.
"""

from .._util.absent import explain_absent
from .._version import API_VERSION
from ..openvino.preprocess.infos import (
    InputInfo,
    InputModelInfo,
    InputTensorInfo,
    OutputInfo,
    OutputModelInfo,
    OutputTensorInfo,
    PostProcessSteps,
    PreProcessSteps,
)
from ..openvino.preprocess.options import ColorFormat, PaddingMode, ResizeAlgorithm
from ..openvino.preprocess.processor import PrePostProcessor

__all__ = [
    "ColorFormat",
    "InputInfo",
    "InputModelInfo",
    "InputTensorInfo",
    "OutputInfo",
    "OutputModelInfo",
    "OutputTensorInfo",
    "PaddingMode",
    "PostProcessSteps",
    "PrePostProcessor",
    "PreProcessSteps",
    "ResizeAlgorithm",
    "get_version",
]


def get_version() -> str:
    """Return the version of OpenVINO whose API this is, with the version of this package.

    >>> from ir_runtime import preprocess
    >>> type(preprocess.get_version()).__name__
    'str'
    """
    return API_VERSION


explain_absent(__name__)
