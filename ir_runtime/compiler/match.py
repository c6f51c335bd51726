"""The pass ``match``: find layers that one kernel computes together, and drop unused layers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ..backends import Fusion, Kernel, MatchContext, Refusal
from ..executor.context import RUN
from ..executor.plan import ExecutionPlan
from ..ir.graph import Layer, Port
from ..ir.tensor import Array
from .build_plan import PlanBuilder
from .choose_kernel import lone_group
from .program import Options, Program, sinks
from .shape_arithmetic import dependency_chain

__all__ = ["ShapeCache", "match"]


def match(program: Program, options: Options) -> None:
    """Match patterns, from the outputs backwards, and drop unused layers.

    Before: only the kernels of caches are chosen.
    After: ``fusions`` has the fusion that each remaining layer ends, or ``None``; ``layers`` has only layers whose results
    are read, without Parameters; ``refused`` has the reasons why patterns did not match.
    """
    used = {layer.id for layer in sinks(program.graph)}
    waiting = list(program.outputs)
    for id in used:
        waiting += _reads(program, options, program.graph[id])
    while waiting:
        port = waiting.pop()
        is_constant = port in program.packed or program.is_fixed(port)
        if port.layer not in used and not is_constant:
            used.add(port.layer)
            waiting += _reads(program, options, program.graph[port.layer])
    program.layers = [la for la in program.layers if la.id in used and la.type != "Parameter"]


def _reads(program: Program, options: Options, layer: Layer) -> tuple[Port, ...]:
    """Return the ports that a layer depends on: its inputs, or the inputs of the fusion that it ends."""
    fusions = program.fusions
    if layer.id not in fusions:
        fusions[layer.id] = _cache_shapes(program, options, layer) or _match_patterns(program, options, layer)
    fusion = fusions[layer.id]
    return program.reads(layer) if fusion is None else fusion.reads


def _match_patterns(program: Program, options: Options, layer: Layer) -> Fusion | None:
    """Return the first fusion that ends with a layer, by a pattern of a backend.

    Returns ``None``, and adds the refusals to ``program.refused``, if no pattern matches. Without `fold`, and for layers whose
    kernel a pass has chosen, patterns are not tried.
    """
    refused = list[Refusal]()
    if not program.fold or layer.op is None or layer.id in program.kernels:
        return None
    context = MatchContext(program.graph, program.visible_value)
    for backend in options.backends:
        fusion, more = backend.match(context, layer)
        if fusion is not None:
            return fusion
        refused += more
    program.refused += refused
    return None


def _cache_shapes(program: Program, options: Options, layer: Layer) -> Fusion | None:
    """Return a fusion that caches shape arithmetic, for a layer that depends on shapes alone.

    Returns ``None`` for other layers, and for those that depend on too many layers.
    """
    if layer.id not in program.shape_only:
        return None
    if (layers := dependency_chain(program.graph, layer, program.shape_only)) is None:
        return None
    inner, writes = {member.id for member in layers}, layer.output_ports
    sources = [port for member in layers for port in program.reads(member)]
    reads = tuple(dict.fromkeys(s for s in sources if s.layer not in inner and program.contents(s) is None))
    read = {*sources, *writes}
    groups = [lone_group(program, options, member, read) for member in layers]
    plan = PlanBuilder(program, options).inner_plan(groups, reads, writes)
    return Fusion(layers, reads, ShapeCache(plan).kernel, "shape arithmetic")


# Limits of the cache of a step: the bytes of its results, and the number of shapes.
KEPT = 1 << 20
REMEMBERED = 64


@dataclass(frozen=True, slots=True, eq=False)
class ShapeCache:
    """Computes shape arithmetic, and caches its results by the shapes of its inputs.

    Args:
        plan: computes the results.
        cached: the results by input shapes.
    """

    plan: ExecutionPlan
    cached: dict[Hashable, tuple[Array, ...]] = field(default_factory=dict)

    @property
    def kernel(self) -> Kernel:
        """The kernel of the step; it needs no length check, as the inner plan's steps have theirs."""
        return Kernel(self, checks_inputs=True, of_shapes=True)

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        key = arrays[0].shape if len(arrays) == 1 else tuple([array.shape for array in arrays])
        results = self.cached.get(key)
        return self._compute(key, arrays) if results is None else results

    def _compute(self, key: Hashable, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        results = tuple(self.plan.execute(arrays, RUN.get()))
        for array in results:
            array.flags.writeable = False  # model outputs are copies
        size = sum(array.nbytes for array in results)
        if size <= KEPT:
            cached = sum(array.nbytes for arrays in list(self.cached.values()) for array in arrays)
            if cached + size > KEPT or len(self.cached) >= REMEMBERED:
                self.cached.clear()
            self.cached[key] = results
        return results
