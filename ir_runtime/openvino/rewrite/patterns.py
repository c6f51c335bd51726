"""Patterns that describe nodes by type, operands and predicates on their outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from ..._util.nearest import suggestion
from ...codes import Code
from ...diagnostics import Location
from ...errors import InputError
from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.graph import Layer, PortSpec
from ...ir.shape import PartialShape
from ...ops import Op, find_operation, registry
from ..node import UNKNOWN, Node, Output, as_outputs

__all__ = [
    "AnyInput",
    "Condition",
    "Optional",
    "Or",
    "Pattern",
    "Predicate",
    "Symbols",
    "WrapType",
    "attrs_match",
    "consumers_count",
    "has_static_dim",
    "has_static_dims",
    "has_static_rank",
    "has_static_shape",
    "parse_type",
    "match_shape",
    "rank_equals",
    "rank_more_than",
    "shape_matches",
    "type_matches",
    "type_matches_any",
]


# Shape patterns with named lengths. Equal names stand for equal lengths.

Symbols: TypeAlias = "dict[str, Dimension | tuple[Dimension, ...]]"
"""The length that each name stands for, or a tuple of lengths for a name such as ``Batches...``."""


def match_shape(text: str, shape: PartialShape, symbols: Symbols) -> bool:
    """Return whether a shape matches a shape pattern, and store the lengths of its names in ``symbols``.

    >>> found: Symbols = {}
    >>> match_shape("[N,3,?]", PartialShape([2, 3, -1]), found), found
    (True, {'N': <Dimension: 2>})
    """
    parts = [part.strip() for part in text.strip().strip("[]").split(",") if part.strip()]
    if shape.rank is None:
        return False
    dims, lengths = tuple(shape), dict(symbols)
    group = next((index for index, part in enumerate(parts) if part.endswith("...")), None)
    if group is None:
        fits = len(dims) == len(parts) and all(map(_fits, parts, dims, [lengths] * len(dims)))
    else:
        after = len(parts) - group - 1
        middle = dims[group : len(dims) - after]
        ends = [
            *zip(parts[:group], dims, strict=False),
            *zip(parts[group + 1 :], dims[len(dims) - after :], strict=False),
        ]
        fits = len(dims) >= len(parts) - 1 and all(_fits(part, dim, lengths) for part, dim in ends)
        fits = fits and _is_group(parts[group].removesuffix("..."), middle, lengths)
    if fits:
        symbols.update(lengths)
    return fits


def _fits(part: str, dim: Dimension, symbols: Symbols) -> bool:
    if part == "?":
        return True
    if part.lstrip("-").isdecimal():
        return dim.is_static and dim == int(part)
    if part not in symbols:
        symbols[part] = dim
        return dim.is_static or dim.symbol is not None
    length = symbols[part]
    if isinstance(length, tuple):
        return False
    return (dim.is_static and length == dim) or (dim.symbol is not None and dim.symbol is length.symbol)


def _is_group(name: str, dims: tuple[Dimension, ...], symbols: Symbols) -> bool:
    if not name:
        return True
    return symbols.setdefault(name, dims) == dims


# Predicates on outputs.


class Predicate:
    """A predicate on an output. As OpenVINO's ``Predicate``.

    Args:
        predicate: a function of the output, or of the symbols so far and the output. By default, all outputs
            match.
    """

    def __init__(self, predicate: Callable[..., object] | None = None) -> None:
        self._predicate = predicate
        code = getattr(predicate, "__code__", None)
        bound = 1 if hasattr(predicate, "__self__") else 0
        self._wants_symbols = code is not None and code.co_argcount - bound == 2

    def __call__(self, output: Output, symbols: Symbols | None = None) -> bool:
        """Return whether the predicate holds for an output."""
        if self._predicate is None:
            return True
        if self._wants_symbols:
            return bool(self._predicate({} if symbols is None else symbols, output))
        return bool(self._predicate(output))


Condition: TypeAlias = "Predicate | Callable[[Output], object]"


def consumers_count(count: int) -> Predicate:
    """Match an output with this many consumers."""
    return Predicate(lambda output: len(output.target_inputs) == count)


def has_static_dim(index: int) -> Predicate:
    """Match an output with a static dimension at this index."""
    return has_static_dims([index])


def has_static_dims(indices: Iterable[int]) -> Predicate:
    """Match an output with static dimensions at these indices."""
    axes = list(indices)

    def holds(output: Output) -> bool:
        shape = output._type.shape
        return shape.rank is not None and all(
            -shape.rank <= index < shape.rank and shape[index].is_static for index in axes
        )

    return Predicate(holds)


def has_static_rank() -> Predicate:
    """Match an output of static rank."""
    return Predicate(lambda output: output._type.shape.rank is not None)


def has_static_shape() -> Predicate:
    """Match an output of static shape."""
    return Predicate(lambda output: output._type.shape.is_static)


def rank_equals(rank: int | Dimension) -> Predicate:
    """Match an output with this many dimensions."""
    return Predicate(lambda output: output._type.shape.rank == rank)


def rank_more_than(rank: int | Dimension) -> Predicate:
    """Match an output with more than ``rank`` dimensions."""
    most = rank if isinstance(rank, int) else rank.get_length()
    return Predicate(lambda output: (output._type.shape.rank or 0) > most)


def type_matches(type: ElementType) -> Predicate:
    """Match an output of this element type."""
    return Predicate(lambda output: output.element_type is type)


def type_matches_any(types: Iterable[ElementType]) -> Predicate:
    """Match an output of one of these element types."""
    elements = list(types)
    return Predicate(lambda output: output.element_type in elements)


def attrs_match(attributes: Mapping[str, object]) -> Predicate:
    """Match an output of an operation that has these attributes with these values; it may have others."""

    def holds(output: Output) -> bool:
        actual = output.node.get_attributes()
        return all(name in actual and actual[name] == value for name, value in attributes.items())

    return Predicate(holds)


def shape_matches(shape: str) -> Predicate:
    """Match an output whose shape fits a pattern such as ``"[N,3,?,...]"``. Equal names stand for equal lengths."""

    def holds(symbols: Symbols, output: Output) -> bool:
        return match_shape(shape, output._type.shape, symbols)

    return Predicate(holds)


# Patterns of nodes.

Sources: TypeAlias = "Node | Output | Sequence[Node | Output]"
"""The pattern of the only operand, or a sequence of patterns of all operands."""

_OPSET = "opset"
_NEWEST = 17


class Pattern:
    """Base class of patterns, which are nodes that stand for other nodes."""

    _predicate: Predicate

    @property
    def sources(self) -> list[Output]:
        """The patterns of the operands."""
        assert isinstance(self, Node)
        return self.input_values()


class AnyInput(Pattern, Node):
    """Matches any output for which the predicate holds."""

    def __init__(self, predicate: Condition | None = None) -> None:
        self._predicate = _build(self, (), predicate)


class Or(Pattern, Node):
    """Matches an output that one of several patterns matches."""

    def __init__(self, inputs: Sequence[Node | Output]) -> None:
        self._predicate = _build(self, inputs, None)


class _OfTypes(Pattern):
    """Base class of patterns with operation types.

    Args:
        type_names: an operation type or several, such as ``opset13.Relu``. The opset selects the version.
        inputs: the pattern of the only operand, or of all operands. By default, any operands match.
        predicate: a predicate on the output.
        type_name: OpenVINO's other name of ``type_names``.
        input: OpenVINO's other name of ``inputs``.
        pred: OpenVINO's other name of ``predicate``.
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
            parse_type(name) for name in ([names] if isinstance(names, str) else names)
        ]

    def fits(self, node: Node) -> bool:
        """Return whether a node is of one of the types."""
        return type(node.layer.op) in self.types


class WrapType(_OfTypes, Node):
    """Matches an operation of one of several types whose operands and output match."""


class Optional(_OfTypes, Node):
    """Matches like `WrapType`, or else matches the pattern of the first operand in its place."""


def _build(pattern: object, inputs: Sequence[object], predicate: Condition | None) -> Predicate:
    """Initialize a pattern as a node with one output of unknown type, and return its predicate."""
    assert isinstance(pattern, Node)
    name = type(pattern).__name__
    layer = Layer(-1, name, name, "", None, Location(layer=name), outputs=(PortSpec(0),))
    pattern._build_incomplete(layer, [source for operand in inputs for source in as_outputs(operand)])
    pattern._own_values = (UNKNOWN,)
    return predicate if isinstance(predicate, Predicate) else Predicate(predicate)


def parse_type(name: str) -> type[Op]:
    """Return the operation class for a name such as ``opset13.Relu`` or ``opset13::Relu``.

    Raises:
        InputError: if the operation is unknown.
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
