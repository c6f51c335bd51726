"""Small nets written by hand, layer by layer, with any mistake one likes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
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
    """A port from its precision and dims: ``"FP32 2 3"``; a word that starts with a letter is a precision."""
    words = says.split()
    precision = f' precision="{words.pop(0)}"' if words and words[0][0].isalpha() else ""
    named = "" if names is None else f" names={quoteattr(names)}"
    dims = "".join(f"<dim>{dim}</dim>" for dim in words)
    return f'<port id="{number}"{precision}{named}>{dims}</port>'


@dataclass
class Net:
    """Layers in lines of their own, edges in lines of their own; layer 0 is on line 4."""

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

        ``data`` are attributes, ``extra`` attributes of the tag, ``inside`` is put behind the ports.
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
        """Add an input of the net; its tensor is called as the layer."""
        named = name if names is None else names
        return self.op(
            "Parameter", out=out, name=name, names=named or None, element_type=element, shape=shape
        )

    def constant(self, values: object, dtype: str = "i64", name: str | None = None, gap: int = 0) -> End:
        """Add a constant, ``gap`` bytes behind the one before."""
        element = ElementType.parse(dtype)
        array = np.asarray(values).astype(element.dtype)
        self.weights += b"\xee" * gap
        offset, raw = len(self.weights), packed(array, element)
        self.weights += raw
        shape = ",".join(map(str, array.shape))
        layout = {"element_type": dtype, "shape": shape, "offset": offset, "size": len(raw)}
        return self.op("Const", out=_says(array, element), name=name, **layout)

    def result(self, source: End, name: str = "result") -> None:
        """Add an output of the net."""
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
    """The line that something stands in for the first time."""
    return xml.decode().split(what)[0].count("\n") + 1


def _says(array: Array, element: ElementType) -> str:
    return " ".join([precision(element), *map(str, array.shape)])


def _text(value: object) -> str:
    if isinstance(value, ElementType):
        return value.label
    return str(value).lower() if isinstance(value, bool) else str(value)


def _side(side: str, ports: Sequence[str]) -> str:
    return f"<{side}>{''.join(ports)}</{side}>" if ports else ""
