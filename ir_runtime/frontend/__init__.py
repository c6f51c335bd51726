"""OpenVINO's conversion of models of other frameworks: its names can be imported; calling them raises an error with a hint.

>>> from ir_runtime import frontend
>>> try:
...     frontend.FrontEndManager().load_by_framework("onnx")
... except RuntimeError as refused:
...     print("convert" in str(refused))
True
"""

from __future__ import annotations

from .._util.absent import explain_absent
from ..openvino.conversion import Converter

__all__ = [
    "ConversionExtension",
    "DecoderTransformationExtension",
    "FrontEnd",
    "FrontEndManager",
    "GeneralFailure",
    "InitializationFailure",
    "InputModel",
    "NodeContext",
    "NotImplementedFailure",
    "OpConversionFailure",
    "OpExtension",
    "OpValidationFailure",
    "Place",
    "ProgressReporterExtension",
    "TelemetryExtension",
]


class FrontEndManager(Converter):
    """Finds converters."""


class FrontEnd(Converter):
    """A converter of one framework's models."""


class InputModel(Converter):
    """A model that is being converted."""


class Place(Converter):
    """A place in a model that is being converted."""


class NodeContext(Converter):
    """A layer that is being converted."""


class ConversionExtension(Converter):
    """A conversion of a layer, by a function."""


class DecoderTransformationExtension(Converter):
    """A pass over a model that is being converted."""


class OpExtension(Converter):
    """A conversion of a layer to an operation."""


class ProgressReporterExtension(Converter):
    """Receives the progress of a conversion."""


class TelemetryExtension(Converter):
    """Receives events of a conversion."""


class GeneralFailure(RuntimeError):  # noqa: N818 - OpenVINO's name
    """A conversion failed.

    >>> issubclass(OpConversionFailure, GeneralFailure)
    True
    """


class InitializationFailure(GeneralFailure):
    """A converter could not be loaded."""


class NotImplementedFailure(GeneralFailure):
    """A converter cannot do something."""


class OpConversionFailure(GeneralFailure):
    """A layer could not be converted."""


class OpValidationFailure(GeneralFailure):
    """A converted layer is not valid."""


explain_absent(__name__)
