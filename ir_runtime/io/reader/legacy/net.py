"""Reading of a graph of IR version 2 to 7, and replacement of its layers by current operations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from ...._util import deadline
from ...._util.forks import cached_property
from ....codes import Code
from ....diagnostics import Diagnostics, Location, Mark
from ....errors import IRError, LimitError, ParseError, ValidationError
from ....ir.element import ElementType
from ....ir.graph import Body, Edge, Graph, Layer, Port, PortSpec
from ....ir.shape import PartialShape
from ....ir.tensor import TensorType
from ....ops import registry
from ..document import Element, attributes, by_tag, integer
from ..layers import LayerReader, read_body, read_parts
from ..ports import Wiring
from . import layers as _layers
from .declaration import LegacyLayer, find_declaration, suggest_type
from .site import Blob, Building, Means, Site, Tensor, computed_type

__all__ = [
    "LegacyReader",
    "NEWEST",
    "OLDEST",
    "read_legacy",
    "read_means",
]


OLDEST, NEWEST = 2, 7
"""The versions that are upgraded."""

assert _layers  # which registers the declarations

# Parts of a <layer> that are not attributes.
_PARTS = ("input", "output", "blobs", "weights", "biases", "port_map", "back_edges", "body", "rt_info")
# The precision of nets whose layers have several.
_MIXED = "MIXED"
# Attributes of port map entries that tell how a tensor is sliced.
_CUT = ("axis", "start", "end", "stride", "part_size")


@dataclass(slots=True)
class LegacyReader(LayerReader):
    """Reads legacy layers with their ports and attributes, as written in the file, without operations."""

    elements: dict[int, Element] = field(default_factory=dict)
    """The elements of the layers read so far, by id."""
    precision: str = ""
    """The precision of layers that declare none."""
    unread: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of layers with an unknown attribute, by layer type and attribute."""
    first: dict[tuple[str, str], Location] = field(default_factory=dict)
    """The location of the first such layer."""

    def layer(self, element: Element, version: str | None = None) -> Layer:
        number = integer(element, "id", self.file)
        type = element.get("type") or self._require(element, "type", None)
        name = "/".join((*self.path, element.get("name") or self._require(element, "name", None)))
        where, parts = Location(self.file, element.sourceline, name, type), by_tag(element)
        ports = {
            side: tuple(self.ports.read(parts.get(side, ()), side, where)) for side in ("input", "output")
        }
        self.elements.setdefault(number, element)  # the first of two layers with the same id counts
        return Layer(number, name, type, "", None, where, ports["input"], ports["output"], _data(element))

    def inside(self, layer: Layer) -> LegacyReader:
        """Return the reader for the body of a layer.

        Raises:
            LimitError: if bodies are nested too deeply.
        """
        self.limits.check("nesting", len(self.path) // 2 + 1, layer.where)
        precision = self.elements[layer.id].get("precision") or self.precision
        fresh = {"elements": {}, "unsure": set(), "nameless": False}
        return replace(self, path=(layer.name, "body"), precision=precision, **fresh)  # type: ignore[arg-type]


def read_legacy(
    root: Element, reader: LegacyReader, version: int
) -> tuple[dict[int, Layer], list[Edge], set[Port]]:
    """Read a legacy ``<net>``; return its upgraded layers by id, the edges, and the inputs with invalid edges.

    Raises:
        LimitError: if the file exceeds the limits.
    """
    file = Location(reader.file, root.sourceline)
    reader.report.note(Code.UPGRADED, f"IR version {version}, upgraded", file)
    statistics = root.find("statistics")
    if statistics is not None:
        message = "<statistics> for quantization is ignored; the model is computed in f32"
        reader.report.note(Code.UPGRADED, message, Location(reader.file, statistics.sourceline))
    reader.precision = root.get("precision", "")
    net = _Net(reader, *read_parts(root, reader))
    net.building.means = read_means(root, net.legacy, reader)
    net.build()
    net.add_results()
    _report_unread(reader, version)
    return net.layers, net.edges, net.severed


def _report_unread(reader: LegacyReader, version: int) -> None:
    for (type, name), times in reader.unread.items():
        more = f" (in {times} layers)" if times > 1 else ""
        reader.report.warning(
            Code.UNKNOWN_ATTRIBUTE,
            f"{type} of IR version {version} has no attribute {name!r}; it is ignored{more}",
            reader.first[type, name],
            mark=Mark(name),
        )


def _data(element: Element) -> Mapping[str, str]:
    """Return the attributes of a layer's ``<data>``, or ``<convolution_data>`` and the like in version 2.

    The values that an attribute has in the child elements are joined by commas.
    """
    texts_by_name: dict[str, str] = {}
    for part in element:
        if part.tag in _PARTS:
            continue
        texts_by_name |= attributes(part)
        items: dict[str, list[str]] = {}
        for item in part:
            for name, text in attributes(item).items() if item.tag != "blobs" else ():
                items.setdefault(name, []).append(text)
        texts_by_name |= {name: ",".join(texts) for name, texts in items.items()}
    return texts_by_name


class _Net:
    """A legacy graph, and the graph that replaces it."""

    def __init__(self, reader: LegacyReader, legacy: Mapping[int, Layer], wiring: Wiring) -> None:
        self.reader, self.legacy, self.wiring = reader, legacy, wiring
        self.graph = Graph(legacy.values(), wiring.edges, wiring.severed)
        names = {layer.name for layer in legacy.values()}
        free = count(max(legacy, default=-1) + 1)
        self.building = Building(free, names, reader.constants, self.read_body)
        self.layers: dict[int, Layer] = {}
        self.edges: list[Edge] = []
        self.severed: set[Port] = set()
        self.fed: dict[Port, Tensor] = {}
        """Inputs of legacy layers that no edge feeds but a Parameter of the body."""
        self.tensors: dict[Port, Tensor] = {}
        """The replacements of legacy outputs."""

    @property
    def report(self) -> Diagnostics:
        return self.reader.report

    def build(self) -> None:
        """Replace all layers; if there is a cycle, keep them, as validation reports it."""
        if len(self.graph.order) < len(self.legacy):
            self.layers, self.edges = dict(self.legacy), self.wiring.edges
            self.severed |= self.wiring.severed
            return
        for layer in self.graph.order:
            deadline.check(layer.where)
            self._replace(layer)
        # In file order, with added layers at the end.
        added = [number for number in self.layers if number not in self.legacy]
        self.layers = {number: self.layers[number] for number in (*self.legacy, *added)}

    def _replace(self, layer: Layer) -> None:
        inputs = tuple(self._input(layer, index) for index in range(len(layer.inputs)))
        if layer.id not in self.reader.elements:  # its errors have been reported
            self._keep(layer, inputs)
            return
        try:
            site = self._site(layer, inputs)
            declared = self._declaration(layer)
            outputs = None if declared is None else self._build(declared, site)
        except LimitError:
            raise
        except ValidationError as problem:
            outputs = None
            for finding in problem.diagnostics or (problem.diagnostic,):
                self.report.error(finding.code, finding.message, finding.where or layer.where, finding.hint)
        except IRError as problem:
            outputs = None
            self.report.error(problem.code, problem.message, problem.where or layer.where, problem.hint)
        if outputs is None:
            self._keep(layer, inputs)
            return
        rebuilt = site.finish(outputs)
        self.layers |= {new.id: new for new in rebuilt.layers}
        self.edges += rebuilt.edges
        self.severed |= set(rebuilt.severed)
        for index, tensor in enumerate(rebuilt.outputs):
            self.tensors[Port(layer.id, index)] = tensor

    def _input(self, layer: Layer, index: int) -> Tensor:
        source, port = self.graph.sources(layer)[index], Port(layer.id, index)
        tensor = self.fed.get(port) if source is None else self.tensors.get(source)
        spec = layer.inputs[index]
        if tensor is None:
            return Tensor(None, ElementType.dynamic, spec, port in self.graph.severed or source is not None)
        return tensor._replace(spec=spec)

    def _site(self, layer: Layer, inputs: tuple[Tensor, ...]) -> Site:
        element = self.reader.elements[layer.id]
        precision = self._precision(layer, element)
        blobs = self._blobs(layer, element, precision)
        return Site(layer, inputs, self.building, blobs, computed_type(precision))

    def _precision(self, layer: Layer, element: Element) -> ElementType:
        """Return the element type of a layer: its precision, else that of an output, else f32."""
        text = element.get("precision") or self.reader.precision
        try:
            precision = ElementType.of_port(text) if text not in ("", _MIXED) else ElementType.dynamic
        except ValueError:
            raise ParseError(
                f"precision {text[:20]!r} of the layer is not an element type",
                code=Code.BAD_ELEMENT,
                where=layer.where,
                hint="expected FP32, FP16, I64, I32, I8, U8, BOOL or the like",
            ) from None
        ports = (port.type.element for port in layer.outputs if port.type is not None)
        if precision is ElementType.dynamic or layer.type.lower() == "const":
            precision = next((e for e in ports if e is not ElementType.dynamic), precision)
        return ElementType.f32 if precision is ElementType.dynamic else precision

    def _blobs(self, layer: Layer, element: Element, precision: ElementType) -> dict[str, Blob]:
        """Return the blobs of a layer in the ``.bin``, by name."""
        blobs: dict[str, Blob] = {}
        for path in ("biases", "weights", "data/blobs/*", "blobs/*"):
            for blob in element.iterfind(path):
                offset, size = (integer(blob, name, self.reader.file) for name in ("offset", "size"))
                text = blob.get("precision")
                try:
                    type = ElementType.of_port(text) if text else precision
                except ValueError:
                    message = f"<{blob.tag}> has precision {text[:20]!r}, which is not an element type"
                    where = replace(layer.where, line=blob.sourceline)
                    raise ParseError(message, code=Code.BAD_ELEMENT, where=where) from None
                if size:
                    blobs[blob.tag] = Blob(type, offset, size, blob.sourceline)
        return blobs

    def _declaration(self, layer: Layer) -> type[LegacyLayer] | None:
        """Return the declaration of a layer's type; report an unknown type, and return ``None``."""
        declaration = find_declaration(layer.type)
        if declaration is None:
            hint = (
                suggest_type(layer.type)
                or "custom layers cannot be upgraded: convert the original model again"
            )
            message = f"unknown layer type {layer.type!r} of IR versions 2 to 7"
            self.report.error(Code.UNKNOWN_OPERATION, message, layer.where, hint)
        return declaration

    def _build(self, declared: type[LegacyLayer], site: Site) -> list[Tensor]:
        """Build equivalent operations for a layer; return a tensor for each output."""
        layer, (least, most) = site.layer, declared.inputs
        if len(layer.inputs) < least or (most is not None and len(layer.inputs) > most):
            expected = str(least) if most == least else f"{least} to {most}" if most else f"at least {least}"
            ports = "input" if least == 1 and most in (1, None) else "inputs"
            site.refuse(f"{layer.type} takes {expected} {ports}, got {len(layer.inputs)}", Code.PORT_COUNT)
        for name in declared.ignored(layer.attributes):
            self.reader.unread[declared.types[0], name] += 1
            self.reader.first.setdefault((declared.types[0], name), layer.where)
        built = declared.parse(layer.attributes).build(site)
        outputs = [built] if isinstance(built, Tensor) else list(built)
        if len(outputs) < len(layer.outputs):
            expected = "1 output" if len(outputs) == 1 else f"{len(outputs)} outputs"
            site.refuse(f"{layer.type} has {expected}, got {len(layer.outputs)}", Code.PORT_COUNT)
        return outputs

    def _keep(self, layer: Layer, inputs: tuple[Tensor, ...]) -> None:
        """Keep a layer that cannot be replaced, with its declared types, so that its consumers can be validated."""
        outputs = tuple(_widen(port) for port in layer.outputs)
        ports = tuple(replace(port, type=_dims(port)) for port in layer.inputs)
        self.layers[layer.id] = replace(layer, inputs=ports, outputs=outputs)
        for index, tensor in enumerate(inputs):
            if tensor.port is not None:
                self.edges.append(Edge(tensor.port, Port(layer.id, index)))
            elif tensor.is_severed:
                self.severed.add(Port(layer.id, index))
        for index, port in enumerate(outputs):
            element = port.type.element if port.type else ElementType.dynamic
            self.tensors[Port(layer.id, index)] = Tensor(Port(layer.id, index), element)

    def add_results(self) -> None:
        """Add a Result for each unread output, as legacy files have none."""
        for layer in self.legacy.values():
            for index, port in enumerate(layer.output_ports):
                if not self.graph.readers(port) and layer.type.lower() != "const":
                    source = self.tensors.get(port, Tensor(port))
                    self._result(source, layer.where, f"{layer.name}/sink_port_{index}")

    def _result(self, source: Tensor, where: Location, name: str) -> int:
        number = self.building.new_id()
        op = registry.require("Result")()
        self.layers[number] = Layer.inserted(number, self.building.new_name(name), op, where, (PortSpec(0),))
        if source.port is not None:
            self.edges.append(Edge(source.port, Port(number, 0)))
        return number

    # Bodies

    @cached_property
    def places(self) -> dict[str, dict[tuple[int, int], int]]:
        """The indices of input and of output ports, by layer id and port id."""
        layers = self.legacy.values()
        return {
            "input": {(la.id, spec.id): index for la in layers for index, spec in enumerate(la.inputs)},
            "output": {(la.id, spec.id): index for la in layers for index, spec in enumerate(la.outputs)},
        }

    def read_body(self, layer: Layer) -> Body:
        """Read and upgrade the body of a TensorIterator.

        Raises:
            ParseError: if it is missing, or the port map names layers or ports that do not exist.
            LimitError: if bodies are nested too deeply.
        """
        element = self.reader.elements[layer.id]
        inside = element.find("body")
        if inside is None:
            raise ParseError("<body> of the layer is missing", code=Code.BAD_ELEMENT, where=layer.where)
        reader = self.reader.inside(layer)
        inner = _Net(reader, *read_parts(inside, reader))
        outer = {port.id: self._input(layer, index) for index, port in enumerate(layer.inputs)}
        inner.connect(element, outer)
        graph = Graph(inner.layers.values(), inner.edges, inner.severed)
        return read_body(element, "body", graph, layer.inputs, layer.outputs, layer.where)

    def connect(self, element: Element, outer: Mapping[int, Tensor]) -> None:
        """Build the body, with a Parameter or Result for each end named in the port map or the back edges.

        These entries are changed to name the Parameters and Results, as in later versions.
        """
        ends: dict[tuple[str, Port], int] = {}
        entries = [
            *(
                (entry, "internal_layer_id", "internal_port_id")
                for entry in element.iterfind("port_map/input")
            ),
            *((edge, "to-layer", "to-port") for edge in element.iterfind("back_edges/edge")),
        ]
        for entry, by_layer, by_port in entries:
            legacy, place = self._end(entry, by_layer, by_port)
            port = Port(legacy.id, place)
            if legacy.type.lower() == "input":
                ends["Parameter", port] = legacy.id
            elif ("Parameter", port) not in ends:
                source = (
                    outer.get(integer(entry, "external_port_id", self.reader.file))
                    if by_port[0] == "i"
                    else None
                )
                ends["Parameter", port] = self._parameter(legacy, port, source)
            _name_end(entry, by_layer, by_port, ends["Parameter", port])
        self.build()
        entries = [
            *(
                (entry, "internal_layer_id", "internal_port_id")
                for entry in element.iterfind("port_map/output")
            ),
            *((edge, "from-layer", "from-port") for edge in element.iterfind("back_edges/edge")),
        ]
        for entry, by_layer, by_port in entries:
            legacy, place = self._end(entry, by_layer, by_port, is_output=True)
            port = Port(legacy.id, place)
            if ("Result", port) not in ends:
                name = f"{legacy.name}/sink_port_{place}"
                ends["Result", port] = self._result(self.tensors.get(port, Tensor(port)), legacy.where, name)
            _name_end(entry, by_layer, by_port, ends["Result", port])

    def _end(self, entry: Element, by_layer: str, by_port: str, is_output: bool = False) -> tuple[Layer, int]:
        """Return the body layer that an entry of the port map names, and the index of its port.

        Args:
            entry: the entry or back edge.
            by_layer: the attribute with the id of the layer.
            by_port: the attribute with the id of the port.
            is_output: whether the port is an output; outputs of an Input are found in any case.

        Raises:
            ParseError: if there is no such layer or port.
        """
        number, port = (integer(entry, name, self.reader.file) for name in (by_layer, by_port))
        layer = self.legacy.get(number)
        where = Location(self.reader.file, entry.sourceline, "/".join(self.reader.path[:-1]))
        if layer is None:
            message = f"{by_layer!r} of <{entry.tag}> is {number}, but no layer of the body has that id"
            raise ParseError(message, code=Code.DANGLING_EDGE, where=where)
        side = "output" if is_output or layer.type.lower() == "input" else "input"
        ports = layer.outputs if side == "output" else layer.inputs
        place = self.places[side].get((number, port))
        if place is None:
            ids = ", ".join(str(spec.id) for spec in ports) or "none"
            raise ParseError(
                f"{by_port!r} of <{entry.tag}> is {port}, but layer {layer.name!r} has no such {side} port",
                code=Code.DANGLING_EDGE,
                where=where,
                hint=f"its {side} ports are {ids}",
            )
        return layer, place

    def _parameter(self, layer: Layer, port: Port, source: Tensor | None) -> int:
        """Add a Parameter that feeds an input of a legacy layer, and return its id.

        Its type is the declared one; ``source``, the tensor that feeds the body, determines the element type if known.
        """
        known = ElementType.dynamic if source is None else source.element
        declared = _widen(layer.inputs[port.number]).type
        if known is ElementType.dynamic and declared is not None:
            known = declared.element
        element = ElementType.f32 if known is ElementType.dynamic else known
        shape = declared.shape if declared else PartialShape.dynamic()
        number = self.building.new_id()
        name = self.building.new_name(f"{layer.name}/input_port_{port.number}")
        op = registry.require("Parameter")(element_type=element, shape=shape)
        outputs = (PortSpec(0, TensorType(element, shape), (), layer.inputs[port.number].line),)
        self.layers[number] = Layer.inserted(number, name, op, layer.where, (), outputs)
        self.fed[port] = Tensor(Port(number, 0), element)
        return number


def _name_end(entry: Element, by_layer: str, by_port: str, number: int) -> None:
    """Make an entry name a Parameter or Result by its id ``number``, instead of a layer and a port.

    Drop the attributes of a slice if ``axis`` is -1, which stands for no slice.
    """
    entry.set(by_layer, str(number))
    entry.attrib.pop(by_port, None)
    if entry.get("axis") == "-1":
        for name in _CUT:
            entry.attrib.pop(name, None)


def _widen(port: PortSpec) -> PortSpec:
    """Return a port with the element type in which it is computed: f32 for f16."""
    return port.converted((ElementType.f16,), ElementType.f32)


def _dims(port: PortSpec) -> TensorType | None:
    return None if port.type is None else TensorType(ElementType.dynamic, port.type.shape)


# Reading of ``<pre-process>``: the means subtracted from an input.


def read_means(root: Element, layers: Mapping[int, Layer], reader: LayerReader) -> dict[int, Means]:
    """Return the means to subtract from inputs, by input id; report errors in them."""
    element = root.find("pre-process")
    if element is None or element.find("channel") is None:
        return {}
    try:
        layer = _input_of(element, layers, reader.file)
        channels = tuple(_channels(element, layer, reader.file))
    except ParseError as problem:
        reader.report.add(problem.diagnostic)
        return {}
    _note_scales(element, reader)
    return {layer.id: Means(channels)}


def _input_of(element: Element, layers: Mapping[int, Layer], file: str) -> Layer:
    """Return the input that an element names, else the first 4-D input in the order of names, else the first input."""
    inputs = {
        layer.name: layer for layer in layers.values() if layer.type.lower() == "input" and layer.outputs
    }
    name = element.get("reference-layer-name", "").strip()
    if name in inputs:
        return inputs[name]
    if name or not inputs:
        names = ", ".join(inputs) or "none"
        raise _wrong(f"unknown input {name!r} of <pre-process>; the inputs are {names}", element, file)
    ordered = [inputs[name] for name in sorted(inputs)]
    images = [
        layer for layer in ordered if (type := layer.outputs[0].type) is not None and type.shape.rank == 4
    ]
    return (images or ordered)[0]


def _channels(element: Element, layer: Layer, file: str) -> list[float | Blob]:
    type = layer.outputs[0].type
    dims = type.shape.static if type is not None and type.shape.is_static else ()
    if len(dims) < 3:
        raise _wrong(
            f"<pre-process> is for an image, but input {layer.name!r} has {len(dims)} dims", element, file
        )
    precision = element.get("mean-precision", "FP32")
    try:
        stored = ElementType.of_port(precision)
    except ValueError:
        raise _wrong(
            f"'mean-precision' is {precision[:20]!r}, which is not an element type", element, file
        ) from None
    means: list[float | Blob] = [0.0] * dims[-3]
    number = -1
    for channel in element.iterfind("channel"):
        number = integer(channel, "id", file) if channel.get("id") is not None else number + 1
        if number >= len(means):
            raise _wrong(f"<channel> {number} of an input with {len(means)} channels", channel, file)
        mean = channel.find("mean")
        if mean is None:
            continue
        if mean.get("value") is not None:
            means[number] = _number(mean, file)
        else:
            offset, size = (integer(mean, name, file) for name in ("offset", "size"))
            means[number] = Blob(stored, offset, size, mean.sourceline)
    return means


def _note_scales(element: Element, reader: LayerReader) -> None:
    """Note that a scale other than 1 is ignored, as runtimes of that time ignored it."""
    for scale in element.iterfind("channel/scale"):
        if scale.get("value", "").strip() not in ("1", "1.0"):
            message = "<scale> of <pre-process> is ignored, as runtimes of that time did not read it"
            reader.report.note(Code.UPGRADED, message, Location(reader.file, scale.sourceline))
            return


def _number(element: Element, file: str) -> float:
    text = element.get("value", "")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _wrong(f"'value' of <{element.tag}> must be a number, got {text[:40]!r}", element, file)
    return value


def _wrong(message: str, element: Element, file: str) -> ParseError:
    return ParseError(message, code=Code.BAD_ELEMENT, where=Location(file, element.sourceline))
