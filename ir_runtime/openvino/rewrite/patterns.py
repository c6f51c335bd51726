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
from ..node import UNKNOWN, Node, Output, as_outputs
from .predicates import Condition, Predicate

__all__ = ["AnyInput", "Optional", "Or", "Pattern", "WrapType", "known_type"]

Sources: TypeAlias = "Node | Output | Sequence[Node | Output]"
"""The patterns of operands: of the only one, or of all."""

_OPSET = "opset"
_NEWEST = 17


class Pattern:
    """The requirements of a pattern."""

    _predicate: Predicate

    @property
    def sources(self) -> list[Output]:
        """The patterns of the operands."""
        assert isinstance(self, Node)
        return self.input_values()


class AnyInput(Pattern, Node):
    """Matches any output that fits the predicate."""

    def __init__(self, predicate: Condition | None = None) -> None:
        self._predicate = _build(self, (), predicate)


class Or(Pattern, Node):
    """Matches if one of several patterns matches."""

    def __init__(self, inputs: Sequence[Node | Output]) -> None:
        self._predicate = _build(self, inputs, None)


class _OfTypes(Pattern):
    """The operation types that a pattern matches.

    Args:
        type_names: the type or the types, each with an opset that selects its version.
        inputs: the pattern of its operand, or of all operands; any by default.
        predicate: a condition on its output.
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
        operands = input if inputs is None else inputs
        if not isinstance(operands, Node | Output | Sequence | None):
            operands, predicate = None, operands
        listed = [operands] if isinstance(operands, Node | Output) else list(operands or ())
        self._predicate = _build(self, listed, predicate or pred)
        self.types: list[type[Op]] = [
            known_type(name) for name in ([names] if isinstance(names, str) else names)
        ]

    def fits(self, node: Node) -> bool:
        """Return whether a node is of one of the types."""
        return type(node.layer.op) in self.types


class WrapType(_OfTypes, Node):
    """Matches an operation of one of the given types, such as ``opset13.Relu``, whose operands match."""


class Optional(_OfTypes, Node):
    """Matches like `WrapType`; otherwise it is skipped, and its first operand is matched."""


def _build(pattern: object, inputs: Sequence[object], predicate: Condition | None) -> Predicate:
    """Initialize the node of a pattern, with one output of any type, and return its predicate."""
    assert isinstance(pattern, Node)
    name = type(pattern).__name__
    layer = Layer(-1, name, name, "", None, Location(layer=name), outputs=(PortSpec(0),))
    pattern._build_incomplete(layer, [source for operand in inputs for source in as_outputs(operand)])
    pattern._own_values = (UNKNOWN,)
    return predicate if isinstance(predicate, Predicate) else Predicate(predicate)


def known_type(name: str) -> type[Op]:
    """Return the operation named like ``opset13.Relu`` or ``opset13::Relu``.

    Raises:
        InputError: if it is unknown.
    """
    opset, _, type = name.replace("::", ".").partition(".")  # OpenVINO accepts both
    number = opset.removeprefix(_OPSET)
    if not opset.startswith(_OPSET) or not number.isdecimal() or int(number) > _NEWEST or not type:
        hint = "expected an opset and a type, such as 'opset13.Relu'"
        raise InputError(f"unknown operation {name!r}", code=Code.UNKNOWN_OPERATION, hint=hint)
    operation = find_operation(type, int(number))
    if operation is None:
        near = registry.near(type)
        hint = suggestion(near and f"{opset}.{near}")
        raise InputError(f"unknown operation {name!r}", code=Code.UNKNOWN_OPERATION, hint=hint)
    return operation
