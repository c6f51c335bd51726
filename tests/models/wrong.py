"""Runnable models with one fault of nine kinds, which `ir_runtime.debug` must find in the right layer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

Element = Any  # lxml is not typed


@dataclass(frozen=True)
class Fault:
    """A changed model.

    Args:
        kind: of the change.
        layer: the name of the layer with a wrong result.
        what: a description.
        xml: the model.
        weights: its weights.
    """

    kind: str
    layer: str
    what: str
    xml: bytes
    weights: bytes

    def save(self, path: Path) -> Path:
        """Write the model."""
        path.write_bytes(self.xml)
        path.with_suffix(".bin").write_bytes(self.weights)
        return path


class _Draft:
    """A copy of a model to change, outside bodies."""

    def __init__(self, root: Element, weights: bytes, rng: random.Random) -> None:
        self.root, self.weights, self.rng = deepcopy(root), bytearray(weights), rng
        self.layers = {layer.get("id"): layer for layer in self.root.iterfind("layers/layer")}
        self.edges = list(self.root.iterfind("edges/edge"))

    def of(self, *types: str) -> list[Element]:
        """Return layers of some types that depend on an input of the model, in random order."""
        live = self._live()
        found = [layer for id, layer in self.layers.items() if layer.get("type") in types and id in live]
        self.rng.shuffle(found)
        return found

    def _live(self) -> set[str]:
        """Return the ids of the layers that depend on an input."""
        found = {id for id, layer in self.layers.items() if layer.get("type") == "Parameter"}
        waiting, readers = list(found), dict[str, list[str]]()
        for edge in self.edges:
            readers.setdefault(edge.get("from-layer"), []).append(edge.get("to-layer"))
        while waiting:
            for id in readers.get(waiting.pop(), ()):
                if id not in found:
                    found.add(id)
                    waiting.append(id)
        return found

    def before(self, layer: Element) -> set[str]:
        """Return the ids of all ancestors of a layer."""
        found, waiting = set[str](), [layer.get("id")]
        while waiting:
            id = waiting.pop()
            for edge in self.edges:
                if edge.get("to-layer") == id and edge.get("from-layer") not in found:
                    found.add(edge.get("from-layer"))
                    waiting.append(edge.get("from-layer"))
        return found

    def constants_of(self, layer: Element) -> Iterator[tuple[Element, np.ndarray[Any, Any]]]:
        """Return the f32 constants of a layer, with views of their values."""
        for edge in self.edges:
            source = self.layers[edge.get("from-layer")]
            data = source.find("data")
            if edge.get("to-layer") != layer.get("id") or source.get("type") != "Const":
                continue
            if data.get("element_type") == "f32":
                offset, size = int(data.get("offset")), int(data.get("size"))
                yield source, np.frombuffer(self.weights, np.float32, size // 4, offset)


Change = Callable[[_Draft], "tuple[Element, str] | None"]
"""Changes a draft; gives the layer that computes something else, and what was done, or nothing."""


def _weights(draft: _Draft) -> tuple[Element, str] | None:
    for layer in draft.of("Convolution", "GroupConvolution", "MatMul", "Add", "Multiply"):
        for _, numbers in draft.constants_of(layer):
            if numbers.size >= 8 and numbers.std() > 0:
                index = draft.rng.randrange(numbers.size)
                by = 0.3 * float(numbers.std()) * draft.rng.choice((-1, 1))
                numbers[index] += by
                return layer, f"weight {index} of {numbers.size} moved by {by:.2g}"
    return None


def _epsilon(draft: _Draft) -> tuple[Element, str] | None:
    for layer in draft.of("MVN", "GroupNormalization", "NormalizeL2", "Add", "Maximum"):
        data = layer.find("data")
        for name in ("eps", "epsilon"):
            if data is not None and name in data.attrib:
                data.set(name, repr(10 * float(data.get(name))))
                return layer, f"{name} times 10"
        for _, numbers in draft.constants_of(layer):
            if numbers.size == 1 and 0 < numbers[0] <= 1e-3:
                numbers[0] *= 10
                return layer, "constant of epsilon times 10"
    return None


def _pads(draft: _Draft) -> tuple[Element, str] | None:
    for layer in draft.of("AvgPool", "Convolution", "GroupConvolution", "MaxPool"):
        data = layer.find("data")
        begin = data.get("pads_begin").split(",")
        if int(begin[-1]) and data.get("auto_pad", "explicit") == "explicit":
            end = data.get("pads_end").split(",")
            begin[-1], end[-1] = str(int(begin[-1]) - 1), str(int(end[-1]) + 1)
            data.set("pads_begin", ",".join(begin))
            data.set("pads_end", ",".join(end))
            return layer, "pads moved by 1"
    return None


def _gelu(draft: _Draft) -> tuple[Element, str] | None:
    for layer in draft.of("Gelu"):
        mode = layer.find("data").get("approximation_mode", "ERF").upper()
        other = "TANH" if mode == "ERF" else "ERF"
        layer.find("data").set("approximation_mode", other)
        return layer, f"{mode} is {other}"
    return None


def _resize(draft: _Draft) -> tuple[Element, str] | None:
    for layer in draft.of("Interpolate"):
        data = layer.find("data")
        was = data.get("coordinate_transformation_mode")
        other = draft.rng.choice([m for m in ("half_pixel", "align_corners", "asymmetric") if m != was])
        data.set("coordinate_transformation_mode", other)
        return layer, f"coordinates {was} are {other}"
    return None


def _clamp(draft: _Draft) -> tuple[Element, str] | None:
    for layer in draft.of("Clamp"):
        layer.find("data").set("max", repr(0.8 * float(layer.find("data").get("max"))))
        return layer, "max times 0.8"
    for layer in draft.of("ReLU"):
        layer.set("type", "Clamp")
        etree.SubElement(layer, "data", min="0", max="1")
        layer.insert(0, layer[-1])
        return layer, "ReLU ends at 1"
    return None


_FUNCTIONS = {
    "Abs": "ReLU", "Gelu": "Sigmoid", "HSigmoid": "Sigmoid", "HSwish": "ReLU", "ReLU": "Abs", "Sigmoid": "Tanh",
    "Sqrt": "Abs", "Swish": "HSwish", "Tanh": "Sigmoid", "Exp": "Abs", "Erf": "Tanh", "SoftMax": "LogSoftmax",
}  # fmt: skip
_OPSETS = {
    "Abs": "opset1", "HSwish": "opset4", "LogSoftmax": "opset5", "ReLU": "opset1", "Sigmoid": "opset1", "Tanh": "opset1",
}  # fmt: skip


def _function(draft: _Draft) -> tuple[Element, str] | None:
    for layer in draft.of(*_FUNCTIONS):
        was = layer.get("type")
        layer.set("type", _FUNCTIONS[was])
        layer.set("version", _OPSETS[_FUNCTIONS[was]])
        data = layer.find("data")
        if data is not None and was != "SoftMax":
            layer.remove(data)
        for port in layer.findall("input/port")[1:]:  # Swish may have a second input
            layer.find("input").remove(port)
            draft.root.find("edges").remove(
                next(
                    e
                    for e in draft.edges
                    if (e.get("to-layer"), e.get("to-port")) == (layer.get("id"), port.get("id"))
                )
            )
        return layer, f"{was} is {_FUNCTIONS[was]}"
    return None


def _operator(draft: _Draft) -> tuple[Element, str] | None:
    for layer in draft.of("Add", "Multiply", "Subtract", "Divide", "ReduceMean"):
        was = layer.get("type")
        if layer.find("output/port").get("precision") != "FP32":
            continue
        others = {"Add": "Subtract", "Divide": "Multiply", "ReduceMean": "ReduceMax"}
        layer.set("type", others.get(was, "Add"))
        return layer, f"{was} is {layer.get('type')}"
    return None


def _edge(draft: _Draft) -> tuple[Element, str] | None:
    readers = draft.of(
        *{layer.get("type") for layer in draft.layers.values()} - {"Const", "Parameter", "Result"}
    )
    live = draft._live()
    for layer in readers:
        edge = next(e for e in draft.edges if e.get("to-layer") == layer.get("id"))
        source, places = edge.get("from-layer"), _signature(draft, edge.get("from-layer"))
        if source not in live or places is None:
            continue
        others = [id for id in draft.before(layer) & live if id != source and _signature(draft, id) == places]
        if others:
            other = draft.rng.choice(sorted(others))
            edge.set("from-layer", other)
            edge.set("from-port", draft.layers[other].find("output/port").get("id"))
            return layer, f"reads {draft.layers[other].get('name')}"
    return None


def _signature(draft: _Draft, id: str) -> tuple[str, ...] | None:
    """Return the type and shape of a layer's result, if it is a single numeric tensor and not a scalar."""
    ports = draft.layers[id].findall("output/port")
    if len(ports) != 1 or ports[0].get("precision") != "FP32" or not len(ports[0]):
        return None
    return tuple(dim.text for dim in ports[0])


KINDS: dict[str, Change] = {
    "weights": _weights, "epsilon": _epsilon, "pads": _pads, "Gelu mode": _gelu, "resize coordinates": _resize,
    "clamp": _clamp, "function": _function, "operator": _operator, "wrong edge": _edge,
}  # fmt: skip


def faults(path: Path, per_kind: int = 1, seed: int = 0) -> Iterator[Fault]:
    """Yield models with one fault each; kinds that do not apply to a model are skipped."""
    root, weights = etree.parse(path).getroot(), path.with_suffix(".bin").read_bytes()
    for kind, change in KINDS.items():
        seen = set()
        for index in range(per_kind):
            draft = _Draft(root, weights, random.Random(f"{path.stem} {kind} {seed + index}"))
            if (made := change(draft)) is None:
                break
            layer, what = made
            if (layer.get("name"), what) not in seen:
                seen.add((layer.get("name"), what))
                yield Fault(kind, layer.get("name"), what, etree.tostring(draft.root), bytes(draft.weights))
