"""Patterns of nodes. As OpenVINO's ``passes``: ``WrapType``, ``AnyInput``, ``Or``, ``Optional``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ..._util.nearest import suggestion
from ...codes import Code
from ...diagnostics import Location
from ...errors import InputError
from ...ir.graph import Layer, PortSpec
from ...ops import Op, find_operation, registry
from ..node_changes import UNKNOWN
from ..nodes import Node, Output, as_outputs
from .predicates import Condition, Predicate

__all__ = ["AnyInput", "Optional", "Or", "Pattern", "WrapType", "known_type"]

Sources: TypeAlias = "Node | Output | Sequence[Node | Output]"
"""What an operation reads: patterns of its only input, or of all."""

_OPSET = "opset"
_NEWEST = 17


class Pattern(Node):
    """A node that stands for others, of one output of any type."""

    def __init__(self, inputs: Sequence[object] = (), predicate: Condition | None = None) -> None:
        name = type(self).__name__
        layer = Layer(-1, name, name, "", None, Location(layer=name), outputs=(PortSpec(0),))
        sources = [source for each in inputs for source in as_outputs(each)]
        self._build_incomplete(layer, sources)
        self._own_values = (UNKNOWN,)
        self._predicate = predicate if isinstance(predicate, Predicate) else Predicate(predicate)

    @property
    def sources(self) -> list[Output]:
        """The patterns of what is read."""
        return self.input_values()


class AnyInput(Pattern):
    """Any output that fits the predicate."""

    def __init__(self, predicate: Condition | None = None) -> None:
        super().__init__((), predicate)


class Or(Pattern):
    """What one of several patterns matches."""

    def __init__(self, inputs: Sequence[Node | Output]) -> None:
        super().__init__(inputs)


class WrapType(Pattern):
    """An operation of one of the given types, such as ``opset13.Relu``, whose inputs match.

    Args:
        type_names: the type or the types, each with an opset whose version of it is meant.
        inputs: the pattern of its input, or of all inputs; any will do if none is given.
        predicate: what its output must fit.
        type_name: as ``type_names``.
        input: as ``inputs``.
        pred: as ``predicate``.
    """

    def __init__(
        self,
        type_names: str | Sequence[str] | None = None,
        inputs: Sources | Condition | None = None,
        predicate: Condition | None = None,
        *,
        type_name: str | None = None,
        input: Sources | Condition | None = None,
        pred: Condition | None = None,
    ) -> None:
        names = type_names if type_names is not None else type_name
        if names is None:
            raise TypeError("expected the type of an operation, such as 'opset13.Relu'")
        given = input if inputs is None else inputs
        if not isinstance(given, Node | Output | Sequence | None):
            given, predicate = None, given
        listed = [] if given is None else [given] if isinstance(given, Node | Output) else list(given)
        super().__init__(listed, predicate or pred)
        self.types: list[type[Op]] = [
            known_type(name) for name in ([names] if isinstance(names, str) else names)
        ]

    def fits(self, node: Node) -> bool:
        """Return whether a node is of one of the types."""
        return type(node.layer.op) in self.types


class Optional(WrapType):
    """As `WrapType`; or, where that does not match, what its first input is to match."""


def known_type(name: str) -> type[Op]:
    """Return the operation of a name such as ``opset13.Relu`` or ``opset13::Relu``.

    Raises:
        InputError: if there is none.
    """
    opset, _, type = name.replace("::", ".").partition(".")  # OpenVINO takes both
    number = opset.removeprefix(_OPSET)
    if not opset.startswith(_OPSET) or not number.isdecimal() or int(number) > _NEWEST or not type:
        hint = "expected an opset and a type, such as 'opset13.Relu'"
        raise InputError(f"unknown operation {name!r}", code=Code.UNKNOWN_OPERATION, hint=hint)
    found = find_operation(type, int(number))
    if found is None:
        near = registry.near(type)
        hint = suggestion(near and f"{opset}.{near}")
        raise InputError(f"unknown operation {name!r}", code=Code.UNKNOWN_OPERATION, hint=hint)
    return found
