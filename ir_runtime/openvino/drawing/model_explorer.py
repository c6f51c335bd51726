"""Graphs in the JSON of Model Explorer: https://github.com/google-ai-edge/model-explorer/wiki/6.-Develop-Adapter-Extension."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["model_explorer"]


def model_explorer(record: dict[str, Any]) -> dict[str, Any]:
    """Convert a graph `record` to graph collections; namespaces are the scopes of names."""
    name = record["name"] or "model"
    graph = {"id": name, "nodes": list(_nodes(record, "", ""))}
    return {"graphCollections": [{"label": name, "graphs": [graph]}]}


def _nodes(record: dict[str, Any], prefix: str, within: str) -> Iterator[dict[str, Any]]:
    incoming: dict[int, list[dict[str, str]]] = {}
    for edge in record["edges"]:
        incoming.setdefault(edge["target"], []).append(
            {
                "sourceNodeId": f"{prefix}{edge['source']}",
                "sourceNodeOutputId": str(edge["output"]),
                "targetNodeInputId": str(edge["input"]),
            }
        )
    for node in record["nodes"]:
        space = "/".join(filter(None, [within, *(part.replace("/", "_") for part in node["scope"])]))
        attributes = {"name": node["name"], "operation": node["operation"], **node["attributes"]}
        yield {
            "id": f"{prefix}{node['id']}",
            "label": node["type"],
            "namespace": space,
            "incomingEdges": incoming.get(node["id"], []),
            "attrs": [{"key": key, "value": value} for key, value in attributes.items()],
            "outputsMetadata": [
                {
                    "id": str(number),
                    "attrs": [{"key": "tensor_shape", "value": output["type"] + output["shape"]}],
                }
                for number, output in enumerate(node["outputs"])
            ],
        }
        for number, body in enumerate(node["bodies"]):
            place = "/".join(filter(None, [space, f"{node['name'].replace('/', '_')}:{body['name']}"]))
            yield from _nodes(body, f"{prefix}{node['id']}/{number}/", place)
