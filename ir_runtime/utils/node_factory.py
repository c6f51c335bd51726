"""Create nodes by the names of their operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from ..absent import ExplainsAbsent, explain_absent
from ..api.nodes import Node, Output
from ..codes import Code
from ..errors import InputError
from ..nearest import nearest, suggestion
from .types import as_node

__all__ = ["NodeFactory"]

_PACKAGE = __name__.partition(".")[0]


class NodeFactory(ExplainsAbsent):
    """Creates nodes of the operations of an opset. As OpenVINO's ``NodeFactory``.

    >>> import numpy as np
    >>> from ir_runtime import opset13
    >>> x = opset13.parameter([2], np.float32, name="x")
    >>> NodeFactory("opset13").create("Add", [x, np.float32([1, 2])]).shape
    <Shape: [2]>

    Args:
        opset_version: such as ``opset13``.
    """

    def __init__(self, opset_version: str = "opset13") -> None:
        self._opset = import_module(f"{_PACKAGE}.{opset_version}")

    def create(
        self,
        op_type_name: str,
        arguments: Sequence[Any] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Node:
        """Return a node.

        Args:
            op_type_name: the type of the operation, such as ``Relu``.
            arguments: its inputs: nodes, outputs or numbers.
            attributes: its attributes.

        Raises:
            InputError: if the opset has no such operation.
        """
        known = {name.replace("_", "").lower(): name for name in dir(self._opset) if name[0] != "_"}
        key = op_type_name.replace("_", "").lower()
        if key not in known:
            near = nearest(key, known)
            opset = self._opset.__name__.rpartition(".")[2]
            hint = suggestion(near and known[near]) or f"the names are those in {opset}"
            message = f"unknown operation {op_type_name!r} in {opset}"
            raise InputError(message, code=Code.NO_SUCH_NAME, hint=hint)
        inputs: list[Node | Output] = [as_node(each) for each in arguments or ()]
        made: Node = getattr(self._opset, known[key])(*inputs, **(attributes or {}))
        return made


explain_absent(__name__)
