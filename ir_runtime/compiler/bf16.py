"""Tensors in bf16: results that kernels round anyway are stored rounded, in half the memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..backends import KernelTemplate
from ..ir.graph import Port
from .fuse import Group

__all__ = ["store_bf16"]


def store_bf16(groups: Sequence[Group], outputs: Collection[Port]) -> list[Group]:
    """Let kernels store what they compute in bf16 where all that read it take it so.

    Args:
        groups: the layers that each kernel computes, in the order in which they run.
        outputs: what the model computes, which keeps its type.
    """
    kept, found = set(outputs), list[Group]()
    readers: dict[Port, list[tuple[KernelTemplate, int]]] = {}
    for group in reversed(groups):  # readers first: what they take may depend on what they store
        first, *others = group.writes or (None,)
        if (
            first is not None
            and first not in kept
            and not any(port in kept or port in readers for port in others)
        ):
            group = _storing(group, readers.get(first, ()))
        for place, port in enumerate(group.reads):
            readers.setdefault(port, []).append((group.kernel, place))
        found.append(group)
    return found[::-1]


def _storing(group: Group, readers: Collection[tuple[KernelTemplate, int]]) -> Group:
    """Return a group that stores its first result in bf16, if it can, and all readers take it."""
    if not readers or not all(kernel.reads_bf16(place) for kernel, place in readers):
        return group
    kernel = group.kernel.storing_bf16()
    return group if kernel is None else replace(group, choose=lambda: kernel)
