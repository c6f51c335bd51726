"""The writer of graphs as XML and weights, which are compressed to f16 on request: the inverse of ``reader``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import IO, NamedTuple

import numpy as np

from ..analysis.infer import Inferred
from ..codes import Code
from ..errors import InputError
from ..ir.array import Packed
from ..ir.element import ElementType, pack
from ..ir.graph import IR_VERSION, Body, Edge, Graph, Layer, Port, PortSpec, RtInfo
from ..ir.operation import Operation
from ..ir.port_map import PORT_MAPS, Cut
from ..ir.tensor import Array, TensorType
from ..ops import Op, registry
from ..ops._define.attributes import attribute_text
from ..ops.kernels.strings import pack_strings
from .reader.layers import NEWEST_IR

__all__ = [
    "Content",
    "Place",
    "Printer",
    "WeightsWriter",
    "attribute_text",
    "attribute_texts",
    "compress",
    "format_value",
    "is_tag",
    "join_names",
    "output_names",
    "raw_bytes",
    "add_results",
    "write",
    "write_back_edges",
    "write_layer_info",
    "write_model_info",
    "write_port_map",
]


# Writing of a graph as an IR of version 11, or 10.

_TYPES = {"Constant": "Const"}  # as files spell them


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a model file.

    ``declared`` tells whether the declared dims still hold, which is false after reshaping inputs. They may be more
    specific than the inferred ones.
    """

    name: str
    graph: Graph
    known: Inferred
    rt_info: RtInfo
    declared: bool = True
    version: int = NEWEST_IR


def write(content: Content, xml: IO[bytes], weights: IO[bytes]) -> None:
    """Write a model; equal models give equal bytes.

    Raises:
        InputError: if a name has characters that XML does not allow.
    """
    out = Printer(xml)
    with out.inside("net", {"name": content.name, "version": str(content.version)}):
        _GraphWriter(out, WeightsWriter(weights), content.known, content.declared).graph(content.graph)
        write_model_info(out, content.rt_info)


@dataclass(slots=True)
class _GraphWriter:
    """Writes the layers and edges of a graph and of its bodies."""

    out: Printer
    weights: WeightsWriter
    known: Inferred
    declared: bool
    path: str = ""
    """The prefix of the names of layers in a body."""

    def graph(self, graph: Graph) -> None:
        with self.out.inside("layers"):
            for layer in graph.layers.values():
                self._layer(layer, graph.sources(layer))
        with self.out.inside("edges"):
            for source, target in graph.edges:
                ends = {
                    "from-layer": source.layer,
                    "from-port": graph[source.layer].outputs[source.number].id,
                    "to-layer": target.layer,
                    "to-port": graph[target.layer].inputs[target.number].id,
                }
                self.out.element("edge", {end: str(number) for end, number in ends.items()})

    def _layer(self, layer: Layer, sources: Sequence[Port | None]) -> None:
        head = {
            "id": str(layer.id),
            "name": layer.name.removeprefix(self.path),
            "type": _TYPES.get(layer.type, layer.type),
            "version": layer.version,
        }
        if names := output_names(layer):
            head["output_names"] = names
        with self.out.inside("layer", head):
            if data := attribute_texts(layer, self._changed_attributes(layer)):
                self.out.element("data", data)
            write_layer_info(self.out, layer.rt_info)
            bodies = layer.bodies()
            for body in reversed(bodies):  # in the order of OpenVINO
                write_port_map(self.out, layer, body)
            write_back_edges(self.out, bodies)
            self._ports("input", layer, zip(layer.inputs, sources, strict=True))
            self._ports("output", layer, ((p, Port(layer.id, i)) for i, p in enumerate(layer.outputs)))
            for body in bodies:
                self._body(layer, body)

    def _changed_attributes(self, layer: Layer) -> dict[str, object]:
        """Return the attributes whose values differ from the operation's: places of Constants, and inferred shapes."""
        if layer.type == "Constant":
            op = vars(layer.op)
            place = self.weights.place(raw_bytes(op["value"], op["element_type"], min(op["size"], 1)))
            return place._asdict()
        value = self.known.get(Port(layer.id, 0))
        if layer.type == "Parameter" and value is not None and not (self.path and self.declared):
            return {"shape": value.shape}
        return {}

    def _ports(self, side: str, layer: Layer, ports: Iterable[tuple[PortSpec, Port | None]]) -> None:
        specs = list(ports)
        if not specs:
            return
        with self.out.inside(side):
            for spec, source in specs:
                head = {"id": str(spec.id)}
                type = self._type(spec, source)
                if type is not None:
                    head["precision"] = precision(type.element)
                if spec.names and layer.type != "Result":
                    head["names"] = join_names(spec.names)
                self._port(head, type, spec)

    def _port(self, head: Mapping[str, str], type: TensorType | None, spec: PortSpec) -> None:
        dims = () if type is None or type.shape.rank is None else type.shape
        if not dims and not spec.rt_info:
            self.out.element("port", head)
            return
        with self.out.inside("port", head):
            for dim in dims:
                self.out.text("dim", str(dim) if dim.is_static else "-1")
            write_layer_info(self.out, spec.rt_info)

    def _type(self, spec: PortSpec, source: Port | None) -> TensorType | None:
        """Return the type to declare for a tensor: the inferred one, completed by the declared one if that holds."""
        value = self.known.get(source) if source else None
        if value is None or spec.type is None or not self.declared:
            return value.type if value else spec.type
        both = value.shape.merge(spec.type.shape)
        element = value.element if value.element.is_static() else spec.type.element
        return TensorType(element, value.shape if both is None else both)

    def _body(self, layer: Layer, body: Body) -> None:
        values = self.known.bodies.get((layer.id, body.name), Inferred())
        inner = replace(self, known=values, path=f"{layer.name}/{body.name}/")
        with self.out.inside(body.name):
            inner.graph(body.graph)
            self.out.element("rt_info")


def precision(element: ElementType) -> str:
    """Return the name of an element type as ports of files declare it.

    >>> precision(ElementType.f32), precision(ElementType.i64), precision(ElementType.boolean)
    ('FP32', 'I64', 'BOOL')
    """
    return _PRECISIONS.get(element.label, element.label.upper())


_PRECISIONS = {
    "boolean": "BOOL",
    "f16": "FP16",
    "f32": "FP32",
    "f64": "FP64",
    "u1": "BIN",
    "dynamic": "UNSPECIFIED",
}


def write_port_map(out: Printer, layer: Layer, body: Body) -> None:
    """Write the port map of a body, which maps layer inputs to Parameters, and Results to layer outputs."""
    with out.inside(PORT_MAPS[body.name]):
        for entry in body.inputs:
            out.element("input", _entry(layer.inputs[entry.port].id, entry.parameter, entry.cut))
        for output in body.outputs:
            out.element("output", _entry(layer.outputs[output.port].id, output.result, output.cut))
        for tag, inner, purpose in (
            ("input", body.iteration, "current_iteration"),
            ("output", body.condition, "execution_condition"),
        ):
            if inner is not None:
                out.element(tag, {**_entry(-1, inner), "purpose": purpose})


def write_back_edges(out: Printer, bodies: Iterable[Body]) -> None:
    """Write the back edges of bodies, from Results to Parameters, if there are any."""
    edges = [edge for body in bodies for edge in body.back_edges]
    if not edges:
        return
    with out.inside("back_edges"):
        for edge in edges:
            out.element("edge", {"from-layer": str(edge.result), "to-layer": str(edge.parameter)})


def _entry(port: int, inner: int, cut: Cut | None = None) -> dict[str, str]:
    entry = {"external_port_id": str(port), "internal_layer_id": str(inner)}
    if cut is None:
        return entry
    fields = {name: str(number) for name, number in cut._asdict().items()}
    return {"axis": fields.pop("axis"), **entry, **fields}


def write_model_info(out: Printer, info: RtInfo) -> None:
    """Write the ``<rt_info>`` of a model, except the IR version that it was read from."""
    info = {name: entry for name, entry in info.items() if (name, type(entry)) != (IR_VERSION, int)}
    if not info:
        out.element("rt_info")
        return
    with out.inside("rt_info"):
        _entries(out, info)


def write_layer_info(out: Printer, info: RtInfo) -> None:
    """Write the ``<rt_info>`` of a layer or a port, if it has entries."""
    if not info:
        return
    with out.inside("rt_info"):
        for name, entry in info.items():
            if not isinstance(entry, Mapping):
                out.element("attribute", {"name": name, "value": format_value(entry)})
            elif _are_attributes(entry):
                texts = {key: format_value(value) for key, value in entry.items()}
                out.element("attribute", {"name": name, **texts})
            else:
                with out.inside("attribute", {"name": name}):
                    _entries(out, entry)


def _are_attributes(entry: RtInfo) -> bool:
    """Return whether an entry can be written as attributes of an element, from which the reader restores it."""
    plain = all(
        not isinstance(value, Mapping) and is_tag(name) and name != "name" for name, value in entry.items()
    )
    return plain and entry.keys() != {"value"}


def _entries(out: Printer, info: RtInfo) -> None:
    for key, entry in info.items():
        name = str(key)
        tag, head = (name, {}) if is_tag(name) else ("info", {"name": name})
        if not isinstance(entry, Mapping):
            out.element(tag, {**head, "value": format_value(entry)})
        elif not entry:
            out.element(tag, head)
        else:
            with out.inside(tag, head):
                _entries(out, entry)


def format_value(value: object) -> str:
    """Return the text of a value as OpenVINO writes it."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    if isinstance(value, list | tuple):
        return " ".join(str(int(item)) if isinstance(item, bool) else format_value(item) for item in value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{format_value(entry)}" for name, entry in value.items()) + "}"
    return str(value)


_NAMESPACE = "{"  # the start of names in a namespace, which an IR does not have


def attribute_texts(layer: Layer, changed: Mapping[str, object]) -> dict[str, str]:
    """Return the texts of a layer's attributes, by their names in files.

    Texts from the file that the layer was read from are kept if their values are the same, and so are attributes unknown
    to its operation.

    Args:
        layer: the layer.
        changed: values that override attributes of the operation, by their names in Python.
    """
    texts = {name: text for name, text in layer.attributes.items() if not name.startswith(_NAMESPACE)}
    for name, attribute in layer.op.schema().items() if isinstance(layer.op, Op) else ():
        if attribute.external:
            continue
        value = changed.get(name, vars(layer.op)[name])
        text = texts.get(attribute.xml)
        if text is None:
            if name in changed or value != attribute.default:
                texts[attribute.xml] = attribute_text(value)
        elif attribute_text(attribute.parse(text)) != attribute_text(value):
            texts[attribute.xml] = attribute_text(value)
    return texts


def join_names(names: Iterable[str]) -> str:
    r"""Join names with commas, escaping commas inside them.

    >>> print(join_names(["x", "y,z"]))
    x,y\,z

    Raises:
        InputError: if two names end in a backslash: one of them would escape the comma after it.
    """
    ordered = sorted(names, key=lambda name: name.endswith("\\"))
    if sum(name.endswith("\\") for name in ordered) > 1:
        raise InputError(
            f"a tensor has two names that end in a backslash, {ordered[-2]!r} and {ordered[-1]!r}; "
            "a file can hold one",
            code=Code.BAD_REQUEST,
        )
    return ",".join(name.replace(",", "\\,") for name in ordered)


def output_names(layer: Layer) -> str:
    """Return the joined names that a Result gives to an output of the model; empty for other layers."""
    return join_names(name for port in layer.inputs for name in port.names) if layer.type == "Result" else ""


class Place(NamedTuple):
    """The offset and size of a constant in the ``.bin``, in bytes."""

    offset: int
    size: int


class WeightsWriter:
    """Writes constants without gaps, as OpenVINO does; equal ones share their bytes.

    Only digests are kept in memory, so constants may be views of a file larger than memory.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._end = file, 0
        self._known: dict[bytes, Place] = {}

    def place(self, raw: Array) -> Place:
        """Return the place of a constant's bytes, after writing them unless equal bytes were written before."""
        # No collisions of the digest are known.
        digest = hashlib.sha256(raw.data).digest()
        if digest not in self._known:
            self._file.write(raw.data)
            self._known[digest] = Place(self._end, raw.nbytes)
            self._end += raw.nbytes
        return self._known[digest]


def raw_bytes(value: Array | Packed | Callable[[], Array], element: ElementType, least: int = 1) -> Array:
    """Return the bytes of a tensor as files store them; a view if the array has the same layout.

    If ``value`` is a function, it is called to compute the tensor. An empty tensor has ``least`` bytes, as most of OpenVINO's
    files have one for it, and others none.

    >>> raw_bytes(np.array([1, 2, 3], np.uint8), ElementType.u6).tolist()
    [18, 48, 0]
    """
    if isinstance(value, Packed):
        return value.raw
    if callable(value):
        value = value()
    if element is ElementType.string:
        return pack_strings(value)
    if not value.size:
        return np.zeros(least, np.uint8)
    flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return flat if element.bits >= 8 else pack(flat & ((1 << element.bits) - 1), element.bits)


def add_results(graph: Graph, ports: Sequence[Port]) -> Graph:
    """Return the graph with a Result added for each of the given outputs."""
    if not ports:
        return graph
    first = max(graph.layers, default=-1) + 1
    results = [_result(graph, number, port) for number, port in enumerate(ports, first)]
    edges = [Edge(port, Port(layer.id, 0)) for port, layer in zip(ports, results, strict=True)]
    return Graph([*graph.layers.values(), *results], [*graph.edges, *edges])


def _result(graph: Graph, number: int, port: Port) -> Layer:
    names = {layer.name for layer in graph.layers.values()}
    name = f"Result_{number}"
    while name in names:
        name += "_"
    op = registry.require("Result")()
    return Layer.inserted(number, name, op, graph[port.layer].where, (PortSpec(0),))


# Line breaks and tabs are written as references, as parsers turn plain ones into spaces.
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_TAG = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def is_tag(text: str) -> bool:
    """Return whether a string is a valid name of an XML element or attribute."""
    return _TAG.fullmatch(text) is not None


class Printer:
    """Prints XML elements to a file, indented."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._indent = file, ""
        self._line('<?xml version="1.0"?>')

    def element(self, tag: str, attributes: Mapping[str, str] | None = None) -> None:
        """Write an empty element."""
        self._line(f"<{tag}{self._attributes(tag, attributes)} />")

    def text(self, tag: str, text: str) -> None:
        """Write an element that contains text."""
        self._line(f"<{tag}>{text.translate(_ESCAPES)}</{tag}>")

    @contextmanager
    def inside(self, tag: str, attributes: Mapping[str, str] | None = None) -> Iterator[None]:
        """Write an element; output within the ``with`` block becomes its content."""
        self._line(f"<{tag}{self._attributes(tag, attributes)}>")
        self._indent += "\t"
        yield
        self._indent = self._indent[1:]
        self._line(f"</{tag}>")

    def _attributes(self, tag: str, attributes: Mapping[str, str] | None) -> str:
        if not attributes:
            return ""
        for name, text in attributes.items():
            if invalid := _NOT_IN_XML.search(text):
                raise InputError(
                    f"XML has no character U+{ord(invalid.group()):04X}, but {name!r} of <{tag}> is {text[:80]!r}",
                    code=Code.BAD_REQUEST,
                    hint="give it another name before saving",
                )
        return "".join(f' {name}="{text.translate(_ESCAPES)}"' for name, text in attributes.items())

    def _line(self, text: str) -> None:
        self._file.write(f"{self._indent}{text}\n".encode())


# Compression of weights to f16, as OpenVINO does when it saves a model.

_WIDE = (ElementType.f32, ElementType.f64)
_LARGEST = float(np.finfo(np.float16).max)
_SMALLEST = float(np.finfo(np.float16).smallest_subnormal)

# A constant is not compressed if this fraction of its values is outside the range of f16.
_BEYOND = 0.75

# Inputs whose values determine shapes: they may be f32, and f16 is not precise enough for them.
_DECIDING: Mapping[str, tuple[int, ...]] = {"Interpolate": (1, 2), "Range": (0, 1, 2)}

# Operations by which OpenVINO recognizes a model that is already quantized or compressed.
_QUANTIZING = ("FakeQuantize", "FakeConvert")
_SCALING = ("Multiply", "Subtract")
_SMALL = tuple(map(ElementType.parse, ("i8", "u8", "i4", "u4", "nf4", "f8e4m3", "f8e5m2")))

_BLOCK = 1 << 16

_DECOMPRESSION = MappingProxyType({"decompression": MappingProxyType({"version": "0"})})


def compress(content: Content) -> Content:
    """Return a model with f32 and f64 constants stored in f16, each followed by a Convert.

    The Convert has the id, name and consumers of the constant. A quantized or compressed model is unchanged.
    """
    graph = content.graph
    return content if _is_compressed(graph) else replace(content, graph=_compress_graph(graph))


def _is_compressed(graph: Graph) -> bool:
    return any(
        layer.type in _QUANTIZING
        or "decompression" in layer.rt_info
        or _is_scaled(graph, layer)
        or any(_is_compressed(body.graph) for body in layer.bodies())
        for layer in graph.layers.values()
    )


def _is_scaled(graph: Graph, layer: Layer) -> bool:
    """Return whether a layer is a constant of quantized values, of at most 8 bits each, that are scaled."""
    if layer.type != "Constant" or vars(layer.op)["element_type"] not in _SMALL:
        return False
    converts = [reader for reader in _readers(graph, layer) if reader.type == "Convert"]
    return any(reader.type in _SCALING for convert in converts for reader in _readers(graph, convert))


def _readers(graph: Graph, layer: Layer) -> list[Layer]:
    return [graph[reader.layer] for reader in graph.readers(Port(layer.id, 0))]


def _compress_graph(graph: Graph) -> Graph:
    exact = set(_shape_sources(graph))
    layers: list[Layer] = []
    edges = list(graph.edges)
    free = max(graph.layers, default=-1) + 1
    for layer in graph.layers.values():
        if layer.id in exact or not _can_be_narrow(layer):
            layers.append(replace(layer, op=layer.op and _compress_bodies(layer.op)))
            continue
        constant, convert = _pair(layer, free)
        layers += [constant, convert]
        edges.append(Edge(Port(free, 0), Port(layer.id, 0)))
        free += 1
    return Graph(layers, edges)


def _shape_sources(graph: Graph) -> Iterator[int]:
    """Yield the ids of all layers upstream of inputs that determine shapes."""
    waiting = [
        source
        for layer in graph.layers.values()
        for source in _select(graph.sources(layer), _DECIDING.get(layer.type, ()))
    ]
    seen = set()
    while waiting:
        number = waiting.pop().layer
        if number in seen or graph[number].type == "ShapeOf":  # a shape does not depend on values
            continue
        seen.add(number)
        yield number
        waiting += [source for source in graph.sources(graph[number]) if source is not None]


def _select(sources: tuple[Port | None, ...], numbers: tuple[int, ...]) -> list[Port]:
    return [source for number in numbers for source in sources[number : number + 1] if source is not None]


def _can_be_narrow(layer: Layer) -> bool:
    if layer.type != "Constant" or vars(layer.op)["element_type"] not in _WIDE:
        return False
    numbers = vars(layer.op)["value"]
    beyond = sum(_count_beyond(block) for block in _blocks(numbers))
    return bool(numbers.size) and beyond < _BEYOND * numbers.size


def _count_beyond(numbers: Array) -> int:
    sizes = np.abs(numbers)
    return int(np.count_nonzero((sizes > _LARGEST) | ((sizes < _SMALLEST) & (sizes != 0))))


def _to_f16(numbers: Array) -> Array:
    blocks = [np.clip(block, -_LARGEST, _LARGEST).astype(np.float16) for block in _blocks(numbers)]
    return np.concatenate(blocks).reshape(numbers.shape)


def _blocks(numbers: Array) -> Iterator[Array]:
    """Yield the values of an array as f32, in blocks that fit in the processor's cache."""
    flat = numbers.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        yield flat[start : start + _BLOCK].astype(np.float32, copy=False)


def _pair(layer: Layer, number: int) -> tuple[Layer, Layer]:
    """Return a constant compressed to f16, with the id ``number``, and the Convert that restores its type."""
    operation = registry.require("Convert")
    assert layer.op is not None
    op = vars(layer.op)
    element, narrow = op["element_type"], TensorType(ElementType.f16, op["shape"])
    value = partial(_to_f16, op["value"])  # converted when written, to save memory
    stored = layer.op.replace(element_type=ElementType.f16, offset=0, size=0, value=value)
    constant = replace(
        layer, id=number, name=f"{layer.name}_compressed", op=stored, outputs=(PortSpec(0, narrow),)
    )
    convert = replace(
        layer,
        type=operation.name,
        version="opset1",
        op=operation(destination_type=element),
        inputs=(PortSpec(0, narrow),),
        outputs=(replace(layer.outputs[0], id=1),),
        attributes={},
        rt_info={**layer.rt_info, **_DECOMPRESSION},
    )
    return constant, convert


def _compress_bodies(op: Operation) -> Operation:
    """Return an operation whose bodies have compressed constants."""
    bodies = {name: body for name, body in vars(op).items() if isinstance(body, Body)}
    stored = {n: replace(body, graph=_compress_graph(body.graph)) for n, body in bodies.items()}
    return op.replace(**stored) if stored else op
