"""ONNX Runtime as a command for `ir-runtime conformance run`: ``python -m engines.onnx_command FOLDER``.

It runs single-layer models with a corresponding ONNX operation, without optimizations, and exits with 4 for others. The model
is parsed as XML, so that models refused by this package run as well.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from engines.onnx_nodes import OPSET, TYPES, Node, NoOperation, node_of
from ir_runtime.conformance.case import decode, encode, from_bytes
from ir_runtime.errors import IRError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array
from ir_runtime.ops import Op, find_operation

__all__ = ["main", "run"]

_UNSUPPORTED = 4
"""The exit code of a command that does not have an operation."""
_NOISE = re.compile(
    r"^.*(?:Status Message|initialization): (?:/onnxruntime_src/\S+ \S.*?\)(?: const)?(?: \[with .*?\])? )?"
)
"""The part of a message that names functions and files of ONNX Runtime."""
_ENDS = ("Parameter", "Const", "Result")


def run(folder: Path) -> list[Array]:
    """Return the outputs of the model of a case.

    Raises:
        NoOperation: if ONNX has no operation for it, or ONNX Runtime no kernel.
        Exception: any exception of ONNX Runtime.
    """
    names = json.loads((folder / "names.json").read_text(encoding="utf-8"))
    fed = [
        decode(np.load(folder / entry["file"]), ElementType.parse(entry["type"])) for entry in names["inputs"]
    ]
    op, inputs, count = _layer(folder, fed)
    expected = [ElementType.parse(entry["type"]) for entry in names["outputs"]]
    return list(_outputs(node_of(op, inputs), count, expected))


def _layer(folder: Path, fed: Sequence[Array]) -> tuple[Op, list[Array], int]:
    """Return the only layer that computes, its inputs, and the number of its outputs."""
    root = etree.parse(folder / "model.xml").getroot()
    layers = {layer.get("id"): layer for layer in root.find("layers")}
    computing = [layer for layer in layers.values() if layer.get("type") not in _ENDS]
    if len(computing) != 1:
        raise NoOperation("several operations")
    (layer,) = computing
    parameters = [identity for identity, other in layers.items() if other.get("type") == "Parameter"]
    arrays = dict(zip(parameters, fed, strict=True))
    arrays |= {
        name: _constant(folder, other) for name, other in layers.items() if other.get("type") == "Const"
    }
    edges = [edge for edge in root.find("edges") if edge.get("to-layer") == layer.get("id")]
    inputs = [
        arrays[edge.get("from-layer")] for edge in sorted(edges, key=lambda edge: int(edge.get("to-port")))
    ]
    cls = find_operation(layer.get("type"), int(layer.get("version").removeprefix("opset")))
    if cls is None:
        raise NoOperation("an unknown operation")
    data = layer.find("data")
    return cls.parse({} if data is None else dict(data.attrib)), inputs, len(layer.findall("output/port"))


def _constant(folder: Path, layer: Any) -> Array:
    data = layer.find("data").attrib
    start, size = int(data["offset"]), int(data["size"])
    shape = tuple(int(text) for text in data["shape"].split(",") if text.strip())
    element = ElementType.parse(data["element_type"])
    if 0 in shape:
        return np.empty(shape, element.dtype)
    raw = (folder / "model.bin").read_bytes()[start : start + size]
    return from_bytes(np.frombuffer(raw, np.uint8), element, shape)


def _outputs(node: Node, count: int, expected: Sequence[ElementType]) -> Iterator[Array]:
    """Run a node; types that NumPy lacks are cast from and to f32 within the model."""
    import onnx  # only here: most cases have no node

    feeds: dict[str, Array] = {}
    nodes: list[Any] = []
    types = {id(array): _type(ElementType.from_dtype(array.dtype)) for array in node.inputs}
    attributes = {
        name: _type(value) if isinstance(value, ElementType) else value
        for name, value in node.attributes.items()
    }
    for index, array in enumerate(node.inputs):
        feeds[f"x{index}"] = array
        label = ElementType.from_dtype(array.dtype).label
        if array.dtype.isbuiltin != 1 and label != "string":
            feeds[f"x{index}"] = array.astype(np.float32)
            nodes.append(onnx.helper.make_node("Cast", [f"x{index}"], [f"w{index}"], to=types[id(array)]))
    narrow = {name for made in nodes for name in made.output}
    inputs = [f"w{i}" if f"w{i}" in narrow else f"x{i}" for i in range(len(node.inputs))]
    nodes.append(onnx.helper.make_node(node.kind, inputs, [f"y{i}" for i in range(count)], **attributes))
    wide = [
        i
        for i, element in enumerate(expected[:count])
        if element.dtype.isbuiltin != 1 and element is not ElementType.string
    ]
    nodes += [onnx.helper.make_node("Cast", [f"y{i}"], [f"z{i}"], to=onnx.TensorProto.FLOAT) for i in wide]
    outputs = [f"z{i}" if i in wide else f"y{i}" for i in range(count)]
    for array, element in zip(
        _session(nodes, feeds, outputs).run(outputs, feeds), (*expected, *[None] * count), strict=False
    ):
        yield array if element is None else _as_declared(array, element)


def _as_declared(array: Array, element: ElementType) -> Array:
    """Return an output in the type of the case: a narrow one, or an index type, for which ONNX uses i64."""
    if element is ElementType.string:
        return array
    is_narrow, is_index = element.dtype.isbuiltin != 1, array.dtype == np.int64 and element.label == "i32"
    return array.astype(element.dtype) if is_narrow or is_index else array


def _type(element: ElementType) -> int:
    """Return the ONNX number of an element type."""
    from onnx import TensorProto

    if element.label not in TYPES:
        raise NoOperation(f"no type corresponds to {element.label}")
    return int(getattr(TensorProto, TYPES[element.label]))


def _session(nodes: Sequence[Any], feeds: Mapping[str, Array], outputs: Sequence[str]) -> Any:
    import onnx
    import onnxruntime

    declared = [
        onnx.helper.make_tensor_value_info(name, _type(ElementType.from_dtype(array.dtype)), None)
        for name, array in feeds.items()
    ]
    results = [onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = onnx.helper.make_graph(nodes, "case", declared, results)
    opset = onnx.helper.make_opsetid("", OPSET)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as reason:
        if "NOT_IMPLEMENTED" in str(reason) or ("is invalid" in str(reason) and "Type" in str(reason)):
            raise NoOperation("it is not implemented in this type") from None
        raise


def main(folder: Path) -> int:
    """Run a case as a command; return the exit code."""
    try:
        outputs = run(folder)
    except NoOperation as reason:
        print(reason)
        return _UNSUPPORTED
    except IRError as reason:
        print(f"no operation corresponds: {reason.message}")
        return _UNSUPPORTED
    except Exception as reason:
        print(_NOISE.sub("", str(reason).strip().splitlines()[-1]))
        return 1
    for index, array in enumerate(outputs):
        np.save(folder / "outputs" / f"{index}.npy", encode(array, ElementType.from_dtype(array.dtype)))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
