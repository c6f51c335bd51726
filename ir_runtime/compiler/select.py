"""The pass ``select``: a group for each executed layer, with the kernel of its pattern or its own."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from ..ir.graph import Layer, Port
from .choose_kernel import choose_kernel, lone_group
from .program import Group, Options, Program

__all__ = ["select"]


def select(program: Program, options: Options) -> None:
    """Group the layers of patterns; other kernels are chosen lazily.

    Before: ``layers`` are those that run, and ``fusions`` says which of them end a fusion.
    After: ``groups`` has a group that ends with each of the layers, in order.
    """
    fusions = program.fusions
    read = set(program.outputs)
    for layer in program.layers:
        fusion = fusions.get(layer.id)
        read.update(program.reads(layer) if fusion is None else fusion.reads)
    program.groups = [_group(program, options, layer, read) for layer in program.layers]


def _group(program: Program, options: Options, layer: Layer, read: Collection[Port]) -> Group:
    if (fusion := program.fusions.get(layer.id)) is not None:
        return Group(fusion.layers, lambda: fusion.kernel, fusion.reads, fusion.pattern)
    if not program.packed.keys().isdisjoint(program.reads(layer)):
        # Weights unpacked for a layer are visible to later ones.
        return lone_group(program, options, layer, read)
    return Group.of(program.graph, layer, partial(choose_kernel, program, options, layer, read))
