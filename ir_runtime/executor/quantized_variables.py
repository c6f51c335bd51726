"""Kernels of caches of keys and values that variables hold in 8 bits between runs.

While a run starts a cache, attention reads the exact keys and values: only the variable gets the packed ones. The same
holds where a caller has set the variable. Later runs pack what is new, and append it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends import Kernel
from ..backends.core.host_calls import called_after, made_before
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
        cache.concat.id: _append(cache, found.kernels.pack, copy) for cache in found.caches
    }
    return kernels | {layer.id: _measure(layer) for layer in found.measured}


def variable_kernels(found: QuantizedCaches) -> dict[int, Callable[[Kernel], Kernel]]:
    """Return what makes kernels that read and assign such a variable of those for f32, by layer id."""
    pack = found.kernels.pack
    reading = {cache.read.id: _reading(cache.read) for cache in found.caches}
    return reading | {cache.assign.id: _assigning(cache.assign, pack) for cache in found.caches}


def _reading(layer: Layer) -> Callable[[Kernel], Kernel]:
    """Return what makes a kernel of ReadValue that also returns packed rows."""
    name = layer.attributes["variable_id"]

    def reading(exact: Kernel) -> Kernel:
        compute = exact.whole

        def read(*arrays: Array) -> Any:
            held = VARIABLES.get(name)
            found: Any = held.packed if isinstance(held, QuantizedCache) else compute(*arrays)
            return made_before(found, read, *arrays)

        return Kernel(read, has_host_calls=True)

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

    return lambda exact: Kernel(assign, has_host_calls=True)


def _append(cache: GrowingCache, pack: Callable[[Array], Array], copy: Copy | None) -> Kernel:
    """Return the kernel for Concat of a cache, which may be packed, and new f32 rows."""
    op, join = cache.concat.op, append_kernel(cache.axis, copy).run
    assert op is not None

    def append(held: Array, new: Array) -> Any:
        shape = unpacked_shape(held) if held.dtype == np.uint8 else held.shape
        axis = cache.axis % len(shape)
        if new.shape[:axis] != shape[:axis] or new.shape[axis + 1 :] != shape[axis + 1 :]:
            op.infer_types(*map(_unknown, (shape, new.shape)))  # which says what is wrong
        if not shape[axis]:
            return new
        more = new if held.dtype != np.uint8 else pack(new)
        if (run := RUN.get(None)) is not None:
            count = math.prod(held.shape) + math.prod(more.shape)
            run.limits.check("elements", count)
            reserve(run, count * held.itemsize)
        return join(held, more)

    return Kernel(append, name=APPEND, checks_inputs=True, has_host_calls=True)


def _unknown(shape: tuple[int, ...]) -> Value:
    return Value.unknown(ElementType.f32, PartialShape(shape))


def _measure(layer: Layer) -> Kernel:
    """Return the kernel for ShapeOf of what may be packed rows."""
    assert layer.op is not None
    evaluate = layer.op.evaluate

    def measure(data: Array) -> Any:
        packed = data.dtype == np.uint8
        return evaluate(np.broadcast_to(np.float32(0), unpacked_shape(data)) if packed else data)

    return Kernel(measure, checks_inputs=True)
