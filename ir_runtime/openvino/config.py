"""Validation and values of OpenVINO's properties."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from .._util.nearest import did_you_mean
from .._util.wrong_arguments import ArgumentTypeError
from ..codes import Code
from ..diagnostics import Location
from ..errors import InputError, ParseError
from ..ir.element import ElementType
from .callers import warn

if TYPE_CHECKING:
    from ..backends import Backend, Precision
    from ..io.reader.document import Element

__all__ = [
    "as_mapping",
    "check_config",
    "describe",
    "effective_properties",
    "import_properties",
    "precision_of",
    "read_config_file",
    "unknown_property",
    "wants_f16",
]


def import_properties() -> None:
    """Import the modules of properties in advance, so that setting the first property is fast."""
    import_module(".devices", __package__)


def as_mapping(config: object) -> Mapping[str, object]:
    """Return ``config`` as a mapping, empty for None.

    Raises:
        InputError: if it is not a mapping.
    """
    if not config:
        return {}
    if not isinstance(config, Mapping):
        type_name = type(config).__name__
        raise ArgumentTypeError(
            f"config must be a mapping of names to values, got {type_name}", code=Code.BAD_REQUEST
        )
    return config


def check_config(config: Mapping[str, object] | None) -> dict[str, object]:
    """Validate properties and return their values as OpenVINO does.

    Raises:
        InputError: if a property or its value is unknown.
    """
    values = {_name(key): _parse_value(_name(key), value) for key, value in as_mapping(config).items()}
    for_cpu = values.pop("DEVICE_PROPERTIES", None)
    if isinstance(for_cpu, Mapping) and isinstance(for_cpu.get("CPU"), Mapping):
        values = values | check_config(for_cpu["CPU"])
    return values


def _name(key: object) -> str:
    if not isinstance(key, str):
        raise ArgumentTypeError(
            f"the name of a property must be a string, got {key!r}", code=Code.BAD_REQUEST
        )
    return str(key)


def _parse_value(name: str, value: object) -> object:
    from ..properties import Property
    from .devices import ACCEPTED

    if name not in ACCEPTED:
        raise _unavailable_error(name)
    kind = Property.known[name].kind
    try:
        return kind(value) if kind else value
    except ValueError as reason:
        raise InputError(f"{name} {reason}, got {value!r:.60}", code=Code.BAD_REQUEST) from None


def unknown_property(name: str) -> InputError:
    """Return the error for an unknown property, with a suggestion."""
    from ..properties import Property

    hint = did_you_mean(name, sorted(Property.known)) or "SUPPORTED_PROPERTIES has their names"
    return InputError(f"unknown property {name!r}", code=Code.BAD_REQUEST, hint=hint)


def _unavailable_error(name: str) -> InputError:
    """Return the error for a property that cannot be set."""
    from ..properties import Property

    if name not in Property.known:
        return unknown_property(name)
    if Property.known[name].kind is None:
        return InputError(f"property {name} can only be read", code=Code.BAD_REQUEST)
    message = f"property {name} belongs to a device that is not available here"
    return InputError(message, code=Code.BAD_REQUEST, hint="omit it: models run on the CPU")


def _no_value_error(name: str) -> InputError:
    """Return the error for a property that has no value."""
    from ..properties import Property

    if name not in Property.known:
        return unknown_property(name)
    return InputError(f"property {name} was not set, and has no default", code=Code.BAD_REQUEST)


def wants_f16(config: Mapping[str, object]) -> bool:
    """Return whether the properties request computing f32 in f16."""
    return config.get("INFERENCE_PRECISION_HINT") is ElementType.f16


def describe(name: str, config: Mapping[str, object], backend: str | None = None) -> object:
    """Return the configured value of a property, or its default.

    Raises:
        InputError: if the property is unknown.
    """
    from .devices import default

    if name == "FULL_DEVICE_NAME":
        from ..backends import load

        return f"ir_runtime ({load(backend)[0]} backend)"
    value = config[name] if name in config else default(name)
    if value is None:
        raise _no_value_error(name)
    if name == "OPTIMIZATION_CAPABILITIES" and isinstance(value, list):
        chosen = backend or config.get("BACKEND")
        return [*_faster(None if chosen is None else str(chosen)), *value]
    return value


def _faster(backend: str | None) -> list[str]:
    """Return which of the capabilities BF16 and WINOGRAD the backend has on this CPU."""
    from ..backends import load

    _, chain = load(backend)
    has_bf16 = bool(chain) and chain[0].fastest().products == "bf16"
    return [*(["BF16"] if has_bf16 else []), *(["WINOGRAD"] if chain else [])]


def read_config_file(path: str | os.PathLike[str], device: str) -> dict[str, str]:
    """Return the properties of a device in an OpenVINO configuration file. Plugins that it names are not loaded.

    Raises:
        ParseError: if the file cannot be read, or a plugin or property in it has no name.
        LimitError: if the file is too large.
    """
    from ..io.reader.document import parse
    from ..io.reader.source import open_source

    source = open_source(os.fspath(path))
    root = parse(source.data, source.name)
    properties = {}
    for plugin in root.iterfind("plugins/plugin"):
        if _xml_attribute(plugin, "name", source.name) == device:
            for entry in plugin.iterfind("properties/property"):
                key, value = (_xml_attribute(entry, name, source.name) for name in ("key", "value"))
                properties[key] = value
    return properties


def _xml_attribute(element: Element, name: str, file: str) -> str:
    text: str | None = element.get(name)
    if text is None:
        raise ParseError(
            f"{name!r} of <{element.tag}> is missing",
            code=Code.BAD_ELEMENT,
            where=Location(file, element.sourceline),
        )
    return text


# The precision of a compilation.

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
    from ..backends import Precision

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
    from ..backends import Precision

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


def effective_properties(config: Mapping[str, object], precision: Precision) -> dict[str, object]:
    """Return the properties that describe precision, with the values that the compiled model uses.

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
