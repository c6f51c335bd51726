"""Nets of IR versions 2 to 7, written layer by layer as their converters wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike

from harness.files import precision
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

Dims = tuple[int, ...]


class End(NamedTuple):
    """An output port of a layer, and its dims."""

    layer: int
    port: int
    dims: Dims


@dataclass
class LegacyNet:
    """Layers and edges in lines of their own; layer 0 is on line 4."""

    version: int = 5
    precision: str = "FP32"
    """Of the layers, and of their data in the .bin."""
    name: str = "net"
    more: str = ""
    """What stands behind the edges."""
    head: str = ""
    """More attributes of the net."""
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    weights: bytes = b""

    def input(self, name: str, *dims: int, precision: str = "") -> End:
        """Add an input."""
        return self.layer("Input", (), dims, name=name, precision=precision)

    def const(self, values: ArrayLike, dtype: str = "FP32", name: str | None = None) -> End:
        """Add a constant of some precision."""
        array = np.asarray(values, ElementType.of_port(dtype).dtype)
        return self.layer("Const", (), array.shape, blobs={"custom": array}, name=name, precision=dtype)

    def layer(
        self,
        type: str,
        sources: Sequence[End] = (),
        *outputs: Dims,
        name: str | None = None,
        blobs: Mapping[str, ArrayLike] | None = None,
        precision: str = "",
        data_tag: str = "data",
        inside: str = "",
        out: str = "",
        unfed: Sequence[Dims] = (),
        **data: object,
    ) -> End:
        """Add a layer and return its first output; the others follow it.

        Args:
            type: of the layer.
            sources: the outputs that it reads.
            outputs: the dims of its outputs.
            name: of the layer; by default its type in lower case, with its number.
            blobs: its data in the .bin, which is f32 or what the array is.
            precision: of the layer.
            data_tag: of the element with the attributes.
            inside: what stands behind the ports.
            out: the precision of output ports.
            unfed: the dims of further inputs, which no edge leads to.
            data: attributes; ``_`` at the end of a name is dropped, ``__`` in it is a hyphen.
        """
        number = len(self.layers)
        for index, source in enumerate(sources):
            self.edges.append(
                f'<edge from-layer="{source.layer}" from-port="{source.port}" '
                f'to-layer="{number}" to-port="{index}"/>'
            )
        read = [*(source.dims for source in sources), *unfed]
        first = len(read)
        ends = [End(number, first + index, dims) for index, dims in enumerate(outputs)]
        said = "".join(f" {_named(key)}={quoteattr(_text(value))}" for key, value in data.items())
        title = f"{type.lower()}{number}" if name is None else name
        given = f' precision="{out}"' if out else ""
        self.layers.append(
            f'<layer id="{number}" name={quoteattr(title)} precision="{precision or self.precision}" type="{type}">'
            f"{f'<{data_tag}{said}/>' if data else ''}"
            f"{_side('input', [(i, dims, '') for i, dims in enumerate(read)])}"
            f"{_side('output', [(e.port, e.dims, given) for e in ends])}"
            f"{inside}{self._blobs(blobs or {}, precision or self.precision)}</layer>"
        )
        return ends[0] if ends else End(number, 0, ())

    def _blobs(self, blobs: Mapping[str, ArrayLike], label: str) -> str:
        found = []
        for name, values in blobs.items():
            array = self._stored(values, label)
            said = f'<{name} offset="{len(self.weights)}" size="{array.nbytes}"'
            if self.version >= 7:
                said += f' precision="{precision(ElementType.from_dtype(array.dtype))}"'
            found.append(f"{said}/>")
            self.weights += array.tobytes()
        if self.version == 2:
            return "".join(found)
        return f"<blobs>{''.join(found)}</blobs>" if found else ""

    def _stored(self, values: ArrayLike, label: str) -> Array:
        """Return values as the .bin has them: numbers of the precision of the layer, other arrays as they are."""
        array = np.asarray(values)
        if array.dtype in (np.float32, np.float64):
            return np.ascontiguousarray(array, np.float16 if label == "FP16" else np.float32)
        return np.ascontiguousarray(array)

    def other(self, end: End, index: int, dims: Dims) -> End:
        """Return another output of a layer."""
        return End(end.layer, end.port + index, dims)

    def graph(self) -> str:
        layers, edges = "\n".join(self.layers), "\n".join(self.edges)
        return f"<layers>\n{layers}\n</layers>\n<edges>\n{edges}\n</edges>\n"

    def xml(self) -> bytes:
        """The .xml."""
        return (
            f'<?xml version="1.0" ?>\n<net batch="1" name="{self.name}" version="{self.version}"{self.head}>\n'
            f"{self.graph()}{self.more}</net>\n"
        ).encode()


def _named(key: str) -> str:
    return key.replace("__", "-").rstrip("_")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return ",".join(map(_text, value)) if isinstance(value, tuple | list) else str(value)


def _side(side: str, ports: Sequence[tuple[int, Dims, str]]) -> str:
    if not ports:
        return ""
    said = "".join(
        f'<port id="{number}"{given}>{"".join(f"<dim>{dim}</dim>" for dim in dims)}</port>'
        for number, dims, given in ports
    )
    return f"<{side}>{said}</{side}>"
