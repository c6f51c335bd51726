"""Reading of bare ``<layer>`` elements, as on documentation pages, as models.

Unconnected inputs become Parameters, or Constants if the page or the caller gives their value; unread outputs
get a Result. A Constant on the page becomes a Parameter, as there is no file with its value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from lxml.etree import Comment
from numpy.typing import ArrayLike

from ..._util.forks import cached_property
from ...codes import Code
from ...diagnostics import Diagnostics, Location
from ...errors import InputError, ParseError
from ...ir.element import ElementType
from ...ir.graph import Edge, Graph, Layer, Port, PortSpec
from ...ir.shape import PartialShape
from ...ir.tensor import Array, TensorType
from ...limits import DEFAULT, Limits
from ...ops import registry
from ...ops.infrastructure import Constant, Parameter, Result
from .document import Document, Element, parse
from .layers import LayerReader, add_outputs
from .ports import check_size, read_edges
from .source import Weights

__all__ = [
    "Excerpt",
    "Page",
    "Values",
    "Versions",
    "comment_value",
    "constant",
    "element_types",
    "excerpts",
    "parameter",
    "port_name",
    "read_fragments",
    "value_in",
]

Key: TypeAlias = int | str | tuple[int, int]
Values: TypeAlias = Mapping[Key, ArrayLike]
"""Values by port id, by (layer id, port id), or by the name of the port."""


class Page:
    """The examples on a documentation page that can be read as documents.

    Args:
        text: the page, or only its layers.
        values: contents of input ports; they override comments on the page.
        version: ``"ReduceL2-4"``, ``"opset4"`` or ``4``, for layers without a version in their tag.
        name: the name of the file, for messages; it may contain a versioned name, as the page may.
        limits: the resource limits.

    Raises:
        ParseError: if it has no layer, or an unclosed one.
        InputError: if ``version`` is not a version.
        LimitError: if there are more examples than the limits allow.
    """

    def __init__(
        self,
        text: str,
        *,
        values: Values | None = None,
        version: str | int | None = None,
        name: str = "<fragment>",
        limits: Limits = DEFAULT,
    ) -> None:
        self._examples = list(islice(excerpts(text, name), limits.examples + 1))
        limits.check("examples", len(self._examples), Location(name))
        if not self._examples:
            raise ParseError("no <layer> element found", code=Code.UNREADABLE, where=Location(name))
        self.name, self._values, self._limits = name, values or {}, limits
        self._versions = Versions(version, f"{Path(name).name} {text}")

    def __len__(self) -> int:
        return len(self._examples)

    def read(self, example: int, report: Diagnostics) -> Document:
        """Read an example by its number, from 1, and add findings to ``report``.

        Raises:
            ParseError: if it is not well-formed.
            InputError: if there is no such example, or no port for one of the values.
        """
        if not 1 <= example <= len(self):
            raise InputError(f"unknown example {example}", hint=f"the page has {len(self)}")
        builder = _Builder(self.name, self._versions, self._values, report, self._limits)
        return builder.build(self._examples[example - 1])


def read_fragments(
    text: str,
    report: Diagnostics,
    *,
    values: Values | None = None,
    version: str | int | None = None,
    name: str = "<fragment>",
    example: int | None = None,
    limits: Limits = DEFAULT,
) -> list[Document]:
    """Read all examples on a page, or only number ``example``, counted from 1; see `Page`."""
    page = Page(text, values=values, version=version, name=name, limits=limits)
    if values and example is None and len(page) > 1:
        raise InputError(
            f"{name} has {len(page)} examples", hint="choose the one that the values are for with example="
        )
    numbers = range(1, len(page) + 1) if example is None else (example,)
    return [page.read(number, report) for number in numbers]


@dataclass(slots=True)
class _Builder:
    """Builds a graph from an example on a page, with added layers for unconnected ports."""

    file: str
    versions: Versions
    values: Values
    report: Diagnostics
    limits: Limits
    layers: dict[int, Layer] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    used: set[Key] = field(default_factory=set)
    free: Iterator[int] = field(default_factory=count)

    def build(self, excerpt: Excerpt) -> Document:
        root = parse(excerpt.xml, self.file, comments=True, limits=self.limits)
        elements = list(root.iterfind("layers/layer"))
        self.limits.check("layers", len(elements), Location(self.file, excerpt.line))
        _number(elements)
        reader = LayerReader(self.file, self.report, Weights(), self.limits, version=None)
        own = []
        for element in elements:
            parsed = reader.read(element, self._version(element))
            if parsed is None:
                continue
            layer = _name_outputs(self._drop_value(parsed), alone=len(elements) == 1)
            if layer.id in self.layers:
                self.report.error(
                    Code.DUPLICATE_ID, f"duplicate layer id {layer.id}: an earlier layer has it", layer.where
                )
                continue
            self.layers[layer.id] = layer
            own.append((layer, element))
        self.free = count(max(self.layers, default=-1) + 1)
        unsure = None if reader.nameless else frozenset(reader.unsure)
        wiring = read_edges(root, self.layers, self.file, self.report, unsure)
        self.edges += wiring.edges
        fed = {edge.target for edge in self.edges} | wiring.severed
        used = {edge.source for edge in self.edges}
        for layer, element in own:
            self._feed(layer, element, fed, alone=len(own) == 1)
        self._refuse_unused(own)
        for layer, _ in own:
            self._end(layer, used)
        self.layers |= {layer.id: add_outputs(layer) for layer in self.layers.values() if not layer.outputs}
        graph = Graph(self.layers.values(), self.edges, wiring.severed)
        title = ", ".join(layer.where.operation for layer, _ in own[:3])
        return Document(graph, title, self.file, 11, MappingProxyType({}), limits=self.limits, is_page=True)

    def _drop_value(self, layer: Layer) -> Layer:
        """Replace a Constant by a Parameter: a page has no weights."""
        if layer.type != "Constant" or layer.op is None:
            return layer
        element, shape = (vars(layer.op)[name] for name in ("element_type", "shape"))
        check_size(shape, self.limits, layer.where)
        return replace(layer, type="Parameter", op=Parameter(element_type=element, shape=shape))

    def _version(self, element: Element) -> str:
        """Return the version of a layer: from its tag, the caller or the page, else the newest, with a warning."""
        type = element.get("type", "")
        if declared := element.get("version") or self.versions.opset(type):
            return str(declared)
        newest = registry.resolve(type)
        if newest is None:
            return ""
        where = Location(self.file, element.sourceline, element.get("name") or element.get("id"), newest.name)
        self.report.warning(
            Code.GUESSED_VERSION,
            f"no version is given; assuming {newest.versioned_name()}, the newest",
            where,
            f'give it: version={newest.versioned_name()!r}, or version="opset{newest.since}" in the tag',
        )
        return f"opset{newest.since}"

    def _feed(self, layer: Layer, element: Element, fed: set[Port], alone: bool) -> None:
        """Add a Parameter or a Constant for each input port that is not in ``fed``.

        With ``alone``, the layer is the only one, and new layers have the names of its ports, without its own name.
        """
        types = element_types(layer)
        ports = element.findall("input/port")
        # An unreadable layer has no ports, even if its element has.
        for index, (spec, port) in enumerate(zip(layer.inputs, ports, strict=False)):
            if Port(layer.id, index) in fed:
                continue
            name = port_name(layer, index)
            full = name if alone else f"{layer.name}.{name}"
            value = self._take_value(((layer.id, spec.id), spec.id, name, full))
            if value is None:
                value = comment_value(port, spec)
            where = replace(layer.where, line=spec.line)
            source = self._source(full, value, types[index], spec, where)
            self.layers[source.id] = source
            self.edges.append(Edge(Port(source.id, 0), Port(layer.id, index)))

    def _take_value(self, keys: Iterable[Key]) -> ArrayLike | None:
        for key in keys:
            if key in self.values:
                self.used.add(key)
                return self.values[key]
        return None

    def _source(
        self, name: str, value: ArrayLike | None, type: ElementType, spec: PortSpec, where: Location
    ) -> Layer:
        number = next(self.free)
        layer = None
        if value is not None:
            layer = constant(number, name, value, type, spec, where, self.report)
        return layer or parameter(number, name, type, spec, where)

    def _refuse_unused(self, own: Sequence[tuple[Layer, Element]]) -> None:
        unused = [key for key in self.values if key not in self.used]
        if not unused:
            return
        ports = [f"{s.id} ({port_name(la, i)})" for la, _ in own for i, s in enumerate(la.inputs)]
        raise InputError(
            f"unknown input port {unused[0]!r}, which is given a value",
            hint=f"available are {', '.join(ports)}",
        )

    def _end(self, layer: Layer, used: set[Port]) -> None:
        for index in range(len(layer.outputs)):
            if Port(layer.id, index) in used:
                continue
            number = next(self.free)
            end = Layer.inserted(number, f"Result_{number}", Result(), layer.where, (PortSpec(0),))
            self.layers[number] = end
            self.edges.append(Edge(Port(layer.id, index), Port(number, 0)))


def _number(elements: Sequence[Element]) -> None:
    """Set unused ids on layers without one, and write ids with digits of other scripts in ASCII."""
    for element in elements:
        text = element.get("id", "").strip()
        if text.isdecimal() and not text.isascii() and len(text) < 18:
            element.set("id", str(int(text)))
    used = {element.get("id", "").strip() for element in elements}
    free = (str(number) for number in count() if str(number) not in used)
    for element in elements:
        if element.get("id") is None:
            element.set("id", next(free))


def _name_outputs(layer: Layer, alone: bool) -> Layer:
    """Return a layer whose outputs without tensor names are named after the operation's ports."""
    names = [p.name for p in layer.op.outputs] if layer.op else []
    names += [f"output{i}" for i in range(len(names), len(layer.outputs))]
    prefix = "" if alone else f"{layer.name}."
    outputs = [
        port if port.names else replace(port, names=(prefix + name,))
        for port, name in zip(layer.outputs, names, strict=False)
    ]
    return replace(layer, outputs=tuple(outputs))


def port_name(layer: Layer, index: int) -> str:
    """Return the name of an input port in the operation; ``input0`` and so on if it is unknown."""
    port = layer.op.port_of(index) if layer.op else None
    if port is None:
        return f"input{index}"
    return f"{port.name}{index}" if port.variadic else port.name


def element_types(layer: Layer) -> list[ElementType]:
    """Return the element type of each input: its declared precision, else that of its type variable."""
    declared = [spec.type.element if spec.type else ElementType.dynamic for spec in layer.inputs]
    if layer.op is None:
        return [e if e is not ElementType.dynamic else ElementType.f32 for e in declared]
    ports = [layer.op.port_of(i) for i in range(len(declared))]
    bound = {
        p.element.name: e for p, e in zip(ports, declared, strict=True) if p and e is not ElementType.dynamic
    }
    return [
        e if e is not ElementType.dynamic or p is None else bound.get(p.element.name, p.element.default)
        for p, e in zip(ports, declared, strict=True)
    ]


def comment_value(port: Element, spec: PortSpec) -> list[float] | float | None:
    """Return the value of a port in a comment inside or right after it, if there is one."""
    values = (value_in(comment) for comment in _comments(port))
    return next((v for v in values if v is not None and _plausible(v, spec)), None)


def constant(
    number: int,
    name: str,
    value: ArrayLike,
    element: ElementType,
    spec: PortSpec,
    where: Location,
    report: Diagnostics,
) -> Layer | None:
    """Return a Constant for a port's value; ``None`` if it contradicts the port's dims, which is reported.

    Raises:
        InputError: if the element type cannot represent the value.
    """
    array = _array(value, element, spec, where)
    declared = spec.type.shape if spec.type else PartialShape.dynamic()
    if declared.is_static and math.prod(declared.static) == array.size:
        array = array.reshape(declared.static)
    elif not declared.contains(array.shape):
        report.error(
            Code.PORT_VALUE,
            f"input port {spec.id} has the value {array.tolist()}, but dims {declared}",
            where,
            "correct the value or the dims",
        )
        return None
    shape = PartialShape(array.shape)
    op = Constant(element_type=element, shape=shape, offset=0, size=array.nbytes, value=array)
    return _outer(number, name, op, where)


def parameter(number: int, name: str, element: ElementType, spec: PortSpec, where: Location) -> Layer:
    """Return a Parameter for a port, with its dims if it declares them."""
    shape = spec.type.shape if spec.type else PartialShape.dynamic()
    return _outer(number, name, Parameter(element_type=element, shape=shape), where)


def _array(value: ArrayLike, element: ElementType, spec: PortSpec, where: Location) -> Array:
    """Return a value as an array of an element type; raise if the type cannot represent it."""
    try:
        numbers = np.asarray(value)
        with np.errstate(all="ignore"):
            array = numbers.astype(element.dtype)
        fits = numbers.dtype.kind in "biufV" and (not element.integral or np.array_equal(array, numbers))
        if fits or (element is ElementType.string and numbers.dtype.kind in "OSU"):
            return array
    except (TypeError, ValueError, OverflowError, np.exceptions.ComplexWarning):
        pass
    raise InputError(
        f"input port {spec.id} is of type {element.label}, which cannot represent the value {value!r}",
        where=where,
    )


def _comments(port: Element) -> list[str]:
    """Return the comments inside a port, and a comment after it on the same line."""
    comments = list(port.iter(Comment))
    after = port.getnext()
    if after is not None and after.tag is Comment and "\n" not in (port.tail or ""):
        comments.append(after)
    return [comment.text or "" for comment in comments]


def _plausible(value: list[float] | float, spec: PortSpec) -> bool:
    """Return whether a value is plausible for a port: lists for vectors, numbers only for single elements."""
    shape = spec.type.shape if spec.type else PartialShape.dynamic()
    if isinstance(value, list) and len(value) != 1:
        return shape.rank in (None, 1)
    return shape.rank in (None, 0, 1) and (shape.is_dynamic or shape in ((), (1,)))


def _outer(number: int, name: str, op: Parameter | Constant, where: Location) -> Layer:
    """Return an added layer, which has the location of the port that it feeds."""
    port = PortSpec(0, TensorType(op.element_type, op.shape), (name,), where.line)
    return Layer.inserted(number, name, op, where, (), (port,))


# Japanese pages put letters next to a name, without a word boundary.
_VERSIONED = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z0-9_]++)-(\d{1,4}+)(?!\d)")
_ASKED = re.compile(r"(?:opset|(?P<name>\w+)-)?(?P<number>\d{1,4})", re.IGNORECASE)


class Versions:
    """Versions of operations, from the caller's request or from versioned names on a page.

    Args:
        asked: ``"ReduceL2-4"`` for one operation, ``"opset4"`` or ``4`` for all.
        page: the name and text of the page.

    Raises:
        InputError: if ``asked`` is not a version.

    >>> Versions(None, "Versioned name : ReduceL2-4").opset("ReduceL2")
    'opset4'
    """

    def __init__(self, asked: str | int | None, page: str) -> None:
        match = _ASKED.fullmatch(str(asked))
        if asked is not None and match is None:
            raise InputError(
                f"{asked!r} is not a version", hint="expected a version such as 'ReduceL2-4', 'opset4' or 4"
            )
        self._name = match["name"] if match else None
        self._number = match["number"] if match else None
        self._page = page

    def opset(self, type: str) -> str | None:
        """Return the opset of an operation type, or ``None`` if neither the caller nor the page tells it."""
        if self._number and (self._name is None or _same(self._name, type)):
            return f"opset{self._number}"
        names = (type, registry.name(type) or type)
        versions = [
            self._versions_by_name[name.lower()] for name in names if name.lower() in self._versions_by_name
        ]
        return f"opset{min(versions)[1]}" if versions else None

    @cached_property
    def _versions_by_name(self) -> dict[str, tuple[int, str]]:
        """The position and version of the first versioned name of each operation on the page, by lower-case name."""
        versions: dict[str, tuple[int, str]] = {}
        for match in _VERSIONED.finditer(self._page):
            versions.setdefault(match.group(1).lower(), (match.start(), match.group(2)))
        return versions


def _same(name: str, type: str) -> bool:
    return name.lower() == type.lower() or registry.name(name) == (registry.name(type) or type)


# An unclosed comment reaches to the end of the page: searching for an end after each of many starts would take quadratic
# time.
_COMMENT = r"<!--.*?(?:-->|\Z)"
_LAYER = re.compile(rf"{_COMMENT}|<layer\b[^<>]*?(?P<alone>/)?>|(?P<end></layer\s*>)", re.DOTALL)
_MARKUP = re.compile(rf"{_COMMENT}|<[^<>]*>", re.DOTALL)
_BETWEEN = re.compile(r"(?:\s|<!--(?:(?!-->).)*-->|</?layers\b[^<>]*>)*+", re.DOTALL)
_EDGES = re.compile(
    r"\s*(?:</layers\s*>)?\s*(<edges\b[^<>]*>(?:\s|</?edge\b[^<>]*>|<!--(?:(?!-->).)*-->)*+</edges\s*>)",
    re.DOTALL,
)
# Quotes and blanks as word processors write them.
_DOUBLE, _SINGLES, _BLANKS = "\u201c\u201d\u201e", "\u2018\u2019", "\u00a0\u3000"
_MARKS = f"\"'{_DOUBLE}{_SINGLES}"
_ID = re.compile(rf"<layer\b[^<>]*?\sid\s*=\s*[{_MARKS}]\s*([^{_MARKS}\s]*)")
_NUMBER = r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"
_LIST = re.compile(rf"\[\s*+((?>{_NUMBER})(?:\s*+,\s*+(?>{_NUMBER}))*+)?+\s*+,?\s*+\]")
_SINGLE = re.compile(rf"(?:=|:|\bis|は)\s*({_NUMBER})(?![0-9A-Za-z.\-])")
_PLAIN = {ord(c): p for cs, p in ((_DOUBLE, '"'), (_SINGLES, "'"), (_BLANKS, " ")) for c in cs}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """An example on a page: its layers and edges, made well-formed, and their first line."""

    text: str
    line: int

    @property
    def xml(self) -> bytes:
        """The example as a document, whose lines have the numbers that they have on the page."""
        above = "\n" * (self.line - 1)
        return f"<net>{above}{self.text}</net>".encode(errors="replace")


def excerpts(text: str, name: str) -> Iterator[Excerpt]:
    """Yield the examples on a page, in order.

    Consecutive layers with distinct ids belong together; text between them or a repeated id starts the next
    example. ``<edges>`` directly after the layers belong to them.

    Raises:
        ParseError: if a layer is not closed.
    """
    text = _CONTROL.sub(" ", text)
    group: list[tuple[int, int]] = []
    seen: set[str] = set()
    for start, end in _layers(text, name):
        number = _id(text, start)
        if group and (number in seen or not _BETWEEN.fullmatch(text, group[-1][1], start)):
            yield _excerpt(text, group)
            group, seen = [], set()
        group.append((start, end))
        seen |= {number} if number else set()
    if group:
        yield _excerpt(text, group)


def value_in(comment: str) -> list[float] | float | None:
    """Return the value in a comment: a bracketed list, or a number after ``=``, ``:`` or ``is``.

    >>> value_in(" value is [2, 3] that means independent reduction ")
    [2.0, 3.0]
    >>> value_in("axes list [1] means"), value_in(" axis = -1 "), value_in("any text")
    ([1.0], -1.0, None)
    """
    if match := _LIST.search(comment):
        return [float(n) for n in (match.group(1) or "").split(",") if n.strip()]
    single = _SINGLE.search(comment)
    return float(single.group(1)) if single else None


def _layers(text: str, name: str) -> Iterator[tuple[int, int]]:
    depth, start = 0, 0
    for tag in _LAYER.finditer(text):
        if tag.group().startswith("<!--"):
            continue
        if tag.group("end"):
            depth -= 1
        else:
            start = start if depth else tag.start()
            depth += 0 if tag.group("alone") else 1
        if depth == 0:
            yield start, tag.end()
        depth = max(depth, 0)
    if depth:
        raise ParseError(
            "a <layer> element is not closed",
            code=Code.BAD_XML,
            where=Location(name, _line(text, start)),
            hint="</layer> is missing; the text may be cut off",
        )


def _id(text: str, start: int) -> str:
    """Return the id of the layer at a position without leading zeros; empty if it has none."""
    match = _ID.match(text, start)
    return (match.group(1).lstrip("0") or "0") if match and match.group(1) else ""


def _excerpt(text: str, group: list[tuple[int, int]]) -> Excerpt:
    start, end = group[0][0], group[-1][1]
    edges = _EDGES.match(text, end)
    layers = _MARKUP.sub(_clean, text[start:end])
    tail = _MARKUP.sub(_clean, edges.group(1)) if edges else ""
    between = text.count("\n", end, edges.start(1)) * "\n" if edges else ""
    return Excerpt(f"<layers>{layers}</layers>{between}{tail}", _line(text, start))


def _clean(markup: re.Match[str]) -> str:
    """Make markup well-formed: straighten quotes, and remove ellipses, and dashes inside comments."""
    text = markup.group()
    if text.startswith("<!--"):
        inside = re.sub(r"--+", " ", text[4:].removesuffix("-->"))
        return f"<!--{inside} -->"
    parts = re.split(r"""("[^"]*"|'[^']*')""", text.translate(_PLAIN))
    parts[::2] = [re.sub(r"\.\.\.|…", " ", outside) for outside in parts[::2]]
    return "".join(parts)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
