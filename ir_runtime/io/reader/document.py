"""Parsing of untrusted XML, and the document that a file is read into."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lxml import etree

from ..._util.deadline import check, check_periodically
from ...codes import Code
from ...diagnostics import Location
from ...errors import LimitError, ParseError
from ...ir.graph import Graph, RtInfo
from ...limits import DEFAULT, Limits
from .source import Weights

__all__ = ["Document", "Element", "attributes", "by_tag", "integer", "parse"]

Element: TypeAlias = Any  # lxml is not typed


@dataclass(frozen=True, slots=True)
class Document:
    """A file after reading: its graph, name, version, weights and runtime information."""

    graph: Graph
    name: str
    file: str
    version: int
    rt_info: RtInfo
    weights: Weights = field(default_factory=Weights)
    limits: Limits = DEFAULT
    """The limits with which it was read, which also apply to running it."""
    size: int = 0
    """The size of the XML and the weights in bytes."""
    is_page: bool = False
    """Whether it is an example on a page of the specification."""
    unconverted: Graph | None = None
    """The layers of the file before reading added conversions at inputs and outputs, for version 10 and older."""


_FORBIDDEN = re.compile(rb"<!(DOCTYPE|ENTITY|ELEMENT|ATTLIST|NOTATION)")

# Bytes that libxml2 needs for a tag with the text after it, and for an attribute.
_NODE, _ATTRIBUTE = 120, 230
# Bytes parsed between two checks of the deadline.
_AT_ONCE = 1 << 22
# Maximum number of attributes of an element to read one by one.
_FEW = 64
# The most frequent integers in files, by their texts; others are checked digit by digit.
_COMMON = {str(number): number for number in range(1 << 10)}

# The messages of libxml2 when its own bounds on depth, length and growth are reached, and their suffix.
_TOO_MUCH = re.compile("Excessive depth|Resource limit|amplification")
_ASIDE = re.compile(
    r",? (?:use|try|see) (?:XML_PARSE_HUGE|xmlCtxt)\w*(?: option)?\.?|,\s*line \d+, column \d+|\n"
)


def parse(data: bytes, name: str, comments: bool = False, limits: Limits = DEFAULT) -> Element:
    """Parse XML and return its root element; document types, entities, network access and huge trees are refused.

    Raises:
        ParseError: if it is not well-formed, or uses a refused feature.
        LimitError: if it exceeds a limit of depth, length, time or memory.
    """
    if forbidden := _FORBIDDEN.search(data):
        line = data.count(b"\n", 0, forbidden.start()) + 1
        raise _forbidden(f"the XML has a {forbidden.group().decode()} declaration", Location(name, line))
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
        remove_comments=not comments,
        remove_pis=True,
        collect_ids=False,
    )
    if len(data) > _AT_ONCE:
        limits.check("memory", _tree_bytes(data), Location(name))
    try:
        root = _parse_chunks(data, parser)
    except etree.XMLSyntaxError as reason:
        raise _malformed_error(reason, name) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise _forbidden("the XML has a document type", Location(name))
    if len(data) > limits.attribute_bytes:
        _check_attributes(root, name, limits)
    return root


def _parse_chunks(data: bytes, parser: Element) -> Element:
    """Parse in chunks, checking the deadline after each, and return the root element."""
    if len(data) <= _AT_ONCE:
        return etree.fromstring(data, parser)
    for start in range(0, len(data), _AT_ONCE):
        check()
        parser.feed(data[start : start + _AT_ONCE])
    return parser.close()


def _tree_bytes(data: bytes) -> int:
    """Return an estimate of the bytes that the parsed tree needs."""
    return _NODE * data.count(b"<") + _ATTRIBUTE * data.count(b"=") + len(data)


def _check_attributes(root: Element, name: str, limits: Limits) -> None:
    """Check the length of attributes in UTF-8 against the limit; only long ones are encoded."""
    for element in check_periodically(root.iter("*")):
        for value in attributes(element).values():
            if 4 * len(value) > limits.attribute_bytes:
                where = Location(name, element.sourceline, _layer_name(element))
                limits.check("attribute_bytes", len(value.encode()), where)


def attributes(element: Element) -> dict[str, str]:
    """Return the attributes of an element, in order."""
    if len(element.attrib) <= _FEW:
        return dict(element.attrib.items())
    # `items` would take quadratic time: for each attribute, it passes over all before it.
    return {str(text.attrname): str(text) for text in element.xpath("@*")}


def by_tag(element: Element) -> dict[str, list[Element]]:
    """Return the children of an element by tag, in order."""
    children: dict[str, list[Element]] = {}
    for child in element:
        children.setdefault(child.tag, []).append(child)
    return children


def integer(element: Element, attribute: str, name: str, signed: bool = False) -> int:
    """Return an integer attribute, which must be non-negative unless ``signed``.

    As in OpenVINO, leading blanks are allowed, but no trailing characters.

    Raises:
        ParseError: if the attribute is missing or not a valid integer.
    """
    text = element.get(attribute)
    if (number := _COMMON.get(text)) is not None:
        return number
    if text is not None and len(text) <= 18:
        if text.isdecimal() and text.isascii():
            return int(text)
        digits = text.lstrip().removeprefix("-") if signed else text.lstrip()
        if digits.isascii() and digits.isdecimal():
            return int(text)
    problem = "is missing" if text is None else f"must be an integer, got {text[:40]!r}"
    raise ParseError(
        f"{attribute!r} of <{element.tag}> {problem}",
        code=Code.BAD_ELEMENT,
        where=Location(name, element.sourceline, _layer_name(element)),
    )


def _malformed_error(reason: Any, name: str) -> ParseError | LimitError:
    where = Location(name, reason.lineno)
    message = _ASIDE.sub("", reason.msg or "it cannot be read")
    if _TOO_MUCH.search(message):
        return LimitError(f"the XML exceeds a limit of the parser: {message}", where=where)
    hint = "the file may be cut off, or have been edited by hand"
    return ParseError(f"the XML is not well-formed: {message}", code=Code.BAD_XML, where=where, hint=hint)


def _layer_name(element: Element) -> str | None:
    layer = element if element.tag == "layer" else next(element.iterancestors("layer"), None)
    return None if layer is None else layer.get("name", layer.get("id"))


def _forbidden(message: str, where: Location) -> ParseError:
    return ParseError(
        message,
        code=Code.FORBIDDEN_XML,
        where=where,
        hint="an IR needs none; remove it if you trust the rest of the file",
    )
