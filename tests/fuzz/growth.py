"""Changes that make models long and deep, to expose unbounded time or memory."""

from __future__ import annotations

import copy

from lxml import etree

from .structure import Element, Work

__all__ = ["chained", "multiplied", "wrapped"]

LENGTHS = (1, 2, 3, 5, 10, 20, 70, 300)
MOST = 40_000
"""Bytes of XML that one change may add."""


def chained(work: Work) -> None:
    """Repeat a layer, each copy fed by the previous one at one input or at all."""
    layers, edges = work.root.find("layers"), work.root.find("edges")
    candidates = (
        [] if layers is None or edges is None else [e for e in layers if e.find("output/port") is not None]
    )
    candidates = [e for e in candidates if e.find("input/port") is not None]
    if not candidates:
        return
    first, next_id = work.rng.choice(candidates), _free(layers)
    own, fed, whole = first.get("id"), _feeds(edges, first), work.rng.random() < 0.5
    given = first.find("output/port").get("id", "0")
    last = own
    for step in range(_affordable(first, work.rng.choice(LENGTHS))):
        again, number = copy.deepcopy(first), str(next_id + step)
        again.set("id", number)
        again.set("name", f"again{number}")
        layers.append(again)
        for place, (layer, port, target) in enumerate(fed):
            chain = whole or place == 0
            edges.append(_edge(edges, last if chain else layer, given if chain else port, number, target))
        last = number
    _end(layers, edges, last, given, str(next_id + 1000))


def multiplied(work: Work) -> None:
    """Repeat an element."""
    element = work.any(".//layer") if work.rng.random() < 0.5 else work.element()
    if element is None or element.getparent() is None:
        return
    next_id = _free(element.getparent())
    for step in range(_affordable(element, work.rng.choice((3, 10, 30, 500)))):
        again = copy.deepcopy(element)
        if again.get("id") is not None and work.rng.random() < 0.9:
            again.set("id", str(next_id + step))
        element.getparent().append(again)


def wrapped(work: Work) -> None:
    """Nest the model as the body of a branch or loop, once or many times."""
    kind = work.rng.choice(("If", "Loop", "TensorIterator"))
    for _ in range(work.rng.choice((1, 1, 2, 4, 12, 40))):
        if len(list(work.root.iter("layer"))) > 400:
            return
        _wrap(work, kind)


def _wrap(work: Work, kind: str) -> None:
    layers, edges = work.root.find("layers"), work.root.find("edges")
    if layers is None or edges is None:
        return
    ins = [e for e in layers if e.get("type") == "Parameter"]
    outs = [e for e in layers if e.get("type") == "Result"]
    body = work.root.makeelement("body")
    body.extend((layers, edges))
    layers, edges = work.root.makeelement("layers"), work.root.makeelement("edges")
    work.root.extend((layers, edges))
    layer = _new(layers, "layer", id=str(len(ins) + 2), name="outer", type=kind, version=_VERSIONS[kind])
    given, made = _new(layer, "input"), _new(layer, "output")
    first = {"If": [_constant(work, layers, "boolean", b"\1", 0)], "TensorIterator": []}.get(kind)
    if first is None:
        trips = work.rng.choice((0, 1, 2, 3, -1)).to_bytes(8, "little", signed=True)
        first = [_constant(work, layers, "i64", trips, 0), _constant(work, layers, "boolean", b"\1", 1)]
    maps = _new(layer, "port_map")
    for place, source in enumerate(first):
        _new(given, "port", id=str(place))
        edges.append(_edge(edges, source, "0", layer.get("id"), str(place)))
    for place, inner in enumerate(ins, len(first)):
        outer = copy.deepcopy(inner)
        outer.set("id", str(place + 1000))
        layers.append(outer)
        _new(given, "port", id=str(place))
        port = inner.find("output/port")
        edges.append(
            _edge(
                edges,
                str(place + 1000),
                "0" if port is None else port.get("id", "0"),
                layer.get("id"),
                str(place),
            )
        )
        cut = {"axis": "0"} if kind != "If" and work.rng.random() < 0.3 else {}
        _new(maps, "input", external_port_id=str(place), internal_layer_id=inner.get("id", "0"), **cut)
    for place, inner in enumerate(outs, len(first) + len(ins)):
        _new(made, "port", id=str(place))
        cut = {"axis": "0"} if kind != "If" and work.rng.random() < 0.3 else {}
        _new(maps, "output", external_port_id=str(place), internal_layer_id=inner.get("id", "0"), **cut)
        _end(layers, edges, layer.get("id"), str(place), str(place + 2000))
    if kind != "If":
        back = _new(layer, "back_edges")
        for one, other in zip(outs, ins, strict=False):
            _new(back, "edge", **{"from-layer": one.get("id", "0"), "to-layer": other.get("id", "0")})
        layer.append(body)
        return
    for name in ("then", "else"):
        again, ties = copy.deepcopy(body), copy.deepcopy(maps)
        again.tag, ties.tag = f"{name}_body", f"{name}_port_map"
        layer.extend((ties, again))
    layer.remove(maps)


_VERSIONS = {"If": "opset8", "Loop": "opset5", "TensorIterator": "opset1"}


def _constant(work: Work, layers: Element, label: str, numbers: bytes, number: int) -> str:
    offset, size = work.constant(numbers)
    layer = _new(layers, "layer", id=str(number), name=f"fixed{number}", type="Const", version="opset1")
    _new(layer, "data", element_type=label, shape="", offset=offset, size=size)
    _new(_new(layer, "output"), "port", id="0", precision=label)
    return str(number)


def _end(layers: Element, edges: Element, source: str, port: str, number: str) -> None:
    result = _new(layers, "layer", id=number, name=f"end{number}", type="Result", version="opset1")
    _new(_new(result, "input"), "port", id="0")
    edges.append(_edge(edges, source, port, number, "0"))


def _affordable(element: Element, times: int) -> int:
    """Return how many copies keep the file at a reasonable size: the target is work beyond what its size explains."""
    return min(times, MOST // len(etree.tostring(element)))


def _feeds(edges: Element, layer: Element) -> list[tuple[str, str, str]]:
    found = [e for e in edges if e.get("to-layer") == layer.get("id")]
    return [(e.get("from-layer", "0"), e.get("from-port", "0"), e.get("to-port", "0")) for e in found]


def _edge(beside: Element, source: str, port: str, target: str, place: str) -> Element:
    ends = {"from-layer": source, "from-port": port, "to-layer": target, "to-port": place}
    return beside.makeelement("edge", ends)


def _new(parent: Element, tag: str, **attributes: str) -> Element:
    made = parent.makeelement(tag, attributes)
    parent.append(made)
    return made


def _free(parent: Element) -> int:
    taken = [int(e.get("id")) for e in parent if (e.get("id") or "").isdecimal() and len(e.get("id")) < 19]
    return max(taken, default=0) + 1
