"""Write the runtime information (``rt_info``) of models, layers and ports."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.graph import IR_VERSION, RtInfo
from .printer import Printer, is_tag

__all__ = ["format_value", "write_layer_info", "write_model_info"]


def write_model_info(out: Printer, info: RtInfo) -> None:
    """Write the entries of a model, strings or nested entries, except the IR version it was read from."""
    info = {name: entry for name, entry in info.items() if (name, type(entry)) != (IR_VERSION, int)}
    if not info:
        out.element("rt_info")
        return
    with out.inside("rt_info"):
        _entries(out, info)


def write_layer_info(out: Printer, info: RtInfo) -> None:
    """Write the entries of a layer or a port, which have a version and other attributes."""
    if not info:
        return
    with out.inside("rt_info"):
        for name, entry in info.items():
            if not isinstance(entry, Mapping):
                out.element("attribute", {"name": name, "value": format_value(entry)})
            elif _are_attributes(entry):
                texts = {key: format_value(value) for key, value in entry.items()}
                out.element("attribute", {"name": name, **texts})
            else:
                with out.inside("attribute", {"name": name}):
                    _entries(out, entry)


def _are_attributes(entry: RtInfo) -> bool:
    """Return whether the reader restores the same entries from an element with these attributes."""
    plain = all(
        not isinstance(value, Mapping) and is_tag(name) and name != "name" for name, value in entry.items()
    )
    return plain and entry.keys() != {"value"}


def _entries(out: Printer, info: RtInfo) -> None:
    for key, entry in info.items():
        name = str(key)
        tag, head = (name, {}) if is_tag(name) else ("info", {"name": name})
        if not isinstance(entry, Mapping):
            out.element(tag, {**head, "value": format_value(entry)})
        elif not entry:
            out.element(tag, head)
        else:
            with out.inside(tag, head):
                _entries(out, entry)


def format_value(value: object) -> str:
    """Format a value as in files."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    if isinstance(value, list | tuple):
        return " ".join(str(int(item)) if isinstance(item, bool) else format_value(item) for item in value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{format_value(entry)}" for name, entry in value.items()) + "}"
    return str(value)
