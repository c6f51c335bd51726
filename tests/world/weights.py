"""Make weights for IR files without them: ``python -m world.weights FOLDER`` writes NAME.bin next to NAME.xml.

Public repositories often hold the .xml only. Floating-point values are random. Integers control shapes, and are derived from
the declared input and output shapes of their consumers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, islice, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from ir_runtime.ir.element import ElementType, pack
from ir_runtime.ir.tensor import Array

__all__ = ["make", "write_missing"]

Dims = list[int]
Values = tuple[float, ...]
Rule = Callable[[int, Dims, list[Dims], int], Iterable[Values]]
"""From a port of a layer, its first input, its outputs and the number of elements to values that the port may have."""
MOST = 4000
"""Values that are tried for a constant that several layers read."""


def _axes_removed(_: int, data: Dims, outs: list[Dims], count: int) -> Iterator[Values]:
    """Find the axes of a reduction or a Squeeze: removing them, or setting them to 1, turns the input shape into the output's."""
    for axes in combinations(range(len(data)), count):
        kept = [1 if axis in axes else length for axis, length in enumerate(data)]
        if outs[0] in (kept, [length for axis, length in enumerate(data) if axis not in axes]):
            yield axes


def _axes_added(_: int, data: Dims, outs: list[Dims], count: int) -> Iterator[Values]:
    for axes in combinations(range(len(outs[0])), count):
        if [length for axis, length in enumerate(outs[0]) if axis not in axes] == data:
            yield axes


def _order(_: int, data: Dims, outs: list[Dims], count: int) -> Iterator[Values]:
    return (order for order in permutations(range(len(data))) if [data[a] for a in order] == outs[0])


def _reshaped(_: int, data: Dims, outs: list[Dims], count: int) -> Iterator[Values]:
    """Return a target shape: each dim as a number, 0 to copy it from the input, or -1 for one that is computed."""
    ways = [
        (length, 0, -1) if axis < len(data) and data[axis] == length else (length, -1)
        for axis, length in enumerate(outs[0])
    ]
    return (values for values in product(*ways) if values.count(-1) <= 1)


def _slice(port: int, data: Dims, outs: list[Dims], count: int) -> Iterator[Values]:
    """Take the last elements of a list (the image dims of a shape), or the first of anything else."""
    if port == 3:
        yield (1,) * count
    elif len(data) == 1:
        taken = outs[0][0] if outs[0] else 1
        yield (data[0] - taken,) if port == 1 else (data[0],)
    else:
        yield (0,) * count if port == 1 else tuple(outs[0] if len(outs[0]) == count else data)


def _changed(data: Dims, outs: list[Dims], count: int) -> list[int]:
    axes = [a for a, (old, new) in enumerate(zip(data, outs[0], strict=False)) if old != new]
    rest = [a for a in reversed(range(len(data))) if a not in axes]
    return sorted((axes + rest)[:count])


def _resize(port: int, data: Dims, outs: list[Dims], count: int) -> Iterator[Values]:
    axes = _changed(data, outs, count)
    values = {1: [outs[0][a] for a in axes], 2: [outs[0][a] / data[a] for a in axes]}
    yield tuple(values.get(port, axes))


def _pad(port: int, data: Dims, outs: list[Dims], count: int) -> Iterator[Values]:
    added = [new - old for old, new in zip(data, outs[0], strict=False)]
    before = [a // 2 for a in added]
    yield tuple(before if port == 1 else [a - b for a, b in zip(added, before, strict=True)])


def _split(port: int, data: Dims, outs: list[Dims], count: int) -> Iterator[Values]:
    axis = _changed(data, outs, 1)[0]
    yield (axis,) if port == 1 else tuple(out[axis] for out in outs)


def _gathered(port: int, data: Dims, outs: list[Dims], count: int) -> Iterator[Values]:
    yield (0,) if port == 2 else tuple(i % max(1, min(data, default=1)) for i in range(count))


_TOP = 100
_RULES: dict[str, Rule] = {
    "Reshape": _reshaped,
    "Transpose": _order,
    "Squeeze": _axes_removed,
    "Unsqueeze": _axes_added,
    "StridedSlice": _slice,
    "Interpolate": _resize,
    "Pad": _pad,
    "Split": _split,
    "VariadicSplit": _split,
    "Gather": _gathered,
    "Broadcast": lambda port, data, outs, count: [tuple(outs[0])],
    "Tile": lambda port, data, outs, count: [
        tuple(new // old for old, new in zip(data, outs[0], strict=True))
    ],
    "TopK": lambda port, data, outs, count: [(outs[0][_changed(data, outs, 1)[0]],)],
    # A piece of the shape that a Reshape wants.
    "Concat": lambda port, data, outs, count: [(-1,) * count],
    "Range": lambda port, data, outs, count: [(0 if port == 0 else 1,)],
    "NonMaxSuppression": lambda port, data, outs, count: [(_TOP,)],
    "LRN": lambda port, data, outs, count: [(1,) if count == 1 else tuple(range(1, 1 + count))],
    # From low to high, for data and results.
    "FakeQuantize": lambda port, data, outs, count: [(-3.0 if port % 2 else 3.0,) * count],
}
_REALS = ("Interpolate", "FakeQuantize")


def make(net: Any, seed: int = 0) -> bytes:
    """Make the contents of a .bin for a parsed <net>; values in bodies are random."""
    rng = np.random.default_rng(seed)
    readers = _readers(net)
    places: dict[tuple[int, int, str, str], list[tuple[Any, int]]] = {}
    for layer in net.iter("layer"):
        if layer.get("type") == "Const":
            offset, size, label, shape = (
                layer.find("data").get(name, "") for name in ("offset", "size", "element_type", "shape")
            )
            places.setdefault((int(offset), int(size), label, shape), []).extend(readers.get(layer, []))
    weights = bytearray(max((offset + size for offset, size, *_ in places), default=0))
    for (offset, size, label, text), reading in places.items():
        shape = [int(n) for n in text.split(",") if n.strip()]
        element = ElementType.parse(label)
        raw = _packed(_values(rng, element, shape, reading), element)[:size]
        weights[offset : offset + len(raw)] = raw
    return bytes(weights)


def _readers(net: Any) -> dict[Any, list[tuple[Any, int]]]:
    """Map layers to their consumers and the ports that they feed."""
    layers = {layer.get("id"): layer for layer in net.findall("layers/layer")}
    readers: dict[Any, list[tuple[Any, int]]] = {}
    for edge in net.findall("edges/edge"):
        target = layers[edge.get("to-layer")]
        ports = [port.get("id") for port in target.findall("input/port")]
        reader = (target, ports.index(edge.get("to-port")))
        readers.setdefault(layers[edge.get("from-layer")], []).append(reader)
    return readers


def _values(rng: Any, element: ElementType, shape: Dims, readers: list[tuple[Any, int]]) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    ways = [
        tuple(islice(_ways(reader, port, count), MOST))
        for reader, port in readers
        if _ruled(element, reader, port)
    ]
    if fitting := [values for values in ways[0] if all(values in other for other in ways)] if ways else []:
        return np.array(fitting[0]).astype(element.dtype).reshape(shape)
    if element.real:
        fan = max(1, count // max(1, shape[0] if shape else 1))
        return (rng.standard_normal(shape) / np.sqrt(fan)).astype(element.dtype)
    if element.bits > 8:  # an axis, or a length
        return np.ones(shape, element.dtype)
    return rng.integers(0, 1 << max(1, element.bits - 1), shape).astype(element.dtype)


def _ruled(element: ElementType, reader: Any, port: int) -> bool:
    return (port > 0 or reader.get("type") in ("Concat", "Range")) and (
        not element.real or reader.get("type") in _REALS
    )


def _ways(reader: Any, port: int, count: int) -> Iterator[Values]:
    rule = _RULES.get(reader.get("type")) or (_axes_removed if "Reduce" in reader.get("type") else None)
    inputs, outputs = _dims(reader, "input"), _dims(reader, "output")
    if rule is not None and outputs and len(inputs[0]):
        found = rule(port, inputs[0], outputs, count)
        yield from (values for values in found if len(values) == count)


def _dims(layer: Any, side: str) -> list[Dims]:
    return [[int(dim.text) for dim in port.findall("dim")] for port in layer.findall(f"{side}/port")]


def _packed(values: Array, element: ElementType) -> bytes:
    return pack(values, element.bits).tobytes() if element.bits < 8 else values.tobytes()


def write_missing(folder: Path) -> int:
    """Write a .bin for each non-legacy IR of a folder without one; return how many."""
    written = 0
    for path in sorted(folder.rglob("*.xml")):
        target = path.with_suffix(".bin")
        if target.exists():
            continue
        net = etree.parse(path, etree.XMLParser(resolve_entities=False, huge_tree=True)).getroot()
        if net.tag == "net" and int(net.get("version") or 0) >= 10:
            target.write_bytes(make(net))
            written += 1
    return written


if __name__ == "__main__":
    print(f"{write_missing(Path(sys.argv[1]))} files of random weights written")
