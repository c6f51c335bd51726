"""The pass ``pack``: kernels pack their weights."""

from __future__ import annotations

from .program import Group, Options, Program

__all__ = ["pack"]


def pack(program: Program, options: Options) -> None:
    """Let kernels pack their weights, now that the fusions are final.

    Before: no more layers are fused.
    After: the kernel of every group is a `Kernel`, and its template is dropped.
    """
    program.groups = [_pack_group(program, group) for group in program.groups]


def _pack_group(program: Program, group: Group) -> Group:
    prepared = group.with_kernel(group.ready)
    program.release(group.reads)
    return prepared
