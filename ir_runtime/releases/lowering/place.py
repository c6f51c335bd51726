"""The place of a layer that a release does not read, and the rules that replace it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ...ir.element import ElementType
from ...ir.tensor import Array, Value
from ...ops import Op, registry
from ...reader.replacing import Replacement, Tensor
from ..release import Release

__all__ = ["Lowered", "Place", "as_former", "lowers", "rules"]

Lowered: TypeAlias = "Tensor | tuple[Tensor, ...]"
"""The tensors that take the place of the outputs of a layer; those that nothing reads may be left out."""

Rule: TypeAlias = "Callable[[Place, Any], Lowered]"


@dataclass(slots=True)
class Place(Replacement):
    """Where a layer is replaced. Rules call `refuse` where older operations would compute something else."""

    values: tuple[Value, ...]
    """What is known of the inputs."""
    is_read: tuple[bool, ...]
    """Whether something reads an output."""
    release: Release

    def numbers(self, index: int) -> Array | None:
        """Return the contents of an input, if they are known."""
        return self.values[index].known()

    def constant_ints(self, index: int, what: str) -> tuple[int, ...]:
        """Return integers that an input must hold.

        Raises:
            ValidationError: if they are not known.
        """
        numbers = self.values[index].ints()
        if numbers is None:
            self.refuse(f"its {what} are not constant")
        return numbers

    def rank(self, index: int = 0) -> int:
        """Return the rank of an input.

        Raises:
            ValidationError: if it is dynamic.
        """
        rank = self.values[index].shape.rank
        if rank is None:
            self.refuse("the rank of its input is dynamic")
        return rank

    def dims(self, index: int = 0) -> tuple[int, ...]:
        """Return the dims of an input.

        Raises:
            ValidationError: if one is dynamic.
        """
        shape = self.values[index].shape
        if not shape.is_static:
            self.refuse("the dims of its input are dynamic")
        return shape.static

    def full(self, value: float, index: int = 0) -> Tensor:
        """Add a scalar with the element type of an input."""
        return self.constant(np.float64(value), self.values[index].element)

    def wide(self, x: Tensor) -> Tensor:
        """Convert numbers of fewer than 32 bits to f32, the type that operations compute them in."""
        return self.convert(x, ElementType.f32) if x.element.bits < 32 else x


_RULES: dict[str, Rule] = {}


def lowers(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for versions of operations."""

    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def rules() -> Mapping[str, Rule]:
    """Return the rules by the operations that they replace; the modules beside this one have them."""
    return MappingProxyType(_RULES)


def as_former(place: Place, op: Op) -> Lowered:
    """Replace a layer by the former version of its operation, which has the same inputs in the same order.

    What only the later version has must be at its default, and an output that only it has must not be read.
    """
    former = [cls for cls in registry.versions(op.name) if cls.since < op.since][-1]
    schema, later = former.schema(), op.schema()
    for name in later.keys() - schema.keys():
        if not _says_nothing(op, name):
            place.refuse(f"{former.versioned_name()} has no attribute {later[name].xml!r}")
    fields = {name: vars(op)[name] for name in schema}
    if len(place.inputs) > len(former.inputs):
        place.refuse(f"{former.versioned_name()} has no input {op.inputs[len(former.inputs)].name!r}")
    if any(place.is_read[len(former.outputs) :]):
        place.refuse(f"{former.versioned_name()} has no output {op.outputs[len(former.outputs)].name!r}")
    for problem in _problems(former, fields):
        place.refuse(f"{former.versioned_name()} does not allow this: {problem}")
    return place.add(former(**fields), place.inputs, len(former.outputs))


def _says_nothing(op: Op, name: str) -> bool:
    """Return whether an attribute is at its default, or is of an output that nothing reads."""
    value, default = vars(op)[name], op.schema()[name].default
    is_ones = name == "dilations" and all(number == 1 for number in value)
    return value == default or is_ones or name in _OF_INDICES


_OF_INDICES = ("index_element_type", "axis")
"""Attributes of the indices of MaxPool, which its former version does not give."""


def _problems(cls: type[Op], fields: Mapping[str, object]) -> Iterator[str]:
    for name, value in fields.items():
        try:
            cls.schema()[name].check(value)
        except ValueError as problem:
            yield f"attribute {cls.schema()[name].xml!r} {problem}"
