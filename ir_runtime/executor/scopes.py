"""The scopes that a run needs: what backends set up for kernels that are not part of the plan costs only time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .._util.forks import computing
from .._util.scoped import Scope
from ..backends import Backend
from ..backends.core.precision import current
from ..compiler.fuse import Group
from ..ir.tensor import TensorType
from ..ops import elementwise

__all__ = ["scopes"]

# Results with more elements may be shared by threads.
SMALL = 1 << 16


def scopes(
    groups: Iterable[tuple[Group, Sequence[TensorType]]], backends: Sequence[Backend]
) -> tuple[Scope, ...]:
    """Return the scopes around a run.

    Args:
        groups: each with the types of its results.
        backends: those that kernels may be of.
    """
    needed = [scope for group, types in groups for scope in _of(group, types, backends)]
    flushing = [backend.flushing for backend in backends if backend.flushing and current().flush_denormals]
    return (computing, *flushing, *(backend.around for backend in backends if backend.around in needed))


def _of(group: Group, types: Sequence[TensorType], backends: Sequence[Backend]) -> list[Scope]:
    """Return what a group needs: its kernel, or that of any backend."""
    if (replay := group.ready.replay) is not None:
        return [replay.replayer.around]
    return [] if _is_small_map(group, types) else [backend.around for backend in backends]


def _is_small_map(group: Group, types: Sequence[TensorType]) -> bool:
    """Return whether every kernel for a group does without threads and BLAS: it maps few elements, or makes a view."""
    if group.ready.view:
        return True
    maps = all(isinstance(layer.op, elementwise.Unary | elementwise.Binary) for layer in group.layers)
    return maps and all(type.shape.is_static and math.prod(type.shape.static) <= SMALL for type in types)
