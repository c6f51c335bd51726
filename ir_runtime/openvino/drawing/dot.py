"""Graphs in the language DOT of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._util.escaping import dot_text
from ...ir.graph import IO_TYPES

__all__ = ["dot_of"]


def dot_of(record: dict[str, Any]) -> str:
    """Convert a graph `record` to DOT; bodies are clusters."""
    lines = [f"digraph {dot_text(record['name'])} {{", '  node [shape=box, fontname="sans-serif"];']
    lines += ["  " + line for line in _inside(record, "n")]
    return "\n".join([*lines, "}", ""])


def _inside(record: dict[str, Any], prefix: str) -> Iterator[str]:
    shapes = {}
    for node in record["nodes"]:
        id = f"{prefix}{node['id']}"
        shapes[node["id"]] = [output["shape"] for output in node["outputs"]]
        label = dot_text(node["operation"], node["name"])
        style = ", style=rounded" if node["type"] in IO_TYPES else ""
        yield f"{id} [label={label}{style}];"
        for number, body in enumerate(node["bodies"]):
            yield f"subgraph cluster_{id}_{number} {{"
            yield f"  label={dot_text(node['name'] + '/' + body['name'])};"
            yield from ("  " + line for line in _inside(body, f"{id}_{number}_"))
            yield "}"
    for edge in record["edges"]:
        known = shapes[edge["source"]]
        shape = known[edge["output"]] if edge["output"] < len(known) else ""
        yield f"{prefix}{edge['source']} -> {prefix}{edge['target']} [label={dot_text(shape)}];"
