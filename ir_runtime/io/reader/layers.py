"""Read the layers and edges of a graph: a whole model, or a body."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..._util import deadline
from ..._util.cached import cached_by_class
from ..._util.deadline import check_periodically
from ..._util.nearest import did_you_mean
from ...codes import Code
from ...diagnostics import Diagnostics, Location, Mark
from ...errors import IRError, LimitError, ParseError, ValidationError
from ...ir.graph import Body, Graph, Layer, PortSpec
from ...ir.port_map import PORT_MAPS
from ...ir.tensor import TensorType
from ...limits import DEFAULT, Limits
from ...ops import Op, load_extensions, registry
from .bodies import read_body
from .constants import ConstantReader, ConstantSizes, declared_by_port, report_problem
from .document import Element, attributes, by_tag, integer
from .edges import Wiring, read_edges
from .opsets import FORMER, resolve, unknown_operation
from .ports import PortReader, check_size, first_info, tensor_names
from .weights import Weights

__all__ = ["FORMER_IR", "LayerReader", "NEWEST_IR", "read_parts", "with_outputs"]

FORMER_IR, NEWEST_IR = 10, 11


@dataclass(slots=True)
class LayerReader:
    """Reads the layers of one file; adds errors to ``report``.

    Models repeat their layers, so parts of them are cached.
    """

    file: str
    report: Diagnostics
    weights: Weights = field(default_factory=Weights)
    limits: Limits = DEFAULT
    graphs: Callable[[Element, LayerReader], Graph] | None = None
    """Reads the layers and edges of a body."""
    path: tuple[str, ...] = ()
    """Names of the layer and the body that contain the layers, if any."""
    unsure: set[int] = field(default_factory=set)
    """Ids of layers that could be read only in part."""
    nameless: bool = False
    """Whether the id of some layer could not be read."""
    version: int | None = NEWEST_IR
    """The version of the IR; ``None`` for pages of the specification, where layers may have no name."""
    sizes: ConstantSizes = field(default_factory=ConstantSizes)
    resolved: dict[tuple[str, str], tuple[type[Op] | None, str]] = field(default_factory=dict)
    """Operations found so far, with their names, by type and version."""
    types: dict[tuple[str | None, ...], TensorType] = field(default_factory=dict)
    """Types declared by ports so far, by precision and dims."""
    built: dict[tuple[type[Op], tuple[tuple[str, str], ...]], Op] = field(default_factory=dict)
    """Cache of operations without bodies or findings, by class and attributes."""
    needed_only: bool = False
    """Whether layers that no output needs are left out."""
    ports: PortReader = field(init=False)
    constants: ConstantReader = field(init=False)

    def __post_init__(self) -> None:
        self.ports = PortReader(self.file, self.report, self.limits, self.types)
        self.constants = ConstantReader(self.report, self.weights, self.limits, self.sizes)

    def read(self, element: Element, version: str | None = None) -> Layer | None:
        """Read a layer and report its errors; return ``None`` if its id cannot be read.

        Raises:
            LimitError: if its tensors are larger than the limits allow.
        """
        try:
            return self.layer(element, version)
        except ParseError as problem:
            self.report.add(problem.diagnostic)
            return self._remains(element)

    def skips(self, element: Element, left_out: Collection[int]) -> bool:
        """Return whether a layer is skipped; OpenVINO parses the id, name, version and ports even of skipped layers."""
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
        """Return a layer without attributes in place of an unreadable one, so that edges to it are valid."""
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
        """Read one layer. ``version`` is used if the element has none.

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
        declared = declared_by_port(cls, element, data) if self.version == FORMER_IR else data
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
        """Return the operation, or ``None`` if unknown, and its name with its version."""
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
        names = tensor_names(text)  # a Result may name the output of the model
        return tuple(replace(port, names=(*names, *port.names)) for port in ports) if names else ports

    def _bodies(
        self,
        cls: type[Op] | None,
        element: Element,
        inputs: Sequence[PortSpec],
        outputs: Sequence[PortSpec],
        where: Location,
    ) -> Mapping[str, Body]:
        """Return the bodies of the layer, by the names of their attributes."""
        bodies = {}
        for name in () if cls is None else _body_names(cls):
            inside = element.find(name)
            if inside is None:
                raise ParseError(f"<{name}> of the layer is missing", code=Code.BAD_ELEMENT, where=where)
            bodies[name] = read_body(element, name, self._graph(inside, name, where), inputs, outputs, where)
        return bodies

    def _graph(self, element: Element, name: str, where: Location) -> Graph:
        self.limits.check("nesting", len(self.path) // 2 + 1, where)
        assert self.graphs is not None
        inside = replace(self, path=(where.layer or "", name), unsure=set(), nameless=False)
        return self.graphs(element, inside)

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
        """Create an operation from its attributes; report errors in them."""
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
                self.report.error(finding.code, finding.message, where, finding.hint)
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
    """Return the names of an operation's attributes in files."""
    return frozenset(attribute.xml for attribute in cls.schema().values())


@cached_by_class
def _body_names(cls: type[Op]) -> tuple[str, ...]:
    return tuple(name for name in PORT_MAPS if name in cls.schema())


def _attributes(parts: Mapping[str, Sequence[Element]]) -> Mapping[str, str]:
    """Return the attributes of the first ``<data>`` of a layer, given its children by tag."""
    data = parts.get("data")
    return MappingProxyType(attributes(data[0]) if data else {})


def read_parts(root: Element, reader: LayerReader) -> tuple[dict[int, Layer], Wiring]:
    """Return the ``<layers>`` of a graph by id, and its ``<edges>``; report errors in them.

    Raises:
        LimitError: if their number exceeds the limits.
    """
    where = Location(reader.file, root.sourceline)
    for name, path in (("layers", "layers/layer"), ("edges", "edges/edge")):
        reader.limits.check(name, sum(1 for _ in check_periodically(root.iterfind(path))), where)
    layers: dict[int, Layer] = {}
    left_out: frozenset[int] = frozenset()
    if reader.needed_only:
        from .needed import unneeded_ids

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
    layers |= {layer.id: with_outputs(layer) for layer in layers.values() if not layer.outputs}
    return layers, wiring


def with_outputs(layer: Layer) -> Layer:
    """Give a layer without ``<output>`` the outputs of its operation, as OpenVINO does; no edge starts there.

    Model Optimizer omits it in Assign, as does the example in the specification.
    """
    if layer.op is None or layer.type == "Result" or any(port.variadic for port in layer.op.outputs):
        return layer
    first = 1 + max((port.id for port in layer.inputs), default=-1)
    return replace(layer, outputs=tuple(PortSpec(first + i) for i in range(len(layer.op.outputs))))
