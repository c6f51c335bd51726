"""Reading of the layers and edges of a graph: of a whole model, or of a body."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..._util import deadline
from ..._util.deadline import check_periodically
from ..._util.forks import cached_by_class
from ..._util.nearest import did_you_mean, suggestion
from ...codes import Code
from ...diagnostics import Diagnostic, Diagnostics, Location, Mark
from ...errors import IRError, LimitError, ParseError, ValidationError
from ...ir.element import ElementType
from ...ir.graph import Body, Graph, Layer, PortSpec
from ...ir.port_map import PORT_MAPS, BackEdge, BodyInput, BodyOutput, Cut
from ...ir.shape import PartialShape
from ...ir.tensor import TensorType
from ...limits import DEFAULT, Limits
from ...ops import Op, load_extensions, registry
from .document import Element, attributes, by_tag, integer
from .ports import PortReader, Wiring, check_size, dim_text, first_info, read_edges, tensor_names
from .source import Weights, packed_bytes

__all__ = [
    "ConstantReader",
    "ConstantSizes",
    "EXACT",
    "FORMER",
    "FORMER_IR",
    "LayerReader",
    "NEWEST",
    "NEWEST_IR",
    "complete_from_port",
    "may_be_unneeded",
    "opset_of",
    "read_body",
    "read_graph",
    "read_parts",
    "report_problem",
    "resolve",
    "unknown_operation",
    "unneeded_ids",
    "add_outputs",
]


@dataclass(slots=True)
class ConstantSizes:
    """The total size of the constants of a file, including those in bodies."""

    stored: int = 0
    copied: int = 0

    def add(self, element: ElementType, size: int, limits: Limits, where: Location) -> None:
        """Add the size of a constant before it is read; strings and booleans count as copied, others are views.

        Raises:
            LimitError: if the total exceeds a limit.
        """
        self.stored += size
        limits.check("constant_bytes", self.stored, where)
        if element in (ElementType.string, ElementType.boolean):
            self.copied += size
            limits.check("memory", self.copied, where)


@dataclass(frozen=True, slots=True)
class ConstantReader:
    """Reads the values of constants."""

    report: Diagnostics
    weights: Weights
    limits: Limits
    sizes: ConstantSizes

    def read(self, op: Op, where: Location) -> Op:
        """Return a Constant with its value.

        Raises:
            LimitError: if the constants read so far exceed a limit.
            ParseError: if the weights have no such bytes.
            ValidationError: if the element type or the shape is dynamic.
        """
        attributes = vars(op)
        element, shape, offset, size = (
            attributes["element_type"],
            attributes["shape"],
            attributes["offset"],
            attributes["size"],
        )
        check_size(shape, self.limits, where)
        lengths = _static(shape)
        if element is ElementType.dynamic:
            raise ValidationError(
                "a constant must have an element type, got dynamic", code=Code.BAD_ATTRIBUTE
            )
        packed = packed_bytes(element, lengths)
        self.sizes.add(element, max(size, packed), self.limits, where)
        value = self.weights.tensor(element, lengths, offset, size, where)
        if 0 < packed < size and element is not ElementType.string:  # which OpenVINO accepts
            type = f"{element.label}[{','.join(map(str, lengths))}]"
            message = f"attribute 'size' is {size}, but {type} takes {packed} bytes; the rest is ignored"
            self.report.warning(Code.WEIGHTS_RANGE, message, where, mark=Mark("size"))
        return op.replace(value=value)


def report_problem(report: Diagnostics, problem: IRError, where: Location) -> None:
    """Report a problem of a layer; missing weights are reported only for the first constant."""
    if problem.code == Code.WEIGHTS_MISSING and report.count(code=problem.code):
        report.add_consequence(where)
    else:
        report.error(problem.code, problem.message, where, problem.hint)


def complete_from_port(cls: type[Op] | None, element: Element, data: Mapping[str, str]) -> Mapping[str, str]:
    """Return the attributes of a layer; a Constant of OpenVINO 2020 gets its missing type and shape from its port."""
    if cls is None or cls.name != "Constant" or (port := element.find("output/port")) is None:
        return data
    declared = {"element_type": _label(port), "shape": ",".join(map(dim_text, port.iterfind("dim")))}
    return {**{k: v for k, v in declared.items() if v is not None}, **data}


def _label(port: Element) -> str | None:
    """Return the precision of a port as an attribute spells it, or ``None`` if it is no element type."""
    try:
        return ElementType.of_port(port.get("precision", "")).label
    except ValueError:
        return None


def _static(shape: PartialShape) -> tuple[int, ...]:
    if not shape.is_static:
        raise ValidationError(f"a constant must have a static shape, got {shape}", code=Code.BAD_ATTRIBUTE)
    return shape.static


FORMER_IR, NEWEST_IR = 10, 11


@dataclass(slots=True)
class LayerReader:
    """Reads the layers of one file, and adds errors to ``report``.

    Models repeat layers, so types, operations and declarations are cached.
    """

    file: str
    report: Diagnostics
    weights: Weights = field(default_factory=Weights)
    limits: Limits = DEFAULT
    path: tuple[str, ...] = ()
    """Names of the layer and the body that contain the layers; empty for the model itself."""
    unsure: set[int] = field(default_factory=set)
    """Ids of layers that could be read only in part."""
    nameless: bool = False
    """Whether the id of some layer could not be read."""
    version: int | None = NEWEST_IR
    """The version of the IR; ``None`` for pages of the specification, where layers may have no name."""
    sizes: ConstantSizes = field(default_factory=ConstantSizes)
    resolved: dict[tuple[str, str], tuple[type[Op] | None, str]] = field(default_factory=dict)
    """Cache of operation classes with their versioned names, by type and version."""
    types: dict[tuple[str | None, ...], TensorType] = field(default_factory=dict)
    """Cache of types declared by ports, by precision and dims."""
    built: dict[tuple[type[Op], tuple[tuple[str, str], ...]], Op] = field(default_factory=dict)
    """Cache of operations without bodies or findings, by class and attributes."""
    needed_only: bool = False
    """Whether to skip layers that no output needs."""
    ports: PortReader = field(init=False)
    constants: ConstantReader = field(init=False)

    def __post_init__(self) -> None:
        self.ports = PortReader(self.file, self.report, self.limits, self.types)
        self.constants = ConstantReader(self.report, self.weights, self.limits, self.sizes)

    def read(self, element: Element, version: str | None = None) -> Layer | None:
        """Read a layer, and report its errors; return ``None`` if its id is unreadable.

        Raises:
            LimitError: if its tensors are larger than the limits allow.
        """
        try:
            return self.layer(element, version)
        except ParseError as problem:
            self.report.add(problem.diagnostic)
            return self._remains(element)

    def skips(self, element: Element, left_out: Collection[int]) -> bool:
        """Return whether to skip a layer, as its id is in ``left_out`` or unreadable.

        For such a layer, report errors in its ports and required attributes, as OpenVINO does.
        """
        report = Diagnostics(self.report.most)
        try:
            if integer(element, "id", self.file) not in left_out:
                return False
            name, type = (element.get(a) or self._require(element, a, None) for a in ("name", "type"))
            self._require(element, "version", None)
            where = Location(self.file, element.sourceline, name, type)
            ports = PortReader(self.file, report, self.limits)
            for side in ("input", "output"):
                ports.read(element.findall(side), side, where)
        except ParseError as problem:
            report.add(problem.diagnostic)
        self.report.extend(error for error in report.errors if error.code == Code.BAD_ELEMENT)
        return True

    def _remains(self, element: Element) -> Layer | None:
        """Return a layer without attributes for an unreadable element, so that edges to it are valid."""
        try:
            number = integer(element, "id", self.file)
        except ParseError:
            self.nameless = True
            return None
        self.unsure.add(number)
        type = element.get("type", "")
        name = "/".join((*self.path, element.get("name") or f"{type}_{number}"))
        where = Location(self.file, element.sourceline, name, type)
        quiet, parts = PortReader(self.file, Diagnostics(), self.limits), by_tag(element)
        try:
            inputs, outputs = (
                tuple(quiet.read(parts.get(side, ()), side, where)) for side in ("input", "output")
            )
        except ParseError:
            inputs = outputs = ()
        return Layer(number, name, type, element.get("version", ""), None, where, inputs, outputs)

    def layer(self, element: Element, version: str | None = None) -> Layer:
        """Read one layer; ``version`` is used if the element has none.

        Raises:
            ParseError: if it has no id, name, type or version.
            LimitError: if its tensors are larger than the limits allow.
        """
        number = integer(element, "id", self.file)
        type = element.get("type") or self._require(element, "type", None)
        version = element.get("version") or self._require(element, "version", version)
        if self.version is not None and element.get("name") is None:
            self._require(element, "name", None)
        cls, operation = self._resolve(type, version)
        name = "/".join((*self.path, element.get("name") or f"{type}_{number}"))
        where = Location(self.file, element.sourceline, name, operation)
        parts = by_tag(element)
        data = _attributes(parts)
        declared = complete_from_port(cls, element, data) if self.version == FORMER_IR else data
        inputs = self._inputs(element, parts.get("input", ()), where)
        outputs = tuple(self.ports.read(parts.get("output", ()), "output", where))
        bodies = self._bodies(cls, element, inputs, outputs, where)
        return Layer(
            id=number,
            name=name,
            type=cls.name if cls else type,
            version=f"opset{cls.since}" if cls and version in FORMER and registry.is_own(cls) else version,
            op=self._operation(cls, type, version, declared, bodies, where),
            where=where,
            inputs=inputs,
            outputs=outputs,
            attributes=data,
            rt_info=first_info(parts.get("rt_info", ())),
        )

    def _require(self, element: Element, attribute: str, otherwise: str | None) -> str:
        text = element.get(attribute) or otherwise
        if text is None:
            where = Location(self.file, element.sourceline, element.get("name") or element.get("id"))
            raise ParseError(f"{attribute!r} of <layer> is missing", code=Code.BAD_ELEMENT, where=where)
        return text

    def _resolve(self, type: str, version: str) -> tuple[type[Op] | None, str]:
        """Return the operation class, ``None`` if unknown, and its versioned name."""
        if (type, version) not in self.resolved:
            self.resolved[type, version] = self._look_up(type, version)
        return self.resolved[type, version]

    def _look_up(self, type: str, version: str) -> tuple[type[Op] | None, str]:
        on_page = self.version is None
        operation = resolve(type, version, on_page)
        if operation is None:
            load_extensions()
            operation = resolve(type, version, on_page)
        return operation, type if operation is None else operation.versioned_name()

    def _inputs(self, element: Element, groups: Sequence[Element], where: Location) -> tuple[PortSpec, ...]:
        ports = tuple(self.ports.read(groups, "input", where))
        if (text := element.get("output_names")) is None:
            return ports
        names = tensor_names(text)  # names of a model output, on its Result
        return tuple(replace(port, names=(*names, *port.names)) for port in ports) if names else ports

    def _bodies(
        self,
        cls: type[Op] | None,
        element: Element,
        inputs: Sequence[PortSpec],
        outputs: Sequence[PortSpec],
        where: Location,
    ) -> Mapping[str, Body]:
        """Return the bodies of a layer, by attribute name."""
        bodies = {}
        for name in () if cls is None else _body_names(cls):
            inside = element.find(name)
            if inside is None:
                raise ParseError(f"<{name}> of the layer is missing", code=Code.BAD_ELEMENT, where=where)
            bodies[name] = read_body(element, name, self._graph(inside, name, where), inputs, outputs, where)
        return bodies

    def _graph(self, element: Element, name: str, where: Location) -> Graph:
        self.limits.check("nesting", len(self.path) // 2 + 1, where)
        inside = replace(self, path=(where.layer or "", name), unsure=set(), nameless=False)
        return read_graph(element, inside)

    def _operation(
        self,
        cls: type[Op] | None,
        type: str,
        version: str,
        data: Mapping[str, str],
        bodies: Mapping[str, Body],
        where: Location,
    ) -> Op | None:
        if cls is None:
            message, hint = unknown_operation(type, version)
            self.report.error(Code.UNKNOWN_OPERATION, message, where, hint)
            return None
        if bodies or not cls.pure or cls.name == "Constant":
            return self._new(cls, data, bodies, where)
        key = cls, tuple(data.items())
        if (cached := self.built.get(key)) is not None:
            return cached
        op = self._new(cls, data, bodies, where)
        if op is not None and data.keys() <= _attribute_names(cls) and not cls.omitted_defaults(data):
            self.built[key] = op
        return op

    def _new(
        self, cls: type[Op], data: Mapping[str, str], bodies: Mapping[str, Body], where: Location
    ) -> Op | None:
        """Create an operation from its attributes; report errors in them, and return ``None`` if there are any."""
        known = _attribute_names(cls)
        if not data.keys() <= known:
            self._unknown_attributes(cls, data, known, where)
        if omitted := cls.omitted_defaults(data):
            self._report_defaults(omitted, data, where)
            data = {**data, **omitted}
        try:
            return self._build(cls, data, bodies, where)
        except LimitError:
            raise
        except ValidationError as problem:
            for finding in problem.diagnostics or (problem.diagnostic,):
                self.report.error(finding.code, finding.message, where, finding.hint, clause=finding.clause)
        except IRError as problem:
            report_problem(self.report, problem, where)
        return None

    def _unknown_attributes(
        self, cls: type[Op], data: Mapping[str, str], names: frozenset[str], where: Location
    ) -> None:
        absent = sorted(names.difference(data))
        for name in (name for name in data if name not in names):
            message = f"{cls.versioned_name()} has no attribute {name!r}; it is ignored"
            hint = did_you_mean(name, absent)
            if self.version == FORMER_IR and not hint:
                # Model Optimizer wrote attributes of its own into every file.
                self.report.note(Code.UNKNOWN_ATTRIBUTE, message, where)
            else:
                self.report.warning(Code.UNKNOWN_ATTRIBUTE, message, where, hint)

    def _report_defaults(self, defaults: Mapping[str, str], data: Mapping[str, str], where: Location) -> None:
        for name, text in defaults.items():
            state = "empty" if name in data else "missing"
            self.report.warning(
                Code.BAD_ATTRIBUTE,
                f"attribute {name!r} is {state}; {text!r} is assumed, as OpenVINO does",
                where,
                f'the specification of the operation requires it: {name}="{text}"',
            )

    def _build(
        self, cls: type[Op], data: Mapping[str, str], bodies: Mapping[str, Body], where: Location
    ) -> Op:
        if cls.name == "Constant":
            op = cls.parse(data, value=None)
            return op if self.version is None and not self.path else self.constants.read(op, where)
        op = cls.parse(data, **bodies)
        if cls.name == "Parameter":
            check_size(vars(op)["shape"], self.limits, where)
        return op


@cached_by_class
def _attribute_names(cls: type[Op]) -> frozenset[str]:
    """Return the names that an operation's attributes have in files."""
    return frozenset(attribute.xml for attribute in cls.schema().values())


@cached_by_class
def _body_names(cls: type[Op]) -> tuple[str, ...]:
    return tuple(name for name in PORT_MAPS if name in cls.schema())


def _attributes(parts: Mapping[str, Sequence[Element]]) -> Mapping[str, str]:
    """Return the attributes of a layer's first ``<data>``, given the layer's children by tag."""
    data = parts.get("data")
    return MappingProxyType(attributes(data[0]) if data else {})


def read_parts(root: Element, reader: LayerReader) -> tuple[dict[int, Layer], Wiring]:
    """Read the ``<layers>`` and ``<edges>`` of a graph; return layers by id, and edges, and report errors in them.

    Raises:
        LimitError: if their number exceeds the limits.
    """
    where = Location(reader.file, root.sourceline)
    for name, path in (("layers", "layers/layer"), ("edges", "edges/edge")):
        reader.limits.check(name, sum(1 for _ in check_periodically(root.iterfind(path))), where)
    layers: dict[int, Layer] = {}
    left_out: frozenset[int] = frozenset()
    if reader.needed_only:
        left_out = unneeded_ids(root)
    for element in root.iterfind("layers/layer"):
        deadline.check()
        if left_out and reader.skips(element, left_out):
            continue
        layer = reader.read(element)
        if layer is None:
            continue
        if layer.id not in layers:
            layers[layer.id] = layer
            continue
        first = layers[layer.id]
        message = f"duplicate layer id {layer.id}: layer {first.name!r} at line {first.where.line} has it"
        reader.report.error(Code.DUPLICATE_ID, message, layer.where, mark=Mark(attribute="id"))
        reader.nameless = True
    unsure = None if reader.nameless else frozenset(reader.unsure)
    wiring = read_edges(root, layers, reader.file, reader.report, unsure, left_out)
    layers |= {layer.id: add_outputs(layer) for layer in layers.values() if not layer.outputs}
    return layers, wiring


def read_graph(root: Element, reader: LayerReader) -> Graph:
    """Read the graph of a body."""
    layers, wiring = read_parts(root, reader)
    return Graph(layers.values(), wiring.edges, wiring.severed)


def add_outputs(layer: Layer) -> Layer:
    """Return a layer without ``<output>`` with the outputs of its operation, as OpenVINO reads it.

    Model Optimizer omits ``<output>`` in Assign, as does the example in the specification.
    """
    if layer.op is None or layer.type == "Result" or any(port.variadic for port in layer.op.outputs):
        return layer
    first = 1 + max((port.id for port in layer.inputs), default=-1)
    return replace(layer, outputs=tuple(PortSpec(first + i) for i in range(len(layer.op.outputs))))


NEWEST = 17
"""The newest opset."""

EXACT = {"Constant": "Const", "Parameter": "Parameter", "Result": "Result", "Assign": "Assign"}
"""Types that OpenVINO compares case-sensitively; all others are case-insensitive."""

# The opsets of operations that files may declare as outside of opsets: OpenVINO accepts this for operations of opset6; those
# of opset15 belonged to openvino_tokenizers before.
FORMER = ("experimental", "extension")
_FORMERLY_OUTSIDE = {
    "ExperimentalDetectronDetectionOutput": 6,
    "ExperimentalDetectronGenerateProposalsSingleImage": 6,
    "ExperimentalDetectronPriorGridGenerator": 6,
    "ExperimentalDetectronROIFeatureExtractor": 6,
    "ExperimentalDetectronTopKROIs": 6,
    "GRUCell": 6,
    "Proposal": 6,
    "RNNCell": 6,
    "StringTensorPack": 15,
    "StringTensorUnpack": 15,
}


def resolve(type: str, version: str, on_page: bool = False) -> type[Op] | None:
    """Return the operation class of a ``<layer>``; ``None`` if it is unknown.

    Third-party operations may have any version, as they belong to sets of their own. Pages of the specification write
    ``Constant``, files ``Const``.
    """
    name = registry.name(type)
    if EXACT.get(name or "", type) != type and not (on_page and name == type):
        return None
    if version in FORMER and name in _FORMERLY_OUTSIDE:
        return registry.resolve(type, _FORMERLY_OUTSIDE[name])
    opset = opset_of(version)
    operation = registry.resolve(type, opset)
    if operation is None or opset is not None or not registry.is_own(operation):
        return operation
    return None


def opset_of(version: str) -> int | None:
    """Return the number of an opset by its name, or ``None`` if there is no such opset."""
    match = re.fullmatch(r"opset([1-9][0-9]?)", version)
    number = int(match.group(1)) if match else 0
    return number if 0 < number <= NEWEST else None


_TOKENIZERS = (
    "openvino_tokenizers has such operations, compiled against OpenVINO's library: tokenize with Hugging Face's package "
    "instead, and feed the ids to the model; one of your own is declared with ir_runtime.ops.op, see examples/custom_op"
)
_OF_YOUR_OWN = "declare an operation of your own with ir_runtime.ops.op; see examples/custom_op"


def unknown_operation(type: str, version: str) -> tuple[str, str]:
    """Return the message and the hint for an unknown operation."""
    versions = registry.versions(type)
    if not versions:
        return _no_such_type(type, version)
    name, opset = versions[0].name, opset_of(version)
    if EXACT.get(name, type) != type:
        return f"unknown operation {type!r} ({version})", suggestion(EXACT[name])
    if opset is None:
        return f"unknown opset {version!r}, expected opset1 to opset{NEWEST}", _opset_for(versions, version)
    return f"{version} has no {name}; {_span(versions, opset)}", ""


def _opset_for(versions: list[type[Op]], version: str) -> str:
    """Return a hint: the most similar opset name, or the first opset that has the operation."""
    first = f"{versions[0].name} starts with opset{versions[0].since}"
    names = [f"opset{number}" for number in range(1, NEWEST + 1)]
    return first if re.fullmatch(r"opset\d+", version) else did_you_mean(version.lower()[:20], names) or first


def _span(versions: list[type[Op]], opset: int) -> str:
    """Return a clause about the opsets that have an operation, none of which is ``opset``."""
    first, last = versions[0].since, versions[-1].until
    return f"it starts with opset{first}" if opset < first else f"the last to have it is opset{last}"


def _no_such_type(type: str, version: str) -> tuple[str, str]:
    if version == "extension":
        return f"{type!r} is an operation of {version!r}, which is outside OpenVINO's opsets", _TOKENIZERS
    near = registry.near(type)
    hint = suggestion(near, after=" Otherwise ") + _OF_YOUR_OWN
    if version and not version.startswith("opset"):
        return f"{type!r} is an operation of {version!r}, which is outside OpenVINO's opsets", hint
    opset = f" ({version})" if version else ""
    return f"unknown operation {type!r}{opset}", hint


@dataclass(frozen=True, slots=True)
class _Ties:
    """The layers and ports that the entries of a port map may name."""

    graph: Graph
    inputs: Mapping[int, int]
    outputs: Mapping[int, int]
    where: Location

    def inner(self, entry: Element, attribute: str, type: str) -> int:
        """Return the id of the body's Parameter or Result that an entry names."""
        number = integer(entry, attribute, self.where.file)
        if number not in self.graph.layers or self.graph[number].type != type:
            ids = [layer.id for layer in self.graph.of_type(type)]
            ends = (
                f"the ids of its {type}s are {', '.join(map(str, ids[:8]))}" if ids else f"it has no {type}s"
            )
            raise self._missing(entry, attribute, f"{number}, but no {type} of the body has that id", ends)
        return number

    def outer(self, entry: Element, ports: Mapping[int, int]) -> int:
        """Return the index of the layer's port that an entry names."""
        number = integer(entry, "external_port_id", self.where.file)
        if number not in ports:
            numbers = ", ".join(map(str, ports)) or "none"
            what = f"{number}, but the layer has no such {entry.tag} port"
            raise self._missing(entry, "external_port_id", what, f"its {entry.tag} ports are {numbers}")
        return ports[number]

    def _missing(self, entry: Element, attribute: str, what: str, hint: str) -> ParseError:
        message = f"{attribute!r} of <{entry.tag}> is {what}"
        return ParseError(message, code=Code.DANGLING_EDGE, where=_place(entry, self.where), hint=hint)


def read_body(
    element: Element,
    name: str,
    graph: Graph,
    inputs: Sequence[PortSpec],
    outputs: Sequence[PortSpec],
    where: Location,
) -> Body:
    """Read the body ``name`` of a layer, with its port map.

    Raises:
        ParseError: if the port map names layers or ports that do not exist.
    """
    entries = element.find(PORT_MAPS[name])
    ins = [] if entries is None else list(entries.iterfind("input"))
    outs = [] if entries is None else list(entries.iterfind("output"))
    ties = _Ties(graph, _places(inputs), _output_places(outputs, outs, where), where)
    back = element.iterfind("back_edges/edge") if name == "body" else ()
    return Body(
        name,
        graph,
        tuple(
            BodyInput(
                ties.outer(e, ties.inputs), ties.inner(e, "internal_layer_id", "Parameter"), _cut(e, where)
            )
            for e in ins
            if not _purpose(e, where)
        ),
        tuple(
            BodyOutput(
                ties.outer(e, ties.outputs), ties.inner(e, "internal_layer_id", "Result"), _cut(e, where)
            )
            for e in outs
            if not _purpose(e, where)
        ),
        tuple(
            BackEdge(ties.inner(e, "from-layer", "Result"), ties.inner(e, "to-layer", "Parameter"))
            for e in back
        ),
        _special(ties, ins, "current_iteration", "Parameter"),
        _special(ties, outs, "execution_condition", "Result"),
    )


def _places(ports: Sequence[PortSpec]) -> dict[int, int]:
    return {port.id: place for place, port in enumerate(ports)}


def _output_places(ports: Sequence[PortSpec], entries: Sequence[Element], where: Location) -> dict[int, int]:
    """Return the index of each output port by the number that port map entries use.

    That is the id of the port, or its position, from 0, if the entries name all positions and one of them is not an id.
    """
    places = _places(ports)
    tied = [entry for entry in entries if not _purpose(entry, where)]
    ids = {integer(entry, "external_port_id", where.file, signed=True) for entry in tied}
    counted = dict(zip(range(len(ports)), range(len(ports)), strict=True))
    return counted if ids == counted.keys() and not ids <= places.keys() else places


def _purpose(entry: Element, where: Location) -> bool:
    """Return whether a port map entry has no port, but marks the iteration number or the condition."""
    return entry.get("purpose") is not None and _number(entry, "external_port_id", where) == -1


def _special(ties: _Ties, entries: Sequence[Element], purpose: str, type: str) -> int | None:
    matches = [e for e in entries if e.get("purpose") == purpose]
    return ties.inner(matches[0], "internal_layer_id", type) if matches else None


def _cut(entry: Element, where: Location) -> Cut | None:
    if entry.get("axis") is None:
        return None
    names = [name for name in Cut._fields if entry.get(name) is not None]
    return Cut(**{name: _number(entry, name, where) for name in names})


def _number(entry: Element, attribute: str, where: Location) -> int:
    try:
        return integer(entry, attribute, where.file, signed=True)
    except ParseError as problem:
        raise ParseError(problem.message, code=problem.code, where=_place(entry, where)) from None


def _place(entry: Element, where: Location) -> Location:
    """Return the location of a port map entry."""
    return replace(where, line=entry.sourceline)


# Layers that no output needs: OpenVINO skips them, including any errors in them.

_ENDS = ("Result", "Assign")
_ROOTS = (*_ENDS, "Parameter")


def unneeded_ids(root: Element) -> frozenset[int]:
    """Return the ids of layers that no Result or Assign depends on.

    A layer without output ports counts as a Result, as its type may be misspelled. Parameters are always needed. Without
    any Result or Assign, all layers are needed.
    """
    inputs: dict[int | None, list[int | None]] = {}
    for edge in check_periodically(root.iterfind("edges/edge")):
        inputs.setdefault(_id(edge, "to-layer"), []).append(_id(edge, "from-layer"))
    ids: set[int | None] = set()
    waiting: list[int | None] = []
    has_ends = False
    for layer in check_periodically(root.iterfind("layers/layer")):
        number, type = _id(layer, "id"), layer.get("type")
        ids.add(number)
        has_ends |= type in _ENDS
        if type in _ROOTS or layer.find("output/port") is None:
            waiting.append(number)
    if not has_ends:
        return frozenset()
    needed: set[int | None] = {None}
    while waiting:
        if (number := waiting.pop()) not in needed:
            needed.add(number)
            waiting += inputs.get(number, ())
    return frozenset(number for number in ids if number is not None and number not in needed)


def _id(element: Element, attribute: str) -> int | None:
    """Return the id of a layer, or ``None`` if it is unreadable, which is reported elsewhere."""
    try:
        return integer(element, attribute, "")
    except ParseError:
        return None


def may_be_unneeded(graph: Graph, errors: Iterable[Diagnostic]) -> bool:
    """Return whether all errors may be in unneeded layers of a graph or of a body in it.

    Errors of dangling edges do not count, as they may be reported at either end. These edges are missing from the graph,
    so layers may seem unneeded.
    """
    needed: set[str | None] = set()
    unneeded: set[str | None] = set()
    _collect_names(graph, needed, unneeded)
    return bool(unneeded) and (needed - unneeded).isdisjoint(
        error.layer for error in errors if error.code != Code.DANGLING_EDGE
    )


def _collect_names(graph: Graph, needed: set[str | None], unneeded: set[str | None]) -> None:
    ids = graph.ancestors(layer.id for layer in graph.of_type(*_ROOTS))
    for layer in check_periodically(graph.layers.values()):
        (needed if layer.id in ids else unneeded).add(layer.name)
        for body in layer.bodies() if layer.id in ids else ():
            _collect_names(body.graph, needed, unneeded)
