"""Models with one fault each: every kind of element and attribute that a model has, gone or garbled."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from lxml import etree

__all__ = ["faults"]

# What stands in place of an attribute; braces stand for what it was.
GARBAGE = ("", " ", "garbage", "-1", "0", "99999", "{} ", " {}", "{}x", "1.5")
DIMS = ("", "?", "-1", "7", "x", "{}x", "1.5", "2..3")
_SPECIAL = ("Const", "Parameter", "Result", "Assign")
MEANT = {
    "element_type": ("i64", "F32", "FP32"),
    "precision": ("I64", "F32", "fp32"),
    "version": ("opset99", "OPSET1", "../../etc"),
    "type": ("Constant", "Add", "RESULT", "parameter"),
    "shape": ("...", "?", "[2]"),
}
"""Others, which are not garbage, but may be wrong where they stand."""


def faults(xml: bytes, seen: set[str]) -> Iterator[tuple[str, bytes]]:
    """Each fault by name with the model that has it; one for each kind of element, and of attribute.

    Args:
        xml: a model.
        seen: faults that another model had; those of this one are added.
    """
    root = etree.fromstring(xml)
    for element in list(root.iter("*")):
        place = _place(element)
        for name, change in _changes(element):
            if (fault := f"{place} {name}") not in seen:
                seen.add(fault)
                before = deepcopy(root)
                path = root.getroottree().getpath(element)
                change(before.getroottree().xpath(path)[0])
                yield fault, etree.tostring(before)


def _changes(element: Any) -> Iterator[tuple[str, Any]]:
    for attribute, was in element.attrib.items():
        yield f"{attribute} gone", lambda e, a=attribute: e.attrib.pop(a)
        for text in (*GARBAGE, *MEANT.get(attribute, ())):
            if (now := text.replace("{}", was)) != was:
                yield f"{attribute}={text!r}", lambda e, a=attribute, t=now: e.set(a, t)
    for text in DIMS if element.tag == "dim" else ():
        now = text.replace("{}", element.text)
        yield f"is {text!r}", lambda e, t=now: setattr(e, "text", t)
    if element.getparent() is not None:
        yield "gone", lambda e: e.getparent().remove(e)
        yield "twice", lambda e: e.addnext(deepcopy(e))


def _place(element: Any) -> str:
    """Tags from the layer on, which is named by its type where it matters; and whether it lies in a body."""
    tags: list[str] = []
    for each in (element, *element.iterancestors()):
        tags.append(each.tag)
        if each.tag == "layer":
            special = element.tag == "data" or (element is each and each.get("type") in _SPECIAL)
            tags[-1] = each.get("type") if special else each.tag
            break
    inside = any(each.tag.endswith("body") for each in element.iterancestors())
    return "/".join([*(["body"] if inside else []), *reversed(tags)])
