"""From a graph to a plan: the passes of a compilation, in order, then the steps of the plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from .._util.scoped import nested
from ..analysis.infer import Inferred
from ..backends import Backend, Fusion, MatchContext, Precision, Refusal
from ..backends.core import precision as precisions
from ..compiler.bf16 import store_bf16
from ..compiler.deferred_weights import defer_weights
from ..compiler.fold import fold as fold_constants
from ..compiler.fuse import Group, fuse
from ..compiler.kv_cache import Copy, cache_kernels, growing_caches
from ..compiler.mixed_inputs import hide_mixed_inputs
from ..compiler.passes import Pass
from ..compiler.program import Program
from ..compiler.quantized_caches import find_quantized_caches
from ..compiler.quantized_weights import Found, find_quantized_weights
from ..compiler.state import CompileState
from ..compiler.widen import Widened, has_f16, widen_f16
from ..ir.graph import Body, Graph, Layer, Port
from ..ir.tensor import Value
from ..limits import Limits, current, within
from . import quantized_variables
from .build_steps import StepBuilder
from .needed import needed, sinks
from .plan import ExecutionPlan
from .select_kernel import KernelSelector
from .shape_cache import ShapeCache, dependency_chain, shape_arithmetic

__all__ = ["PASSES", "After", "compile_plan"]

After = Callable[[str, Program], None]
"""Called after each pass with its name, and the program that it leaves."""


def compile_plan(
    graph: Graph,
    types: Inferred,
    outputs: Sequence[Port],
    backends: Sequence[Backend] = (),
    fold: bool = True,
    limits: Limits | None = None,
    after: After | None = None,
    precision: Precision | None = None,
) -> ExecutionPlan:
    """Return the plan that computes ``outputs``.

    Args:
        graph: the layers.
        types: the `Value` of every output, from the `infer` pass.
        outputs: what to compute.
        backends: asked in turn for a kernel for each layer.
        fold: compute what follows from constants now, and let kernels fuse layers; without it every
            layer stays observable.
        limits: bounds on what a run may need; by default those that hold here.
        after: called after each pass.
        precision: what kernels may round; by default what holds here.

    Raises:
        LimitError: if a run needs more memory than they allow, whatever its data are; it names the layer.
        UnsupportedError: if an operation that is needed has no implementation here.
    """
    layers = needed(graph, outputs)
    rounding = precisions.within(precision or precisions.current())
    with within(limits or current()), rounding, nested([backend.compiling for backend in backends]):
        program = Program(CompileState(graph, dict(types), fold, {}), layers, outputs)
        return _Compiler(program, types, backends).plan(after, returned=True)


@dataclass(slots=True)
class _Compiler:
    """One compilation: the methods named in `PASSES` change its program, one after the other."""

    program: Program
    types: Inferred
    backends: Sequence[Backend]
    is_body: bool = False
    selector: KernelSelector = field(init=False)

    def __post_init__(self) -> None:
        plan_of_body = partial(_plan_of_body, self.program.state.fold, self.backends)
        self.selector = KernelSelector(self.program, self.types.bodies, self.backends, plan_of_body)

    def plan(self, after: After | None = None, returned: bool = False) -> ExecutionPlan:
        """Run all passes, then number the slots; callers get the outputs of a model, layers those of a body."""
        for each in PASSES:
            each.run(self)
            if after is not None:
                after(each.name, self.program)
        inputs = [Port(layer.id, 0) for layer in self.program.graph.of_type("Parameter")]
        builder = StepBuilder(self.program.state, self.selector)
        return builder.plan(self.program.groups, inputs, self.program.outputs, returned)

    def compute_f16_in_f32(self) -> None:
        """Compute in f32 what the model has in f16, unless it asks for f16, or the backend is the reference."""
        program, state = self.program, self.program.state
        literal = not self.backends or precisions.current().f16 == "f16"
        if literal or self.is_body:  # bodies are widened with their layer
            return
        if not has_f16(state.graph, self.types):
            return
        widened = widen_f16(state.graph, self.types, program.outputs, state.fold)
        self.types = widened.types
        self.selector.bodies = widened.types.bodies
        program.state = replace(state, graph=widened.graph, values=dict(widened.types), widened=widened)
        program.outputs = widened.outputs
        program.layers = needed(widened.graph, widened.outputs)

    def hide_mixed_inputs(self) -> None:
        """Leave layers whose inputs have several floating-point types to the reference, which computes in the widest."""
        if self.backends:
            hide_mixed_inputs(self.program)

    def keep_quantized(self) -> None:
        """Find quantized weights that a kernel can multiply as they are stored."""
        program, state = self.program, self.program.state
        readers = {op for backend in self.backends for op in backend.packed}
        if not state.fold or not readers:
            return
        packed = find_quantized_weights(program.graph, program.layers, self.types, program.outputs, readers)
        for layer in _inside(packed.values()):
            state.values[Port(layer.id, 0)] = Value(state.values[Port(layer.id, 0)].type)
        program.state = replace(state, packed=packed)

    def fold(self) -> None:
        """Compute layers whose inputs are all constant (constant folding), weights of integers only where they are asked for."""
        program, state = self.program, self.program.state
        if state.fold:
            left = {layer.id for layer in _inside(state.packed.values())}
            deferred = defer_weights(program.graph, program.layers, state.values, program.outputs)
            left |= {layer.id for layer in deferred}
            kept = {port for layer in deferred for port in program.reads(layer)}
            layers = [layer for layer in program.layers if layer.id not in left]
            fold_constants(program.graph, layers, state.values, kept.union(program.outputs))

    def append_to_caches(self) -> None:
        """Let a Concat that extends a KV cache append to it in place."""
        if self.program.state.fold:
            self.program.kernels = cache_kernels(self.program.graph, self._copy)
            self._quantize_caches()

    @property
    def _copy(self) -> Copy | None:
        """What copies to caches where a run is recorded."""
        return next((backend.copy() for backend in self.backends if backend.copy is not None), None)

    def _quantize_caches(self) -> None:
        """Hold caches in 8 bits between runs, if that is asked for and the first backend has kernels for it."""
        program, first = self.program, self.backends[0] if self.backends else None
        if precisions.current().kv_cache == "f32" or first is None or first.quantized_cache is None:
            return
        if not any(growing_caches(program.graph)):
            return
        context = MatchContext(program.graph, program.state.visible_value)
        found = find_quantized_caches(context, program.outputs, first.quantized_cache())
        program.kernels = {**program.kernels, **quantized_variables.cache_kernels(found, self._copy)}
        program.variables = quantized_variables.variable_kernels(found)
        name = f"{first.name}: cached_attention"
        program.fusions |= {
            id: Fusion(each.layers, each.reads, each.kernel, name) for id, each in found.attention.items()
        }

    def find_shape_arithmetic(self) -> None:
        """Find layers whose results follow from shapes alone, which are computed once for each shape."""
        state = self.program.state
        if state.fold:
            self.program.shape_only = shape_arithmetic(
                self.program.graph, self.program.layers, state.visible_value
            )

    def match(self) -> None:
        """Match patterns, from the outputs backwards, and drop layers that nothing reads any more."""
        program, state = self.program, self.program.state
        found = {layer.id for layer in sinks(program.graph)}
        waiting = [*program.outputs, *(port for id in found for port in self._reads(program.graph[id]))]
        while waiting:
            port = waiting.pop()
            known = port in state.packed or state.is_fixed(port)
            if port.layer not in found and not known:
                found.add(port.layer)
                waiting += self._reads(program.graph[port.layer])
        program.layers = [la for la in program.layers if la.id in found and la.type != "Parameter"]

    def select(self) -> None:
        """Group the layers of patterns; other kernels are chosen when they are needed, none for layers that are fused."""
        program = self.program
        read = {port for layer in program.layers for port in self._reads(layer)} | set(program.outputs)
        program.groups = [self._group(layer, read) for layer in program.layers]

    def fuse(self) -> None:
        """Let kernels compute the layers that alone read their results, as epilogues."""
        program, state = self.program, self.program.state
        if state.fold:
            program.groups = fuse(program.graph, program.groups, set(program.outputs), state.visible_value)

    def store_bf16(self) -> None:
        """Let kernels store results in bf16 that all their readers would round to it."""
        program = self.program
        if program.state.fold and precisions.current().products == "bf16":
            program.groups = store_bf16(program.groups, program.outputs)

    def pack(self) -> None:
        """Let kernels pack their weights, now that it is known what they compute."""
        self.program.groups = [self._packed(group) for group in self.program.groups]

    def _packed(self, group: Group) -> Group:
        prepared = group.prepared()
        self.program.state.release(group.reads)
        return prepared

    def _reads(self, layer: Layer) -> tuple[Port, ...]:
        """Return what must be there for a layer: its inputs, or those of the fusion that it ends."""
        fusion = self._fusion(layer)
        return self.program.reads(layer) if fusion is None else fusion.reads

    def _fusion(self, layer: Layer) -> Fusion | None:
        fusions = self.program.fusions
        if layer.id not in fusions:
            fusions[layer.id] = self._shape_cached(layer) or self._matched(layer)
        return fusions[layer.id]

    def _matched(self, layer: Layer) -> Fusion | None:
        """Return the first fusion that a pattern of some backend finds."""
        state, refused = self.program.state, list[Refusal]()
        if not state.fold or layer.op is None or layer.id in self.program.kernels:
            return None
        context = MatchContext(self.program.graph, state.visible_value)
        for backend in self.backends:
            fusion, more = backend.match(context, layer)
            if fusion is not None:
                return fusion
            refused += more
        self.program.refused += refused
        return None

    def _shape_cached(self, layer: Layer) -> Fusion | None:
        """Return a layer that depends on nothing but shapes, with all that it follows from."""
        program = self.program
        if layer.id not in program.shape_only:
            return None
        if (layers := dependency_chain(program.graph, layer, program.shape_only)) is None:
            return None
        inner, writes = {each.id for each in layers}, layer.output_ports
        sources = [port for each in layers for port in program.reads(each)]
        fixed = program.state.contents
        reads = tuple(dict.fromkeys(s for s in sources if s.layer not in inner and fixed(s) is None))
        read = {*sources, *writes}
        groups = [self._lone(each, read) for each in layers]
        plan = StepBuilder(program.state, self.selector).inner_plan(groups, reads, writes)
        return Fusion(layers, reads, ShapeCache(plan).kernel, "shape arithmetic")

    def _group(self, layer: Layer, read: Collection[Port]) -> Group:
        if (fusion := self._fusion(layer)) is not None:
            return Group(fusion.layers, lambda: fusion.kernel, fusion.reads, fusion.pattern)
        if not self.program.state.packed.keys().isdisjoint(self.program.reads(layer)):
            # Weights that a layer unpacks are what others find, in order.
            return self._lone(layer, read)
        return Group.of(self.program.graph, layer, partial(self.selector.kernel, layer, read))

    def _lone(self, layer: Layer, read: Collection[Port]) -> Group:
        """Return a group of one layer, whose kernel is chosen now."""
        kernel = self.selector.kernel(layer, read)
        return Group.of(self.program.graph, layer, lambda: kernel)


def _plan_of_body(
    fold: bool, backends: Sequence[Backend], body: Body, types: Inferred, widened: Widened | None
) -> ExecutionPlan:
    """Return the plan of a body; a method would keep its compiler, and that this."""
    outputs = list(body.results.values())
    state = CompileState(body.graph, dict(types), fold, {}, widened)
    return _Compiler(
        Program(state, needed(body.graph, outputs), outputs), types, backends, is_body=True
    ).plan()


def _inside(packed: Iterable[Found]) -> list[Layer]:
    """Return the layers that would dequantize weights."""
    return [layer for found in packed for layer in found.layers]


PASSES: tuple[Pass[_Compiler], ...] = (
    Pass("widen", _Compiler.compute_f16_in_f32),
    Pass("mixed-inputs", _Compiler.hide_mixed_inputs),
    Pass("quantized-weights", _Compiler.keep_quantized),
    Pass("fold", _Compiler.fold),
    Pass("kv-cache", _Compiler.append_to_caches),
    Pass("shape-arithmetic", _Compiler.find_shape_arithmetic),
    Pass("match", _Compiler.match),
    Pass("select", _Compiler.select),
    Pass("fuse", _Compiler.fuse),
    Pass("store-bf16", _Compiler.store_bf16),
    Pass("pack", _Compiler.pack),
)
"""The passes of a compilation, in order."""
