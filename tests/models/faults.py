"""Models with one change that makes them inconsistent, and the layers where `validate` must report it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from harness.oracle import core
from lxml import etree

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape

Element = Any  # lxml is not typed

TYPES = ["FP32", "FP16", "I64", "I32", "U8", "BOOL"]


@dataclass(frozen=True)
class Fault:
    """A changed model, the change, and the layers at which it may be reported."""

    kind: str
    what: str
    layers: tuple[str, ...]
    xml: bytes
    weights: bytes


class Draft:
    """A copy of a model to change."""

    def __init__(self, root: Element, weights: bytes, rng: random.Random) -> None:
        self.root, self.weights, self.rng = deepcopy(root), bytearray(weights), rng
        self.layers = {layer.get("id"): layer for layer in self.root.iterfind("layers/layer")}
        self.edges = list(self.root.iterfind("edges/edge"))

    def pick(self, path: str) -> Element | None:
        """Pick an element of the graph, outside bodies."""
        found = [e for layer in self.layers.values() for e in layer.iterfind(path)]
        return self.rng.choice(found) if found else None

    def name(self, element: Element) -> str:
        """Return the name of the layer that an element belongs to."""
        layer = element if element.tag == "layer" else next(element.iterancestors("layer"))
        return str(layer.get("name"))


Change = Callable[[Draft], "tuple[str, tuple[str, ...]] | None"]
"""Changes a draft; gives what it did, and the layers concerned, or nothing where there is nothing to change."""


def dim(draft: Draft) -> tuple[str, tuple[str, ...]] | None:
    found = draft.pick(draft.rng.choice(["input/port/dim", "output/port/dim"]))
    if found is None or found.text == "-1":
        return None
    was, found.text = found.text, str(int(found.text) + draft.rng.choice([1, 2, 7]))
    return f"dim {was} is {found.text}", (draft.name(found),)


def attribute(draft: Draft) -> tuple[str, tuple[str, ...]] | None:
    found = draft.pick("data")
    if found is None:
        return None
    names = sorted(set(found.attrib) - {"offset", "size", "element_type", "variable_id"})
    if not names:
        return None
    name = draft.rng.choice(names)
    was = found.get(name)
    found.set(name, _other(was, draft.rng))
    return f"{name} {was!r} is {found.get(name)!r}", (draft.name(found),)


def _other(text: str, rng: random.Random) -> str:
    if text in ("true", "false"):
        return "false" if text == "true" else "true"
    parts = text.split(",")
    at = rng.randrange(len(parts))
    try:
        parts[at] = str(int(parts[at]) + rng.choice([1, 2, -1]))
    except ValueError:
        return f"{text}_"
    return ",".join(parts)


def edge(draft: Draft) -> tuple[str, tuple[str, ...]] | None:
    found, other = draft.rng.choice(draft.edges), draft.rng.choice(draft.edges)
    ends = ("from-layer", "from-port") if draft.rng.random() < 0.7 else ("to-layer", "to-port")
    if [found.get(e) for e in ends] == [other.get(e) for e in ends]:
        return None
    concerned = {found.get("to-layer"), found.get("from-layer"), other.get(ends[0])}
    was = [found.get(e) for e in ends]
    for end in ends:
        found.set(end, other.get(end))
    what = f"{ends[0]}, {ends[1]} {was} is {[found.get(e) for e in ends]}"
    return what, tuple(draft.layers[n].get("name") for n in sorted(concerned))


def element_type(draft: Draft) -> tuple[str, tuple[str, ...]] | None:
    found = draft.pick(draft.rng.choice(["input/port", "output/port", "data"]))
    key = "precision" if found is not None and found.tag == "port" else "element_type"
    if found is None or found.get(key) is None:
        return None
    was, given = found.get(key), draft.rng.choice(TYPES)
    if ElementType.parse(was) is ElementType.parse(given):
        return None
    found.set(key, given if key == "precision" else ElementType.parse(given).label)
    return f"{key} {was} is {found.get(key)}", (draft.name(found),)


def offset(draft: Draft) -> tuple[str, tuple[str, ...]] | None:
    found = [d for la in draft.layers.values() for d in la.iterfind("data") if int(d.get("size", "0")) > 8]
    if not found:
        return None
    data = draft.rng.choice(found)
    was = int(data.get("offset"))
    step = draft.rng.choice([8, -8, 64, -64, len(draft.weights)])
    ranges = {(d.get("offset"), d.get("size")) for d in found}
    data.set("offset", str(max(was + step, 0)))
    if (data.get("offset"), data.get("size")) in ranges:
        return None  # another constant lies there whole: not a fault that anything in the file tells
    return f"offset {was} is {data.get('offset')}", (draft.name(data),)


def axis(draft: Draft) -> tuple[str, tuple[str, ...]] | None:
    """Change an index in a small constant, such as axes, shapes or indices."""
    small = [
        la
        for la in draft.layers.values()
        if la.get("type") == "Const"
        and (d := la.find("data")).get("element_type") in ("i32", "i64")
        and 0 < int(d.get("size")) <= 64
    ]
    if not small:
        return None
    layer = draft.rng.choice(small)
    data = layer.find("data")
    dtype = ElementType.parse(data.get("element_type")).dtype
    start, size = int(data.get("offset")), int(data.get("size"))
    numbers = np.frombuffer(draft.weights, dtype, size // dtype.itemsize, start).copy()
    at = draft.rng.randrange(len(numbers))
    was = int(numbers[at])
    numbers[at] += draft.rng.choice([1, -1, 5, 100])
    draft.weights[start : start + size] = numbers.tobytes()
    same = {la.get("id") for la in small if la.find("data").get("offset") == data.get("offset")}
    readers = {e.get("to-layer") for e in draft.edges if e.get("from-layer") in same}
    names = [draft.layers[n].get("name") for n in sorted(same | readers)]
    return f"element {at} of the constant, {was}, is {numbers[at]}", tuple(names)


CHANGES: dict[str, Change] = {
    "dim": dim,
    "attribute": attribute,
    "edge": edge,
    "type": element_type,
    "offset": offset,
    "axis": axis,
}


def faults(path: Path, rng: random.Random) -> Iterator[Fault]:
    """Yield endless random faults of a model; changes that keep it valid are dropped."""
    root, stored = etree.parse(path).getroot(), path.with_suffix(".bin")
    weights = stored.read_bytes() if stored.exists() else b""
    while True:
        kind = rng.choice(list(CHANGES))
        draft = Draft(root, weights, rng)
        done = CHANGES[kind](draft)
        if done is None:
            continue
        fault = Fault(kind, done[0], done[1], etree.tostring(draft.root), bytes(draft.weights))
        if kind in ("dim", "type", "offset") or contradicts(fault, draft.root):
            yield fault


def contradicts(fault: Fault, root: Element) -> bool:
    """Return whether OpenVINO refuses the model, or its inference contradicts the declarations."""
    try:
        model = core().read_model(fault.xml, ov.Tensor(np.frombuffer(fault.weights, np.uint8)))
    except RuntimeError:
        return True
    theirs = {op.get_friendly_name(): op for op in model.get_ops()}
    declared, expected = {}, {}
    for layer in root.iterfind("layers/layer"):
        op = theirs.get(layer.get("name"))
        for index, port in enumerate(layer.iterfind("output/port")):
            declared[layer.get("id"), port.get("id")] = _type(port)
            if op is not None and not _shape(port).compatible(_inferred(op, index)):
                return True
        for port in layer.iterfind("input/port"):
            expected[layer.get("id"), port.get("id")] = _type(port)
    return any(
        not _agree(
            declared[e.get("from-layer"), e.get("from-port")], expected[e.get("to-layer"), e.get("to-port")]
        )
        for e in root.iterfind("edges/edge")
    )


def _inferred(op: Any, index: int) -> PartialShape:
    return PartialShape(str(op.output(index).get_partial_shape()))


def _shape(port: Element) -> PartialShape:
    return PartialShape([dim.text for dim in port.iterfind("dim")])


def _type(port: Element) -> tuple[ElementType | None, PartialShape]:
    said = port.get("precision")
    return ElementType.parse(said) if said else None, _shape(port)


def _agree(
    one: tuple[ElementType | None, PartialShape], other: tuple[ElementType | None, PartialShape]
) -> bool:
    elements = {one[0], other[0]} - {None}
    return len(elements) < 2 and one[1].compatible(other[1])
