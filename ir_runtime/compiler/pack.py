"""The pass ``pack``: kernels pack their weights."""

from __future__ import annotations

from .program import Group, Options, Program

__all__ = ["pack"]


def pack(program: Program, options: Options) -> None:
    """Let kernels pack their weights, now that it is known what they compute.

    Before: no more layers are fused.
    After: the kernel of every group is a `Kernel`, and what chose it is no longer needed.
    """
    program.groups = [_packed(program, group) for group in program.groups]


def _packed(program: Program, group: Group) -> Group:
    prepared = group.with_kernel(group.ready)
    program.release(group.reads)
    return prepared
