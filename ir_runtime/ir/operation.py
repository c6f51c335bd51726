"""The protocol of operations that graphs, and code that works on graphs, use; `ir_runtime.ops` has the operations."""

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


# The shapes of one layer's inputs and outputs, from which its cost is computed.

Lengths: TypeAlias = Sequence[Count]
"""The length of each axis of a tensor."""


@dataclass(frozen=True, slots=True)
class Operands:
    """The inputs and outputs of a layer, from which its operation counts its arithmetic.

    Args:
        inputs: the lengths of each input.
        outputs: the lengths of each output.
        contents: the contents of each input, where they are known.
        bodies: the FLOPs of one pass of each body, in the order of the bodies.
        symbol: gives the symbol of a number known only at run time, by what it counts, such as ``trips``.
    """

    inputs: tuple[Lengths, ...]
    outputs: tuple[Lengths, ...]
    contents: tuple[Array | None, ...] = ()
    bodies: tuple[Count, ...] = ()
    symbol: Callable[[str], str] = str

    @property
    def result(self) -> Count:
        """The number of elements of the first output."""
        return size(self.outputs[0]) if self.outputs else 0

    @property
    def data(self) -> Count:
        """The number of elements of the first input."""
        return size(self.inputs[0]) if self.inputs else 0

    def content(self, index: int) -> Array | None:
        """Return the contents of an input, or ``None`` if they are not known or the input is absent."""
        return self.contents[index] if index < len(self.contents) else None

    def unknown(self, what: str) -> Formula:
        """Return a symbol for a number known only at run time, such as the iterations of a loop."""
        return Formula.symbol(self.symbol(what))


def size(lengths: Lengths) -> Count:
    """Return the number of elements of a tensor."""
    return product(lengths)


class Operation(Protocol):
    """One version of one operation, with the attributes of one layer as instance variables."""

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
        """Return the name that the specification uses, such as ``ReduceL2-4``."""
        ...

    @classmethod
    def cite(cls, clause: str) -> str:
        """Return a clause with its number, as messages cite it."""
        ...

    @classmethod
    def port_of(cls, index: int) -> Input | None:
        """Return the declared input at a position."""
        ...

    @classmethod
    def needs(cls, name: str) -> bool:
        """Return whether `evaluate` has a keyword: ``types``, ``visit`` for bodies, ``variables``, ``advance``."""
        ...

    @classmethod
    def is_mixed(cls, types: Sequence[ElementType]) -> bool:
        """Return whether inputs have, or may have, several floating-point types in place of one."""
        ...

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the layer by name."""
        ...

    def replace(self, **changes: object) -> Self:
        """Return the same operation with some of its attributes, or payloads, changed."""
        ...

    def infer_types(self, *inputs: Value, **context: Any) -> tuple[TensorType, ...]:
        """Check the inputs against the declaration, then infer the type of each output."""
        ...

    def infer_values(self, *inputs: Value, **context: Any) -> tuple[Value, ...]:
        """Infer types as `infer_types` does, and the contents of small outputs."""
        ...

    def macs(self, operands: Operands) -> Count:
        """Return the number of multiply-accumulates."""
        ...

    def flops(self, operands: Operands) -> Count:
        """Return the number of arithmetic operations."""
        ...

    def audit(self, *inputs: Value) -> Iterator[str]:
        """Yield a message for each suspicious thing that inference accepts."""
        ...

    def evaluate(self, *inputs: Any, **context: Any) -> Any:
        """Compute the outputs with NumPy: the reference semantics."""
        ...

    def refuses_lengths(self) -> bool:
        """Return whether `evaluate` refuses all lengths that inference refuses, if all ranks are as inferred."""
        ...

    def evaluator(self, types: Sequence[ElementType]) -> Callable[..., Any]:
        """Return `evaluate`, bound to the element types of the inputs if it needs them."""
        ...


def is_external(op: Operation) -> bool:
    """Return whether an operation comes from outside this package."""
    return type(op).__module__.partition(".")[0] != __name__.partition(".")[0]
