"""Small models written by hand, layer by layer, with any mistake a test needs; loops; and the tiny models of command-line tests."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from harness.files import packed, precision
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array


class End(NamedTuple):
    """One end of an edge: the ids of a layer and of one of its ports."""

    layer: int
    port: int


def port(number: int, says: str = "", names: str | None = None) -> str:
    """Return a port from its precision and dims: ``"FP32 2 3"``; words that start with a letter are precisions."""
    words = says.split()
    precision = f' precision="{words.pop(0)}"' if words and words[0][0].isalpha() else ""
    named = "" if names is None else f" names={quoteattr(names)}"
    dims = "".join(f"<dim>{dim}</dim>" for dim in words)
    return f'<port id="{number}"{precision}{named}>{dims}</port>'


@dataclass
class Net:
    """A model with one layer or edge per line; layer 0 is on line 4."""

    name: str = "net"
    version: str = "11"
    layers: list[str] = field(default_factory=list)
    edges: list[tuple[int, int, int, int]] = field(default_factory=list)
    weights: bytes = b""
    rt_info: str = ""
    first_port: int = 0
    """Where ports are counted from; they need not start at 0."""

    def layer(
        self,
        type: str,
        sources: Sequence[End] = (),
        outputs: Sequence[str] = (),
        *,
        version: str = "opset1",
        name: str | None = None,
        names: str | None = None,
        inputs: Sequence[str] = (),
        inside: str = "",
        extra: Mapping[str, str] | None = None,
        **data: object,
    ) -> list[End]:
        """Add a layer and the edges that feed it; return its outputs.

        ``data`` holds attributes, ``extra`` attributes of the tag; ``inside`` follows the ports.
        """
        number = len(self.layers)
        count = max(len(sources), len(inputs))
        ends = [End(number, self.first_port + count + i) for i in range(len(outputs))]
        for index, source in enumerate(sources):
            self.edges.append((*source, number, self.first_port + index))
        tag = {"id": number, "name": type.lower() if name is None else name, "type": type, "version": version}
        attributes = "".join(f" {k}={quoteattr(str(v))}" for k, v in {**tag, **(extra or {})}.items())
        said = "".join(f" {k}={quoteattr(_text(v))}" for k, v in data.items())
        ports_in = [port(self.first_port + i, inputs[i] if i < len(inputs) else "") for i in range(count)]
        ports_out = [port(e.port, says, names) for e, says in zip(ends, outputs, strict=True)]
        self.layers.append(
            f"<layer{attributes}>{f'<data{said}/>' if data else ''}"
            f"{_side('input', ports_in)}{_side('output', ports_out)}{inside}</layer>"
        )
        return ends

    def op(self, type: str, *sources: End, out: str = "", **how: object) -> End:
        """Add a layer with one output."""
        return self.layer(type, sources, [out], **how)[0]  # type: ignore[arg-type]

    def parameter(
        self, name: str, shape: str, element: str = "f32", out: str = "", names: str | None = None
    ) -> End:
        """Add an input; its tensor has the name of the layer."""
        named = name if names is None else names
        return self.op(
            "Parameter", out=out, name=name, names=named or None, element_type=element, shape=shape
        )

    def constant(self, values: object, dtype: str = "i64", name: str | None = None, gap: int = 0) -> End:
        """Add a constant, ``gap`` bytes after the previous one."""
        element = ElementType.parse(dtype)
        array = np.asarray(values).astype(element.dtype)
        self.weights += b"\xee" * gap
        offset, raw = len(self.weights), packed(array, element)
        self.weights += raw
        shape = ",".join(map(str, array.shape))
        layout = {"element_type": dtype, "shape": shape, "offset": offset, "size": len(raw)}
        return self.op("Const", out=_says(array, element), name=name, **layout)

    def result(self, source: End, name: str = "result") -> None:
        """Add an output."""
        self.layer("Result", [source], name=name)

    def xml(self) -> bytes:
        """The .xml."""
        edges = "\n".join(
            f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>'
            for a, b, c, d in self.edges
        )
        layers = "\n".join(self.layers)
        info = f"<rt_info>{self.rt_info}</rt_info>\n" if self.rt_info else ""
        return (
            f'<?xml version="1.0"?>\n<net name="{self.name}" version="{self.version}">\n<layers>\n{layers}\n'
            f"</layers>\n<edges>\n{edges}\n</edges>\n{info}</net>\n"
        ).encode()


def line_of(xml: bytes, what: str) -> int:
    """Return the line in which a string first occurs."""
    return xml.decode().split(what)[0].count("\n") + 1


def _says(array: Array, element: ElementType) -> str:
    return " ".join([precision(element), *map(str, array.shape)])


def _text(value: object) -> str:
    if isinstance(value, ElementType):
        return value.label
    return str(value).lower() if isinstance(value, bool) else str(value)


def _side(side: str, ports: Sequence[str]) -> str:
    return f"<{side}>{''.join(ports)}</{side}>" if ports else ""


def body_of(inner: Net) -> str:
    """Return a model as the body of a layer."""
    edges = "".join(
        f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in inner.edges
    )
    return f"<body><layers>{''.join(inner.layers)}</layers><edges>{edges}</edges></body>"


def looping(length: str = "2", *, joined: bool = False, part_size: int = 1, count: int | None = None) -> Net:
    """A loop that computes ``x = x + x`` on ``x[length]`` (f32) ``trips`` (i64) times.

    Args:
        length: of ``x`` and of the loop state.
        joined: return the concatenated parts of all iterations, not the last one.
        part_size: the part size that the port map declares.
        count: the number of iterations; an input if ``None``.
    """
    net, inner = Net(), Net()
    dims = "-1" if length == "?" else length
    round = inner.parameter("round", length, out=f"FP32 {dims}")
    twice = inner.op("Add", round, round, name="twice", out=f"FP32 {dims}")
    inner.result(twice, name="given")
    on = inner.op("Const", name="on", element_type="boolean", shape="", offset=0, size=1, out="BOOL")
    inner.result(on, name="goes_on")
    net.weights = b"\x01"
    trips = net.parameter("trips", "", "i64", out="I64") if count is None else net.constant(count)
    start = net.op("Const", name="start", element_type="boolean", shape="", offset=0, size=1, out="BOOL")
    x = net.parameter("x", length, out=f"FP32 {dims}")
    cut = f' axis="0" start="0" end="-1" stride="{part_size}" part_size="{part_size}"' if joined else ""
    inside = (
        '<port_map><input external_port_id="2" internal_layer_id="0"/>'
        f'<output external_port_id="3" internal_layer_id="2"{cut}/>'
        '<output external_port_id="-1" internal_layer_id="4" purpose="execution_condition"/></port_map>'
        '<back_edges><edge from-layer="2" to-layer="0"/></back_edges>'
    )
    out: list[End] = net.layer(
        "Loop",
        [trips, start, x],
        [f"FP32 {'-1' if joined else dims}"],
        version="opset5",
        inside=inside + body_of(inner),
    )
    net.result(out[0])
    return net


PRECISIONS = {"f64": "FP64", "f32": "FP32", "f16": "FP16", "boolean": "BOOL"}


def net(layers: Iterable[str], edges: Iterable[tuple[int, int, int, int]], name: str = "tiny") -> str:
    """Return a whole model; an edge is (from layer, from port, to layer, to port)."""
    joined = "\n".join(
        f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in edges
    )
    body = "\n".join(layers)
    return (
        f'<?xml version="1.0"?>\n<net name="{name}" version="11">\n<layers>\n{body}\n</layers>\n'
        f"<edges>\n{joined}\n</edges>\n</net>\n"
    )


def typed_port(number: int, element: str, dims: str, name: str = "") -> str:
    """Return a port with its dims; dynamic dims are written as -1."""
    lengths = "".join(f"<dim>{d if d.isdecimal() else -1}</dim>" for d in dims.split(",") if d)
    named = f' names="{name}"' if name else ""
    return (
        f'<port id="{number}" precision="{PRECISIONS.get(element, element.upper())}"{named}>{lengths}</port>'
    )


def parameter(number: int, name: str, dims: str, element: str = "f32") -> str:
    return (
        f'<layer id="{number}" name="{name}" type="Parameter" version="opset1">\n'
        f'<data shape="{dims}" element_type="{element}"/>\n'
        f"<output>{typed_port(0, element, dims, name)}</output>\n</layer>"
    )


def constant(number: int, name: str, dims: str, offset: int, size: int, element: str = "f32") -> str:
    return (
        f'<layer id="{number}" name="{name}" type="Const" version="opset1">\n'
        f'<data element_type="{element}" shape="{dims}" offset="{offset}" size="{size}"/>\n'
        f"<output>{typed_port(0, element, dims)}</output>\n</layer>"
    )


def binary(number: int, name: str, type: str, left: str, right: str, out: str, tensor: str = "") -> str:
    return (
        f'<layer id="{number}" name="{name}" type="{type}" version="opset1">\n'
        f"<input>{typed_port(0, 'f32', left)}{typed_port(1, 'f32', right)}</input>\n"
        f"<output>{typed_port(2, 'f32', out, tensor)}</output>\n</layer>"
    )


def result(number: int, dims: str, element: str = "f32") -> str:
    return (
        f'<layer id="{number}" name="result{number}" type="Result" version="opset1">\n'
        f"<input>{typed_port(0, element, dims)}</input>\n</layer>"
    )


def chain(rows: str = "2") -> str:
    """``y = (x + bias) * scale`` with ``x[rows, 3]``; the layers are called shift and stretch."""
    dims = f"{rows},3"
    layers = [
        parameter(0, "x", dims),
        constant(1, "bias", "3", 0, 12),
        constant(2, "scale", "1", 12, 4),
        binary(3, "shift", "Add", dims, "3", dims, "shifted"),
        binary(4, "stretch", "Multiply", dims, "1", dims, "y"),
        result(5, dims),
    ]
    return net(layers, [(0, 0, 3, 0), (1, 0, 3, 1), (3, 2, 4, 0), (2, 0, 4, 1), (4, 2, 5, 0)])


def chain_weights() -> bytes:
    """Return the weights of `chain`: bias [1, 2, 3], scale [10]."""
    return np.array([1, 2, 3, 10], np.float32).tobytes()


def total() -> str:
    """``sum = a + b``, both of shape [4]."""
    layers = [
        parameter(0, "a", "4"),
        parameter(1, "b", "4"),
        binary(2, "plus", "Add", "4", "4", "4", "sum"),
        result(3, "4"),
    ]
    return net(layers, [(0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0)])


def passing(element: str, dims: str, results: int = 1, name: str = "x") -> str:
    """A model that returns its input ``results`` times."""
    layers = [parameter(0, name, dims, element), *(result(1 + i, dims, element) for i in range(results))]
    return net(layers, [(0, 0, 1 + i, 0) for i in range(results)])


def write_chain(folder: Path, rows: str = "2", name: str = "chain") -> Path:
    """Write `chain` and its weights to a folder; return the path of the .xml."""
    (folder / f"{name}.bin").write_bytes(chain_weights())
    return write(folder, chain(rows), name)


def write(folder: Path, text: str, name: str = "net") -> Path:
    path = folder / f"{name}.xml"
    path.write_text(text, encoding="utf-8")
    return path


def anonymous(tree: Any) -> None:
    """Rename and renumber every layer, and shuffle all but inputs and outputs in the file."""
    layers = tree.find("layers")
    ids = [layer.get("id") for layer in layers]
    numbers = dict(zip(ids, random.Random(0).sample(range(1000, 1000 + 2 * len(ids)), len(ids)), strict=True))
    for layer in layers:
        layer.set("name", f"layer_{numbers[layer.get('id')]}")
        layer.set("id", str(numbers[layer.get("id")]))
    inner = [layer for layer in layers if layer.get("type") not in ("Parameter", "Result")]
    ends = [layer for layer in layers if layer.get("type") in ("Parameter", "Result")]
    layers[:] = [*random.Random(1).sample(inner, len(inner)), *ends]
    for edge in tree.find("edges"):
        for end in ("from-layer", "to-layer"):
            edge.set(end, str(numbers[edge.get(end)]))
