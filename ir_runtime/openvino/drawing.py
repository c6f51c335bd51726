"""Conversion of model graphs to plain data, and to Graphviz DOT, SVG and Model Explorer JSON."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from .._util.escaping import dot_text, markup_text, shown
from ..analysis.infer import Inferred
from ..ir.graph import IO_TYPES, Graph, Layer, Port
from ..ir.tensor import Value
from ..report.names import scope_of

# Graphs as plain data.

VERSION = 1
"""The version of the JSON schema, increased when a field is removed or changes its meaning."""


def record(graph: Graph, values: Mapping[Port, Value], name: str, constants: bool = True) -> dict[str, Any]:
    """Return a graph as plain data for JSON.

    ``nodes`` have ``id``, ``name``, ``type``, ``operation``, ``line``, ``scope`` (a list of names derived from the
    name of the layer), ``attributes`` (as in the file), ``outputs`` (each with ``type``, ``shape`` and
    ``names``) and ``bodies``, which are graphs of the same form. ``edges`` have ``source``, ``output``, ``target`` and
    ``input``, where ports are numbered from 0.

    Args:
        graph: the layers.
        values: the inferred values of their outputs.
        name: the name of the model or body.
        constants: whether to include constants.
    """
    layers = drawn_layers(graph, constants)
    ids = {layer.id for layer in layers}
    edges = [
        {"source": s.layer, "output": s.number, "target": t.layer, "input": t.number}
        for s, t in graph.edges
        if s.layer in ids
    ]
    nodes = [_node(layer, values, constants) for layer in layers]
    return {"version": VERSION, "name": name, "nodes": nodes, "edges": edges}


def drawn_layers(graph: Graph, constants: bool) -> list[Layer]:
    """Return the layers in file order, without constants unless requested."""
    return [layer for layer in graph.layers.values() if constants or layer.type != "Constant"]


def _node(layer: Layer, values: Mapping[Port, Value], constants: bool) -> dict[str, Any]:
    return {
        "id": layer.id,
        "name": layer.name,
        "type": layer.type,
        "operation": layer.where.operation or layer.type,
        "line": layer.where.line,
        "scope": list(scope_of(layer.name) or ()),
        "attributes": dict(layer.attributes),
        "outputs": [
            {"type": type, "shape": shape, "names": list(spec.names)}
            for (type, shape), spec in zip(_types(layer, values), layer.outputs, strict=False)
        ],
        "bodies": [
            record(body.graph, _values_inside(values, layer, body.name), body.name, constants)
            for body in layer.bodies()
        ],
    }


def _values_inside(values: Mapping[Port, Value], layer: Layer, body: str) -> Mapping[Port, Value]:
    return values.bodies.get((layer.id, body), {}) if isinstance(values, Inferred) else {}


def _types(layer: Layer, values: Mapping[Port, Value]) -> Iterator[tuple[str, str]]:
    for port in layer.output_ports:
        value = values.get(port)
        yield ("dynamic", "[...]") if value is None else (value.element.label, str(value.shape))


def describe(graph: Graph, values: Mapping[Port, Value]) -> None:
    """Annotate the nodes and edges of ``graph.network`` with layers and tensors, for use with networkx.

    Annotations are strings and numbers, which every writer of networkx can save. Nodes have ``name``, ``type``,
    ``operation``, ``attributes``, ``outputs`` and ``line``, edges ``output``, ``input``, ``element`` and ``shape``.
    """
    types = {layer.id: list(_types(layer, values)) for layer in graph.layers.values()}
    for id, layer in graph.layers.items():
        described: dict[str, object] = graph.network.nodes[id]
        described.update(
            name=layer.name,
            type=layer.type,
            operation=layer.where.operation or layer.type,
            attributes=" ".join(f"{key}={text}" for key, text in layer.attributes.items()),
            outputs=" ".join(f"{element}{shape}" for element, shape in types[id]),
        )
        if layer.where.line is not None:
            described["line"] = layer.where.line
    for source, target, number, output in graph.network.edges(keys=True, data="output"):
        element, shape = types[source][output] if output < len(types[source]) else ("", "")
        graph.network.edges[source, target, number].update(input=number, element=element, shape=shape)


# Graphviz DOT.


def dot_of(record: dict[str, Any]) -> str:
    """Convert a graph `record` to DOT, with bodies as clusters."""
    lines = [f"digraph {dot_text(record['name'])} {{", '  node [shape=box, fontname="sans-serif"];']
    lines += ["  " + line for line in _dot_lines(record, "n")]
    return "\n".join([*lines, "}", ""])


def _dot_lines(record: dict[str, Any], prefix: str) -> Iterator[str]:
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
            yield from ("  " + line for line in _dot_lines(body, f"{id}_{number}_"))
            yield "}"
    for edge in record["edges"]:
        outputs = shapes[edge["source"]]
        shape = outputs[edge["output"]] if edge["output"] < len(outputs) else ""
        yield f"{prefix}{edge['source']} -> {prefix}{edge['target']} [label={dot_text(shape)}];"


# SVG: layered drawing, with layers ranked by their longest path from an input (Sugiyama, Tagawa & Toda 1981).

WIDTH, HEIGHT, GAP, RISE = 190, 40, 20, 36
_SWEEPS = 4
_LETTERS = 28
_STYLE = (
    "text{font:12px sans-serif;text-anchor:middle;fill:#111}.s{font-size:10px;fill:#555}"
    "rect{fill:#eef2fb;stroke:#5b6b8c}path{fill:none;stroke:#8a94a8}"
    "@media(prefers-color-scheme:dark){text{fill:#eee}.s{fill:#aaa}rect{fill:#243049}svg{background:#111}}"
)
_Place = tuple[float, float]


def svg_of(record: dict[str, Any]) -> str:
    """Convert a graph `record` to SVG, without bodies.

    An edge across several ranks gets a position in each of them, so that it does not cross boxes.
    """
    nodes = {node["id"]: node for node in record["nodes"]}
    edges = sorted({(edge["source"], edge["target"]) for edge in record["edges"]})
    rank = _ranks(nodes, edges)
    chains = [_chain(source, target, rank) for source, target in edges]
    links = [pair for chain in chains for pair in pairwise(chain)]
    places, width = _places(_rows(rank, chains), links)
    height = (max(rank.values(), default=0) + 1) * (HEIGHT + RISE) + RISE
    parts = [_path([places[point] for point in chain]) for chain in chains]
    parts += [text for id, node in nodes.items() for text in _box(node, places[id])]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}"><title>{markup_text(shown(record["name"]))}</title><style>{_STYLE}</style>'
        f"{''.join(parts)}</svg>\n"
    )


def _ranks(nodes: Mapping[int, Any], edges: Sequence[tuple[int, int]]) -> dict[Hashable, int]:
    """Rank nodes by the longest path from an input; all nodes have rank 0 if the graph has a cycle."""
    import networkx as nx

    graph = nx.DiGraph(edges)
    graph.add_nodes_from(nodes)
    rank: dict[Hashable, int] = dict.fromkeys(nodes, 0)
    if nx.is_directed_acyclic_graph(graph):
        for id in nx.topological_sort(graph):
            rank[id] = max((rank[before] + 1 for before in graph.predecessors(id)), default=0)
        for id in nodes:  # nodes without inputs are placed just above their first consumer
            if not graph.in_degree(id) and graph.out_degree(id):
                rank[id] = min(rank[after] for after in graph.successors(id)) - 1
    return rank


def _chain(source: int, target: int, rank: dict[Hashable, int]) -> list[Hashable]:
    """Return the points of an edge: its ends, and a point in each rank in between, which is added to ``rank``."""
    between = [(source, target, level) for level in range(rank[source] + 1, rank[target])]
    rank.update({point: point[2] for point in between})
    return [source, *between, target]


def _rows(rank: Mapping[Hashable, int], chains: Sequence[Sequence[Hashable]]) -> list[list[Hashable]]:
    rows: list[list[Hashable]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    for node, level in rank.items():
        rows[level].append(node)
    return rows


def _places(
    rows: list[list[Hashable]], links: Sequence[tuple[Hashable, Hashable]]
) -> tuple[dict[Hashable, _Place], float]:
    """Order rows by the mean positions of neighbours in alternating sweeps; return all centres and the total width."""
    above: dict[Hashable, list[Hashable]] = {}
    below: dict[Hashable, list[Hashable]] = {}
    for source, target in links:
        above.setdefault(target, []).append(source)
        below.setdefault(source, []).append(target)
    x: dict[Hashable, float] = {}
    for row in rows:
        _spread(row, x)
    for _ in range(_SWEEPS):
        for order, neighbours in ((rows, above), (rows[::-1], below)):
            for row in order:
                means = {node: _mean(node, neighbours, x) for node in row}
                row.sort(key=means.__getitem__)
                _spread(row, x)
    left = min(x.values(), default=0.0) - WIDTH / 2 - GAP
    width = max(x.values(), default=0.0) + WIDTH / 2 + GAP - left
    level = {node: number for number, row in enumerate(rows) for node in row}
    return {e: (at - left, RISE + HEIGHT / 2 + level[e] * (HEIGHT + RISE)) for e, at in x.items()}, width


def _mean(
    node: Hashable, neighbours: Mapping[Hashable, list[Hashable]], x: Mapping[Hashable, float]
) -> float:
    near = [x[other] for other in neighbours.get(node, ())]
    return sum(near) / len(near) if near else x[node]


def _spread(row: Sequence[Hashable], x: dict[Hashable, float]) -> None:
    """Store in ``x`` the centre of each item of a row: items are placed side by side, centred at 0.

    Edges that pass through the row are narrower than boxes.
    """
    widths = [GAP if isinstance(item, tuple) else WIDTH for item in row]
    at = -(sum(widths) + GAP * (len(row) - 1)) / 2
    for item, width in zip(row, widths, strict=True):
        x[item] = at + width / 2
        at += width + GAP


def _path(points: Sequence[_Place]) -> str:
    text = f"M{points[0][0]:g},{points[0][1] + HEIGHT / 2:g}"
    for (x, y), (to_x, to_y) in pairwise(points):
        start, end = y + HEIGHT / 2, to_y - HEIGHT / 2
        middle = (start + end) / 2
        text += f"L{x:g},{start:g}C{x:g},{middle:g} {to_x:g},{middle:g} {to_x:g},{end:g}"
    return f'<path d="{text}"/>'


def _box(node: dict[str, Any], place: _Place) -> Iterator[str]:
    x, y = place
    shapes = " ".join(output["shape"] for output in node["outputs"])
    yield f'<rect x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH}" height="{HEIGHT}" rx="5">'
    yield f"<title>{markup_text(shown(node['name']))}</title></rect>"
    yield f'<text x="{x:g}" y="{y - 3:g}">{markup_text(_truncate(node["operation"]))}</text>'
    yield f'<text class="s" x="{x:g}" y="{y + 12:g}">{markup_text(_truncate(shapes or node["name"]))}</text>'


def _truncate(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS // 2]}…{text[-_LETTERS // 2 :]}"


# Model Explorer JSON: https://github.com/google-ai-edge/model-explorer/wiki/6.-Develop-Adapter-Extension.


def model_explorer(record: dict[str, Any]) -> dict[str, Any]:
    """Convert a graph `record` to the graph collections of Model Explorer, with scopes as namespaces."""
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
