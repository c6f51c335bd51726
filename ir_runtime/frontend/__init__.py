"""Stubs of ``openvino.frontend``, which converts models of other frameworks: calling one raises an error with a hint.

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
    """Stub of the class that finds the converter for a framework."""


class FrontEnd(Converter):
    """Stub of the converter for models of one framework."""


class InputModel(Converter):
    """Stub of a model in the course of conversion."""


class Place(Converter):
    """Stub of a tensor or operation within an `InputModel`."""


class NodeContext(Converter):
    """Stub of an operation in the course of conversion, as passed to a conversion function."""


class ConversionExtension(Converter):
    """Stub of an extension that converts an operation by a function."""


class DecoderTransformationExtension(Converter):
    """Stub of an extension that runs a pass over the model during conversion."""


class OpExtension(Converter):
    """Stub of an extension that maps an operation of a framework to one of OpenVINO."""


class ProgressReporterExtension(Converter):
    """Stub of an extension that reports the progress of a conversion."""


class TelemetryExtension(Converter):
    """Stub of an extension that receives telemetry events of a conversion."""


class GeneralFailure(RuntimeError):  # noqa: N818 - OpenVINO's name
    """Base class of conversion errors.

    >>> issubclass(OpConversionFailure, GeneralFailure)
    True
    """


class InitializationFailure(GeneralFailure):
    """A converter could not be loaded."""


class NotImplementedFailure(GeneralFailure):
    """A converter lacks a feature."""


class OpConversionFailure(GeneralFailure):
    """A layer could not be converted."""


class OpValidationFailure(GeneralFailure):
    """A converted layer is not valid."""


explain_absent(__name__)
