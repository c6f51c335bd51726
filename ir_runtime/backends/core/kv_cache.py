"""The kernels of a backend for 8-bit key and value caches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ...ir.graph import Layer, Port
from ...ir.tensor import Array
from .kernel import Kernel
from .pattern import MatchContext

__all__ = ["CacheKernels", "CachedAttention"]


@dataclass(frozen=True)
class CachedAttention:
    """Attention with possibly packed keys and values.

    >>> CachedAttention(layers=(), reads=(), value=2, kernel=Kernel(abs)).value
    2

    Args:
        layers: those that it computes, the attention last.
        reads: the inputs of the kernel: the queries, the keys, and so on.
        value: which of them are the values.
        kernel: takes keys and values as f32 or as packed rows, of any lengths; checks its inputs itself.
    """

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    value: int
    kernel: Kernel


Attention: TypeAlias = Callable[[MatchContext, Layer], "CachedAttention | None"]


@dataclass(frozen=True)
class CacheKernels:
    """The kernels of caches in 8 bits; `ir.quantized_cache` says how rows are packed.

    >>> from ir_runtime.ir.quantized_cache import pack_rows
    >>> CacheKernels(pack_rows, lambda context, layer: None).pack is pack_rows
    True

    Args:
        pack: packs the rows of an f32 array.
        attention: returns the kernel of a layer of attention, or ``None`` if it has none.
    """

    pack: Callable[[Array], Array]
    attention: Attention
