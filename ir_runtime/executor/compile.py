"""From a graph to a plan: fold constants, drop what nobody reads, choose kernels, number slots."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from .. import deadline
from ..analysis.expected import Expected, expected
from ..analysis.infer import Inferred, infer
from ..backends import Backend, Fusion, Kernel, MatchContext, choose
from ..codes import Code
from ..diagnostics import Diagnostics
from ..errors import UnsupportedError
from ..ir.body import Body
from ..ir.graph import Graph, Layer, Port
from ..ir.pages import held
from ..ir.tensor import Array, Packed, TensorType, Value
from ..limits import Limits, current, within
from ..ops import Op
from ..ops.infrastructure.ends import Constant
from ..scoped import nested
from ..transform.fold import fold as fold_constants
from ..transform.fuse import Group, fuse
from ..transform.quantized_weights import Found, compressed
from .compile_state import CompileState
from .context import VARIABLES
from .guard import bytes_of, elements_of, guarded
from .kv_cache import growing
from .length_check import LengthCheck, checked
from .memory import Peak, freeing, peak, settled
from .needed import needed, sinks
from .output_contract import OutputContract
from .plan import ExecutionPlan, Step
from .shape_cache import ShapeCache, measuring, unfolded
from .subgraphs import Visitor, kept

__all__ = ["compile_plan"]


def compile_plan(
    graph: Graph,
    types: Inferred,
    outputs: Sequence[Port],
    backends: Sequence[Backend] = (),
    fold: bool = True,
    limits: Limits | None = None,
) -> ExecutionPlan:
    """Make the plan that computes ``outputs``.

    Args:
        graph: the layers.
        types: what is known of every output, from the `infer` pass.
        outputs: what to compute.
        backends: asked in turn for a kernel for each layer.
        fold: compute what follows from constants now, and let kernels fuse layers; without it every
            layer stays observable.
        limits: bounds on what a run may need; by default those that hold here.

    Raises:
        LimitError: if a run needs more memory than they allow, whatever its data are; it names the layer.
        UnsupportedError: if an operation that is needed has no implementation here.
    """
    layers = needed(graph, outputs)
    with within(limits or current()), nested([backend.compiling for backend in backends]):
        values, packed = dict(types), _packed(graph, layers, types, outputs, backends) if fold else {}
        if fold:
            left = {layer.id for found in packed.values() for layer in found.layers}
            values |= {Port(id, 0): Value(values[Port(id, 0)].type) for id in left}
            fold_constants(graph, [layer for layer in layers if layer.id not in left], values, outputs)
        known = CompileState(graph, values, fold, packed)
        return _Planner(graph, known, types.bodies, backends).plan(layers, outputs)


def _packed(
    graph: Graph,
    layers: Sequence[Layer],
    types: Inferred,
    outputs: Sequence[Port],
    backends: Sequence[Backend],
) -> dict[Port, Found]:
    """The compressed weights that some backend may multiply as they are."""
    readers = {op for backend in backends for op in backend.packed}
    return compressed(graph, layers, types, outputs, readers) if readers else {}


@dataclass(slots=True)
class _Planner:
    """Numbers slots: one for each output that some step reads or writes."""

    graph: Graph
    known: CompileState
    bodies: Mapping[tuple[int, str], Inferred]
    backends: Sequence[Backend]
    slots: list[Array | None] = field(default_factory=list)
    places: dict[Port, int] = field(default_factory=dict)
    growing: Mapping[int, Kernel] = field(default_factory=dict)
    matches: dict[int, Fusion | None] = field(default_factory=dict)
    inside: dict[int, int] = field(default_factory=dict)
    """Bytes that the bodies of a layer need, by its id."""
    references: set[int] = field(default_factory=set)
    """The layers that run by their operation's own definition, by id."""
    measuring: Mapping[int, int] = field(default_factory=dict)
    """The layers that look at nothing but shapes, by id."""

    def plan(self, layers: Sequence[Layer], outputs: Sequence[Port]) -> ExecutionPlan:
        parameters = self.graph.of_type("Parameter")
        inputs = tuple(self._slot(Port(layer.id, 0)) for layer in parameters)
        if self.known.fold:
            self.growing = growing(self.graph)
            self.measuring = measuring(self.graph, layers, self.known.seen)
        running = self._running(layers, outputs)
        read = {port for layer in running.values() for port in self._reads(layer)} | set(outputs)
        groups = [self._group(layer, read) for layer in running.values()]
        if self.known.fold:
            groups = fuse(self.graph, groups, set(outputs), self.known.seen)
        groups = [self._built(group) for group in groups]
        steps = [self._step(group) for group in groups]
        wanted = tuple(self._held(port) for port in outputs)
        steps = freeing(steps, wanted)
        return settled(
            steps,
            inputs,
            wanted,
            self.slots,
            around=tuple(backend.around for backend in self.backends),
            contracts=tuple(OutputContract.of(self.graph[p.layer], self.known.type(p)) for p in outputs),
            peak=self._peak(steps, parameters).bytes,
        )

    def _peak(self, steps: Sequence[Step], parameters: Sequence[Layer]) -> Peak:
        """How much memory a run needs at least.

        Raises:
            LimitError: if that is too much.
        """
        limits = current()
        sizes = [0] * len(self.slots)
        for port, slot in self.places.items():
            type = self.known.type(port)
            limits.check("elements", elements_of(type), self.graph[port.layer].where)
            sizes[slot] = bytes_of(type)
        written = {slot for step in steps for slot in step.writes}
        fixed = [port for port, slot in self.places.items() if slot not in written and self.known.owned(port)]
        found = peak(steps, sum(sizes[self.places[port]] for port in fixed), sizes, self.inside)
        limits.check("memory", found.bytes, found.step.layer.where if found.step else None)
        return found

    def _running(self, layers: Sequence[Layer], outputs: Sequence[Port]) -> dict[int, Layer]:
        """The layers that compute what is not known of the outputs; packed constants are among them."""
        found = {layer.id for layer in sinks(self.graph)}
        waiting = [*outputs, *(port for n in found for port in self._reads(self.graph[n]))]
        while waiting:
            port = waiting.pop()
            if (
                port.layer not in found
                and port not in self.known.packed
                and self.known.contents(port) is None
            ):
                found.add(port.layer)
                waiting += self._reads(self.graph[port.layer])
        return {layer.id: layer for layer in layers if layer.id in found and layer.type != "Parameter"}

    def _reads(self, layer: Layer) -> tuple[Port, ...]:
        """What must be there for a layer: its inputs, or those of the match that it ends."""
        match = self._match(layer)
        return tuple(s for s in self.graph.sources(layer) if s is not None) if match is None else match.reads

    def _match(self, layer: Layer) -> Fusion | None:
        """The layers that some backend computes together, of which this is the last."""
        if layer.id not in self.matches:
            context = MatchContext(self.graph, self.known.seen)
            finding = self.known.fold and layer.op is not None and layer.id not in self.growing
            found = (backend.match(context, layer) for backend in self.backends) if finding else iter(())
            measured = self._measured(layer) if layer.id in self.measuring else None
            self.matches[layer.id] = measured or next((match for match in found if match is not None), None)
        return self.matches[layer.id]

    def _measured(self, layer: Layer) -> Fusion | None:
        """A layer that looks at nothing but shapes, with all that it follows from."""
        if (layers := unfolded(self.graph, layer, self.measuring)) is None:
            return None
        inner = {each.id for each in layers}
        sources = [s for each in layers for s in self.graph.sources(each) if s is not None]
        reads = tuple(
            dict.fromkeys(s for s in sources if s.layer not in inner and self.known.contents(s) is None)
        )
        planner = replace(self, slots=[], places={}, measuring={}, matches=dict.fromkeys(inner))
        inputs = tuple(map(planner._slot, reads))
        writes = {Port(layer.id, index) for index in range(len(layer.outputs))}
        steps = [planner._step(planner._group(each, {*sources, *writes})) for each in layers]
        wanted = tuple(map(planner._slot, sorted(writes)))
        plan = settled(freeing(steps, wanted), inputs, wanted, planner.slots)
        return Fusion(layers, reads, ShapeCache(plan))

    def _group(self, layer: Layer, read: Collection[Port]) -> Group:
        if (match := self._match(layer)) is not None:
            return Group(match.layers, match.kernel, match.reads)
        return Group.of(self.graph, layer, self._kernel(layer, read))

    def _built(self, group: Group) -> Group:
        """The group once it has packed its weights."""
        built = group.built()
        self.known.let_go(group.reads)
        return built

    def _slot(self, port: Port) -> int:
        if port not in self.places:
            self.places[port] = len(self.slots)
            self.slots.append(self.known.in_place(port))
        return self.places[port]

    def _held(self, port: Port) -> int:
        """The slot of what is read in every run, and so is taken out of the file."""
        slot = self._slot(port)
        if (array := self.slots[slot]) is not None:
            self.slots[slot] = held(array)
        return slot

    def _step(self, group: Group) -> Step:
        layer, *also = group.layers
        alone = not also and (layer.id in self.references or self._has_context(layer))
        reads = tuple(map(self._held if alone else self._slot, group.reads))
        writes = tuple(map(self._slot, group.writes))
        if isinstance(group.kernel, ShapeCache):
            return Step(layer, group.kernel, reads, writes, also=tuple(also))
        elements = [self.known.values[port].element for port in group.reads]
        known = expected(self.graph, group.layers, group.reads, elements)
        kernel = group.kernel
        if not self._has_context(layer):
            inputs = tuple(map(self.known.type, group.reads))
            outputs = list(map(self.known.type, group.writes))
            if (also or layer.id not in self.references) and any(type.shape.is_dynamic for type in inputs):
                kernel = checked(kernel, self._lengths(group, known, inputs))
            bounded = all(la.op is not None and la.op.bounded for la in group.layers)
            kernel = guarded(kernel, known, inputs, outputs, bounded)
        return Step(layer, kernel, reads, writes, also=tuple(also), expected=known)

    def _has_context(self, layer: Layer) -> bool:
        return layer.op is not None and (layer.op.asks("visit") or layer.op.asks("variables"))

    def _lengths(self, group: Group, known: Expected, inputs: tuple[TensorType, ...]) -> LengthCheck:
        """What the kernel of a group may rely on."""
        contents = tuple(map(self.known.contents, group.reads))
        made = tuple(tuple(map(self.known.type, self._ports(layer))) for layer in group.layers)
        return LengthCheck(known, inputs, contents, made)

    def _ports(self, layer: Layer) -> tuple[Port, ...]:
        return tuple(Port(layer.id, index) for index in range(len(layer.outputs)))

    def _kernel(self, layer: Layer, read: Collection[Port]) -> Kernel:
        assert layer.op is not None
        deadline.check(layer.where)
        if self._has_context(layer):
            return self._contextual(layer, layer.op)
        if layer.id in self.growing:
            return self.growing[layer.id]
        sources = [self.known.seen(s) for s in self.graph.sources(layer) if s is not None]
        if any(value.compressed is not None for value in sources):
            if (kernel := self._multiplying(layer.op, sources)) is not None:
                return kernel
            self.known.unpack(
                s for s in self.graph.sources(layer) if s is not None and s in self.known.packed
            )
            sources = [self.known.seen(s) for s in self.graph.sources(layer) if s is not None]
        unread = [i for i in range(len(layer.outputs)) if self.known.fold and Port(layer.id, i) not in read]
        kernel = choose(layer.op, sources, self.backends, unread)
        self.known.let_go(s for s in self.graph.sources(layer) if s is not None)
        return kernel or self._reference(layer, layer.op, sources)

    def _reference(self, layer: Layer, op: Op, sources: Sequence[Value]) -> Kernel:
        """The operation's own definition.

        Raises:
            UnsupportedError: if it has none.
        """
        if isinstance(op, Constant) and isinstance(op.value, Packed):  # unpacked in every run
            op = op.carrying(value=replace(op.value, raw=held(op.value.raw)))
        kernel = op.evaluator([value.element for value in sources])
        self.references.add(layer.id)
        if getattr(kernel, "__func__", None) is Op.evaluate:
            raise UnsupportedError(
                f"{op.versioned_name()} can be checked, but not run",
                code=Code.UNKNOWN_OPERATION,
                where=layer.where,
                hint="its class has no evaluate, and no backend has a kernel for it",
            )
        return kept(kernel, layer, self._outputs(layer)) if _is_external(op) else kernel

    def _multiplying(self, op: Op, sources: Sequence[Value]) -> Kernel | None:
        """A kernel that takes weights as they are stored."""
        offers = (backend.kernel_packed(op, sources) for backend in self.backends)
        return next((kernel for kernel in offers if kernel is not None), None)

    def _contextual(self, layer: Layer, op: Op) -> Kernel:
        """The reference of an operation with bodies or variables."""
        context: dict[str, Any] = {"variables": VARIABLES} if op.asks("variables") else {}
        if op.asks("visit"):
            types = {body.name: self._types(layer.id, body) for body in op.bodies()}
            plans = {body.name: self._body(body, types[body.name]) for body in op.bodies()}
            self.inside[layer.id] = max((plan.peak for plan in plans.values()), default=0)
            context["visit"] = Visitor(plans, {b.name: _contracts(b, types[b.name]) for b in op.bodies()})
        return kept(partial(op.evaluate, **context), layer, self._outputs(layer))

    def _outputs(self, layer: Layer) -> Sequence[TensorType]:
        return list(map(self.known.type, self._ports(layer)))

    def _types(self, layer: int, body: Body) -> Inferred:
        types = self.bodies.get((layer, body.name))
        # A branch that is known never to be taken was not inferred.
        return infer(body.graph, Diagnostics()) if types is None else types

    def _body(self, body: Body, types: Inferred) -> ExecutionPlan:
        return compile_plan(body.graph, types, list(body.results.values()), self.backends, self.known.fold)


def _contracts(body: Body, types: Inferred) -> dict[int, OutputContract]:
    """What each Parameter of a body must be given, by layer id."""
    return {id: OutputContract.of(body.graph[id], types[Port(id, 0)].type) for id in body.parameters}


def _is_external(op: Op) -> bool:
    """Whether an operation comes from outside this package."""
    return type(op).__module__.partition(".")[0] != __name__.partition(".")[0]
