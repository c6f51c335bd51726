"""The fusions of a compilation, and why other layers were not fused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir.graph import Layer
from ..ops.elementwise import Binary, Unary
from .program import Group, Program

__all__ = ["FusedLayers", "FusionReport", "UnfusedLayer", "fusion_report"]


@dataclass(frozen=True, slots=True)
class FusedLayers:
    """Layers that one kernel computes, in order.

    Args:
        layers: the layers.
        pattern: the pattern that they match; empty where the first one's kernel applies the others as epilogue.
    """

    layers: tuple[Layer, ...]
    pattern: str


@dataclass(frozen=True, slots=True)
class UnfusedLayer:
    """A layer that could have been computed by the kernel of another one, and was not.

    Args:
        layer: the layer.
        producer: the layer that it reads; ``None`` where a pattern refused it.
        reason: a clause about the producer, or what the pattern says.
    """

    layer: Layer
    producer: Layer | None
    reason: str


@dataclass(frozen=True, slots=True)
class FusionReport:
    """What became of the layers of a program.

    Args:
        fused: kernels that compute several layers.
        unfused: layers that are left alone, and why.
        single: the number of kernels that compute one layer.
    """

    fused: tuple[FusedLayers, ...]
    unfused: tuple[UnfusedLayer, ...]
    single: int


def fusion_report(program: Program) -> FusionReport:
    """Return the report on a program after the pass ``fuse``, and before ``pack``."""
    fused = [FusedLayers(group.layers, group.pattern) for group in program.groups if len(group.layers) > 1]
    inside = {layer.id for group in program.groups for layer in group.layers[1:]}
    refused = [
        UnfusedLayer(found.layer, None, f"pattern {found.pattern}: {found.reason}")
        for found in program.refused
        if found.layer is not None and found.layer.id not in inside
    ]
    unfused = [*refused, *_unfused(program)]
    return FusionReport(tuple(fused), tuple(unfused), len(program.groups) - len(fused))


def _unfused(program: Program) -> Iterator[UnfusedLayer]:
    """Yield the element-wise layers that stand alone though they read what a kernel computes."""
    writers = {port: group for group in program.groups for port in group.writes}
    readers: dict[object, list[Group]] = {}
    for group in program.groups:
        for port in group.reads:
            readers.setdefault(port, []).append(group)
    for group in program.groups:
        layer = group.layers[0]
        if not isinstance(layer.op, Unary | Binary):
            continue
        for port in group.reads:
            if (writer := writers.get(port)) is not None:
                last = writer.layers[-1]
                others = [g.layers[-1].name for g in readers[port] if g is not group]
                yield UnfusedLayer(layer, last, _reason(writer, layer, others, port in program.outputs))
                break


def _reason(writer: Group, layer: Layer, others: list[str], is_output: bool) -> str:
    if is_output:
        return "its result is an output of the model"
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        return f"its result is also read by {others[0]!r}{more}"
    if len(writer.writes) > 1:
        return "it has several outputs"
    if not writer.kernel.has_epilogue:
        return "its kernel has no epilogue"
    return f"its epilogue has no post-op for {layer.operation} of these types and shapes"
