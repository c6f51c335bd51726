"""`Property`, and the functions that normalize property values to the Python types that OpenVINO returns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

__all__ = [
    "Choice",
    "Kind",
    "Property",
    "anything",
    "choice",
    "choices",
    "element_type",
    "flag",
    "mapping",
    "number",
    "real",
    "text",
]


Kind: TypeAlias = Callable[[Any], Any]
"""A function that normalizes a property's value, or raises ValueError with a description of valid values."""

_TRUE = ("YES", "TRUE", "1")
_FALSE = ("NO", "FALSE", "0", "")


class Choice(Enum):
    """An enumeration of property values. Like OpenVINO's, its members convert to int and are ordered."""

    def __int__(self) -> int:
        return int(self.value)

    def __lt__(self, other: object) -> bool:
        return self.value < other.value if isinstance(other, type(self)) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.value <= other.value if isinstance(other, type(self)) else NotImplemented


_Choice = TypeVar("_Choice", bound=Choice)


def flag(value: Any) -> bool:
    """Read a boolean, or a string in any case: YES, TRUE and 1 are true; NO, FALSE, 0 and the empty string are false."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.upper() in (*_TRUE, *_FALSE):
        return value.upper() in _TRUE
    raise ValueError("must be True or False")


def number(value: Any) -> int:
    """Read a non-negative integer, or a string of one. None and the empty string are 0."""
    if value in (None, ""):
        return 0
    if isinstance(value, bool) or not str(value).isdecimal():
        raise ValueError("must be a non-negative integer")
    return int(str(value))


def real(value: Any) -> float:
    """Return a number, or a string of one, as a float."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError("must be a number") from None


def text(value: Any) -> str:
    """Read a string or a path. None is the empty string."""
    return "" if value is None else str(value)


def anything(value: Any) -> Any:
    """Return the value unchanged."""
    return value


def mapping(value: Any) -> dict[str, Any]:
    """Read a mapping of names to values; names become strings."""
    if not isinstance(value, Mapping):
        raise ValueError("must be a mapping of names to values")
    return {str(key): item for key, item in value.items()}


def choice(kind: type[_Choice], prefix: str = "") -> Kind:
    """Return a function that converts a member of an enumeration, or its name, to the member.

    Args:
        kind: the enumeration.
        prefix: the prefix of names in OpenVINO's strings, which may be omitted.
    """
    members = {f"{prefix}{name}": member for name, member in kind.__members__.items()} | kind.__members__

    def read(value: Any) -> _Choice:
        name = str(value).rpartition(".")[2]  # a member of OpenVINO's enumeration shows as Kind.NAME
        if name not in members:
            raise ValueError(f"must be one of {', '.join(kind.__members__)}")
        return members[name]

    return read


def choices(kind: type[_Choice]) -> Kind:
    """Return a function that converts members of an enumeration, or a single one, to a set of members.

    It converts ``None`` and other false values to an empty set.
    """
    one = choice(kind)

    def read(value: Any) -> set[_Choice]:
        if isinstance(value, Collection) and not isinstance(value, str):
            return set(map(one, value))
        return {one(value)} if value else set()

    return read


def element_type(*allowed: str) -> Kind:
    """Return a function that converts an element type, or its name, to the element type.

    Args:
        allowed: the names of the valid types.
    """

    def read(value: Any) -> Any:
        from ..ir.element import ElementType

        text = str(value)
        types = [ElementType[name] for name in allowed]
        names = {spelling: type for type in types for spelling in _spellings(type)}
        if text.lower() not in names:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return names[text.lower()]

    return read


def _spellings(type: Any) -> tuple[str, ...]:
    """Return the strings accepted for a type: its label, OpenVINO's C++ name and former name, and its `repr`."""
    former = {"f16": "fp16", "f32": "fp32", "dynamic": "undefined"}.get(type.label, type.label)
    return (type.label, former, type.c_name, repr(type).lower(), *([""] if type.label == "dynamic" else []))


# A property is its name, and called with a value, returns the pair of name and value.


class Property(str):
    """The name of a property. Called with a value, it returns the pair of name and value, as OpenVINO's properties do.

    >>> from ir_runtime import properties
    >>> properties.inference_num_threads, properties.inference_num_threads(2)
    ('INFERENCE_NUM_THREADS', ('INFERENCE_NUM_THREADS', 2))
    >>> properties.hint.performance_mode(properties.hint.PerformanceMode.LATENCY)[0]
    'PERFORMANCE_HINT'

    Args:
        name: the name, a key of ``config``.
        kind: the function that normalizes its values; None if the property is read-only.
    """

    known: ClassVar[dict[str, Property]] = {}
    """Every property, by name."""

    kind: Kind | None

    def __new__(cls, name: str, kind: Kind | None = None) -> Self:
        """Create a property and register it in `known`."""
        self = super().__new__(cls, name)
        self.kind = kind
        cls.known[name] = self
        return self

    def __call__(self, *value: Any) -> Any:
        """Return the name alone, or the name and a value.

        Raises:
            TypeError: if the property is read-only, or the value is invalid.
        """
        if not value:
            return str(self)
        if self.kind is None:
            raise TypeError(f"{self} cannot be set: call it without arguments for its name")
        try:
            return str(self), self.kind(value if len(value) > 1 else value[0])
        except ValueError as reason:
            raise TypeError(f"{self} {reason}, got {value[0]!r}") from None
