"""What decided a length, or a refusal: the way back to constants, inputs and attributes.

Operations are not asked what depends on what. One thing at a time is made unknown in what a layer reads;
where that changes what inference says, it is a cause. So this holds for every operation, and for those
declared elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..diagnostics import Cause
from ..errors import IRError
from ..ir.dimension import Dimension, Interval
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import TensorType, Value, objects

__all__ = ["Causes", "Spot"]

# How much is tried for one finding, and how much of what is found is shown.
_TRIES = 3000
_SHOWN = 6
_ELEMENTS = 32


class Spot(NamedTuple):
    """A part of a tensor: one of its dims, one of its elements, or all that it holds."""

    dim: int | None = None
    element: int | None = None

    def of(self, value: Value) -> str:
        """What is there."""
        if self.dim is not None:
            known = value.shape.rank is not None and self.dim < len(value.shape)
            return str(value.shape[self.dim]) if known else "?"
        numbers = value.numbers()
        if numbers is None or self.element is None or self.element >= len(numbers):
            return "not known"
        found = numbers[self.element]
        return str(Dimension.of(found)) if isinstance(found, Interval) else str(found)

    def __str__(self) -> str:
        if self.dim is not None:
            return f"dim {self.dim}"
        return "the content" if self.element is None else f"element {self.element}"


@dataclass(slots=True)
class Causes:
    """Looks for causes in a graph, given what is known of it so far."""

    graph: Graph
    known: Mapping[Port, Value]
    _tries: int = field(default=_TRIES, init=False)

    def of_refusal(self, layer: Layer, inputs: Sequence[Value]) -> tuple[Cause, ...]:
        """Why an operation refuses its inputs."""

        def accepts(tried: Sequence[Value]) -> bool:
            return self._infer(layer, tried) is not None

        return self._trail(layer, self._deciders(layer, inputs, accepts))

    def of_length(self, port: Port, dim: int) -> tuple[Cause, ...]:
        """What decided a dim of an output."""
        found: list[Cause] = []
        self._follow(port, Spot(dim), found, set())
        return _shown(found)

    def _trail(self, layer: Layer, deciders: Sequence[tuple[int, Spot]]) -> tuple[Cause, ...]:
        found: list[Cause] = []
        seen: set[tuple[Port, Spot]] = set()
        for index, spot in deciders:
            source = self.graph.sources(layer)[index]
            if source is not None and source in self.known:
                self._follow(source, spot, found, seen)
        return _shown(found)

    def _follow(self, port: Port, spot: Spot, found: list[Cause], seen: set[tuple[Port, Spot]]) -> None:
        waiting = [(port, spot)]
        while waiting and len(found) <= _SHOWN:
            port, spot = waiting.pop()
            if (port, spot) in seen:
                continue
            seen.add((port, spot))
            layer = self.graph[port.layer]
            deciders = self._decided_by(port, spot)
            sources = self.graph.sources(layer)
            before = [(s, part) for i, part in deciders if (s := sources[i]) is not None]
            value = spot.of(self.known[port])
            if not before:
                found.append(_origin(layer, spot, value))
            elif len(before) > 1 or before[0][1].of(self.known[before[0][0]]) != value:
                found.append(self._step(layer, spot, value, deciders))
            waiting += reversed(before)

    def _step(self, layer: Layer, spot: Spot, value: str, deciders: Sequence[tuple[int, Spot]]) -> Cause:
        sources = self.graph.sources(layer)
        parts = []
        for index, part in deciders[:4]:
            port, source = layer.op.port_of(index) if layer.op else None, sources[index]
            name = port.name if port else f"input {index}"
            holds = part.of(self.known[source]) if source is not None else "?"
            parts.append(f"{part} of {name!r}, {holds}")
        more = " and more" if len(deciders) > 4 else ""
        return Cause(f"{layer} makes {spot} {value} from {'; '.join(parts)}{more}", layer.where)

    def _decided_by(self, port: Port, spot: Spot) -> list[tuple[int, Spot]]:
        """Which parts of its layer's inputs a part of an output follows from."""
        layer = self.graph[port.layer]
        sources = self.graph.sources(layer)
        if layer.op is None or layer.op.bodies() or not sources:
            return []
        inputs = [self.known[source] for source in sources if source is not None and source in self.known]
        if len(inputs) != len(sources):
            return []
        before = spot.of(self.known[port])

        def changes(tried: Sequence[Value]) -> bool:
            outputs = self._infer(layer, tried)
            return outputs is not None and spot.of(outputs[port.number]) != before

        return self._deciders(layer, inputs, changes)

    def _deciders(
        self, layer: Layer, inputs: Sequence[Value], matters: Callable[[Sequence[Value]], bool]
    ) -> list[tuple[int, Spot]]:
        found = []
        for index, value in enumerate(inputs):

            def tried(spot: Spot, index: int = index, value: Value = value) -> bool:
                self._tries -= 1
                others = [*inputs[:index], _without(value, spot), *inputs[index + 1 :]]
                return self._tries > 0 and matters(others)

            found += [(index, spot) for spot in _parts(value, tried)]
        return found

    def _infer(self, layer: Layer, inputs: Sequence[Value]) -> tuple[Value, ...] | None:
        """What the operation makes of inputs; ``None`` if it refuses them."""
        if layer.op is None or layer.op.bodies():
            return None
        try:
            return layer.op.infer_values(*inputs)
        except IRError:
            return None
        except Exception:  # what arithmetic on odd contents raises is a refusal, too
            return None


def _parts(value: Value, matters: Callable[[Spot], bool]) -> Iterator[Spot]:
    """The parts of a value that matter: elements, else all it holds, else dims."""
    if value.data is not None and matters(Spot()):
        numbers = value.numbers()
        elements = range(len(numbers)) if numbers is not None and len(numbers) <= _ELEMENTS else ()
        single = [Spot(element=e) for e in elements if matters(Spot(element=e))]
        yield from single or [Spot()]
    elif value.shape.rank is not None:
        dims = (Spot(i) for i, dim in enumerate(value.shape) if dim != Dimension())
        yield from (spot for spot in dims if matters(spot))


def _without(value: Value, spot: Spot) -> Value:
    """The value with one part unknown."""
    if spot.dim is not None:
        return Value(TensorType(value.element, value.shape.replace({spot.dim: Dimension()})))
    numbers = value.numbers()
    if spot.element is None or numbers is None or value.data is None:
        return Value(value.type)
    others = [Interval() if i == spot.element else n for i, n in enumerate(numbers)]
    return Value.bounded(value.element, objects(others, value.data.shape))


def _origin(layer: Layer, spot: Spot, value: str) -> Cause:
    """Where a length begins: what the file itself says."""
    line = layer.outputs[0].line if layer.type == "Parameter" and layer.outputs else None
    where = replace(layer.where, line=line or layer.where.line)
    message = f"{spot} of {layer} is {value}"
    if layer.type in ("Parameter", "Constant") or layer.op is None:
        return Cause(message, where)
    said = ", ".join(f"{k}={v}" for k, v in layer.attributes.items())
    return Cause(f"{message}, by its attributes {said[:80]}" if said else message, where)


def _shown(found: Sequence[Cause]) -> tuple[Cause, ...]:
    return tuple(found[:_SHOWN])
