"""A cache of shape arithmetic: what follows from shapes alone is computed once for each of them.

A model with open lengths measures its tensors, picks lengths, multiplies and joins them, and even makes masks
and first values of caches of them. Run after run, the shapes are mostly the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from ..backends import Kernel
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Array, Value
from ..ops.shape.shape_of import ShapeOfBase
from .context import RUN
from .plan import ExecutionPlan

__all__ = ["ShapeCache", "shape_arithmetic", "dependency_chain"]

# What is kept for a step: results of this many bytes, for this many shapes.
KEPT = 1 << 20
REMEMBERED = 64
# The most layers in one step: other layers may need intermediate results, too.
MOST = 64


def shape_arithmetic(graph: Graph, layers: Iterable[Layer], seen: Callable[[Port], Value]) -> dict[int, int]:
    """Return the ids of layers whose results follow from shapes, and from constants, numbered in order.

    Args:
        graph: the layers.
        layers: those to look at, in order.
        seen: what may be relied on of a port; contents only where they are fixed.
    """
    found: dict[int, int] = {}
    for layer in layers:
        if not found and not isinstance(layer.op, ShapeOfBase):
            continue
        if layer.op is None or not layer.op.pure or layer.bodies():
            continue
        sources = [s for s in graph.sources(layer) if s is not None]
        open_ = [s for s in sources if seen(s).known() is None]
        if isinstance(layer.op, ShapeOfBase) or (open_ and all(s.layer in found for s in open_)):
            found[layer.id] = len(found)
    return found


def dependency_chain(graph: Graph, layer: Layer, among: Mapping[int, int]) -> tuple[Layer, ...] | None:
    """Return a layer after all layers ``among`` those given that it depends on; ``None`` if they are too many."""
    found, waiting = {layer.id}, [layer]
    while waiting:
        for source in graph.sources(waiting.pop()):
            if source is not None and source.layer in among and source.layer not in found:
                found.add(source.layer)
                waiting.append(graph[source.layer])
        if len(found) > MOST:
            return None
    return tuple(graph[id] for id in sorted(found, key=among.__getitem__))


@dataclass(frozen=True, slots=True, eq=False)
class ShapeCache:
    """Computes shape arithmetic. It takes the tensors whose shapes are read.

    Args:
        plan: computes the result.
        known: results by shapes.
    """

    plan: ExecutionPlan
    known: dict[Hashable, tuple[Array, ...]] = field(default_factory=dict)

    @property
    def kernel(self) -> Kernel:
        """The kernel; the steps of the plan check inputs."""
        return Kernel(self, checks_inputs=True, of_shapes=True)

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        key = arrays[0].shape if len(arrays) == 1 else tuple([array.shape for array in arrays])
        results = self.known.get(key)
        return self._computed(key, arrays) if results is None else results

    def _computed(self, key: Hashable, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        results = tuple(self.plan.execute(arrays, RUN.get()))
        for array in results:
            array.flags.writeable = False  # who gets one of them as an output of the model, gets a copy
        size = sum(array.nbytes for array in results)
        if size <= KEPT:
            kept = sum(array.nbytes for known in list(self.known.values()) for array in known)
            if kept + size > KEPT or len(self.known) >= REMEMBERED:
                self.known.clear()
            self.known[key] = results
        return results
