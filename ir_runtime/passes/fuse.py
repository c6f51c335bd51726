"""Group layers that one kernel computes together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from ..backends import Kernel
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Value

__all__ = ["Group", "fuse"]


@dataclass(frozen=True, slots=True)
class Group:
    """Layers in a row, of which each but the last is read by the next one alone, and their kernel."""

    layers: tuple[Layer, ...]
    kernel: Kernel
    reads: tuple[Port, ...]
    """Inputs of the first layer, then those of the others that do not come from within."""

    @classmethod
    def of(cls, graph: Graph, layer: Layer, kernel: Kernel) -> Group:
        """A layer on its own."""
        return cls((layer,), kernel, tuple(s for s in graph.sources(layer) if s is not None))

    def built(self) -> Group:
        """The same, once nothing more is absorbed: a kernel that is only a description makes the real one."""
        build = getattr(self.kernel, "built", None)
        return self if build is None else replace(self, kernel=build())

    @property
    def writes(self) -> tuple[Port, ...]:
        """The outputs of the last layer."""
        last = self.layers[-1]
        return tuple(Port(last.id, i) for i in range(len(last.outputs)))


def fuse(
    graph: Graph, alone: Iterable[Group], outputs: Collection[Port], seen: Callable[[Port], Value]
) -> list[Group]:
    """Let kernels take over the layers that read their results, one after the other.

    A group stands where its last layer stood, so that everything it reads is there by then.

    Args:
        graph: the layers.
        alone: a group for each layer that runs, in order.
        outputs: what must be computed; no kernel may keep it to itself.
        seen: what a kernel may rely on of a port.
    """
    single = {group.layers[0].id: group for group in alone}
    groups: dict[int, Group] = {}
    taken: set[int] = set()
    for layer, start in single.items():
        if layer in taken:
            continue
        group: Group | None = start
        while group is not None:
            last, best = group.layers[-1].id, group
            taken.add(last)
            reader = _only_reader(graph, group, outputs, single.keys())
            group = None if reader is None or reader.id in taken else _grown(graph, group, reader, seen)
        groups[last] = best
    return [groups[layer] for layer in single if layer in groups]


def _only_reader(
    graph: Graph, group: Group, outputs: Collection[Port], running: Collection[int]
) -> Layer | None:
    if len(group.writes) != 1 or group.writes[0] in outputs:
        return None
    readers = [r.layer for r in graph.readers(group.writes[0]) if r.layer in running]
    return graph[readers[0]] if len(readers) == 1 else None


def _grown(graph: Graph, group: Group, reader: Layer, seen: Callable[[Port], Value]) -> Group | None:
    absorb = getattr(group.kernel, "absorb", None)  # as `Absorbing`, which takes 40 µs to ask for
    if reader.op is None or absorb is None:
        return None
    sources = [s for s in graph.sources(reader) if s is not None]
    place = sources.index(group.writes[0])
    kernel = absorb(reader.op, [seen(s) for s in sources], place)
    if kernel is None:
        return None
    others = tuple(s for i, s in enumerate(sources) if i != place)
    return Group((*group.layers, reader), kernel, (*group.reads, *others))
