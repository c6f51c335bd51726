"""Conversion between pairs of model inputs and outputs and variables, which persist between runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ...codes import Code
from ...errors import InputError
from ..model import Model
from ..names import unknown_name
from ..node import Node, Output
from .ends import Assign, Parameter, ReadValue, Result
from .variables import Variable, VariableInfo

__all__ = ["Pairs", "make_stateful", "make_stateless"]

Pairs: TypeAlias = "Mapping[str, str] | Iterable[tuple[Node, Node]]"
"""Pairs of an input and the output that provides its value in the next run, as tensor names or as nodes."""


def make_stateful(model: Model, pairs: Pairs) -> None:
    """Replace pairs of inputs and outputs with variables, which carry an output over to the next run.

    Args:
        model: the model, from which the inputs and outputs are removed.
        pairs: the pairs of an input and an output, by tensor names or as Parameters and Results.

    Raises:
        InputError: if the model has no such input or output.
    """
    for parameter, result, id in _nodes(model, pairs):
        _replace(model, parameter, result, id)
    model.validate_nodes_and_infer_types()


def _nodes(model: Model, pairs: Pairs) -> list[tuple[Node, Node, str]]:
    """Return each pair of an input and an output with the id of its variable, the two names concatenated."""
    if not isinstance(pairs, Mapping):
        nodes = [
            (_require_member(model.parameters, p, "input"), _require_member(model.results, r, "output"))
            for p, r in pairs
        ]
        return [(p, r, p.friendly_name + r.friendly_name) for p, r in nodes]
    return [
        (
            _parse_name(model.parameters, source, "input"),
            _parse_name(model.results, target, "output"),
            source + target,
        )
        for source, target in pairs.items()
    ]


def _require_member(nodes: Sequence[Node], node: Node, what: str) -> Node:
    if node not in nodes:
        raise InputError(f"{node!r} is not an {what} of the model", code=Code.NO_SUCH_NAME)
    return node


def _parse_name(nodes: Sequence[Node], name: str, what: str) -> Node:
    for node in nodes:
        if name in node.output(0).names:
            return node
    raise unknown_name(what, name, sorted({n for node in nodes for n in node.output(0).names}))


def _replace(model: Model, parameter: Node, result: Node, id: str) -> None:
    input_port = parameter.output(0)
    variable = Variable(VariableInfo.of(id, input_port.element_type, input_port.partial_shape))
    read_value = ReadValue(variable)
    for reader in input_port.target_inputs:
        reader.replace_source_output(read_value.output(0))
    assign = Assign(result.input_value(0), variable)
    model.remove_parameter(parameter)
    model.remove_result(result)
    model.add_sinks([assign])
    model.add_variables([variable])


# The id of a KV-cache variable, for which optimum-intel concatenates the names of the former input and output.
_CACHE = re.compile(
    r"(?P<input>past_key_values\.(?P<layer>\d+)\.(?P<part>key|value))(?P<output>present\.\d+\.\w+)"
)
_BEAMS = "beam_idx"


def make_stateless(model: Model) -> None:
    """Replace the KV-cache variables of a language model with inputs and outputs.

    These are the variables that are gathered by the input ``beam_idx``, which is removed.

    Args:
        model: the model, which is changed.

    Raises:
        InputError: if there is no such input, or it gathers from a tensor that is not a variable.
    """
    beams = next((node for node in model.parameters if _BEAMS in node.output(0).names), None)
    if beams is None:
        raise InputError(
            f"the model has no input {_BEAMS!r}, which selects entries of its variables",
            code=Code.BAD_REQUEST,
            hint="variables of other models cannot be turned into inputs",
        )
    targets = [target.get_node() for target in beams.output(0).target_inputs]
    gathers = {_variable_of(node): node for node in targets if node.type == "Gather"}
    assigns = [node for node in model.sinks if isinstance(node, Assign) and node.get_variable_id() in gathers]
    model.remove_parameter(beams)
    for assign in sorted(assigns, key=lambda node: _place(node.get_variable_id())):
        _expose(model, assign, gathers[assign.get_variable_id()].output(0))
    model.validate_nodes_and_infer_types()


def _variable_of(gather: Node) -> str:
    source = gather.input_value(0).node
    if not isinstance(source, ReadValue):
        raise InputError(
            f"{_BEAMS!r} must select entries of a variable, but {gather.friendly_name!r} reads a {source.type}",
            code=Code.BAD_REQUEST,
        )
    return source.get_variable_id()


def _place(id: str) -> tuple[int, str]:
    """Return a sort key that orders caches by layer, keys before values."""
    match = _CACHE.fullmatch(id)
    return (int(match["layer"]), match["part"]) if match else (0, "")


def _expose(model: Model, assign: Assign, selected: Output) -> None:
    id = assign.get_variable_id()
    match = _CACHE.fullmatch(id)
    names = (match["input"], match["output"]) if match else (f"input_restored.{id}", f"output_restored.{id}")
    parameter = Parameter(selected.element_type, selected.partial_shape)
    selected.replace(parameter.output(0))
    result = Result.with_names(assign.input_value(0))
    model.remove_sink(assign)
    model.add_parameters([parameter])
    model.add_results([result])
    for node, name in zip((parameter, result), names, strict=True):
        node.set_friendly_name(name)
        node.output(0).set_names([name])
    if (variable := model.get_variable_by_id(id)) is not None:
        model.remove_variable(variable)
