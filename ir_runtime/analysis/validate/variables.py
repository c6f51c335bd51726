"""Check that every variable is read and assigned, and can hold its assigned values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ..._util.deadline import check_periodically
from ...codes import Code
from ...diagnostics import Diagnostics, Mark
from ...ir.element import ElementType
from ...ir.graph import Graph, Layer, Port
from ...ir.tensor import TensorType, Value
from ..state import variable_id, variables_of

__all__ = ["check_assigned", "check_assigns", "check_reads"]

_MARK = Mark(attribute="variable_id")


def check_assigns(graph: Graph, report: Diagnostics, is_page: bool = False) -> None:
    """Report variables that are assigned but never read, or assigned twice; such models do not run.

    OpenVINO requires Assign and ReadValue in the same graph, and that the ReadValue is used.

    Args:
        graph: the layers, including those inside bodies.
        report: takes the findings.
        is_page: whether the layers are an example from a documentation page, which may show one of the two alone.
    """
    if assigned := _by_variable(graph.of_type("Assign")):
        needed = graph.ancestors(layer.id for layer in graph.of_type("Result", "Assign"))
        reads = _by_variable(graph.of_type("ReadValue"))
        for name, layers in assigned.items():
            if name in reads or not is_page:
                _check_read(name, layers[0], reads.get(name, []), needed, report)
            _check_once(name, layers, report)
    for layer in graph.layers.values():
        for body in layer.bodies():
            check_assigns(body.graph, report)


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
        message = f"variable {name!r} is assigned at line {layers[0].where.line}, too"
        report.error(Code.VARIABLE, message, again.where, "remove one of them", mark=_MARK)


def check_reads(graph: Graph, report: Diagnostics) -> None:
    """Report variables that are read but never assigned; they keep their initial value.

    Args:
        graph: the layers, including those inside bodies.
        report: takes the findings.
    """
    every = list(check_periodically(graph.everywhere()))
    assigned = _by_variable(layer for layer in every if layer.type == "Assign")
    for name, layers in _by_variable(layer for layer in every if layer.type == "ReadValue").items():
        if name not in assigned:
            message = f"variable {name!r} is read, but no Assign gives it a value"
            hint = "add the Assign, or feed the value as a Parameter"
            report.warning(Code.VARIABLE, message, layers[0].where, hint, _MARK)


def check_assigned(graph: Graph, values: Mapping[Port, Value], report: Diagnostics) -> None:
    """Report assigned types that do not fit the variable."""
    variables = variables_of(graph, values)
    for layer, assigned in _assigned_types(graph, values):
        variable = variables.get(variable_id(layer))
        if variable is None or _fits(assigned, variable):
            continue
        report.error(
            Code.CONTRADICTION,
            f"assigns {assigned} to variable {variable_id(layer)!r}, which is read as {variable}",
            layer.where,
            "a variable of other shapes needs a variable_shape that allows them",
        )


def _assigned_types(graph: Graph, values: Mapping[Port, Value]) -> Iterator[tuple[Layer, TensorType]]:
    for layer in graph.of_type("Assign"):
        for source in graph.sources(layer)[:1] if layer.op is not None else ():
            if source is not None and source in values:
                yield layer, values[source].type


def _fits(assigned: TensorType, variable: TensorType) -> bool:
    same = ElementType.dynamic in (assigned.element, variable.element) or assigned.element is variable.element
    return same and assigned.shape.compatible(variable.shape)


def _by_variable(layers: Iterable[Layer]) -> Mapping[str, list[Layer]]:
    groups: defaultdict[str, list[Layer]] = defaultdict(list)
    for layer in layers:
        if layer.op is not None:
            groups[vars(layer.op)["variable_id"]].append(layer)
    return groups
