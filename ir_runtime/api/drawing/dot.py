"""Graphs in the language DOT of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...ir.graph import IO_TYPES
from ...widths import visible

__all__ = ["dot_of"]


def dot_of(record: dict[str, Any]) -> str:
    """Return a graph, as `record` gives it, as DOT; bodies are clusters."""
    lines = [f"digraph {_quoted(record['name'])} {{", '  node [shape=box, fontname="sans-serif"];']
    lines += ["  " + line for line in _inside(record, "n")]
    return "\n".join([*lines, "}", ""])


def _inside(record: dict[str, Any], prefix: str) -> Iterator[str]:
    shapes = {}
    for node in record["nodes"]:
        id = f"{prefix}{node['id']}"
        shapes[node["id"]] = [output["shape"] for output in node["outputs"]]
        label = f"{node['operation']}\\n{_escaped(node['name'])}"
        style = ", style=rounded" if node["type"] in IO_TYPES else ""
        yield f'{id} [label="{label}"{style}];'
        for number, body in enumerate(node["bodies"]):
            yield f"subgraph cluster_{id}_{number} {{"
            yield f"  label={_quoted(node['name'] + '/' + body['name'])};"
            yield from ("  " + line for line in _inside(body, f"{id}_{number}_"))
            yield "}"
    for edge in record["edges"]:
        known = shapes[edge["source"]]
        shape = known[edge["output"]] if edge["output"] < len(known) else ""
        yield f"{prefix}{edge['source']} -> {prefix}{edge['target']} [label={_quoted(shape)}];"


def _escaped(text: str) -> str:
    return visible(text).replace("\\", "\\\\").replace('"', '\\"')


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'
