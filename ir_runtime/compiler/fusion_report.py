"""The report of the fusions in a compilation, and of the reasons why other layers were not fused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir.graph import Layer
from ..ops.elementwise import Binary, Unary
from .program import Group, Program

__all__ = ["FusedLayers", "FusionReport", "UnfusedLayer", "fusion_report"]


@dataclass(frozen=True, slots=True)
class FusedLayers:
    """Layers computed by one kernel, in order.

    Args:
        layers: the layers.
        pattern: the matched pattern; empty for layers fused as epilogues.
    """

    layers: tuple[Layer, ...]
    pattern: str


@dataclass(frozen=True, slots=True)
class UnfusedLayer:
    """A layer that was not fused, though layers of its type can be.

    Args:
        layer: the layer.
        producer: the layer whose kernel could have computed it; ``None`` if a pattern refused it.
        reason: a clause about the producer, or the reason of the pattern.
    """

    layer: Layer
    producer: Layer | None
    reason: str


@dataclass(frozen=True, slots=True)
class FusionReport:
    """The fusions of a program.

    Args:
        fused: the groups of fused layers.
        unfused: layers that were not fused, and why.
        single: the number of kernels that compute one layer.
    """

    fused: tuple[FusedLayers, ...]
    unfused: tuple[UnfusedLayer, ...]
    single: int


def fusion_report(program: Program) -> FusionReport:
    """Return the report of a program between the passes ``fuse`` and ``pack``."""
    fused = [FusedLayers(group.layers, group.pattern) for group in program.groups if len(group.layers) > 1]
    inside = {layer.id for group in program.groups for layer in group.layers[1:]}
    refused = [
        UnfusedLayer(refusal.layer, None, f"pattern {refusal.pattern}: {refusal.reason}")
        for refusal in program.refused
        if refusal.layer is not None and refusal.layer.id not in inside
    ]
    unfused = [*refused, *_find_unfused(program)]
    return FusionReport(tuple(fused), tuple(unfused), len(program.groups) - len(fused))


def _find_unfused(program: Program) -> Iterator[UnfusedLayer]:
    """Yield the elementwise layers that are not fused into the kernel of a producer."""
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
