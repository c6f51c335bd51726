"""`NodeFactory`: create nodes by operation name, as ``openvino.utils.node_factory``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import Any

from .._util.absent import ExplainsAbsent, explain_absent
from .._util.nearest import nearest, suggestion
from ..codes import Code
from ..errors import InputError
from ..exceptions import UserInputError
from ..openvino.custom_op import extend
from ..openvino.node import Node, Output, as_outputs
from .types import as_node

__all__ = ["NodeFactory"]

_PACKAGE = __name__.partition(".")[0]


class NodeFactory(ExplainsAbsent):
    """Creates nodes of an opset by operation name, as OpenVINO's ``NodeFactory``.

    >>> import numpy as np
    >>> from ir_runtime import opset13
    >>> x = opset13.parameter([2], np.float32, name="x")
    >>> NodeFactory("opset13").create("Add", [x, np.float32([1, 2])]).shape
    <Shape: [2]>

    Args:
        opset_version: the module name of the opset, such as ``opset13``.
    """

    def __init__(self, opset_version: str = "opset13") -> None:
        self._opset = _opset(opset_version)

    def create(
        self,
        op_type_name: str,
        arguments: Sequence[Any] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Node:
        """Return a new node; with neither arguments nor attributes, an unconnected one to be completed later.

        Args:
            op_type_name: the type of the operation, such as ``Relu``.
            arguments: its inputs: nodes, outputs, or array-likes, which become constants.
            attributes: its attributes.

        Raises:
            InputError: if the opset lacks the operation, or its arguments or attributes do not match.
            UserInputError: if there are attributes but no arguments.
        """
        if arguments is None and attributes is not None:
            raise UserInputError(f"{op_type_name!r} is given attributes, but no arguments: [] are none")
        names = {name.replace("_", "").lower(): name for name in dir(self._opset) if name[0] != "_"}
        key = op_type_name.replace("_", "").lower()
        if key not in names:
            near = nearest(key, names)
            opset = self._opset.__name__.rpartition(".")[2]
            hint = suggestion(near and names[near]) or f"the names are those in {opset}"
            message = f"unknown operation {op_type_name!r} in {opset}"
            raise InputError(message, code=Code.NO_SUCH_NAME, hint=hint)
        function = getattr(self._opset, names[key])
        if arguments is None:
            return Node.create_incomplete(op_type_name, int(self._opset.__name__.rpartition("opset")[2]))
        inputs: list[Node | Output] = [as_node(argument) for argument in arguments]
        try:
            signature(function).bind(*inputs, **(attributes or {}))
        except TypeError as reason:
            raise InputError(f"cannot create {op_type_name!r}: {reason}", code=Code.BAD_REQUEST) from None
        node: Node = function(*inputs, **(attributes or {}))
        return node

    def add_extension(self, extension: object) -> None:
        """Register custom operations, as `Core.add_extension` does.

        >>> from ir_runtime import Extension
        >>> NodeFactory().add_extension(Extension())

        Raises:
            InputError: for compiled extensions of OpenVINO, which cannot be used.
        """
        for item in extension if isinstance(extension, list | tuple) else [extension]:
            extend(item)

    @staticmethod
    def _arguments_as_outputs(arguments: Sequence[Node | Output]) -> list[Output]:
        """Return all outputs of each node, and outputs unchanged. Private in OpenVINO too, but programs call it."""
        return [source for argument in arguments for source in as_outputs(argument)]


def _opset(version: str) -> ModuleType:
    number = version.removeprefix("opset")
    if not number.isdecimal() or version not in dir(import_module(_PACKAGE)):
        raise InputError(
            f"unknown opset {version!r}", code=Code.NO_SUCH_NAME, hint="opset1 to opset17 are known"
        )
    return import_module(f"{_PACKAGE}.{version}")


def _get_node_factory(opset_version: str | None = None) -> NodeFactory:
    """Return the factory of an opset. Private in OpenVINO too, but programs call it."""
    return NodeFactory(opset_version) if opset_version else NodeFactory()


explain_absent(__name__)
