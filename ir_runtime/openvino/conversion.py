"""Stubs of OpenVINO's model conversion, which raise an error with a hint."""

from __future__ import annotations

from typing import NoReturn

from ..codes import Code
from ..errors import UnsupportedError

__all__ = ["Converter", "convert_model", "refuse"]


def refuse(what: str) -> NoReturn:
    """Raise an error that explains how to convert models of other frameworks.

    Raises:
        UnsupportedError: always.
    """
    raise UnsupportedError(
        f"{what} is not available: ir_runtime reads models in OpenVINO's format, and converts none",
        code=Code.BAD_REQUEST,
        hint="where OpenVINO is installed, call openvino.convert_model and openvino.save_model; read the .xml here",
    )


def convert_model(input_model: object = None, *args: object, **settings: object) -> NoReturn:
    """Raise an error, as models of other frameworks cannot be converted here. Arguments are ignored.

    Args:
        input_model: the model.
        args: further positional arguments of OpenVINO's function.
        settings: keyword arguments of OpenVINO's function.

    >>> import ir_runtime as ov
    >>> try:
    ...     ov.convert_model("model.onnx")
    ... except ov.IRError as error:
    ...     print("models are read, not converted")
    models are read, not converted

    Raises:
        UnsupportedError: always.
    """
    refuse("convert_model")


class Converter:
    """Base of the stubs of conversion classes, which can be subclassed but not instantiated.

    >>> class Mine(Converter):
    ...     pass
    >>> Mine()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    UnsupportedError: Mine is not available
    """

    def __new__(cls, *args: object, **settings: object) -> NoReturn:
        """Raise the error of `refuse`.

        Raises:
            UnsupportedError: always.
        """
        refuse(cls.__name__)
