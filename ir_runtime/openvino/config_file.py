"""The file of plugins and their properties that OpenVINO's ``Core`` takes."""

from __future__ import annotations

import os

from ..codes import Code
from ..diagnostics import Location
from ..errors import ParseError
from ..io.reader.document import Element, parse
from ..io.reader.source import open_source

__all__ = ["read_config_file"]


def read_config_file(path: str | os.PathLike[str], device: str) -> dict[str, str]:
    """Return the properties that a file gives a device; compiled plugins that it names are not loaded.

    Raises:
        ParseError: if the file cannot be read, or a plugin or a property has no name.
        LimitError: if it is too large.
    """
    source = open_source(os.fspath(path))
    root = parse(source.data, source.name)
    found = {}
    for plugin in root.iterfind("plugins/plugin"):
        if _attribute(plugin, "name", source.name) == device:
            for entry in plugin.iterfind("properties/property"):
                key, value = (_attribute(entry, name, source.name) for name in ("key", "value"))
                found[key] = value
    return found


def _attribute(element: Element, name: str, file: str) -> str:
    text: str | None = element.get(name)
    if text is None:
        raise ParseError(
            f"{name!r} of <{element.tag}> is missing",
            code=Code.BAD_ELEMENT,
            where=Location(file, element.sourceline),
        )
    return text
