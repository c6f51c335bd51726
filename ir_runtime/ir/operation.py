"""The protocol of operations, through which graphs and passes use them; `ir_runtime.ops` implements it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeAlias

from .element import ElementType
from .formula import Count, Formula, product
from .signature import Input, Output
from .tensor import Array, TensorType, Value

__all__ = [
    "Lengths",
    "Operands",
    "Operation",
    "is_external",
    "size",
]


Lengths: TypeAlias = Sequence[Count]
"""The shape of a tensor, with formulas for dynamic lengths."""


@dataclass(frozen=True, slots=True)
class Operands:
    """The shapes of a layer's inputs and outputs, from which its cost is computed.

    Args:
        inputs: the shape of each input.
        outputs: the shape of each output.
        contents: the contents of each input, ``None`` where unknown.
        bodies: the FLOPs of one iteration of each body.
        symbol: names the symbol of a count known only at run time, such as ``trips``.
    """

    inputs: tuple[Lengths, ...]
    outputs: tuple[Lengths, ...]
    contents: tuple[Array | None, ...] = ()
    bodies: tuple[Count, ...] = ()
    symbol: Callable[[str], str] = str

    @property
    def result(self) -> Count:
        """The number of elements of the first output, or 0 without outputs."""
        return size(self.outputs[0]) if self.outputs else 0

    @property
    def data(self) -> Count:
        """The number of elements of the first input, or 0 without inputs."""
        return size(self.inputs[0]) if self.inputs else 0

    def content(self, index: int) -> Array | None:
        """Return the contents of an input, or ``None`` if they are unknown or the input is absent."""
        return self.contents[index] if index < len(self.contents) else None

    def unknown(self, what: str) -> Formula:
        """Return a symbol for a count known only at run time, such as a loop's iterations; ``what`` names its kind, as ``trips``."""
        return Formula.symbol(self.symbol(what))


def size(lengths: Lengths) -> Count:
    """Return the number of elements of a tensor of the given shape."""
    return product(lengths)


class Operation(Protocol):
    """An operation version: the class describes the operation, an instance holds the attributes of one layer."""

    name: ClassVar[str]
    since: ClassVar[int]
    inputs: ClassVar[tuple[Input, ...]]
    outputs: ClassVar[tuple[Output, ...]]
    pure: ClassVar[bool]
    symbolic: ClassVar[bool]
    bounded: ClassVar[bool]
    has_side_effects: ClassVar[bool]
    keeps_types: ClassVar[bool]
    has_mixed_inputs: ClassVar[bool]

    @classmethod
    def versioned_name(cls) -> str:
        """Return the name with the version, as in the specification: ``ReduceL2-4``."""
        ...

    @classmethod
    def cite(cls, clause: str) -> str:
        """Return a clause with its number, as cited in messages."""
        ...

    @classmethod
    def port_of(cls, index: int) -> Input | None:
        """Return the declared input port for an input index, or ``None`` if there are fewer ports."""
        ...

    @classmethod
    def needs(cls, name: str) -> bool:
        """Return whether `evaluate` takes a keyword: ``types``, ``visit`` (of bodies), ``variables`` or ``advance``."""
        ...

    @classmethod
    def is_mixed(cls, types: Sequence[ElementType]) -> bool:
        """Return whether inputs that share a type variable have, or may have, different floating-point types."""
        ...

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the layer by name."""
        ...

    def replace(self, **changes: object) -> Self:
        """Return a copy of the operation with some attributes, blobs or bodies replaced."""
        ...

    def infer_types(self, *inputs: Value, **context: Any) -> tuple[TensorType, ...]:
        """Check the inputs against the declaration, then infer the type of each output."""
        ...

    def infer_values(self, *inputs: Value, **context: Any) -> tuple[Value, ...]:
        """Infer the type of each output, and the contents of small outputs where they are known."""
        ...

    def macs(self, operands: Operands) -> Count:
        """Return the number of multiply-accumulates for the given operands."""
        ...

    def flops(self, operands: Operands) -> Count:
        """Return the number of arithmetic operations for the given operands."""
        ...

    def audit(self, *inputs: Value) -> Iterator[str]:
        """Yield a warning for each suspicious use that inference accepts."""
        ...

    def evaluate(self, *inputs: Any, **context: Any) -> Any:
        """Compute the outputs with NumPy; this defines the semantics of the operation."""
        ...

    def refuses_lengths(self) -> bool:
        """Return whether `evaluate` itself refuses every length that inference refuses, given the inferred ranks."""
        ...

    def evaluator(self, types: Sequence[ElementType]) -> Callable[..., Any]:
        """Return `evaluate`, bound to the element types of the inputs if it takes them."""
        ...


def is_external(op: Operation) -> bool:
    """Return whether an operation is defined outside this package."""
    return type(op).__module__.partition(".")[0] != __name__.partition(".")[0]
