"""Parse the arguments of ``Model``, in every order that OpenVINO accepts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ...io.reader.document import Document
from ...io.reader.source import Weights
from ...ir.graph import Graph
from ..node import Node, Output
from .derive import Members
from .ends import Parameter, Result
from .variables import Variable

__all__ = ["as_results", "arguments", "empty_document", "name_ends"]

_NUMBERS = itertools.count()
_NAMES = ("results", "sinks", "parameters", "variables")


def empty_document(name: str) -> Document:
    """Return the document of a model that was not read from a file."""
    return Document(Graph((), ()), name or f"Model{next(_NUMBERS)}", "", 11, {}, Weights())


def arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Members, list[Variable], str]:
    """Return the members of the model, its variables and its name.

    Raises:
        TypeError: if the arguments do not form a model.
    """
    named = dict(kwargs)
    lists = list(args)
    if lists and isinstance(lists[-1], str):
        named["name"] = lists.pop()
    if "result" in named:
        named["results"] = named.pop("result")
    named |= _in_order(lists, named)
    unknown = named.keys() - {*_NAMES, "name"}
    missing = [name for name in ("results", "parameters") if name not in named]
    if unknown or missing:
        raise TypeError(
            _usage(" and ".join([*(f"unknown {n!r}" for n in unknown), *(f"no {n}" for n in missing)]))
        )
    members = Members(
        [_require_type(node, Parameter, "parameters") for node in named.get("parameters", ())],
        as_results(named["results"]),
        [_node(sink) for sink in named.get("sinks", ())],
    )
    variables = [_require_type(variable, Variable, "variables") for variable in named.get("variables", ())]
    return members, variables, named.get("name", "")


def _in_order(lists: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Name the positional arguments: sinks and variables are optional."""
    free = [name for name in _NAMES if name not in named]
    if len(lists) == len(free) or not lists:
        return dict(zip(free, lists, strict=False))
    if len(lists) > len(free):
        raise TypeError(_usage(f"{len(lists)} lists"))
    order = ["results", "parameters"]
    if len(lists) == 3:
        order = ["results", "parameters", "variables"] if _has_variables(*lists[1:]) else list(_NAMES[:3])
    return dict(zip((name for name in order if name in free), lists, strict=False))


def _has_variables(second: Sequence[object], third: Sequence[object]) -> bool:
    if third:
        return isinstance(third[0], Variable)
    return bool(second) and all(isinstance(parameter, Parameter) for parameter in second)


def as_results(ends_or_node: Node | Output | Iterable[Node | Output]) -> list[Node]:
    """Return Results: given ones, also by their outputs, and new ones for other outputs."""
    if isinstance(ends_or_node, Node) and not isinstance(ends_or_node, Result):
        ends_or_node = ends_or_node.outputs()
    ends = [ends_or_node] if isinstance(ends_or_node, Node | Output) else ends_or_node
    return list(map(_as_result, ends))


def _as_result(end: Node | Output) -> Node:
    node = end.node if isinstance(end, Output) else end
    return node if isinstance(node, Result) else Result.with_names(_first(end))


def _first(end: object) -> Output:
    if isinstance(end, Output):
        return end
    return _require_type(end, Node, "results").output(0)


def _node(sink: object) -> Node:
    return sink.node if isinstance(sink, Output) else _require_type(sink, Node, "sinks")


_Kind = TypeVar("_Kind")


def _require_type(value: object, kind: type[_Kind], what: str) -> _Kind:
    if not isinstance(value, kind):
        raise TypeError(_usage(f"{type(value).__name__} among the {what}"))
    return value


def _usage(actual: str) -> str:
    return f"expected Model(results, parameters, name='') or Model(results, sinks, parameters, variables, name=''), got {actual}"


def name_ends(members: Members) -> None:
    """Name unnamed tensors of Parameters and Results after their layers, as OpenVINO does."""
    for parameter in members.parameters:
        if not parameter._names_of(0):
            parameter.output(0).set_names([parameter.friendly_name])
    for result in members.results:
        if not result._names_of(0):
            source = result.input_value(0)
            result.output(0).set_names(source._names or [result.friendly_name])
