"""The pass ``fuse``: kernels also compute the sole consumers of their results.

It fuses the bias Add after a Convolution into its kernel as an epilogue, and likewise residuals and activations. Backends decide
how an epilogue is applied: native kernels by `Epilogue` in `backends.native.kernels._epilogue`, NumPy's by `RowKernel` in
`backends.common.epilogue`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Value
from .program import Group, Options, Program

__all__ = ["fuse"]


def fuse(program: Program, options: Options) -> None:
    """Let kernels compute the sole consumers of their results as epilogues.

    Before: ``groups`` has a group that ends with each layer, in order; patterns have several layers.
    After: a group is at the position of its last layer, so its inputs are computed before it; no output of the program
    is inside a group.
    """
    if program.fold:
        program.groups = _fuse_groups(
            program.graph, program.groups, set(program.outputs), program.visible_value
        )


def _fuse_groups(
    graph: Graph, alone: Iterable[Group], outputs: Collection[Port], seen: Callable[[Port], Value]
) -> list[Group]:
    single = {group.layers[-1].id: group for group in alone}
    readers: dict[Port, list[Group]] = {}
    for group in single.values():
        for port in group.reads:
            readers.setdefault(port, []).append(group)
    groups: dict[int, Group] = {}
    grouped: set[int] = set()
    for layer, start in single.items():
        if layer in grouped:
            continue
        growing: Group | None = start
        while growing is not None:
            last, best = growing.layers[-1].id, growing
            grouped.add(last)
            reader = _sole_reader(growing, outputs, readers)
            growing = (
                None if reader is None or reader.id in grouped else _fuse_reader(graph, growing, reader, seen)
            )
        groups[last] = best
    return [groups[layer] for layer in single if layer in groups]


def _sole_reader(
    group: Group, outputs: Collection[Port], readers: Mapping[Port, Sequence[Group]]
) -> Layer | None:
    """Return the only consumer of a group's only result.

    Returns ``None`` if there are several results, if the result is an output of the program or has several consumers, or if
    its consumer is part of a pattern.
    """
    if len(group.writes) != 1 or group.writes[0] in outputs:
        return None
    consumers = readers.get(group.writes[0], ())
    return consumers[0].layers[0] if len(consumers) == 1 and len(consumers[0].layers) == 1 else None


def _fuse_reader(graph: Graph, group: Group, reader: Layer, seen: Callable[[Port], Value]) -> Group | None:
    if reader.op is None or not group.kernel.has_epilogue:
        return None
    sources = [s for s in graph.sources(reader) if s is not None]
    place = sources.index(group.writes[0])
    kernel = group.kernel.fuse(reader.op, [seen(s) for s in sources], place)
    if kernel is None:
        return None
    others = tuple(s for i, s in enumerate(sources) if i != place)
    return Group((*group.layers, reader), lambda: kernel, (*group.reads, *others), group.pattern)
