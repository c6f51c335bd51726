"""Properties and the kinds of their values: each reads what a program gives, and returns it as OpenVINO does."""

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
"""A function that normalizes a property's value; a ValueError describes valid values."""

_TRUE = ("YES", "TRUE", "1")
_FALSE = ("NO", "FALSE", "0", "")


class Choice(Enum):
    """A property's value that has a name. As OpenVINO's enumerations, it is also an int, and ordered."""

    def __int__(self) -> int:
        return int(self.value)

    def __lt__(self, other: object) -> bool:
        return self.value < other.value if isinstance(other, type(self)) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.value <= other.value if isinstance(other, type(self)) else NotImplemented


_Choice = TypeVar("_Choice", bound=Choice)


def flag(given: Any) -> bool:
    """Read true or false, or a text such as YES."""
    if isinstance(given, bool):
        return given
    if isinstance(given, str) and given.upper() in (*_TRUE, *_FALSE):
        return given.upper() in _TRUE
    raise ValueError("must be True or False")


def number(given: Any) -> int:
    """Read a non-negative integer, or its text; nothing is 0."""
    if given in (None, ""):
        return 0
    if isinstance(given, bool) or not str(given).isdecimal():
        raise ValueError("must be a non-negative integer")
    return int(str(given))


def real(given: Any) -> float:
    """Read a number, or its text."""
    try:
        return float(given)
    except (TypeError, ValueError):
        raise ValueError("must be a number") from None


def text(given: Any) -> str:
    """Read a text or a path."""
    return "" if given is None else str(given)


def anything(given: Any) -> Any:
    """Return the value itself."""
    return given


def mapping(given: Any) -> dict[str, Any]:
    """Read a mapping of names to values."""
    if not isinstance(given, Mapping):
        raise ValueError("must be a mapping of names to values")
    return {str(key): value for key, value in given.items()}


def choice(kind: type[_Choice], prefix: str = "") -> Kind:
    """Read a member of an enumeration, or its name.

    Args:
        kind: the enumeration.
        prefix: what OpenVINO's text puts before the name.
    """
    known = {f"{prefix}{name}": member for name, member in kind.__members__.items()} | kind.__members__

    def read(given: Any) -> _Choice:
        name = str(given).rpartition(".")[2]  # also a member of OpenVINO's own enumeration
        if name not in known:
            raise ValueError(f"must be one of {', '.join(kind.__members__)}")
        return known[name]

    return read


def choices(kind: type[_Choice]) -> Kind:
    """Read a set of members of an enumeration, or the name of one."""
    one = choice(kind)

    def read(given: Any) -> set[_Choice]:
        if isinstance(given, Collection) and not isinstance(given, str):
            return set(map(one, given))
        return {one(given)} if given else set()

    return read


def element_type(*allowed: str) -> Kind:
    """Read an element type, or its name.

    Args:
        allowed: the names of those that may be given.
    """

    def read(given: Any) -> Any:
        from ..ir.element import ElementType

        text = str(given)
        known = {name: ElementType[name] for name in allowed}
        names = {spelling: each for each in known.values() for spelling in _spellings(each)}
        if text.lower() not in names:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return names[text.lower()]

    return read


def _spellings(type: Any) -> tuple[str, ...]:
    """Return the texts that stand for a type: our name, OpenVINO's in C++, its former one, and how both show it."""
    former = {"f16": "fp16", "f32": "fp32", "dynamic": "undefined"}.get(type.label, type.label)
    return (type.label, former, type.c_name, repr(type).lower(), *([""] if type.label == "dynamic" else []))


# A property: its name, which is also a function that pairs the name with a value.


class Property(str):
    """The name of a property. Called with a value, it is the pair of both, as OpenVINO's are.

    >>> from ir_runtime import properties
    >>> properties.inference_num_threads, properties.inference_num_threads(2)
    ('INFERENCE_NUM_THREADS', ('INFERENCE_NUM_THREADS', 2))
    >>> properties.hint.performance_mode(properties.hint.PerformanceMode.LATENCY)[0]
    'PERFORMANCE_HINT'

    Args:
        name: the name, a key of ``config``.
        kind: reads its values; none where it can only be read.
    """

    known: ClassVar[dict[str, Property]] = {}
    """Every property, by name."""

    kind: Kind | None

    def __new__(cls, name: str, kind: Kind | None = None) -> Self:
        """Declare a property."""
        made = super().__new__(cls, name)
        made.kind = kind
        cls.known[name] = made
        return made

    def __call__(self, *value: Any) -> Any:
        """Return the name alone, or the name and a value.

        Raises:
            TypeError: if the property cannot be set, or has no such value.
        """
        if not value:
            return str(self)
        if self.kind is None:
            raise TypeError(f"{self} cannot be set: call it without arguments for its name")
        try:
            return str(self), self.kind(value if len(value) > 1 else value[0])
        except ValueError as reason:
            raise TypeError(f"{self} {reason}, got {value[0]!r}") from None
