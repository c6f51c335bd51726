"""From a graph to a plan: fold constants, drop what nobody reads, choose kernels, number slots."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..backends import Backend, Kernel, choose
from ..codes import Code
from ..errors import UnsupportedError
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Array, Value
from ..passes.fuse import Group, fuse
from .plan import ExecutionPlan, Step, failure

__all__ = ["compile_plan"]

# A folded constant may be this much larger than what it is made of, before it is cheaper to make it anew.
_GROWTH = 16
_SMALL = 1 << 20


def compile_plan(
    graph: Graph,
    types: Mapping[Port, Value],
    outputs: Sequence[Port],
    backends: Sequence[Backend] = (),
    fold: bool = True,
) -> ExecutionPlan:
    """Make the plan that computes ``outputs``.

    Args:
        graph: the layers.
        types: what is known of every output, from the `infer` pass.
        outputs: what to compute.
        backends: asked in turn for a kernel for each layer.
        fold: compute what follows from constants now, and let kernels fuse layers; without it every
            layer stays observable.

    Raises:
        UnsupportedError: if an operation that is needed has no implementation here.
    """
    needed = _needed(graph, outputs)
    _refuse_unknown(needed)
    values = _fold(graph, needed, dict(types)) if fold else dict(types)
    return _Planner(graph, values, backends, fold).plan(needed, outputs)


def _needed(graph: Graph, outputs: Sequence[Port]) -> list[Layer]:
    waiting = [port.layer for port in outputs]
    found: set[int] = set()
    while waiting:
        if (layer := waiting.pop()) not in found:
            found.add(layer)
            waiting += [s.layer for s in graph.sources(graph[layer]) if s is not None]
    return [layer for layer in graph if layer.id in found or layer.type == "Parameter"]


def _refuse_unknown(layers: Sequence[Layer]) -> None:
    unknown = [layer for layer in layers if layer.op is None]
    if not unknown:
        return
    names = ", ".join(sorted({f"{layer.type} ({layer.version})" for layer in unknown}))
    raise UnsupportedError(
        f"these operations are unknown, or have attributes that are not allowed: {names}",
        code=Code.UNKNOWN_OPERATION,
        where=unknown[0].where,
        hint="declare an operation of your own with ir_runtime.ops.op; see examples/custom_op",
    )


def _fold(graph: Graph, layers: Sequence[Layer], values: dict[Port, Value]) -> dict[Port, Value]:
    """Evaluate every pure layer whose inputs are all constants."""
    for layer in layers:
        ports = [Port(layer.id, i) for i in range(len(layer.outputs))]
        sources = [values[s] for s in graph.sources(layer) if s is not None]
        if _foldable(layer, sources, [values[p] for p in ports]):
            arrays = _evaluate(layer, [v.known() for v in sources])
            values |= {p: _constant(values[p], a) for p, a in zip(ports, arrays, strict=False)}
    return values


def _foldable(layer: Layer, sources: Sequence[Value], found: Sequence[Value]) -> bool:
    op = layer.op
    if op is None or not op.pure or not sources or not found:
        return False
    if all(v.known() is not None for v in found) or any(v.known() is None for v in sources):
        return False
    made_of = sum(_bytes(v) for v in sources)
    return sum(_bytes(v) for v in found) <= max(_GROWTH * made_of, _SMALL)


def _bytes(value: Value) -> int:
    return value.count.min * max(value.element.dtype.itemsize, 1)


def _evaluate(layer: Layer, arrays: Sequence[Array | None]) -> Sequence[Array]:
    assert layer.op is not None
    try:
        with np.errstate(all="ignore"):
            results = layer.op.evaluate(*arrays)
    except Exception as reason:
        raise failure(layer, reason) from reason
    return results if isinstance(results, tuple) else (results,)


def _constant(value: Value, array: Array) -> Value:
    return Value.constant(array, value.element)


@dataclass(slots=True)
class _Planner:
    """Numbers slots: one for each output that some step reads or writes."""

    graph: Graph
    values: Mapping[Port, Value]
    backends: Sequence[Backend]
    fold: bool
    slots: list[Array | None] = field(default_factory=list)
    places: dict[Port, int] = field(default_factory=dict)

    def plan(self, layers: Sequence[Layer], outputs: Sequence[Port]) -> ExecutionPlan:
        parameters = self.graph.of_type("Parameter")
        inputs = tuple(self._slot(Port(layer.id, 0)) for layer in parameters)
        running = {layer.id: layer for layer in layers if self._runs(layer)}
        read = {s for layer in running.values() for s in self.graph.sources(layer)} | set(outputs)
        groups = [Group.of(self.graph, la, self._kernel(la, read)) for la in running.values()]
        if self.fold:
            groups = fuse(self.graph, groups, set(outputs), self._seen)
        steps = [self._step(group) for group in groups]
        wanted = tuple(self._slot(port) for port in outputs)
        around = tuple(backend.around for backend in self.backends)
        return ExecutionPlan(_free(steps, wanted), inputs, wanted, tuple(self.slots), around)

    def _runs(self, layer: Layer) -> bool:
        if layer.type in ("Parameter", "Constant"):
            return False
        return not self.fold or any(self._known(Port(layer.id, i)) is None for i in range(len(layer.outputs)))

    def _known(self, port: Port) -> Array | None:
        is_constant = self.graph[port.layer].type == "Constant"
        return self.values[port].known() if self.fold or is_constant else None

    def _slot(self, port: Port) -> int:
        if port not in self.places:
            self.places[port] = len(self.slots)
            self.slots.append(self._known(port))
        return self.places[port]

    def _step(self, group: Group) -> Step:
        reads = tuple(map(self._slot, group.reads))
        writes = tuple(map(self._slot, group.writes))
        layer, *also = group.layers
        return Step(layer, group.kernel, reads, writes, also=tuple(also))

    def _kernel(self, layer: Layer, read: Collection[Port | None]) -> Kernel:
        assert layer.op is not None
        sources = [self._seen(s) for s in self.graph.sources(layer) if s is not None]
        unread = [i for i in range(len(layer.outputs)) if self.fold and Port(layer.id, i) not in read]
        return choose(layer.op, sources, self.backends, unread)

    def _seen(self, port: Port) -> Value:
        """What a kernel may rely on: contents only where they are fixed in the plan."""
        value = self.values[port]
        return value if self._known(port) is not None else Value(value.type)


def _free(steps: Sequence[Step], wanted: Sequence[int]) -> tuple[Step, ...]:
    """Tell each step which slots it is the last to read; constants and outputs stay."""
    kept = set(wanted)
    made = {slot for step in steps for slot in step.writes}
    read_later: set[int] = set()
    freed = []
    for step in reversed(steps):
        touched = set(step.reads) | set(step.writes)
        frees = tuple(sorted(s for s in touched if s in made and s not in kept and s not in read_later))
        read_later |= touched
        freed.append(replace(step, frees=frees))
    return tuple(reversed(freed))
