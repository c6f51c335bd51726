"""Read tensor names and ``<rt_info>``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import MappingProxyType

from ...ir.graph import RtInfo
from .document import Element, attributes

__all__ = ["NO_INFO", "first_info", "rt_info", "tensor_names"]


def tensor_names(text: str | None) -> tuple[str, ...]:
    r"""Split a ``names`` attribute at commas that are not escaped by a backslash.

    >>> tensor_names(r"x,y\,z")
    ('x', 'y,z')
    """
    if not text:
        return ()
    return tuple(n.replace("\\,", ",") for n in re.split(r"(?<!\\),", text))


def rt_info(element: Element) -> RtInfo:
    """Return ``<rt_info>`` as nested read-only mappings of strings."""
    return first_info(list(element.iterchildren("rt_info")))


def first_info(elements: Sequence[Element]) -> RtInfo:
    """Return the first ``<rt_info>`` of an element, as `rt_info` does."""
    return _entries(elements[0]) if elements else NO_INFO


NO_INFO: RtInfo = MappingProxyType({})


def _entries(element: Element) -> RtInfo:
    return MappingProxyType(
        {str(child.get("name", child.tag)): _entry(child) for child in element.iterchildren("*")}
    )


def _entry(element: Element) -> RtInfo | str:
    if len(element):
        return _entries(element)
    rest = {key: value for key, value in attributes(element).items() if key != "name"}
    return rest["value"] if rest.keys() == {"value"} else MappingProxyType(rest)
