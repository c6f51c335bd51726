"""Trace a length or a refusal back to the constants, inputs and attributes that caused it.

Dependences are found by perturbation: one part of a layer's inputs at a time is made unknown; if the result
of inference changes, the part is a cause. This works for every operation, including extensions.
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

__all__ = ["Causes", "Region"]

# Inferences for all findings; this number of inputs of a layer counts as one more.
_MAX_TRIALS = 3000
_INPUTS_PER_TRIAL = 8
# Causes shown of a finding, and elements of a tensor that are tried one by one.
_MAX_CAUSES = 6
_MAX_ELEMENTS = 32


class Region(NamedTuple):
    """A region of a tensor: one of its dims, one of its elements, or all elements."""

    dim: int | None = None
    element: int | None = None

    def of(self, value: Value) -> str:
        """Return this region of a value as text."""
        if self.dim is not None:
            in_rank = value.shape.rank is not None and self.dim < len(value.shape)
            return str(value.shape[self.dim]) if in_rank else "?"
        numbers = value.numbers()
        if self.element is None:
            return "not known" if value.data is None else _abbreviate(value.data)
        if numbers is None or self.element >= len(numbers):
            return "not known"
        number = numbers[self.element]
        return str(Dimension.of(number)) if isinstance(number, Interval) else str(number)

    def __str__(self) -> str:
        if self.dim is not None:
            return f"dim {self.dim}"
        return "all" if self.element is None else f"element {self.element}"


class _InputPart(NamedTuple):
    """A region of an input: the output that it comes from, the name of the input, and its text."""

    port: Port
    region: Region
    name: str
    text: str


@dataclass(slots=True)
class Causes:
    """Finds causes in a graph from the values inferred so far."""

    graph: Graph
    known: Mapping[Port, Value]
    _trials_left: int = field(default_factory=lambda: _MAX_TRIALS, init=False)

    def of_refusal(self, layer: Layer, inputs: Sequence[Value]) -> tuple[Cause, ...]:
        """Return why an operation refuses its inputs."""

        def accepts(tried: Sequence[Value]) -> bool:
            return self._infer(layer, tried) is not None

        if len(inputs) != len(layer.inputs):
            return ()
        parts = self._deciders(layer, inputs, accepts)
        parts.sort(key=lambda part: part.region.dim is not None)  # values come before shapes
        visited: set[tuple[Port, Region]] = set()
        causes = [
            cause for part in parts if part.port in self.known for cause in self._origin_of(part, visited)
        ]
        return tuple(causes[:_MAX_CAUSES])

    def _origin_of(self, part: _InputPart, visited: set[tuple[Port, Region]]) -> list[Cause]:
        """Return the origin of a part of an input, in at most two steps."""
        causes: list[Cause] = []
        self._trace(part.port, part.region, causes, visited, whole=False)
        if not causes:
            return []
        first = f"{part.region} of {part.name} is {part.text}: {causes[0].message}"
        return [Cause(first, causes[0].where), *causes[1:2]]

    def of_length(self, port: Port, dim: int) -> tuple[Cause, ...]:
        """Return the causes of the length of an output's dim."""
        causes: list[Cause] = []
        self._trace(port, Region(dim), causes, set())
        return tuple(causes)

    def _trace(
        self,
        port: Port,
        region: Region,
        causes: list[Cause],
        visited: set[tuple[Port, Region]],
        whole: bool = True,
    ) -> None:
        """Trace a region of an output to its origin, collecting causes; ``whole`` also counts its own layer."""
        worklist = [(port, region)]
        while worklist and len(causes) < _MAX_CAUSES and self._trials_left > 0:
            port, region = worklist.pop()
            self._spend(self.graph[port.layer])
            if (port, region) in visited:
                continue
            visited.add((port, region))
            layer, value = self.graph[port.layer], region.of(self.known[port])
            deciders = self._deciders_of(port, region)
            if not deciders:
                causes.append(_origin(layer, region, value))
            elif all(part.text != value for part in deciders) or (whole and not causes):
                causes.append(_step(layer, region, value, deciders, whole and not causes))
            else:  # a length that goes through
                deciders = [next(part for part in deciders if part.text == value)]
            worklist += [(part.port, part.region) for part in reversed(deciders)]

    def _deciders_of(self, port: Port, region: Region) -> list[_InputPart]:
        """Return the regions of a layer's inputs that decide a region of its output."""
        layer = self.graph[port.layer]
        inputs = [self.known.get(source) for source in self.graph.sources(layer) if source is not None]
        values = [value for value in inputs if value is not None]
        if layer.op is None or layer.bodies() or len(values) != len(layer.inputs):
            return []
        before = region.of(self.known[port])

        def changes(tried: Sequence[Value]) -> bool:
            outputs = self._infer(layer, tried) or ()
            return port.number < len(outputs) and region.of(outputs[port.number]) != before

        return self._deciders(layer, values, changes) or self._shared_length(layer, values, before, changes)

    def _shared_length(
        self, layer: Layer, inputs: Sequence[Value], length: str, matters: Callable[[Sequence[Value]], bool]
    ) -> list[_InputPart]:
        """Return the first of several inputs that share a length that none of them decides alone."""
        same = [
            (index, Region(dim))
            for index, value in enumerate(inputs)
            for dim in range(len(value.shape) if value.shape.rank is not None else 0)
            if Region(dim).of(value) == length
        ]
        tried = list(inputs)
        for index, region in same:
            tried[index] = _with_unknown(tried[index], region)
        return [self._part(layer, *same[0], inputs)] if same and matters(tried) else []

    def _deciders(
        self, layer: Layer, inputs: Sequence[Value], matters: Callable[[Sequence[Value]], bool]
    ) -> list[_InputPart]:
        """Return the regions of the inputs that change the result on their own."""
        deciders = []
        for index, value in enumerate(inputs):
            if self._trials_left <= 0:
                break
            if self.graph.sources(layer)[index] is None:  # its edge would close a cycle
                continue

            def tried(region: Region, index: int = index, value: Value = value) -> bool:
                self._spend(layer)
                if self._trials_left <= 0:
                    return False
                return matters([*inputs[:index], _with_unknown(value, region), *inputs[index + 1 :]])

            deciders += [self._part(layer, index, region, inputs) for region in _parts(value, tried)]
        return deciders

    def _part(self, layer: Layer, index: int, region: Region, inputs: Sequence[Value]) -> _InputPart:
        declared, source = layer.op.port_of(index) if layer.op else None, self.graph.sources(layer)[index]
        assert source is not None
        number = layer.inputs[index].id
        name = f"{declared.name!r} (port {number})" if declared else f"input port {number}"
        return _InputPart(source, region, name, region.of(inputs[index]))

    def _spend(self, layer: Layer) -> None:
        """Charge one inference of a layer to the budget; more inputs cost more."""
        self._trials_left -= 1 + len(layer.inputs) // _INPUTS_PER_TRIAL

    def _infer(self, layer: Layer, inputs: Sequence[Value]) -> tuple[Value, ...] | None:
        """Infer the outputs; ``None`` if the operation refuses the inputs."""
        if layer.op is None or layer.bodies():
            return None
        try:
            return layer.op.infer_values(*inputs)
        except IRError:
            return None
        except MemoryError:  # says nothing about the model
            raise
        except Exception:  # an exception of arithmetic on odd contents is a refusal, too
            return None


def _parts(value: Value, matters: Callable[[Region], bool]) -> Iterator[Region]:
    """Yield the parts of a value that matter: single elements, else all of them, else dims."""
    if value.data is not None and matters(Region()):
        numbers = value.numbers()
        elements = range(len(numbers)) if numbers is not None and len(numbers) <= _MAX_ELEMENTS else ()
        single = [Region(element=e) for e in elements if matters(Region(element=e))]
        yield from single or [Region()]
    elif value.shape.rank is not None:
        dims = (Region(i) for i, dim in enumerate(value.shape) if dim != Dimension())
        yield from (region for region in dims if matters(region))


def _with_unknown(value: Value, region: Region) -> Value:
    """Return the value with one part unknown."""
    if region.dim is not None:
        return Value(TensorType(value.element, value.shape.replace({region.dim: Dimension()})))
    numbers = value.numbers()
    if region.element is None or numbers is None or value.data is None:
        return Value(value.type)
    others = [Interval() if i == region.element else n for i, n in enumerate(numbers)]
    return Value.bounded(value.element, objects(others, value.data.shape))


def _step(layer: Layer, region: Region, value: str, parts: Sequence[_InputPart], whole: bool) -> Cause:
    """Describe how a layer computes lengths; with its attributes if it is the layer in question."""
    operands = ", ".join(f"{part.text} in {part.region} of {part.name}" for part in parts[:4])
    more = " and others" if len(parts) > 4 else ""
    settings = _attributes(layer) if whole else ""
    how = f", with {settings}" if settings else ""
    return Cause(f"{layer} gives {value} in {region}, from {operands}{more}{how}", layer.where)


def _abbreviate(data: Array) -> str:
    """Return the first elements of a tensor as text."""
    first = ", ".join(map(str, data.flat[:4]))
    return f"[{first}, …]" if data.size > 4 else f"[{first}]"


def _attributes(layer: Layer) -> str:
    text = ", ".join(f"{key}={value!r}" for key, value in layer.attributes.items())
    return text if len(text) <= 160 else f"{text[:160]}…"


def _origin(layer: Layer, region: Region, value: str) -> Cause:
    """Describe the origin of a length in the file."""
    line = layer.outputs[0].line if layer.type == "Parameter" and layer.outputs else None
    where = replace(layer.where, line=line or layer.where.line)
    message = f"{region} of {layer} is {value}"
    if layer.type in ("Parameter", "Constant") or layer.op is None:
        return Cause(message, where)
    settings = _attributes(layer)
    return Cause(f"{message}, by its attributes {settings}" if settings else message, where)
