"""Declarations of legacy layer types: their names, attributes with defaults, inputs and blobs."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Self, TypeVar

from ...._util.forks import cached_by_class
from ...._util.nearest import did_you_mean
from ....ops._define.attributes import Attribute, attr, raise_invalid, read_schema
from .site import Site, Tensor

__all__ = ["PAGE", "LegacyLayer", "Spelling", "attr", "declared", "layer", "find_declaration", "suggest_type"]

PAGE = (
    "https://docs.openvino.ai/2021.4/"
    "openvino_docs_MO_DG_prepare_model_convert_model_Legacy_IR_Layers_Catalog_Spec.html"
)
"""The catalogue of legacy layers."""

# Integers and flags written with a decimal point, as some converters did.
_WHOLE = re.compile(r"([+-]?\d{1,18})\.0*")


class Spelling(NamedTuple):
    """An alternative spelling of an attribute in IR version 2: one attribute for each item of a list."""

    items: tuple[tuple[str, ...], ...]
    """For each item, the attributes that may hold it; the first that is present counts."""
    absent: str = ""
    """The text of an item whose attributes are all absent."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes for all items."""
        return tuple(name for item in self.items for name in item)

    def text(self, data: Mapping[str, str]) -> str | None:
        """Return the texts of the items as a list joined by commas; ``None`` if all are absent."""
        if not any(name in data for name in self.names):
            return None
        texts = ((data[name] for name in item if name in data) for item in self.items)
        return ",".join(next(present, self.absent) for present in texts)


class LegacyLayer:
    """A type of legacy layer. An instance holds the attributes of one layer, which subclasses annotate.

    The docstring of a subclass names the operations to which the layer is upgraded; the guide lists them.
    """

    types: ClassVar[tuple[str, ...]] = ()
    """The names of the type in files, regardless of case."""
    inputs: ClassVar[tuple[int, int | None]] = (1, 1)
    """The minimum and maximum number of inputs; ``None`` for no maximum."""
    blobs: ClassVar[tuple[str, ...]] = ()
    """The names of its data in the ``.bin``."""
    spelled: ClassVar[Mapping[str, Spelling]] = {}
    """Alternative spellings of attributes, by their names in files."""
    leftovers: ClassVar[frozenset[str]] = frozenset()
    """Attributes that occur in files, but that no runtime ever read."""
    unread: ClassVar[frozenset[str]] = frozenset()
    """Documented attributes that the CPU plugin ignored; reported unless they are 0."""
    is_certain: ClassVar[bool] = True
    """Whether its meaning is certain; otherwise, layers of the type are refused."""
    is_activation: ClassVar[bool] = False
    """Whether attribute `type` of an Activation may name it."""

    @classmethod
    def schema(cls) -> Mapping[str, Attribute]:
        """Return the declared attributes by name, in order."""
        return _schema(cls)

    @classmethod
    def parse(cls, data: Mapping[str, str]) -> Self:
        """Return an instance with the attributes of a layer in a file.

        Raises:
            ValidationError: if attributes are missing or not allowed; the error names all of them.
        """
        fields, problems = {}, []
        for name, attribute in cls.schema().items():
            text = cls._text(attribute, data)
            try:
                fields[name] = (
                    attribute.check(attribute.default)
                    if text is None
                    else attribute.parse(_plain(attribute, text))
                )
            except ValueError as problem:
                problems.append(f"attribute {attribute.xml!r} {problem}")
        raise_invalid(problems)
        self = cls()
        vars(self).update(fields)
        return self

    @classmethod
    def known(cls) -> frozenset[str]:
        """Return the names of attributes that are read, or known to be meaningless."""
        return _known_names(cls)

    @classmethod
    def ignored(cls, data: Mapping[str, str]) -> Iterator[str]:
        """Yield the names of attributes in a file that are ignored, though they may matter."""
        known = cls.known()
        yield from (name for name in data if name not in known and not _is_zero(cls, name, data[name]))

    @classmethod
    def _text(cls, attribute: Attribute, data: Mapping[str, str]) -> str | None:
        if attribute.xml in data or attribute.xml not in cls.spelled:
            return data.get(attribute.xml)
        return cls.spelled[attribute.xml].text(data)

    @abstractmethod
    def build(self, site: Site) -> Tensor | tuple[Tensor, ...]:
        """Build equivalent operations, and return the outputs.

        Raises:
            ValidationError: if inputs, blobs or declared dims contradict the attributes.
        """


@cached_by_class
def _schema(cls: type[LegacyLayer]) -> Mapping[str, Attribute]:
    return read_schema(cls)


@cached_by_class
def _known_names(cls: type[LegacyLayer]) -> frozenset[str]:
    spelled = (name for spelling in cls.spelled.values() for name in spelling.names)
    return frozenset({*(a.xml for a in cls.schema().values()), *spelled, *cls.leftovers, *_LEFTOVERS})


def _is_zero(cls: type[LegacyLayer], name: str, text: str) -> bool:
    return name in cls.unread and not text.strip("0. ")


_LEFTOVERS = ("engine", "PrimitivesPriority", "quantization_level")
"""Attributes that converters left in layers of any type, without meaning."""


def _plain(attribute: Attribute, text: str) -> str:
    """Return the text of an attribute without the decimal point that some converters wrote in integers and flags."""
    if attribute.type in (int, bool) and (match := _WHOLE.fullmatch(text.strip())):
        return match[1]
    return text


_LayerT = TypeVar("_LayerT", bound=type[LegacyLayer])
_DECLARED: dict[str, type[LegacyLayer]] = {}


def layer(*types: str) -> Callable[[_LayerT], _LayerT]:
    """Return a class decorator that registers a declaration under its type names in files."""

    def register(cls: _LayerT) -> _LayerT:
        cls.types = types
        _DECLARED.update((type.lower(), cls) for type in types)
        return cls

    return register


def declared() -> Mapping[str, type[LegacyLayer]]:
    """Return all registered declarations, by lower-case type name."""
    return MappingProxyType(_DECLARED)


def find_declaration(type: str) -> type[LegacyLayer] | None:
    """Return the declaration of a layer type, or ``None`` if it is unknown."""
    return _DECLARED.get(type.lower())


def suggest_type(type: str) -> str:
    """Return a hint naming the most similar layer type, if there is one."""
    return did_you_mean(type, sorted({name for cls in _DECLARED.values() for name in cls.types}))
