"""The pass ``kv-cache``: append to key and value caches in place, and quantize them on request."""

from __future__ import annotations

from ..backends import Fusion, MatchContext
from .growing_cache import Copy, cache_kernels, growing_caches
from .program import Options, Program
from .quantized_caches import find_quantized_caches, packed_cache_kernels, variable_kernels

__all__ = ["append_to_caches"]


def append_to_caches(program: Program, options: Options) -> None:
    """Let a Concat that extends a KV cache append in place.

    Before: no kernel is chosen, no pattern matched.
    After: ``kernels`` has those of the layers of caches; where caches are held in 8 bits, ``variables`` and ``fusions`` have
    those of the layers that read and assign them, and of attention.
    """
    if program.fold:
        program.kernels = cache_kernels(program.graph, _copy(options))
        _quantize_caches(program, options)


def _copy(options: Options) -> Copy | None:
    """Return the function that copies to caches in recorded runs."""
    return next((backend.copy() for backend in options.backends if backend.copy is not None), None)


def _quantize_caches(program: Program, options: Options) -> None:
    """Quantize caches between runs, if requested and supported by the first backend."""
    first = options.backends[0] if options.backends else None
    if options.precision.kv_cache == "f32" or first is None or first.quantized_cache is None:
        return
    if not any(growing_caches(program.graph)):
        return
    context = MatchContext(program.graph, program.visible_value)
    caches = find_quantized_caches(context, program.outputs, first.quantized_cache())
    program.kernels = {**program.kernels, **packed_cache_kernels(caches, _copy(options))}
    program.variables = variable_kernels(caches)
    name = f"{first.name}: cached_attention"
    program.fusions |= {
        id: Fusion(fusion.layers, fusion.reads, fusion.kernel, name)
        for id, fusion in caches.attention.items()
    }
