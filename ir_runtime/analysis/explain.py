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
from ..ir.tensor import Array, TensorType, Value, objects

__all__ = ["Causes", "Spot"]

# How much is tried for all findings, with so many more inputs counting as one more; and how much is shown of what is
# found for each.
_TRIES = 3000
_INPUTS = 8
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
        if self.element is None:
            return "not known" if value.data is None else _brief(value.data)
        if numbers is None or self.element >= len(numbers):
            return "not known"
        found = numbers[self.element]
        return str(Dimension.of(found)) if isinstance(found, Interval) else str(found)

    def __str__(self) -> str:
        if self.dim is not None:
            return f"dim {self.dim}"
        return "all" if self.element is None else f"element {self.element}"


class _Part(NamedTuple):
    """A part of what a layer reads: the output that it comes from, the input's name, what is there."""

    port: Port
    spot: Spot
    name: str
    holds: str


@dataclass(slots=True)
class Causes:
    """Looks for causes in a graph, given what is known of it so far."""

    graph: Graph
    known: Mapping[Port, Value]
    _tries: int = field(default_factory=lambda: _TRIES, init=False)

    def of_refusal(self, layer: Layer, inputs: Sequence[Value]) -> tuple[Cause, ...]:
        """Why an operation refuses its inputs."""

        def accepts(tried: Sequence[Value]) -> bool:
            return self._infer(layer, tried) is not None

        if len(inputs) != len(layer.inputs):
            return ()
        parts = self._deciders(layer, inputs, accepts)
        parts.sort(key=lambda part: part.spot.dim is not None)  # what a file says outright comes first
        seen: set[tuple[Port, Spot]] = set()
        found = [cause for part in parts if part.port in self.known for cause in self._beginning(part, seen)]
        return tuple(found[:_SHOWN])

    def _beginning(self, part: _Part, seen: set[tuple[Port, Spot]]) -> list[Cause]:
        """Where a part of an input comes from, in at most two steps."""
        found: list[Cause] = []
        self._follow(part.port, part.spot, found, seen, whole=False)
        if not found:
            return []
        first = f"{part.spot} of {part.name} is {part.holds}: {found[0].message}"
        return [Cause(first, found[0].where), *found[1:2]]

    def of_length(self, port: Port, dim: int) -> tuple[Cause, ...]:
        """What decided a dim of an output."""
        found: list[Cause] = []
        self._follow(port, Spot(dim), found, set())
        return tuple(found)

    def _follow(
        self, port: Port, spot: Spot, found: list[Cause], seen: set[tuple[Port, Spot]], whole: bool = True
    ) -> None:
        """Go back to where a part of an output begins; ``whole`` if also its own layer is in question."""
        waiting = [(port, spot)]
        while waiting and len(found) < _SHOWN and self._tries > 0:
            port, spot = waiting.pop()
            self._spend(self.graph[port.layer])
            if (port, spot) in seen:
                continue
            seen.add((port, spot))
            layer, value = self.graph[port.layer], spot.of(self.known[port])
            deciders = self._decided_by(port, spot)
            if not deciders:
                found.append(_origin(layer, spot, value))
            elif all(part.holds != value for part in deciders) or (whole and not found):
                found.append(_step(layer, spot, value, deciders, whole and not found))
            else:  # a length that goes through
                deciders = [next(part for part in deciders if part.holds == value)]
            waiting += [(part.port, part.spot) for part in reversed(deciders)]

    def _decided_by(self, port: Port, spot: Spot) -> list[_Part]:
        """Which parts of its layer's inputs a part of an output follows from."""
        layer = self.graph[port.layer]
        inputs = [self.known.get(source) for source in self.graph.sources(layer) if source is not None]
        values = [value for value in inputs if value is not None]
        if layer.op is None or layer.bodies() or len(values) != len(layer.inputs):
            return []
        before = spot.of(self.known[port])

        def changes(tried: Sequence[Value]) -> bool:
            outputs = self._infer(layer, tried) or ()
            return port.number < len(outputs) and spot.of(outputs[port.number]) != before

        return self._deciders(layer, values, changes) or self._shared(layer, values, before, changes)

    def _shared(
        self, layer: Layer, inputs: Sequence[Value], length: str, matters: Callable[[Sequence[Value]], bool]
    ) -> list[_Part]:
        """Where inputs have the length in common, none of them decides it alone: the first is followed."""
        same = [
            (index, Spot(dim))
            for index, value in enumerate(inputs)
            for dim in range(len(value.shape) if value.shape.rank is not None else 0)
            if Spot(dim).of(value) == length
        ]
        tried = list(inputs)
        for index, spot in same:
            tried[index] = _without(tried[index], spot)
        return [self._part(layer, *same[0], inputs)] if same and matters(tried) else []

    def _deciders(
        self, layer: Layer, inputs: Sequence[Value], matters: Callable[[Sequence[Value]], bool]
    ) -> list[_Part]:
        """The parts of the inputs each of which matters on its own."""
        found = []
        for index, value in enumerate(inputs):
            if self._tries <= 0:
                break
            if self.graph.sources(layer)[index] is None:  # its edge would close a ring
                continue

            def tried(spot: Spot, index: int = index, value: Value = value) -> bool:
                self._spend(layer)
                if self._tries <= 0:
                    return False
                return matters([*inputs[:index], _without(value, spot), *inputs[index + 1 :]])

            found += [self._part(layer, index, spot, inputs) for spot in _parts(value, tried)]
        return found

    def _part(self, layer: Layer, index: int, spot: Spot, inputs: Sequence[Value]) -> _Part:
        declared, source = layer.op.port_of(index) if layer.op else None, self.graph.sources(layer)[index]
        assert source is not None
        number = layer.inputs[index].id
        name = f"{declared.name!r} (port {number})" if declared else f"input port {number}"
        return _Part(source, spot, name, spot.of(inputs[index]))

    def _spend(self, layer: Layer) -> None:
        """Count a look at a layer, which takes longer the more inputs it has."""
        self._tries -= 1 + len(layer.inputs) // _INPUTS

    def _infer(self, layer: Layer, inputs: Sequence[Value]) -> tuple[Value, ...] | None:
        """What the operation makes of inputs; ``None`` if it refuses them."""
        if layer.op is None or layer.bodies():
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


def _step(layer: Layer, spot: Spot, value: str, parts: Sequence[_Part], whole: bool) -> Cause:
    """What a layer makes of lengths; of the layer in question, also its attributes."""
    made = ", ".join(f"{part.holds} in {part.spot} of {part.name}" for part in parts[:4])
    more = " and others" if len(parts) > 4 else ""
    said = _attributes(layer) if whole else ""
    how = f", with {said}" if said else ""
    return Cause(f"{layer} gives {value} in {spot}, from {made}{more}{how}", layer.where)


def _brief(data: Array) -> str:
    """The first numbers of a tensor."""
    first = ", ".join(map(str, data.flat[:4]))
    return f"[{first}, …]" if data.size > 4 else f"[{first}]"


def _attributes(layer: Layer) -> str:
    text = ", ".join(f"{key}={value!r}" for key, value in layer.attributes.items())
    return text if len(text) <= 160 else f"{text[:160]}…"


def _origin(layer: Layer, spot: Spot, value: str) -> Cause:
    """Where a length begins: what the file itself says."""
    line = layer.outputs[0].line if layer.type == "Parameter" and layer.outputs else None
    where = replace(layer.where, line=line or layer.where.line)
    message = f"{spot} of {layer} is {value}"
    if layer.type in ("Parameter", "Constant") or layer.op is None:
        return Cause(message, where)
    said = _attributes(layer)
    return Cause(f"{message}, by its attributes {said}" if said else message, where)
