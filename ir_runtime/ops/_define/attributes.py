"""Attributes of operations: types, defaults, bounds, and parsing from the text of XML files."""

from __future__ import annotations

import types
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from inspect import get_annotations
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

from ..._util.nearest import did_you_mean
from ...codes import Code
from ...diagnostics import Diagnostic
from ...errors import ValidationError
from ...ir.element import ElementType
from ...ir.shape import PartialShape

__all__ = [
    "MISSING",
    "Attribute",
    "attr",
    "attribute_text",
    "blob_field",
    "body_field",
    "raise_invalid",
    "read_schema",
]

# Parsed strings up to this length are cached, except integers, as the offsets of constants are all distinct. Caching
# longer strings would let a file fill memory.
_MAX_CACHED = 64


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()
"""Stands for the default of a required attribute."""


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """The declaration of an attribute: its name, type, default and allowed values; see `attr`."""

    name: str
    type: object
    default: object = MISSING
    gt: float | None = None
    ge: float | None = None
    le: float | None = None
    doc: str = ""
    xml: str = ""
    external: bool = False
    default_with_warning: str | None = None
    """The default that OpenVINO uses where a file omits an attribute that the specification requires."""
    choices: tuple[object, ...] = field(init=False, default=(), repr=False)
    """The members of an enumeration, or of the item type of a list; empty for other types."""
    bounded: bool = field(init=False, default=False, repr=False)
    """Whether ``gt``, ``ge`` or ``le`` is set."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "choices", _choices(self.type))
        object.__setattr__(self, "bounded", (self.gt, self.ge, self.le) != (None, None, None))

    @property
    def required(self) -> bool:
        """Whether the specification requires the attribute on every layer."""
        return self.default is MISSING and not self.external

    @property
    def clause(self) -> str:
        """The clause that states the allowed values."""
        return f"attribute {self.xml!r} is {self.allows().removeprefix('must be ')}"

    def parse(self, text: str) -> object:
        """Parse the text of an attribute; raise a `ValueError` that lists the allowed values if it is invalid."""
        try:
            is_cached = self.type is not int and len(text) <= _MAX_CACHED
            value = _parse_cached(self, text) if is_cached else _parse(self.type, text)
        except ValueError as near:
            raise ValueError(f"{self.allows()}, not {text!r}{near}") from None
        return self.check(value, text)

    def check(self, value: object, text: str | None = None) -> object:
        """Return ``value``, or raise `ValueError` if it is not allowed; ``text`` is its spelling in the file."""
        if value is MISSING:
            raise ValueError(f"is missing; it {self.allows()}")
        if value is self.default or self.external or not (self.choices or self.bounded):
            return value
        items = value if isinstance(value, tuple) else (value,)
        for item in items if self.choices else ():
            if item not in self.choices:
                near = _suggestion(attribute_text(item), map(attribute_text, self.choices))
                raise ValueError(f"{self.allows()}, not {_quote(value, text)}{near}")
        if self.bounded and not all(map(self._within, items)):
            raise ValueError(f"{self.allows()}, not {_quote(value, text)}")
        return value

    def _within(self, item: float) -> bool:
        return (
            (self.gt is None or item > self.gt)
            and (self.ge is None or item >= self.ge)
            and (self.le is None or item <= self.le)
        )

    def allows(self) -> str:
        """Describe the allowed values, for messages.

        >>> Attribute("strides", tuple[int, ...], gt=0).allows()
        'must be a list of integers greater than 0'
        """
        bounds = [
            f"{words} {bound:g}"
            for words, bound in (("greater than", self.gt), ("at least", self.ge), ("at most", self.le))
            if bound is not None
        ]
        return " ".join(filter(None, ("must be", _kind(self.type), " and ".join(bounds))))


def attr(
    default: object = MISSING,
    *,
    gt: float | None = None,
    ge: float | None = None,
    le: float | None = None,
    doc: str = "",
    xml: str = "",
    default_with_warning: str | None = None,
) -> Any:
    """Declare an attribute with a default, bounds, documentation or another name in files.

    Args:
        default: the default value; without it, the attribute is required.
        gt: an exclusive lower bound of each number.
        ge: an inclusive lower bound of each number.
        le: an inclusive upper bound of each number.
        doc: a description, for the page of the operation.
        xml: the name in files, if it is not a Python identifier (``exclude-pad``).
        default_with_warning: the text that OpenVINO assumes for a required attribute that a file omits.
    """
    return Attribute("", None, default, gt, ge, le, doc, xml, default_with_warning=default_with_warning)


def blob_field(*, doc: str = "") -> Any:
    """Declare a field that holds data of a layer from the ``.bin`` file."""
    return Attribute("", None, doc=doc, external=True)


def body_field(*, doc: str = "") -> Any:
    """Declare a field that holds a body of a layer."""
    return Attribute("", None, doc=doc, external=True)


def raise_invalid(problems: Collection[str], clauses: Iterable[str] = ()) -> None:
    """Raise one `ValidationError` for all problems, if there are any; ``clauses`` are the violated ones, in order."""
    if not problems:
        return
    cited = iter(clauses)
    diagnostics = tuple(
        Diagnostic(Code.BAD_ATTRIBUTE, problem, clause=next(cited, "")) for problem in problems
    )
    text = "; ".join(d.message for d in diagnostics)
    raise ValidationError(text, code=Code.BAD_ATTRIBUTE, diagnostics=diagnostics)


def read_schema(cls: type) -> Mapping[str, Attribute]:
    """Return the attributes that a class and its bases declare by annotations, those of bases first."""
    schema = {}
    for name, kind in _collect_annotations(cls).items():
        default = getattr(cls, name, MISSING)
        a = default if isinstance(default, Attribute) else attr(default)
        schema[name] = Attribute(
            name, kind, a.default, a.gt, a.ge, a.le, a.doc, a.xml or name, a.external, a.default_with_warning
        )
    return types.MappingProxyType(schema)


def _collect_annotations(cls: type) -> dict[str, object]:
    """Return the annotations of a class and its bases by name, those of bases first."""
    annotations: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        annotations |= _own_annotations(base)
    return annotations


@cache
def _own_annotations(cls: type) -> dict[str, object]:
    annotations = get_annotations(cls, eval_str=True).items()
    return {name: kind for name, kind in annotations if not (name.startswith("_") or _is_shared(kind))}


def _is_shared(kind: object) -> bool:
    return get_origin(kind) is ClassVar


def _choices(kind: object) -> tuple[object, ...]:
    item = get_args(kind)[0] if get_origin(kind) is tuple else kind
    return get_args(item) if get_origin(item) is Literal else ()


@lru_cache(4096)
def _parse_cached(attribute: Attribute, text: str) -> object:
    """Parse an attribute value, with a cache, as the same values repeat."""
    return _parse(attribute.type, text)


def _parse(kind: object, text: str) -> object:
    """Parse the text of an attribute of type ``kind``; whitespace around integers and list items is ignored."""
    if kind is int:
        return _integer(text.strip())
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _parse(next(a for a in args if a is not type(None)), text)
    if origin is Literal:
        return _choose(args, text)
    if origin is tuple:
        return tuple(_parse(args[0], part.strip()) for part in text.split(",")) if text.strip() else ()
    if kind is bool:
        return _boolean(text)
    assert isinstance(kind, type)
    try:
        return ElementType.of_attribute(text) if kind is ElementType else kind(text)
    except ValueError:
        near = _suggestion(text, [element.label for element in ElementType]) if kind is ElementType else ""
        raise ValueError(near) from None


def _integer(text: str) -> int:
    digits = text.removeprefix("-")
    if len(text) > 20 or not (digits.isascii() and digits.isdecimal()) or not -(2**63) <= int(text) < 2**64:
        raise ValueError("")
    return int(text)


def _boolean(text: str) -> bool:
    try:
        return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    except KeyError:
        raise ValueError("") from None


def _choose(choices: tuple[object, ...], text: str) -> object:
    # OpenVINO compares the names of enumerations case-insensitively.
    by_text = {attribute_text(choice).lower(): choice for choice in choices}
    if text.lower() not in by_text:
        raise ValueError(_suggestion(text, by_text))
    return by_text[text.lower()]


def _quote(value: object, text: str | None) -> str:
    return repr(attribute_text(value) if text is None else text)


def attribute_text(value: object) -> str:
    """Format an attribute value as in files.

    >>> attribute_text((1, 2)), attribute_text(True), attribute_text(PartialShape("?,1..8"))
    ('1,2', 'true', '?,1..8')
    """
    if isinstance(value, tuple):
        return ",".join(map(attribute_text, value))
    if isinstance(value, PartialShape):
        return str(value)[1:-1]
    if isinstance(value, ElementType):
        return value.label
    return str(value).lower() if isinstance(value, bool) else str(value)


def _suggestion(text: str, choices: Iterable[str]) -> str:
    return did_you_mean(text.lower(), choices, before="; ")


def _kind(kind: object) -> str:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _kind(next(a for a in args if a is not type(None)))
    if origin is Literal:
        return "one of " + ", ".join(map(str, args))
    if origin is tuple and get_origin(args[0]) is Literal:
        return "a list of " + ", ".join(map(str, get_args(args[0])))
    if origin is tuple:
        return "a list of " + _PLURAL.get(args[0], f"{args[0].__name__}s")
    return _SINGULAR.get(kind, f"a {getattr(kind, '__name__', kind)}")


_SINGULAR: Mapping[object, str] = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "a string",
    ElementType: "an element type",
    PartialShape: "a shape",
}
_PLURAL: Mapping[object, str] = {int: "integers", float: "numbers", str: "strings", bool: "true or false"}
