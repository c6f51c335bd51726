"""Tiny IRs as text, one element a line, so that messages have lines to point at."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

PRECISIONS = {"f64": "FP64", "f32": "FP32", "f16": "FP16", "boolean": "BOOL"}


def net(layers: Iterable[str], edges: Iterable[tuple[int, int, int, int]], name: str = "tiny") -> str:
    """A whole model; an edge is from layer, from port, to layer, to port."""
    joined = "\n".join(
        f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in edges
    )
    body = "\n".join(layers)
    return (
        f'<?xml version="1.0"?>\n<net name="{name}" version="11">\n<layers>\n{body}\n</layers>\n'
        f"<edges>\n{joined}\n</edges>\n</net>\n"
    )


def port(number: int, element: str, dims: str, name: str = "") -> str:
    """A port with its dims; a length that is open is written -1."""
    lengths = "".join(f"<dim>{d if d.isdecimal() else -1}</dim>" for d in dims.split(",") if d)
    named = f' names="{name}"' if name else ""
    return (
        f'<port id="{number}" precision="{PRECISIONS.get(element, element.upper())}"{named}>{lengths}</port>'
    )


def parameter(number: int, name: str, dims: str, element: str = "f32") -> str:
    return (
        f'<layer id="{number}" name="{name}" type="Parameter" version="opset1">\n'
        f'<data shape="{dims}" element_type="{element}"/>\n'
        f"<output>{port(0, element, dims, name)}</output>\n</layer>"
    )


def constant(number: int, name: str, dims: str, offset: int, size: int, element: str = "f32") -> str:
    return (
        f'<layer id="{number}" name="{name}" type="Const" version="opset1">\n'
        f'<data element_type="{element}" shape="{dims}" offset="{offset}" size="{size}"/>\n'
        f"<output>{port(0, element, dims)}</output>\n</layer>"
    )


def binary(number: int, name: str, type: str, left: str, right: str, out: str, tensor: str = "") -> str:
    return (
        f'<layer id="{number}" name="{name}" type="{type}" version="opset1">\n'
        f"<input>{port(0, 'f32', left)}{port(1, 'f32', right)}</input>\n"
        f"<output>{port(2, 'f32', out, tensor)}</output>\n</layer>"
    )


def result(number: int, dims: str, element: str = "f32") -> str:
    return (
        f'<layer id="{number}" name="result{number}" type="Result" version="opset1">\n'
        f"<input>{port(0, element, dims)}</input>\n</layer>"
    )


def chain(rows: str = "2") -> str:
    """``y = (x + bias) * scale``, where x is [rows, 3]; the layers are called shift and stretch."""
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
    """The bias is [1, 2, 3], the scale [10]."""
    return np.array([1, 2, 3, 10], np.float32).tobytes()


def total() -> str:
    """``sum = a + b``, both [4]."""
    layers = [
        parameter(0, "a", "4"),
        parameter(1, "b", "4"),
        binary(2, "plus", "Add", "4", "4", "4", "sum"),
        result(3, "4"),
    ]
    return net(layers, [(0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0)])


def passing(element: str, dims: str, results: int = 1, name: str = "x") -> str:
    """A model that gives back its input, as often as asked for."""
    layers = [parameter(0, name, dims, element), *(result(1 + i, dims, element) for i in range(results))]
    return net(layers, [(0, 0, 1 + i, 0) for i in range(results)])


def write_chain(folder: Path, rows: str = "2", name: str = "chain") -> Path:
    """`chain` and its weights in a folder; the path of the .xml."""
    (folder / f"{name}.bin").write_bytes(chain_weights())
    return write(folder, chain(rows), name)


def write(folder: Path, text: str, name: str = "net") -> Path:
    path = folder / f"{name}.xml"
    path.write_text(text, encoding="utf-8")
    return path
