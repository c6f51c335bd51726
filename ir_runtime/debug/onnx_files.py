"""The files of an ONNX model."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["files_of"]


def files_of(path: str) -> list[Path]:
    """Return an ONNX file and its weight files, as far as readable.

    Args:
        path: the path of the ONNX file.
    """
    try:
        model = import_module("onnx").load(path, load_external_data=False)
    except Exception:  # protobuf raises several kinds of exceptions; running the model reports the error
        return []
    names = {
        entry.value
        for tensor in _tensors(model.graph)
        for entry in tensor.external_data
        if entry.key == "location"
    }
    files = [Path(path), *(Path(path).parent / name for name in sorted(names))]
    return [file for file in files if file.is_file()]


def _tensors(graph: Any) -> Iterator[Any]:
    """Yield the tensors of a graph, including graphs of its nodes."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)
