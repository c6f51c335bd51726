"""Kernels of caches of keys and values that variables hold in 8 bits between runs.

While a run starts a cache, attention reads the exact keys and values: only the variable gets the packed ones. The same
holds where a caller has set the variable. Later runs pack what is new, and append it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends import Kernel, KernelObject, named
from ..backends.core.host_calls import called_after, made_before, noting
from ..compiler.kv_cache import Copy, GrowingCache, append_kernel
from ..compiler.quantized_caches import QuantizedCaches
from ..ir.element import ElementType
from ..ir.graph import Layer
from ..ir.quantized_cache import QuantizedCache, unpacked_shape
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from .context import RUN, VARIABLES
from .guard import reserve

__all__ = ["APPEND", "cache_kernels", "variable_kernels"]

APPEND = "append_u8"
"""What profiles call the kernels that append to packed caches."""


def cache_kernels(found: QuantizedCaches, copy: Copy | None = None) -> dict[int, Kernel]:
    """Return kernels of the layers that extend and measure caches, by layer id."""
    kernels: dict[int, Kernel] = {
        cache.concat.id: _Append(cache, found.kernels.pack, copy) for cache in found.caches
    }
    return kernels | {layer.id: _Measure(layer) for layer in found.measured}


def variable_kernels(found: QuantizedCaches) -> dict[int, Callable[[Kernel], Kernel]]:
    """Return what makes kernels that read and assign such a variable of those for f32, by layer id."""
    pack = found.kernels.pack
    reading = {cache.read.id: _reading(cache.read) for cache in found.caches}
    return reading | {cache.assign.id: _assigning(cache.assign, pack) for cache in found.caches}


def _reading(layer: Layer) -> Callable[[Kernel], Kernel]:
    """Return what makes a kernel of ReadValue that also returns packed rows."""
    name = layer.attributes["variable_id"]

    def reading(exact: Kernel) -> Kernel:
        def read(*arrays: Array) -> Any:
            held = VARIABLES.get(name)
            found: Any = held.packed if isinstance(held, QuantizedCache) else exact(*arrays)
            return made_before(found, read, *arrays)

        return noting(read)

    return reading


def _assigning(layer: Layer, pack: Callable[[Array], Array]) -> Callable[[Kernel], Kernel]:
    """Return what makes a kernel of Assign that packs rows which are not packed yet."""
    name = layer.attributes["variable_id"]

    def hold(packed: Array) -> None:
        VARIABLES[name] = QuantizedCache(packed)

    def assign(rows: Array) -> Array:
        packed = rows if rows.dtype == np.uint8 else pack(rows)
        hold(packed)
        called_after(hold, packed)
        return rows

    return lambda exact: noting(assign)


class _Append(KernelObject):
    """Concat of a cache, which may be packed, and new f32 rows."""

    checks_inputs = True
    has_host_calls = True

    def __init__(self, cache: GrowingCache, pack: Callable[[Array], Array], copy: Copy | None) -> None:
        assert cache.concat.op is not None
        self._op, self._pack, self._append = cache.concat.op, pack, append_kernel(cache.axis, copy)
        self._axis = cache.axis
        named(self, APPEND)

    def __call__(self, *arrays: Array) -> Any:
        held, new = arrays
        shape = unpacked_shape(held) if held.dtype == np.uint8 else held.shape
        axis = self._axis % len(shape)
        if new.shape[:axis] != shape[:axis] or new.shape[axis + 1 :] != shape[axis + 1 :]:
            self._op.infer_types(*map(_unknown, (shape, new.shape)))  # which says what is wrong
        if not shape[axis]:
            return new
        more = new if held.dtype != np.uint8 else self._pack(new)
        if (run := RUN.get(None)) is not None:
            count = math.prod(held.shape) + math.prod(more.shape)
            run.limits.check("elements", count)
            reserve(run, count * held.itemsize)
        return self._append(held, more)


def _unknown(shape: tuple[int, ...]) -> Value:
    return Value.unknown(ElementType.f32, PartialShape(shape))


class _Measure(KernelObject):
    """ShapeOf of what may be packed rows."""

    checks_inputs = True

    def __init__(self, layer: Layer) -> None:
        assert layer.op is not None
        self._evaluate = layer.op.evaluate

    def __call__(self, *arrays: Array) -> Any:
        (data,) = arrays
        packed = data.dtype == np.uint8
        return self._evaluate(np.broadcast_to(np.float32(0), unpacked_shape(data)) if packed else data)
