"""Fusion: group the layers that one kernel computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .._util.cached import cached_property
from ..backends import Kernel, KernelTemplate
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Value

__all__ = ["Group", "fuse"]


@dataclass(frozen=True)
class Group:
    """Layers of which the last one gives the result, and the kernel that computes them together.

    They are in topological order; only the outputs of the last one are visible outside.
    """

    layers: tuple[Layer, ...]
    choose: Callable[[], KernelTemplate]
    """Returns the kernel."""
    reads: tuple[Port, ...]
    """The inputs of the kernel; where layers are in a row, each with one reader, their inputs in order."""
    pattern: str = ""
    """The name of the pattern that the layers match, if they match one."""

    @classmethod
    def of(cls, graph: Graph, layer: Layer, choose: Callable[[], KernelTemplate]) -> Group:
        """Return a group of one layer."""
        return cls((layer,), choose, graph.reads(layer))

    @cached_property
    def kernel(self) -> KernelTemplate:
        """The kernel, chosen when it is first asked for: layers that others fuse need none of their own."""
        return self.choose()

    def prepared(self) -> Group:
        """Return the group with its kernel prepared: no more layers are fused, and what chose it is no longer needed."""
        ready = self.kernel.prepare()
        return replace(self, choose=lambda: ready)

    @property
    def ready(self) -> Kernel:
        """The kernel of a prepared group."""
        return self.kernel.prepare()

    @property
    def writes(self) -> tuple[Port, ...]:
        """The outputs of the last layer."""
        return self.layers[-1].output_ports


def fuse(
    graph: Graph, alone: Iterable[Group], outputs: Collection[Port], seen: Callable[[Port], Value]
) -> list[Group]:
    """Let kernels take over the layers that read their results, one after the other.

    A group stands where its last layer stood, so that everything it reads has been computed.

    Args:
        graph: the layers.
        alone: a group for each layer that runs, in order; some may have been matched with others already.
        outputs: what must be computed; no kernel may keep it to itself.
        seen: what a kernel may rely on of a port.
    """
    single = {group.layers[-1].id: group for group in alone}
    readers: dict[Port, list[Group]] = {}
    for group in single.values():
        for port in group.reads:
            readers.setdefault(port, []).append(group)
    groups: dict[int, Group] = {}
    taken: set[int] = set()
    for layer, start in single.items():
        if layer in taken:
            continue
        growing: Group | None = start
        while growing is not None:
            last, best = growing.layers[-1].id, growing
            taken.add(last)
            reader = _only_reader(growing, outputs, readers)
            growing = None if reader is None or reader.id in taken else _grown(graph, growing, reader, seen)
        groups[last] = best
    return [groups[layer] for layer in single if layer in groups]


def _only_reader(
    group: Group, outputs: Collection[Port], readers: Mapping[Port, Sequence[Group]]
) -> Layer | None:
    """Return the only layer that reads a result, unless it is matched with others."""
    if len(group.writes) != 1 or group.writes[0] in outputs:
        return None
    found = readers.get(group.writes[0], ())
    return found[0].layers[0] if len(found) == 1 and len(found[0].layers) == 1 else None


def _grown(graph: Graph, group: Group, reader: Layer, seen: Callable[[Port], Value]) -> Group | None:
    if reader.op is None or not group.kernel.has_epilogue:
        return None
    sources = [s for s in graph.sources(reader) if s is not None]
    place = sources.index(group.writes[0])
    kernel = group.kernel.fuse(reader.op, [seen(s) for s in sources], place)
    if kernel is None:
        return None
    others = tuple(s for i, s in enumerate(sources) if i != place)
    return Group((*group.layers, reader), lambda: kernel, (*group.reads, *others), group.pattern)
