"""Turn inputs and outputs of a model into variables, which outlive a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ...codes import Code
from ...errors import InputError
from ..editing import Editing
from ..names import unknown_name
from ..nodes import Node
from .ends import Assign, ReadValue
from .variables import Variable, VariableInfo

__all__ = ["Pairs", "make_stateful"]

Pairs: TypeAlias = "Mapping[str, str] | Iterable[tuple[Node, Node]]"
"""Inputs with the outputs whose values they get in the next run: names of tensors, or Parameters and Results."""


def make_stateful(model: Editing, pairs: Pairs) -> None:
    """Let inputs be variables that hold, from run to run, what outputs give.

    Args:
        model: the model, which loses the inputs and outputs.
        pairs: which; by names of tensors, or as Parameters and Results.

    Raises:
        InputError: if the model has no such input or output.
    """
    for parameter, result, id in _nodes(model, pairs):
        _replace(model, parameter, result, id)
    model.validate_nodes_and_infer_types()


def _nodes(model: Editing, pairs: Pairs) -> list[tuple[Node, Node, str]]:
    """Return inputs and outputs with the ids of their variables: the two names that they were asked for by."""
    if not isinstance(pairs, Mapping):
        found = [(_of(model.parameters, p, "input"), _of(model.results, r, "output")) for p, r in pairs]
        return [(p, r, p.friendly_name + r.friendly_name) for p, r in found]
    return [
        (_named(model.parameters, source, "input"), _named(model.results, target, "output"), source + target)
        for source, target in pairs.items()
    ]


def _of(nodes: Sequence[Node], node: Node, what: str) -> Node:
    if node not in nodes:
        raise InputError(f"{node!r} is not an {what} of the model", code=Code.NO_SUCH_NAME)
    return node


def _named(nodes: Sequence[Node], name: str, what: str) -> Node:
    for node in nodes:
        if name in node.output(0).names:
            return node
    raise unknown_name(what, name, sorted({n for node in nodes for n in node.output(0).names}))


def _replace(model: Editing, parameter: Node, result: Node, id: str) -> None:
    held = parameter.output(0)
    variable = Variable(VariableInfo.of(id, held.element_type, held.partial_shape))
    read = ReadValue(variable)
    for reader in held.target_inputs:
        reader.replace_source_output(read.output(0))
    assign = Assign(result.input_value(0), variable)
    model.remove_parameter(parameter)
    model.remove_result(result)
    model.add_sinks([assign])
    model.add_variables([variable])
