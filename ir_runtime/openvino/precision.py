"""Conversion between OpenVINO's properties and the `Precision` of a compilation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..backends import Backend, Precision
from ..ir.element import ElementType
from .callers import warn

__all__ = ["as_followed", "precision_of"]

_GROUP_SIZE = "DYNAMIC_QUANTIZATION_GROUP_SIZE"
_CACHE = "KV_CACHE_PRECISION"
_CACHES = (_CACHE, "KEY_CACHE_PRECISION", "VALUE_CACHE_PRECISION")
_DENORMALS = "CPU_DENORMALS_OPTIMIZATION"
_PRODUCTS = {ElementType.f32: "f32", ElementType.f16: "f32", ElementType.bf16: "bf16"}


def precision_of(config: Mapping[str, object], chain: Sequence[Backend], stateful: bool = True) -> Precision:
    """Return the precision requested by properties, with defaults and a warning for settings that the backend lacks.

    ``EXECUTION_MODE_HINT`` sets defaults; ``INFERENCE_PRECISION_HINT``, ``DYNAMIC_QUANTIZATION_GROUP_SIZE``,
    ``KV_CACHE_PRECISION`` and ``CPU_DENORMALS_OPTIMIZATION`` override them.

    Args:
        config: the properties, as validated by `check_config`.
        chain: the backend, followed by its fallbacks.
        stateful: whether the model has variables. Without them, the cache precision causes no warning.
    """
    first = chain[0] if chain else None
    requested = _requested_precision(config, first)
    supported = first.followed(requested) if first is not None else Precision()
    name = "reference" if first is None else first.name
    if supported.products != requested.products:
        warn(
            f"INFERENCE_PRECISION_HINT={requested.products} is ignored: the backend {name} multiplies in f32"
        )
    if supported.dynamic_group != requested.dynamic_group:
        sizes = ", ".join(map(str, first.dynamic_groups if first else (0,)))
        warn(f"{_GROUP_SIZE}={requested.dynamic_group} is ignored: the backend {name} takes {sizes}")
    if stateful and supported.kv_cache != requested.kv_cache:
        types = ", ".join(first.kv_caches if first else ("f32",))
        warn(f"{_CACHE}={requested.kv_cache} is ignored: the backend {name} takes {types}")
    if supported.flush_denormals != requested.flush_denormals:
        warn(f"{_DENORMALS} is ignored: the backend {name} computes with denormal numbers as they are")
    return supported


def _requested_precision(config: Mapping[str, object], first: Backend | None) -> Precision:
    """Return the precision requested by properties, whether or not the backend supports it."""
    is_fast = getattr(config.get("EXECUTION_MODE_HINT"), "name", "") == "PERFORMANCE"
    usual = first.fastest() if first is not None and is_fast else Precision()
    hint, group, cache = (config.get(name) for name in ("INFERENCE_PRECISION_HINT", _GROUP_SIZE, _CACHE))
    denormals = config.get(_DENORMALS)
    products = _PRODUCTS.get(hint) if isinstance(hint, ElementType) else None
    return Precision(
        products or usual.products,
        group if isinstance(group, int) else usual.dynamic_group,
        cache.name if isinstance(cache, ElementType) else usual.kv_cache,
        usual.weights if products is None else "f32",
        usual.flush_denormals if denormals is None else bool(denormals),
        "f16" if hint is ElementType.f16 else "f32",
    )


def as_followed(config: Mapping[str, object], precision: Precision) -> dict[str, object]:
    """Return the properties whose values depend on the actual precision.

    Args:
        config: the requested properties.
        precision: the actual precision.
    """
    properties: dict[str, object] = {_DENORMALS: precision.flush_denormals}
    if config.get("INFERENCE_PRECISION_HINT") is not ElementType.f16:
        properties["INFERENCE_PRECISION_HINT"] = ElementType[precision.products]
    return (
        properties
        | {_GROUP_SIZE: precision.dynamic_group}
        | dict.fromkeys(_CACHES, ElementType[precision.kv_cache])
    )
