"""Lint checks: duplicate names, dead branches, unused layers and suspicious values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ..._util.deadline import check_periodically
from ...codes import Code
from ...diagnostics import Diagnostics, Mark, Severity
from ...ir.graph import IO_TYPES, Graph, Layer, Port
from ...ir.signature import promotions
from ...ir.tensor import Value
from ..infer import Inferred, infer

__all__ = ["audit"]

_WIRING = (Code.DANGLING_EDGE, Code.UNCONNECTED, Code.CONNECTED_TWICE, Code.DUPLICATE_ID, Code.BAD_ELEMENT)


def audit(graph: Graph, values: Inferred, report: Diagnostics) -> None:
    """Report probable mistakes in a model that may run.

    Args:
        graph: the layers.
        values: the values from `infer`.
        report: takes the findings.
    """
    _names(graph, report)
    _tensor_names(graph, report)
    _check_unused_layers(graph, report)
    _suspicious_values(graph, values, report)
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
            # A body that was not inferred is checked with what its Parameters declare.
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


def _names(graph: Graph, report: Diagnostics) -> None:
    for name, layers in _group(
        (layer.name, layer) for layer in check_periodically(graph.layers.values())
    ).items():
        for again in layers[1:]:
            report.warning(
                Code.DUPLICATE_NAME,
                f"the layer at line {layers[0].where.line} is named {name!r}, too",
                again.where,
                "give it another name: layers are looked up by name",
                Mark(attribute="name"),
                "layers have the names of earlier ones",
            )


def _tensor_names(graph: Graph, report: Diagnostics) -> None:
    ports = (
        (n, la)
        for la in check_periodically(graph.layers.values())
        for p in la.outputs
        for n in dict.fromkeys(p.names)
    )
    for name, layers in _group(ports).items():
        for again in layers[1:]:
            report.warning(
                Code.DUPLICATE_NAME,
                f"a tensor of {layers[0]}, at line {layers[0].where.line}, is named {name!r}, too",
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


def _suspicious_values(graph: Graph, inferred: Mapping[Port, Value], report: Diagnostics) -> None:
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
                f"{', '.join(names)}, where the specification has one type; they are computed in {computed.label}, as by "
                f"OpenVINO",
                layer.where,
                "a Convert layer gives an input the type of the others",
            )


def _group(pairs: Iterable[tuple[str, Layer]]) -> Mapping[str, list[Layer]]:
    groups = defaultdict(list)
    for key, layer in pairs:
        groups[key].append(layer)
    return groups
