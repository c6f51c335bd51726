"""The definition of a valid graph.

A graph is valid if its structure is sound (every input connected, no cycle, every output port known to the operation),
inference accepts every layer and agrees with the declarations of ports, and its variables are consistent: `check_graph`.
Reading, editing and compiling require this. `validate` also reports probable mistakes, such as duplicate names, unused
layers and bytes without an owner.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from .._util.deadline import check_periodically
from ..codes import DECLARED, Code
from ..diagnostics import Diagnostic, Diagnostics, Location, Mark, Severity
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.graph import IO_TYPES, Body, Graph, Layer, Port
from ..ir.shape import PartialShape
from ..ir.signature import promotions
from ..ir.tensor import TensorType, Value
from ..ops.infrastructure import ReadValue
from .infer import Former, Inferred, infer

__all__ = [
    "COMPILED_WITH",
    "Checked",
    "SAVED_WITH",
    "audit",
    "check_bytes",
    "check_graph",
    "check_shapes",
    "validate",
    "variable_id",
    "variables_of",
    "with_variables",
]

SAVED_WITH = frozenset({Code.UNKNOWN_OPERATION, *DECLARED})
"""Codes of findings that do not prevent saving: unknown operations are written as they were read, and declarations of
ports are replaced by inferred ones."""

COMPILED_WITH = frozenset(
    {
        Code.BAD_ATTRIBUTE,
        *DECLARED,
        Code.UNKNOWN_OPERATION,
        Code.WEIGHTS_MISSING,
        Code.WEIGHTS_RANGE,
    }
)
"""Codes of findings that do not prevent compiling: it considers only needed layers, and refuses those without an operation;
declarations of ports do not affect results."""


class Checked(NamedTuple):
    """The result of `check_graph`."""

    values: Inferred
    """The inferred value of every output."""
    contradicted: Diagnostics | None = None
    """The findings with declarations of ports ignored; ``None`` unless inference contradicts some."""


def check_graph(
    graph: Graph,
    report: Diagnostics,
    *,
    strict: bool = False,
    is_page: bool = False,
    is_built: bool = False,
    former: Former | None = None,
) -> Checked:
    """Check that a graph is valid, and report its errors.

    Args:
        graph: the layers.
        report: collects the findings; it has those of reading already.
        strict: report every contradicted declaration as an error, even if no layer computes with it.
        is_page: whether the layers are an example from a documentation page, which may show an Assign or a ReadValue alone.
        is_built: whether the graph was derived from nodes, so that its ports declare nothing.
        former: values from before the graph was edited, for reuse.
    """
    _check_structure(graph, report)
    if is_built:
        return Checked(_infer(graph, report, is_page, compare=False, former=former))
    unreported = Diagnostics(report.most)
    unreported.extend(report)
    values = _infer(graph, report, is_page, strict=strict)
    if all(report.count(code=code) == unreported.count(code=code) for code in DECLARED):
        return Checked(values)
    return Checked(_infer(graph, unreported, is_page, compare=False), unreported)


def _infer(
    graph: Graph,
    report: Diagnostics,
    is_page: bool,
    compare: bool | None = None,
    strict: bool = False,
    former: Former | None = None,
) -> Inferred:
    values = infer(graph, report, compare=compare, explain=True, strict=strict, former=former)
    _check_assigned(graph, values, report)
    _check_assigns(graph, report, is_page)
    return values


def check_shapes(graph: Graph, report: Diagnostics, parameters: Mapping[int, Value]) -> Inferred:
    """Check a valid graph with other types of its Parameters; report errors, and return the inferred values.

    Args:
        graph: the layers.
        report: collects the findings.
        parameters: the values of Parameters, by layer id.
    """
    values = infer(graph, report, parameters, explain=True)
    _check_assigned(graph, values, report)
    return values


def validate(
    graph: Graph,
    report: Diagnostics | None = None,
    values: Inferred | None = None,
    *,
    parameters: Mapping[int, TensorType] | None = None,
    weights: tuple[str, int] | None = None,
    is_page: bool = False,
) -> Diagnostics:
    """Find errors and probable mistakes in a graph; return the report.

    >>> from ir_runtime.io.reader.model import load
    >>> xml = b'''<net name="n" version="11"><layers>
    ... <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
    ... <output><port id="0"><dim>2</dim></port></output></layer></layers><edges/></net>'''
    >>> validate(load(xml)[0].graph).summary
    '0 errors, 0 warnings'

    Args:
        graph: the layers.
        report: collects the findings; it has those of reading already, and with ``values`` those of `check_graph`.
        values: the values from `check_graph`; by default, it is called.
        parameters: the types of the Parameters, by layer id; if given, their dynamic lengths are checked for feasibility.
        weights: the name of the ``.bin``, and its size in bytes, which constants must cover.
        is_page: whether the layers are an example from a documentation page.
    """
    from .constraints.solver import check_lengths

    report = Diagnostics() if report is None else report
    if values is None:
        values = check_graph(graph, report, is_page=is_page).values
    audit(graph, values, report)
    if not is_page:
        _check_reads(graph, report)
    if weights is not None:
        name, size = weights
        check_bytes(graph, size, name, report)
    if parameters is not None and report.ok:
        check_lengths(graph, values, parameters, report)
    return report


def _check_structure(graph: Graph, report: Diagnostics) -> None:
    """Report inputs without an edge, cycles, and unknown output ports."""
    for layer in check_periodically(graph.layers.values()):
        _check_inputs(graph, layer, report)
        bodies = layer.bodies()
        _check_outputs(layer, bodies, report)
        for body in bodies:
            _check_structure(body.graph, report)
    for cycle in graph.cycles():
        path = " → ".join(repr(layer.name) for layer in [*cycle[:6], cycle[0]])
        report.error(
            Code.CYCLE,
            f"the graph has a cycle: {path}",
            cycle[0].where,
            "one of the edges between them is wrong",
        )


def _check_inputs(graph: Graph, layer: Layer, report: Diagnostics) -> None:
    sources = graph.sources(layer)
    for index, source in enumerate(sources) if None in sources else ():
        if source is not None or Port(layer.id, index) in graph.severed:
            continue
        port = layer.op.port_of(index) if layer.op else None
        name = f" ({port.name})" if port else ""
        report.error(
            Code.UNCONNECTED,
            f"input port {layer.inputs[index].id}{name} has no edge",
            layer.where,
            "connect it, or remove the port if the input is optional",
            mark=Mark(port=layer.inputs[index].id),
        )


def _check_outputs(layer: Layer, bodies: Sequence[Body], report: Diagnostics) -> None:
    op = layer.op
    if bodies:
        _check_port_map(layer, bodies, report)
    if op is None or op.name == "Result" or 0 < len(layer.outputs) <= len(op.outputs):
        return
    if not any(port.variadic for port in op.outputs):
        report.error(
            Code.PORT_COUNT,
            f"declares {len(layer.outputs)} outputs; {op.versioned_name()} has {len(op.outputs)}",
            layer.where,
        )


def _check_port_map(layer: Layer, bodies: Sequence[Body], report: Diagnostics) -> None:
    """Report output ports beyond the last one in the port map; inference reports those missing in between."""
    mapped = max((output.port for body in bodies for output in body.outputs), default=-1) + 1
    for spec in layer.outputs[mapped:]:
        report.error(
            Code.PORT_COUNT,
            f"output port {spec.id} of the layer has no value: the port map of {bodies[0].name} has no <output> "
            f"for it",
            layer.where,
            mark=Mark(port=spec.id, output=True),
        )


_MARK = Mark(attribute="variable_id")


def _check_assigns(graph: Graph, report: Diagnostics, is_page: bool = False) -> None:
    """Report variables that are assigned but never read, or assigned twice; such models do not run.

    OpenVINO requires Assign and ReadValue in the same graph, and that the ReadValue is used.

    Args:
        graph: the layers, including those inside bodies.
        report: takes the findings.
        is_page: whether the layers are an example from a documentation page, which may show one of the two alone.
    """
    if assigned := _group_by_variable(graph.of_type("Assign")):
        needed = graph.ancestors(layer.id for layer in graph.of_type("Result", "Assign"))
        reads = _group_by_variable(graph.of_type("ReadValue"))
        for name, layers in assigned.items():
            if name in reads or not is_page:
                _check_read(name, layers[0], reads.get(name, []), needed, report)
            _check_once(name, layers, report)
    for layer in graph.layers.values():
        for body in layer.bodies():
            _check_assigns(body.graph, report)


def _check_read(
    name: str, assign: Layer, reads: Sequence[Layer], needed: Collection[int], report: Diagnostics
) -> None:
    if any(layer.id in needed for layer in reads):
        return
    missing = f"the output of {reads[0]} is not used" if reads else "no ReadValue reads it"
    hint = "connect the ReadValue, or remove both" if reads else "add the ReadValue"
    message = f"variable {name!r} is assigned, but {missing}"
    report.error(Code.VARIABLE, message, assign.where, hint, mark=_MARK)


def _check_once(name: str, layers: Sequence[Layer], report: Diagnostics) -> None:
    for again in layers[1:]:
        message = f"variable {name!r} is also assigned at line {layers[0].where.line}"
        report.error(Code.VARIABLE, message, again.where, "remove one of them", mark=_MARK)


def _check_reads(graph: Graph, report: Diagnostics) -> None:
    """Report variables that are read but never assigned; they keep their initial value.

    Args:
        graph: the layers, including those inside bodies.
        report: takes the findings.
    """
    every = list(check_periodically(graph.everywhere()))
    assigned = _group_by_variable(layer for layer in every if layer.type == "Assign")
    for name, layers in _group_by_variable(layer for layer in every if layer.type == "ReadValue").items():
        if name not in assigned:
            message = f"variable {name!r} is read, but no Assign gives it a value"
            hint = "add the Assign, or feed the value as a Parameter"
            report.warning(Code.VARIABLE, message, layers[0].where, hint, _MARK)


def _check_assigned(graph: Graph, values: Mapping[Port, Value], report: Diagnostics) -> None:
    """Report Assign layers whose type does not fit the variable."""
    variables = variables_of(graph, values)
    for layer, assigned in _assigned_types(graph, values):
        variable = variables.get(variable_id(layer))
        if variable is None or _fits(assigned, variable):
            continue
        report.error(
            Code.CONTRADICTION,
            f"assigns {assigned} to variable {variable_id(layer)!r}, which is read as {variable}",
            layer.where,
            "give the variable a variable_shape that allows all its shapes",
        )


def _assigned_types(graph: Graph, values: Mapping[Port, Value]) -> Iterator[tuple[Layer, TensorType]]:
    for layer in graph.of_type("Assign"):
        for source in graph.sources(layer)[:1] if layer.op is not None else ():
            if source is not None and source in values:
                yield layer, values[source].type


def _fits(assigned: TensorType, variable: TensorType) -> bool:
    same = ElementType.dynamic in (assigned.element, variable.element) or assigned.element is variable.element
    return same and assigned.shape.compatible(variable.shape)


def _group_by_variable(layers: Iterable[Layer]) -> Mapping[str, list[Layer]]:
    groups: defaultdict[str, list[Layer]] = defaultdict(list)
    for layer in layers:
        if layer.op is not None:
            groups[vars(layer.op)["variable_id"]].append(layer)
    return groups


def variables_of(graph: Graph, values: Mapping[Port, Value]) -> dict[str, TensorType]:
    """Return the type of each variable, taken from its first ReadValue, in file order."""
    types: dict[str, TensorType] = {}
    for layer in graph.of_type("ReadValue"):
        value = values.get(Port(layer.id, 0))
        if layer.op is not None and value is not None:
            types.setdefault(variable_id(layer), value.type)
    return types


def with_variables(graph: Graph, shapes: Mapping[str, PartialShape]) -> Graph:
    """Return the graph with new shapes of variables, given by variable id.

    Raises:
        InputError: if the ReadValue of a variable has no shape of its own, as before version 6.
    """
    layers = [_reshape(la, shapes) if la.type == "ReadValue" else la for la in graph.layers.values()]
    return Graph(layers, graph.edges, graph.severed)


def _reshape(layer: Layer, shapes: Mapping[str, PartialShape]) -> Layer:
    if layer.op is None or (shape := shapes.get(variable_id(layer))) is None:
        return layer
    if not isinstance(layer.op, ReadValue):
        raise InputError(
            f"variable {variable_id(layer)!r} is read by {layer}, and so has the shape of its initial value",
            code=Code.BAD_REQUEST,
            where=layer.where,
            hint="reshape the inputs that the initial value depends on",
        )
    op = ReadValue(**{**layer.op.attributes(), "variable_shape": shape})
    attributes = {**layer.attributes, "variable_shape": str(shape).removeprefix("[").removesuffix("]")}
    return replace(layer, op=op, attributes=attributes)


def variable_id(layer: Layer) -> str:
    """Return the id of the variable that a ReadValue or an Assign names."""
    return layer.attributes["variable_id"]


_WIRING = (Code.DANGLING_EDGE, Code.UNCONNECTED, Code.CONNECTED_TWICE, Code.DUPLICATE_ID, Code.BAD_ELEMENT)


def audit(graph: Graph, values: Inferred, report: Diagnostics) -> None:
    """Report probable mistakes in a model that may run.

    Args:
        graph: the layers.
        values: the values from `infer`.
        report: takes the findings.
    """
    _check_names(graph, report)
    _check_tensor_names(graph, report)
    _check_unused_layers(graph, report)
    _check_values(graph, values, report)
    _check_mixed_types(graph, values, report)
    for layer in check_periodically(graph.layers.values()):
        bodies = layer.bodies()
        inferred = {body.name: values.bodies.get((layer.id, body.name)) for body in bodies}
        for body in bodies:
            inner = inferred[body.name]
            if inner is None and any(
                inference is not None for inference in inferred.values()
            ):  # the other branch is known to run
                _report_dead_branch(layer, body.name, report)
            # A body that was not inferred is checked with the declared types of its Parameters.
            if inner is None:
                inner = infer(body.graph, report, explain=True)
            audit(body.graph, inner, report)


def _report_dead_branch(layer: Layer, name: str, report: Diagnostics) -> None:
    report.note(
        Code.DEAD_BRANCH,
        f"<{name}> never runs, as the condition is a constant",
        layer.where,
        "if that is not intended, correct the condition; else keep only the other branch",
    )


def _check_names(graph: Graph, report: Diagnostics) -> None:
    for name, first, again in _find_repeated(
        (layer.name, layer) for layer in check_periodically(graph.layers.values())
    ):
        report.warning(
            Code.DUPLICATE_NAME,
            f"the layer at line {first.where.line} is also named {name!r}",
            again.where,
            "give it another name: layers are looked up by name",
            Mark(attribute="name"),
            "layers have the names of earlier ones",
        )


def _check_tensor_names(graph: Graph, report: Diagnostics) -> None:
    ports = (
        (n, la)
        for la in check_periodically(graph.layers.values())
        for p in la.outputs
        for n in dict.fromkeys(p.names)
    )
    for name, first, again in _find_repeated(ports):
        report.warning(
            Code.DUPLICATE_NAME,
            f"a tensor of {first}, at line {first.where.line}, is also named {name!r}",
            again.where,
            "tensors are looked up by name: give each a unique name",
            Mark(attribute="names"),
            "tensors have the names of earlier ones",
        )


def _check_unused_layers(graph: Graph, report: Diagnostics) -> None:
    """Report layers that no output depends on; of a chain, only the last."""
    if graph.severed or any(report.count(Severity.ERROR, code) for code in _WIRING):
        return  # unconnected edges hide which layers are used
    wrong = report.wrong
    for layer in check_periodically(graph.layers.values()):
        ends = layer.name in wrong or layer.type in IO_TYPES or layer.op is None or layer.op.has_side_effects
        if ends or any(map(graph.readers, layer.output_ports)):
            continue
        report.warning(
            Code.UNREAD,
            "the outputs of the layer are not used, so it is not run",
            layer.where,
            "remove it, or connect it to the layer or Result that needs it",
        )


def _check_values(graph: Graph, inferred: Mapping[Port, Value], report: Diagnostics) -> None:
    """Report suspicious values of constants that inference accepts."""
    wrong = report.wrong
    for layer in check_periodically(graph.layers.values()):
        inputs = [inferred.get(source) for source in graph.sources(layer) if source is not None]
        values = [value for value in inputs if value is not None]
        if layer.op is None or len(values) != len(layer.inputs) or layer.where.layer in wrong:
            continue
        for message in layer.op.audit(*values):
            report.warning(Code.SUSPICIOUS_VALUES, message, layer.where)


def _check_mixed_types(graph: Graph, inferred: Mapping[Port, Value], report: Diagnostics) -> None:
    """Report inputs of several floating-point types where the specification requires one."""
    for layer in check_periodically(graph.layers.values()):
        op, sources = layer.op, graph.reads(layer)
        if op is None or not op.has_mixed_inputs or any(source not in inferred for source in sources):
            continue
        types = [inferred[source].element for source in sources]
        for variable, computed in promotions(op.inputs, types).items():
            pairs = [(op.port_of(index), element) for index, element in enumerate(types)]
            names = [
                f"{p.name} is {e.label}" for p, e in pairs if p is not None and p.element.name == variable
            ]
            report.warning(
                Code.ELEMENT_TYPE,
                f"{', '.join(names)}, but the specification requires one type; they are computed in {computed.label}, as in "
                f"OpenVINO",
                layer.where,
                "insert a Convert layer to give all inputs the same type",
            )


def _find_repeated(pairs: Iterable[tuple[str, Layer]]) -> Iterator[tuple[str, Layer, Layer]]:
    """Yield each duplicate of a name: the name, the first layer that has it, and the later one."""
    groups = defaultdict(list)
    for name, layer in pairs:
        groups[name].append(layer)
    for name, (first, *others) in groups.items():
        for again in others:
            yield name, first, again


# Constants may be aligned: gaps smaller than this are padding.
_PADDING = 64


class _Range(NamedTuple):
    start: int
    end: int
    layer: Layer


def check_bytes(graph: Graph, size: int, name: str, report: Diagnostics) -> None:
    """Report constants whose bytes overlap, and bytes that belong to no constant.

    Constants with exactly the same bytes are one deduplicated constant.

    Args:
        graph: the layers, including those inside bodies.
        size: the size of the ``.bin`` in bytes.
        name: its name, for messages.
        report: takes the findings.
    """
    ranges = sorted({(r.start, r.end): r for r in _ranges(graph)}.values(), key=lambda r: r[:2])
    if any(r.end > size for r in ranges):
        return  # reported already, and may be the reason for overlaps
    _check_overlaps(ranges, report)
    # If there are other errors, the graph may lack constants that the file has.
    orphans = [] if not report.ok else [(a, b) for a, b in _gaps(ranges, size) if b - a >= _PADDING]
    if orphans:
        total = sum(b - a for a, b in orphans)
        report.warning(
            Code.ORPHAN_BYTES,
            f"{total} bytes belong to no constant, from byte {orphans[0][0]} on",
            Location(name),
            "constants may be missing from the .xml, or the .bin belongs to another model",
        )


def _check_overlaps(ranges: Sequence[_Range], report: Diagnostics) -> None:
    """Report overlaps, as warnings, since OpenVINO reads such files, or as errors if they caused other errors.

    The other errors are withdrawn, so that a mistake is reported once, at its origin.
    """
    misplaced: dict[str, tuple[_Range, _Range]] = {}
    for wrong, other in _overlaps(ranges):
        misplaced.setdefault(wrong.layer.name, (wrong, other))
    if not misplaced:
        return
    consequences = [finding for finding in report if _causes(finding) & misplaced.keys()]
    refused = {
        name for finding in consequences if finding.severity is Severity.ERROR for name in _causes(finding)
    }
    report.withdraw(lambda finding: bool(_causes(finding) & misplaced.keys()))
    for name, (wrong, other) in misplaced.items():
        message = (
            f"bytes {wrong.start} to {wrong.end} of the .bin overlap those of {other.layer}, "
            f"at line {other.layer.where.line}, which has bytes {other.start} to {other.end}"
        )
        severity = Severity.ERROR if name in refused else Severity.WARNING
        hint = "the offset or the size of one of them is wrong"
        place, mark = wrong.layer.where, Mark(attribute="offset")
        report.add(Diagnostic(Code.SHARED_BYTES, message, place, severity, hint, mark))


def _causes(finding: Diagnostic) -> set[str | None]:
    """Return the names of the layers among the causes of a finding."""
    return {cause.where.layer for cause in finding.causes}


def _ranges(graph: Graph) -> Iterator[_Range]:
    for layer in check_periodically(graph.everywhere()):
        if layer.type == "Constant" and layer.op is not None:
            attributes = vars(layer.op)
            if attributes["value"].size:
                yield _Range(attributes["offset"], attributes["offset"] + attributes["size"], layer)


def _overlaps(ranges: Sequence[_Range]) -> Iterator[tuple[_Range, _Range]]:
    """Yield overlapping pairs of ranges, first the one that is probably misplaced: fewer others end or begin at its bounds."""
    edges = Counter(edge for r in ranges for edge in (r.start, r.end))
    furthest: _Range | None = None
    for current in ranges:
        if furthest is not None and current.start < furthest.end:
            # A constant in its place begins where another ends, or ends where another begins.
            wrong, other = sorted((current, furthest), key=lambda r: edges[r.start] + edges[r.end])
            yield wrong, other
        if furthest is None or current.end > furthest.end:
            furthest = current


def _gaps(ranges: Sequence[_Range], size: int) -> Iterator[tuple[int, int]]:
    reached = 0
    for current in ranges:
        if current.start > reached:
            yield reached, current.start
        reached = max(reached, current.end)
    if reached < size:
        yield reached, size
