"""Changes that add very many of one thing to a model, to expose superlinear work.

Each takes a model and a number; the size of the addition is proportional to the number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from random import Random
from typing import TypeAlias

from lxml import etree

from .structure import Element, Work

__all__ = ["FLOODS", "SPILLS", "flooded", "several"]

LARGEST = 100_000
"""Bytes that a flood may add: what takes more than its share takes long even so."""
MOST_AT_ONCE = 2
LARGE = 0.1
"""The share of floods that are large: the others are quick, so that more of them can be tried."""

Flood: TypeAlias = Callable[[Work, int], None]
"""Changes the tree."""
Spill: TypeAlias = Callable[[bytes, int], bytes]
"""Changes what cannot be said as a tree."""

FLOODS: dict[str, Flood] = {}
SPILLS: dict[str, Spill] = {}

_OPSET = "opset1"


def _flood(change: Flood) -> Flood:
    FLOODS[change.__name__] = change
    return change


def _spill(change: Spill) -> Spill:
    SPILLS[change.__name__] = change
    return change


def flooded(work: Work, name: str, count: int) -> bytes:
    """Return the model with ``number`` additions of one kind, as XML."""
    if name in SPILLS:
        return SPILLS[name](etree.tostring(work.root, encoding="utf-8"), count)
    FLOODS[name](work, count)
    return bytes(etree.tostring(work.root, encoding="utf-8"))


def several(work: Work, steps: Sequence[int]) -> bytes:
    """Return the model with one flood per step, as XML; byte-level floods come last."""
    names = [*FLOODS, *SPILLS]
    chosen = []
    for step in steps[:MOST_AT_ONCE]:
        rng = Random(step)
        most = 4 if rng.random() < LARGE else 2.5
        chosen.append((rng.choice(names), step, int(10 ** rng.uniform(0, most))))
    for name, step, count in sorted(chosen, key=lambda each: each[0] in SPILLS):
        work.rng = Random(step)
        xml = flooded(work, name, min(count, _affordable(name)))
        if name in SPILLS:
            return xml
    return xml


@cache
def _affordable(name: str) -> int:
    """Return how many additions keep the file at a reasonable size."""
    few, many = (len(flooded(_tiny(), name, count)) for count in (100, 200))
    return max(100 * LARGEST // max(many - few, 1), 1)


def _tiny() -> Work:
    port = '<port id="0" precision="FP32"><dim>1</dim></port>'
    layers = (
        f'<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1"/><output>{port}</output></layer>'
        f'<layer id="1" name="y" type="Result" version="opset1"><input>{port}</input></layer>'
    )
    edges = '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
    root = etree.fromstring(
        f'<net name="n" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'
    )
    return Work(root, bytearray(), root, Random(0))


def _place(work: Work, tag: str) -> Element:
    """Return an element of that name, or a new one."""
    found = work.root.findall(f".//{tag}")
    if found:
        return work.rng.choice(found)
    return work.root if work.root.tag == tag else _new(work.root, tag)


def _new(parent: Element, tag: str, **attributes: object) -> Element:
    made = parent.makeelement(tag, {key.replace("_", "-"): str(value) for key, value in attributes.items()})
    parent.append(made)
    return made


def _add_attributes(work: Work, tag: str, attributes: Iterable[str]) -> None:
    """Replace an element by one with further attributes, parsed at once, as `Element.set` is linear in their number."""
    element = _place(work, tag)
    made = etree.fromstring(f"<{element.tag} {' '.join(attributes)}/>")
    made.attrib.update(element.attrib)
    made.text, made.tail = element.text, element.tail
    made.extend(element)
    if (parent := element.getparent()) is None:
        work.root = made
    else:
        parent.replace(element, made)


def _layers(work: Work) -> Element:
    found = work.root.find("layers")
    return _new(work.root, "layers") if found is None else found


def _edges(work: Work) -> Element:
    found = work.root.find("edges")
    return _new(work.root, "edges") if found is None else found


def _free(work: Work) -> int:
    """Return an id above all existing ones."""
    taken = [int(text) for e in _layers(work) if (text := e.get("id") or "").isdecimal() and len(text) < 10]
    return max(taken, default=0) + 1


def _layer(
    work: Work, number: int, type: str, inputs: int = 0, outputs: int = 0, name: str = "", **data: object
) -> Element:
    """A layer with undeclared ports, numbered from 0."""
    layer = _new(_layers(work), "layer", id=number, name=name or f"flood{number}", type=type, version=_OPSET)
    if data:
        made = _new(layer, "data")
        for key, value in data.items():
            made.set(key, str(value))
    for side, first, count in (("input", 0, inputs), ("output", inputs, outputs)):
        group = _new(layer, side) if count else None
        for place in range(count):
            _new(group, "port", id=first + place)
    return layer


def _edge(work: Work, source: int, port: int, target: int, place: int) -> None:
    ends = {"from-layer": source, "from-port": port, "to-layer": target, "to-port": place}
    _new(_edges(work), "edge").attrib.update({key: str(value) for key, value in ends.items()})


def _parameter(work: Work, number: int, shape: str = "2,2") -> None:
    _layer(work, number, "Parameter", outputs=1, element_type="f32", shape=shape)


def _fed(work: Work) -> int:
    """Return the id of a new Parameter."""
    number = _free(work)
    _parameter(work, number)
    return number


# Attributes.


def _attributes(tag: str) -> Flood:
    def change(work: Work, count: int) -> None:
        _add_attributes(work, tag, (f'a{n}="1"' for n in range(count)))

    change.__name__ = f"attributes_of_{tag}"
    return change


for _tag in ("net", "layer", "data", "port", "edge", "dim", "rt_info"):
    _flood(_attributes(_tag))


@_flood
def unknown_attributes_of_layers(work: Work, count: int) -> None:
    """Distinct unknown attributes in separate layers, similar to known ones."""
    source, first = _fed(work), _free(work) + 1
    for n in range(count):
        _layer(work, first + n, "Softmax", 1, 1, axis="0", **{f"axi{n}": "1"})
        _edge(work, source, 0, first + n, 0)


@_flood
def attributes_that_are_not_allowed(work: Work, count: int) -> None:
    """Distinct invalid values, similar to allowed ones."""
    first = _free(work)
    for n in range(count):
        _layer(work, first + n, "Parameter", 0, 1, element_type=f"f{n}2", shape="1")


@_flood
def long_list(work: Work, count: int) -> None:
    """A long list in an attribute, whether or not it takes a list."""
    element = _place(work, "data")
    name = work.rng.choice(list(element.attrib) or ["shape"])
    element.set(name, ",".join(["1"] * count))


@_flood
def long_value(work: Work, count: int) -> None:
    element = work.element()
    element.set(work.rng.choice(list(element.attrib) or ["name"]), "9" * count)


@_flood
def long_name(work: Work, count: int) -> None:
    _place(work, "layer").set(work.rng.choice(("name", "type", "version")), "Convolutio" * (count // 10 + 1))


@_flood
def long_texts_nearly_allowed(work: Work, count: int) -> None:
    """Long strings that "did you mean" compares with each other."""
    first = _free(work)
    for n in range(count // 20):
        name = "Convolution" * 8 + str(n)
        _layer(work, first + n, name, 1, 1)


# Ports and dims.


@_flood
def inputs_without_edges(work: Work, count: int) -> None:
    _layer(work, _free(work), "Concat", count, 1, axis="0")


@_flood
def inputs_of_one_layer(work: Work, count: int) -> None:
    """Many inputs of a layer, fed by one Parameter."""
    source, number = _fed(work), _free(work)
    _layer(work, number, "Concat", count, 1, axis="0")
    for n in range(count):
        _edge(work, source, 0, number, n)


@_flood
def inputs_that_do_not_fit(work: Work, count: int) -> None:
    """One invalid input of many, whose cause inference traces."""
    source, other, number = _fed(work), _free(work) + 1, _free(work) + 2
    _parameter(work, other, "2,3")
    _layer(work, number, "Concat", count + 1, 1, axis="0")
    for n in range(count):
        _edge(work, source, 0, number, n)
    _edge(work, other, 0, number, count)


@_flood
def outputs_of_one_layer(work: Work, count: int) -> None:
    source, number = _fed(work), _free(work)
    _layer(work, number, "Split", 2, count, num_splits=count)
    _edge(work, source, 0, number, 0)


@_flood
def ports_with_one_id(work: Work, count: int) -> None:
    group = _new(_layer(work, _free(work), "Concat", 0, 1, axis="0"), "input")
    for _ in range(count):
        _new(group, "port", id=0)


@_flood
def groups_of_ports(work: Work, count: int) -> None:
    layer = _place(work, "layer")
    for _ in range(count):
        _new(layer, "input")
        _new(layer, "output")


@_flood
def dims_of_one_port(work: Work, count: int) -> None:
    port = _place(work, "port")
    for _ in range(count):
        _new(port, "dim").text = "1"


@_flood
def dims_that_cannot_be_read(work: Work, count: int) -> None:
    first = _free(work)
    for n in range(count):
        port = _new(_new(_layer(work, first + n, "ReLU"), "output"), "port", id=0, precision=f"F{n}")
        _new(port, "dim").text = f"{n}x"


@_flood
def dims_that_differ(work: Work, count: int) -> None:
    """A different wrong declaration for every port."""
    source, first = _fed(work), _free(work) + 1
    for n in range(count):
        layer = _layer(work, first + n, "ReLU", 1)
        port = _new(_new(layer, "output"), "port", id=1, precision="FP32")
        _new(port, "dim").text = str(n + 3)
        _edge(work, source, 0, first + n, 0)


@_flood
def long_dims(work: Work, count: int) -> None:
    _place(work, "dim").text = "1" * count


@_flood
def comments_in_a_dim(work: Work, count: int) -> None:
    dim = _place(work, "dim")
    for _ in range(count):
        dim.append(etree.Comment("1"))


@_flood
def elements_in_a_port(work: Work, count: int) -> None:
    port = _place(work, "port")
    for n in range(count):
        _new(port, f"x{n}")


# Edges.


@_flood
def edges_from_nowhere(work: Work, count: int) -> None:
    number = _free(work)
    _layer(work, number, "ReLU", 1, 1)
    for n in range(count):
        _edge(work, number + 1 + n, 0, number, 0)


@_flood
def edges_to_nowhere(work: Work, count: int) -> None:
    source = _fed(work)
    for _ in range(count):
        _edge(work, source, 0, source + 1, 0)


@_flood
def edges_to_ports_that_there_are_not(work: Work, count: int) -> None:
    """Edges to missing ports of a layer with many ports, which the message lists."""
    source, number = _fed(work), _free(work)
    _layer(work, number, "Concat", count, 1, axis="0")
    for n in range(count):
        _edge(work, source, 0, number, count + 1 + n)


@_flood
def edges_from_ports_that_there_are_not(work: Work, count: int) -> None:
    number = _free(work)
    _layer(work, number, "Split", 2, count, num_splits=count)
    _layer(work, number + 1, "Concat", count, 1, axis="0")
    for n in range(count):
        _edge(work, number, count + 9 + n, number + 1, n)


@_flood
def edges_to_one_input(work: Work, count: int) -> None:
    source = _fed(work)
    _layer(work, source + 1, "ReLU", 1, 1)
    for _ in range(count):
        _edge(work, source, 0, source + 1, 0)


@_flood
def edges_without_ends(work: Work, count: int) -> None:
    for _ in range(count):
        _new(_edges(work), "edge")


@_flood
def edges_in_pairs(work: Work, count: int) -> None:
    """Two edges to each of many inputs."""
    source, number = _fed(work), _free(work)
    _layer(work, number, "Concat", count, 1, axis="0")
    for n in range(count):
        _edge(work, source, 0, number, n)
        _edge(work, source, 0, number, n)


@_flood
def readers_of_one_output(work: Work, count: int) -> None:
    source, first = _fed(work), _free(work) + 1
    for n in range(count):
        _layer(work, first + n, "ReLU", 1, 1)
        _edge(work, source, 0, first + n, 0)


# Layers.


@_flood
def layers_in_a_row(work: Work, count: int) -> None:
    """A runnable chain that ends in a Result."""
    last, first = _fed(work), _free(work) + 1
    for n in range(count):
        _layer(work, first + n, "ReLU", 1, 1)
        _edge(work, last, 0 if last < first else 1, first + n, 0)
        last = first + n
    _layer(work, first + count, "Result", 1)
    _edge(work, last, 1, first + count, 0)


@_flood
def layers_backwards(work: Work, count: int) -> None:
    """A chain in reverse file order."""
    first = _free(work) + 1
    for n in range(count):
        _layer(work, first + n, "ReLU", 1, 1)
        _edge(work, first + n + 1, 1, first + n, 0)
    _parameter(work, first + count)
    _edge(work, first + count, 0, first + count - 1, 0)


@_flood
def layers_in_a_ring(work: Work, count: int) -> None:
    first = _free(work)
    for n in range(count):
        _layer(work, first + n, "ReLU", 1, 1)
        _edge(work, first + n, 1, first + (n + 1) % count, 0)


@_flood
def layers_in_many_rings(work: Work, count: int) -> None:
    first = _free(work)
    for n in range(0, count, 2):
        for one, other in ((n, n + 1), (n + 1, n)):
            _layer(work, first + one, "ReLU", 1, 1)
            _edge(work, first + one, 1, first + other, 0)


@_flood
def layers_unconnected(work: Work, count: int) -> None:
    first = _free(work)
    for n in range(count):
        _layer(work, first + n, "ReLU", 1, 1)


@_flood
def layers_unread(work: Work, count: int) -> None:
    first = _free(work)
    for n in range(count):
        _layer(work, first + n, "Constant", 0, 1, element_type="f32", shape="0", offset="0", size="0")


@_flood
def layers_with_one_id(work: Work, count: int) -> None:
    number = _free(work)
    for _ in range(count):
        _layer(work, number, "ReLU", 1, 1)


@_flood
def layers_with_one_name(work: Work, count: int) -> None:
    first = _free(work)
    for n in range(count):
        _layer(work, first + n, "Parameter", 0, 1, "same", element_type="f32", shape="1")


@_flood
def layers_without_an_id(work: Work, count: int) -> None:
    for _ in range(count):
        _new(_layers(work), "layer", type="ReLU", version=_OPSET)


@_flood
def layers_without_a_type(work: Work, count: int) -> None:
    first = _free(work)
    for n in range(count):
        _new(_layers(work), "layer", id=first + n)


@_flood
def layers_unknown(work: Work, count: int) -> None:
    """Layers of distinct unknown types, similar to known ones."""
    first = _free(work)
    for n in range(count):
        _layer(work, first + n, f"Convolution{n}", 1, 1)


@_flood
def layers_of_odd_versions(work: Work, count: int) -> None:
    first = _free(work)
    for n in range(count):
        _layer(work, first + n, "ReLU", 1, 1).set("version", f"opset{n}")


@_flood
def layers_without_attributes(work: Work, count: int) -> None:
    """Layers that each lack several attributes."""
    source, first = _fed(work), _free(work) + 1
    for n in range(count):
        _layer(work, first + n, "Convolution", 2, 1)
        _edge(work, source, 0, first + n, 0)
        _edge(work, source, 0, first + n, 1)


@_flood
def layers_that_refuse(work: Work, count: int) -> None:
    """Invalid layers, for each of which inference traces the cause."""
    source, first = _fed(work), _free(work) + 2
    _parameter(work, first - 1, "3,3")
    for n in range(count):
        _layer(work, first + n, "Add", 2, 1)
        _edge(work, source, 0, first + n, 0)
        _edge(work, first - 1, 0, first + n, 1)


@_flood
def inputs_of_the_model(work: Work, count: int) -> None:
    """Dynamic inputs with an output each."""
    first = _free(work)
    for n in range(count):
        _parameter(work, first + 2 * n, "?,?")
        _layer(work, first + 2 * n + 1, "Result", 1)
        _edge(work, first + 2 * n, 0, first + 2 * n + 1, 0)


@_flood
def inputs_of_f16(work: Work, count: int) -> None:
    """Inputs of IR version 10, where each is converted."""
    work.root.set("version", "10")
    first = _free(work)
    for n in range(count):
        _parameter(work, first + 2 * n)
        layer = _layers(work)[-1]
        layer.find("data").set("element_type", "f16")
        layer.find("output/port").set("precision", "FP16")
        _layer(work, first + 2 * n + 1, "Result", 1)
        _edge(work, first + 2 * n, 0, first + 2 * n + 1, 0)


@_flood
def variables(work: Work, count: int) -> None:
    """Variables that are read once and assigned twice."""
    source, first = _fed(work), _free(work) + 1
    for n in range(0, count, 3):
        for more, type in enumerate(("ReadValue", "Assign", "Assign")):
            _layer(work, first + n + more, type, 1, 1, variable_id=f"v{n}").set("version", "opset3")
            _edge(work, source, 0, first + n + more, 0)


@_flood
def one_variable(work: Work, count: int) -> None:
    source, first = _fed(work), _free(work) + 1
    for n in range(count):
        _layer(work, first + n, ("ReadValue", "Assign")[n % 2], 1, 1, variable_id="v").set(
            "version", "opset3"
        )
        _edge(work, source, 0, first + n, 0)


# Constants.


def _constants(work: Work, count: int, place: Callable[[int], tuple[int, int]]) -> None:
    first = _free(work)
    work.weights += bytes(max(count + 8 - len(work.weights), 0))
    for n in range(count):
        offset, size = place(n)
        _layer(
            work, first + n, "Const", 0, 1, element_type="u8", shape=size, offset=offset, size=size
        )  # fmt: skip


@_flood
def constants_in_each_other(work: Work, count: int) -> None:
    _constants(work, count, lambda n: (n // 2, count - n // 2))


@_flood
def constants_that_overlap(work: Work, count: int) -> None:
    _constants(work, count, lambda n: (n, 2))


@_flood
def constants_of_the_same_bytes(work: Work, count: int) -> None:
    _constants(work, count, lambda n: (0, 8))


@_flood
def texts_in_a_constant(work: Work, count: int) -> None:
    """As many strings as a constant can hold."""
    number = _free(work)
    lengths = b"".join((2 * n).to_bytes(4, "little") for n in range(count + 1))
    offset, size = work.constant(count.to_bytes(4, "little") + lengths + b"ab" * count)
    _layer(work, number, "Const", 0, 1, element_type="string", shape=count, offset=offset, size=size)


# Names and information.


@_flood
def names_of_a_tensor(work: Work, count: int) -> None:
    _place(work, "port").set("names", ",".join(f"n{n}" for n in range(count)))


@_flood
def names_with_backslashes(work: Work, count: int) -> None:
    _place(work, "port").set("names", "\\" * count + ",\\," * count)


@_flood
def names_of_a_result(work: Work, count: int) -> None:
    for layer in work.root.iter("layer"):
        if layer.get("type") == "Result":
            layer.set("output_names", ",".join(f"n{n}" for n in range(count)))


@_flood
def tensors_of_one_name(work: Work, count: int) -> None:
    source, first = _fed(work), _free(work) + 1
    for n in range(count):
        _layer(work, first + n, "ReLU", 1, 1).find("output/port").set("names", "same")
        _edge(work, source, 0, first + n, 0)


@_flood
def information_deep(work: Work, count: int) -> None:
    """Runtime information nested to the parser's depth limit, several times."""
    for _ in range(count // 100 + 1):
        inner = _place(work, work.rng.choice(("net", "layer", "port")))
        inner = _new(inner, "rt_info")
        for _ in range(min(count, 200)):
            inner = _new(inner, "x")


@_flood
def information_broad(work: Work, count: int) -> None:
    outer = _new(_place(work, work.rng.choice(("net", "layer", "port"))), "rt_info")
    for n in range(count):
        _new(outer, f"x{n}", value=n)


@_flood
def information_of_one_name(work: Work, count: int) -> None:
    outer = _new(_place(work, work.rng.choice(("net", "layer", "port"))), "rt_info")
    for n in range(count):
        _new(outer, "attribute", name="same", version=n)


# Bodies.


def _branch(layer: Element, name: str) -> Element:
    body = _new(layer, f"{name}_body")
    made = _new(_new(body, "layers"), "layer", id=0, name="x", type="Parameter", version=_OPSET)
    _new(made, "data", element_type="f32", shape="2,2").set("element_type", "f32")
    _new(_new(made, "output"), "port", id=0)
    made = _new(body[0], "layer", id=1, name="y", type="Result", version=_OPSET)
    _new(_new(made, "input"), "port", id=0)
    edge = _new(_new(body, "edges"), "edge")
    edge.attrib.update({"from-layer": "0", "from-port": "0", "to-layer": "1", "to-port": "0"})
    return body


def _if(work: Work, number: int, inputs: int, outputs: int) -> Element:
    layer = _layer(work, number, "If", inputs, outputs)
    layer.set("version", "opset8")
    return layer


def _tie(entries: Element, tag: str, outer: int, inner: int) -> None:
    ends = {"external_port_id": str(outer), "internal_layer_id": str(inner)}
    _new(entries, tag).attrib.update(ends)


@_flood
def bodies_side_by_side(work: Work, count: int) -> None:
    condition, source = _free(work), _free(work) + 1
    _layer(work, condition, "Parameter", 0, 1, element_type="boolean", shape="")
    _parameter(work, source)
    for n in range(count):
        layer = _if(work, source + 1 + n, 2, 1)
        for name in ("then", "else"):
            _branch(layer, name)
            entries = _new(layer, f"{name}_port_map".replace("_", "_"))
            _tie(entries, "input", 1, 0)
            _tie(entries, "output", 2, 1)
        _edge(work, condition, 0, source + 1 + n, 0)
        _edge(work, source, 0, source + 1 + n, 1)


@_flood
def bodies_in_bodies(work: Work, count: int) -> None:
    """Bodies nested to the parser's depth limit."""
    layer = _if(work, _free(work), 2, 1)
    for n in range(min(count, 60)):
        body = _branch(layer, "then")
        _branch(layer, "else")
        layer = _new(body[0], "layer", id=n + 2, name="inner", type="If", version="opset8")


@_flood
def ties_of_one_body(work: Work, count: int) -> None:
    layer = _if(work, _free(work), 2, 1)
    for name in ("then", "else"):
        _branch(layer, name)
        entries = _new(layer, f"{name}_port_map")
        for _ in range(count):
            _tie(entries, "input", 1, 0)
            _tie(entries, "output", 2, 1)


@_flood
def ties_to_nothing(work: Work, count: int) -> None:
    layer = _if(work, _free(work), count, 1)
    for name in ("then", "else"):
        _branch(layer, name)
        entries = _new(layer, f"{name}_port_map")
        for n in range(count):
            _tie(entries, "input", n, 7 + n)


@_flood
def ties_with_purposes(work: Work, count: int) -> None:
    layer = _if(work, _free(work), 2, 1)
    for name in ("then", "else"):
        _branch(layer, name)
        entries = _new(layer, f"{name}_port_map")
        for _ in range(count):
            _new(entries, "input", purpose="current_iteration")


# XML itself.


@_flood
def comments(work: Work, count: int) -> None:
    element = work.element()
    for _ in range(count):
        element.append(etree.Comment("x"))


@_flood
def instructions(work: Work, count: int) -> None:
    element = work.element()
    for _ in range(count):
        element.append(etree.ProcessingInstruction("x"))


@_flood
def elements_unknown(work: Work, count: int) -> None:
    element = work.element()
    for n in range(count):
        _new(element, f"x{n}")


@_flood
def elements_nested(work: Work, count: int) -> None:
    for _ in range(count // 200 + 1):
        element = work.root
        for _ in range(min(count, 200)):
            element = _new(element, "layers")


@_flood
def namespaces(work: Work, count: int) -> None:
    """Namespaces declared at one element and used by many."""
    spaces = {f"p{n}": f"urn:{n}" for n in range(min(count, 3000))}
    outer = etree.SubElement(work.root, "{urn:0}x", nsmap=spaces)
    for n in range(count):
        etree.SubElement(outer, f"{{urn:{n % len(spaces)}}}x")


@_flood
def namespaces_of_attributes(work: Work, count: int) -> None:
    _add_attributes(work, "data", (f'xmlns:p{n}="urn:{n}" p{n}:a="1"' for n in range(count)))


@_flood
def text_between_elements(work: Work, count: int) -> None:
    element = work.element()
    element.text = "x\n" * count


@_flood
def text_like_tags(work: Work, count: int) -> None:
    """Text that resembles tags."""
    layer = _place(work, "layer")
    layer.text = etree.CDATA('<a " ' * count)
    layer.set("unheard", "of")
    layer.attrib.pop("version", None)


@_spill
def text_on_one_line(xml: bytes, count: int) -> bytes:
    """Many findings on a single line."""
    bad = b'<edge from-layer="0" from-port="77" to-layer="0" to-port="78"/>' * count
    return xml.replace(b"\n", b" ").replace(b"</edges>", bad + b"</edges>", 1)


@_spill
def text_of_empty_lines(xml: bytes, count: int) -> bytes:
    bad = b'<edge from-layer="0" from-port="77" to-layer="0" to-port="78"/>' * (count // 10 + 1)
    return xml.replace(b"</edges>", b"\n" * (100 * count) + bad + b"</edges>", 1)


@_spill
def text_of_entities(xml: bytes, count: int) -> bytes:
    return xml.replace(b' name="', b' name="' + b"&amp;&#65;" * count, 1)


@_spill
def text_of_entities_unknown(xml: bytes, count: int) -> bytes:
    return xml.replace(b' name="', b' name="' + b"&x;" * count, 1)


@_spill
def text_of_equal_attributes(xml: bytes, count: int) -> bytes:
    return xml.replace(b"<net ", b"<net " + b'a="1" ' * count, 1)


@_spill
def text_never_closed(xml: bytes, count: int) -> bytes:
    return xml.replace(b"<layers>", b"<layers>" * count, 1)


@_spill
def text_of_declarations(xml: bytes, count: int) -> bytes:
    return b"<?xml version='1.0'?><!-- " + b"<!DOCTYP " * count + b" -->" + xml[xml.find(b"<net") :]


@_spill
def text_of_blanks(xml: bytes, count: int) -> bytes:
    return b" \n<!---->" * count + xml[xml.find(b"<net") :]


@_spill
def text_of_examples(xml: bytes, count: int) -> bytes:
    """A specification page instead of a model."""
    layer = b'<layer id="1" name="a" type="ReLU"><input><port id="0"/></input><output><port id="1"/></output></layer>\n'
    return b"ReLU-1 Softmax-8 " * 9 + layer * min(count, 200)  # each is a model of its own


@_spill
def text_of_types_on_a_page(xml: bytes, count: int) -> bytes:
    """Many type names, each searched on the whole page."""
    layers = (
        b'<layer id="%d" type="T%d"><output><port id="0"/></output></layer>' % (n, n) for n in range(count)
    )
    return b"words " * count + b"<layers>" + b"\n".join(layers) + b"</layers>"
