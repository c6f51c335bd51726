"""The context of a layer to be lowered, and the registry of lowering rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ...io.reader.replacing import Replacement, Tensor
from ...ir.element import ElementType
from ...ir.tensor import Array, Value
from ...ops import Op, registry
from ..release import Release

__all__ = ["Lowered", "Place", "as_former", "lowers", "rules"]

Lowered: TypeAlias = "Tensor | tuple[Tensor, ...]"
"""Replacements for the outputs of a layer; unused trailing outputs may be omitted."""

Rule: TypeAlias = "Callable[[Place, Any], Lowered]"


@dataclass(slots=True)
class Place(Replacement):
    """A layer to be lowered. Rules call `refuse` if older operations would give other results."""

    values: tuple[Value, ...]
    """Inferred values of the inputs."""
    is_read: tuple[bool, ...]
    """Whether each output has a consumer."""
    release: Release

    def numbers(self, index: int) -> Array | None:
        """Return the contents of an input; ``None`` if unknown."""
        return self.values[index].known()

    def constant_ints(self, index: int, what: str) -> tuple[int, ...]:
        """Return the integers of an input that must be constant.

        Raises:
            ValidationError: if it is not.
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
        """Convert types of fewer than 32 bits to f32, in which operations compute them."""
        return self.convert(x, ElementType.f32) if x.element.bits < 32 else x


_RULES: dict[str, Rule] = {}


def lowers(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for some operation versions."""

    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def rules() -> Mapping[str, Rule]:
    """Return the rules registered so far, by operation version."""
    return MappingProxyType(_RULES)


def as_former(place: Place, op: Op) -> Lowered:
    """Replace a layer by the previous version of its operation, with the same inputs in the same order.

    Attributes that only the newer version has must be at their defaults, and its additional outputs unused.
    """
    former = [cls for cls in registry.versions(op.name) if cls.since < op.since][-1]
    schema, later = former.schema(), op.schema()
    for name in later.keys() - schema.keys():
        if not _has_no_effect(op, name):
            place.refuse(f"{former.versioned_name()} has no attribute {later[name].xml!r}")
    fields = {name: vars(op)[name] for name in schema}
    if len(place.inputs) > len(former.inputs):
        place.refuse(f"{former.versioned_name()} has no input {op.inputs[len(former.inputs)].name!r}")
    if any(place.is_read[len(former.outputs) :]):
        place.refuse(f"{former.versioned_name()} has no output {op.outputs[len(former.outputs)].name!r}")
    for problem in _problems(former, fields):
        place.refuse(f"{former.versioned_name()} does not allow this: {problem}")
    return place.add(former(**fields), place.inputs, len(former.outputs))


def _has_no_effect(op: Op, name: str) -> bool:
    """Return whether an attribute is at its default, or concerns an unused output."""
    value, default = vars(op)[name], op.schema()[name].default
    is_ones = name == "dilations" and all(number == 1 for number in value)
    return value == default or is_ones or name in _OF_INDICES


_OF_INDICES = ("index_element_type", "axis")
"""Attributes of the indices output of MaxPool, which its previous version lacks."""


def _problems(cls: type[Op], fields: Mapping[str, object]) -> Iterator[str]:
    for name, value in fields.items():
        try:
            cls.schema()[name].check(value)
        except ValueError as problem:
            yield f"attribute {cls.schema()[name].xml!r} {problem}"
