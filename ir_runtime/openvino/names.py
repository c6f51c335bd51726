"""Lookup of tensors and layers by name, index or port."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import SupportsIndex, TypeVar

from .._util.nearest import did_you_mean
from .._util.wrong_arguments import ArgumentTypeError, OutOfRangeError
from ..codes import Code
from ..errors import InputError
from ..ir.graph import Graph, Layer, Port
from .ports import TensorPort

__all__ = ["find_index", "find_port", "find_ports", "one_key", "unknown_name"]

_Port = TypeVar("_Port", bound=TensorPort)


def one_key(key: int | str | None, index: int | None, tensor_name: str | None) -> int | str | None:
    """Return the one key given among the positional ``key``, ``index`` and ``tensor_name``, or None.

    Raises:
        ArgumentTypeError: if more than one is given.
    """
    keys = [value for value in (key, index, tensor_name) if value is not None]
    if len(keys) > 1:
        raise ArgumentTypeError(f"expected an index or a name, got {keys!r}", code=Code.BAD_REQUEST)
    return keys[0] if keys else None


def find_port(ports: Sequence[_Port], key: SupportsIndex | str | TensorPort | None, what: str) -> _Port:
    """Return an input or output of a model by index, tensor name, layer name or port.

    Raises:
        InputError: if no port matches; the error lists the choices.
    """
    return ports[find_index(ports, key, what)]


def find_index(ports: Sequence[TensorPort], key: SupportsIndex | str | TensorPort | None, what: str) -> int:
    """Return the index of an input or output, as `find_port` does."""
    if key is None:
        if len(ports) != 1:
            raise InputError(
                f"the model has {len(ports)} {what}s: give an index or a name",
                code=Code.NO_SUCH_NAME,
                hint=_choices(ports),
            )
        return 0
    if isinstance(key, SupportsIndex):
        key = operator.index(key)
        if not 0 <= key < len(ports):
            raise OutOfRangeError(
                f"{what} index {key} is out of range: the model has {len(ports)}",
                code=Code.NO_SUCH_NAME,
                hint=_choices(ports),
            )
        return key
    if not isinstance(key, str | TensorPort):
        message = f"{key!r} is not an {what}: expected an index, a name or a port"
        raise ArgumentTypeError(message, code=Code.NO_SUCH_NAME, hint=_choices(ports))
    if isinstance(key, TensorPort):  # a port of this model, or one of another model with a common name
        matches = [i for i, p in enumerate(ports) if p == key]
        matches = matches or [i for i, p in enumerate(ports) if p.names & key.names]
    else:  # tensor names take precedence over layer names
        matches = [i for i, p in enumerate(ports) if key in p.names]
        matches = matches or [i for i, p in enumerate(ports) if p.belongs_to(key)]
    if not matches:
        name = key.label if isinstance(key, TensorPort) else key
        raise unknown_name(what, name, [p.label for p in ports])
    return matches[0]


def find_ports(graph: Graph, selectors: Iterable[str | tuple[str, int] | Port]) -> list[Port]:
    """Return the outputs of layers selected by tensor name, layer name, glob, (layer name, output index) or port.

    Raises:
        InputError: if a name or an index is unknown.
    """
    ports: dict[Port, None] = {}
    for item in selectors:
        ports |= dict.fromkeys(_matches(graph, item))
    return list(ports)


def unknown_name(what: str, name: str, names_known: Iterable[str]) -> InputError:
    """Return the error for an unknown name, which suggests a similar name or lists all."""
    names = list(names_known)
    shown = ", ".join(names[:10]) + (" …" if len(names) > 10 else "")
    hint = did_you_mean(name, names) or (f"available are {shown}" if names else "there are none")
    return InputError(f"unknown {what} {name!r}", code=Code.NO_SUCH_NAME, hint=hint)


def _choices(ports: Sequence[TensorPort]) -> str:
    return "available are " + ", ".join(p.label for p in ports) if ports else ""


def _matches(graph: Graph, item: str | tuple[str, int] | Port) -> list[Port]:
    if isinstance(item, Port):
        return [item]
    if isinstance(item, tuple):
        return [_layer_output(graph, *item)]
    ports = [port for port, names in _names_by_port(graph) if item in names]
    ports = ports or [
        port for port, names in _names_by_port(graph) if any(fnmatchcase(n, item) for n in names)
    ]
    if not ports:
        names_known = {n for _, names in _names_by_port(graph) for n in names}
        raise unknown_name("layer or tensor", item, sorted(names_known, key=lambda n: (n.isdecimal(), n)))
    return ports


def _layer_output(graph: Graph, name: str, number: int) -> Port:
    layer = next((la for la in graph.layers.values() if la.name == name), None)
    if layer is None:
        raise unknown_name("layer", name, [la.name for la in graph.layers.values()])
    if not 0 <= number < len(layer.outputs):
        raise InputError(
            f"layer {name!r} has no output {number}",
            code=Code.NO_SUCH_NAME,
            hint=f"it has {len(layer.outputs)}",
        )
    return Port(layer.id, number)


def _names_by_port(graph: Graph) -> Iterator[tuple[Port, set[str]]]:
    """Yield each output with all its names, except for Constants and Results."""
    for layer in graph:
        if layer.type not in ("Constant", "Result"):
            for number, spec in enumerate(layer.outputs):
                yield Port(layer.id, number), {*spec.names, *_layer_names(layer, number)}


def _layer_names(layer: Layer, number: int) -> tuple[str, ...]:
    return (layer.name, f"{layer.name}:{number}")
