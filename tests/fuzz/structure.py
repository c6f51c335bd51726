"""Structural changes of models, which get past the parser."""

from __future__ import annotations

import copy
import struct
from dataclasses import dataclass
from random import Random
from typing import Any

from . import values

__all__ = ["Element", "Work"]

Element = Any


@dataclass(slots=True)
class Work:
    """A model being changed: its XML, its ``.bin``, and another model to take parts from."""

    root: Element
    weights: bytearray
    donor: Element
    rng: Random

    def any(self, path: str) -> Element | None:
        """Return a random element of that path, if there is one."""
        found = self.root.findall(path)
        return self.rng.choice(found) if found else None

    def element(self) -> Element:
        """Return a random element below the root."""
        return self.rng.choice(list(self.root.iter("*")))

    def constant(self, numbers: bytes) -> tuple[str, str]:
        """Append bytes to the ``.bin``; return their offset and size."""
        self.weights += bytes(-len(self.weights) % 8)
        start = len(self.weights)
        self.weights += numbers
        return str(start), str(len(numbers))


def attribute(work: Work) -> None:
    """Change the value of an attribute."""
    element = work.any(".//data") if work.rng.random() < 0.7 else work.element()
    if element is not None and element.attrib:
        _set(element, work.rng.choice(list(element.attrib)), values.text(work.rng))


def number_in_list(work: Work) -> None:
    """Change a number in an attribute."""
    element = work.any(".//data")
    names = (
        [k for k, v in element.attrib.items() if any(c.isdigit() for c in v)] if element is not None else []
    )
    if names:
        name = work.rng.choice(names)
        parts = element.get(name).split(",")
        parts[work.rng.randrange(len(parts))] = values.number(work.rng)
        _set(element, name, ",".join(parts))


def attribute_gone(work: Work) -> None:
    element = work.element()
    if element.attrib:
        del element.attrib[work.rng.choice(list(element.attrib))]


def attribute_new(work: Work) -> None:
    element = work.any(".//data")
    if element is not None:
        _set(element, values.attribute_names(work.rng), values.text(work.rng))


def attribute_of_another(work: Work) -> None:
    """Copy the attributes of another element of the same kind."""
    element = work.element()
    other = work.rng.choice(list(work.root.iter(element.tag)))
    for name in list(element.attrib):
        element.set(name, other.get(name, element.get(name)))


def dim(work: Work) -> None:
    found = work.any(".//dim")
    if found is not None:
        found.text = _safe(values.number(work.rng) if work.rng.random() < 0.7 else values.text(work.rng))


def rank(work: Work) -> None:
    """Add or remove dims."""
    port = work.any(".//port")
    if port is None:
        return
    dims = port.findall("dim")
    if dims and work.rng.random() < 0.5:
        port.remove(work.rng.choice(dims))
        return
    for _ in range(work.rng.choice((1, 1, 2, 30, 70))):
        new = port.makeelement("dim")
        new.text = values.number(work.rng)
        port.insert(0, new)


def shape(work: Work) -> None:
    """Change the shape of an input wherever it is declared."""
    layer = work.any(".//layer[@type='Parameter']")
    data = layer.find("data") if layer is not None else None
    if data is None:
        return
    dims = [d for d in (data.get("shape") or "").split(",") if d.strip()]
    if not dims or work.rng.random() < 0.3:
        dims = ["1"] * work.rng.choice((0, 1, 2, 3, 4, 5, 6, 9, 65))
    for _ in range(work.rng.randint(0, 3)):
        if dims:
            dims[work.rng.randrange(len(dims))] = work.rng.choice(
                (values.number(work.rng), "?", "1..8", "0", "4")
            )
    data.set("shape", ",".join(dims))
    for port in layer.iterfind("output/port"):
        for found in port.findall("dim"):
            port.remove(found)


def element_type(work: Work) -> None:
    label = values.element_type(work.rng)
    layer = work.any(".//layer[data]")
    data = layer.find("data") if layer is not None else None
    names = [n for n in data.attrib if n.endswith("type")] if data is not None else []
    if names:
        data.set(work.rng.choice(names), label)
    for port in layer.iterfind("output/port") if layer is not None and work.rng.random() < 0.8 else ():
        port.set("precision", label)


def undeclared(work: Work) -> None:
    """Remove declared types and shapes, so that inference decides."""
    for layer in work.root.iter("layer"):
        if layer.get("type") in ("Parameter", "Const", "Constant"):
            continue
        for port in layer.iter("port"):
            port.attrib.pop("precision", None)
            for found in port.findall("dim"):
                port.remove(found)


def contents(work: Work) -> None:
    """Change the values of a constant."""
    data = work.any(".//layer[@type='Const']/data")
    try:
        start, size = int(data.get("offset")), int(data.get("size"))
    except (AttributeError, TypeError, ValueError):
        return
    if not 0 < size <= len(work.weights) - start:
        return
    label = data.get("element_type", "")
    how = {"i64": "<q", "i32": "<i", "f32": "<f", "u64": "<Q", "f64": "<d"}.get(label, "<b")
    wide = struct.calcsize(how)
    at = start + work.rng.randrange(max(size // wide, 1)) * wide
    work.weights[at : at + wide] = _packed(how, work.rng)[: max(start + size - at, 0)]


def _packed(how: str, rng: Random) -> bytes:
    if how in ("<f", "<d"):
        number = rng.choice(
            (0.0, -0.0, 1.0, -1.0, 0.5, 1e9, 3e38, float("nan"), float("inf"), -float("inf"), 1e-40)
        )
        return struct.pack(how, number)
    bits = struct.calcsize(how) * 8
    found = int(values.number(rng)[:25]) % 2**bits
    return found.to_bytes(bits // 8, "little")


def bin_size(work: Work) -> None:
    """Truncate or extend the ``.bin``."""
    if work.weights and work.rng.random() < 0.7:
        del work.weights[work.rng.randrange(len(work.weights)) :]
    else:
        work.weights += work.rng.randbytes(work.rng.choice((1, 8, 1000)))


def place(work: Work) -> None:
    """Change the offset or size of a constant."""
    data = work.any(".//layer[@type='Const']/data")
    if data is not None:
        ends = [str(len(work.weights) + off) for off in (-8, -1, 0, 1)]
        data.set(work.rng.choice(("offset", "size")), work.rng.choice((values.number(work.rng), *ends)))


def edge(work: Work) -> None:
    """Move an end of an edge, mostly to an existing port."""
    found = work.any(".//edge")
    if found is None or not found.attrib:
        return
    name = work.rng.choice(list(found.attrib))
    others = [e.get(name) for e in work.root.iter("edge") if e.get(name) is not None]
    _set(
        found,
        name,
        work.rng.choice(others) if others and work.rng.random() < 0.7 else values.number(work.rng),
    )


def identity(work: Work) -> None:
    """Change an id."""
    element = work.any(work.rng.choice((".//layer[@id]", ".//port[@id]")))
    if element is not None:
        others = [e.get("id", "0") for e in work.root.iter(element.tag)]
        element.set("id", work.rng.choice((work.rng.choice(others), values.number(work.rng))))


def operation(work: Work) -> None:
    """Change the type, the version or both."""
    layer = work.any(".//layer[@type]")
    if layer is None:
        return
    type, version = values.operation(work.rng)
    kind = work.rng.random()
    if kind < 0.6:
        layer.set("type", type)
    if kind > 0.3:
        layer.set("version", version)


def name(work: Work) -> None:
    """Rename a layer or tensor, often to an existing name."""
    element = work.any(work.rng.choice((".//layer", ".//port", ".")))
    if element is not None:
        others = [e.get("name", "") for e in work.root.iter("layer")] or [""]
        key = work.rng.choice(("name", "names", "output_names", "variable_id"))
        _set(element, key, work.rng.choice((work.rng.choice(others), values.text(work.rng))))


def port_map(work: Work) -> None:
    """Change an entry of a port map."""
    entries = [
        e for tag in ("port_map", "then_port_map", "else_port_map", "back_edges") for e in work.root.iter(tag)
    ]
    entries = [e for found in entries for e in found]
    if entries:
        entry, key = (
            work.rng.choice(entries),
            work.rng.choice(("axis", "start", "end", "stride", "part_size", "purpose")),
        )
        names = [*entry.attrib, key]
        _set(
            entry,
            work.rng.choice(names),
            values.number(work.rng) if work.rng.random() < 0.8 else values.text(work.rng),
        )


def removed(work: Work) -> None:
    element = work.element()
    if element.getparent() is not None:
        element.getparent().remove(element)


def doubled(work: Work) -> None:
    element = work.element()
    if element.getparent() is not None:
        element.getparent().append(copy.deepcopy(element))


def moved(work: Work) -> None:
    element, target = work.element(), work.element()
    if element.getparent() is not None and element not in (target, *target.iterancestors()):
        target.append(element)


def swapped(work: Work) -> None:
    """Swap two elements."""
    one, other = work.element(), work.element()
    if one is work.root or other is work.root or one in other.iterancestors() or other in one.iterancestors():
        return
    copies = copy.deepcopy(one), copy.deepcopy(other)
    if one is not other:
        one.getparent().replace(one, copies[1])
        other.getparent().replace(other, copies[0])


def grafted(work: Work) -> None:
    """Insert a part of another model."""
    parts = [e for e in work.donor.iter("*") if e is not work.donor]
    if parts:
        work.element().append(copy.deepcopy(work.rng.choice(parts)))


def rewritten(work: Work) -> None:
    """Change a tag, or add text."""
    element = work.element()
    if work.rng.random() < 0.5:
        element.tag = work.rng.choice([e.tag for e in work.donor.iter("*")])
    else:
        element.text = _safe(values.text(work.rng))


def information(work: Work) -> None:
    """Add deep and wide runtime information."""
    outer = work.element()
    for _ in range(work.rng.choice((1, 10, 100))):
        inner = outer.makeelement("rt_info")
        _set(inner, "name", values.text(work.rng)[:1000])
        outer.append(inner)
        outer = inner if work.rng.random() < 0.95 else outer


def _set(element: Element, name: str, text: str) -> None:
    element.set(name, _safe(text))


def _safe(text: str) -> str:
    return text if text.isprintable() else "".join(c for c in text if c >= " " or c in "\t\n")
