"""Pictures of graphs: layers in ranks by their longest path from an input (Sugiyama, Tagawa & Toda 1981)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..._util.escaping import markup_text, shown

__all__ = ["svg_of"]

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
    """Draw a graph `record` as SVG, without bodies.

    An edge across several ranks has a position in each, to avoid crossing boxes.
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
    """Return the length of the longest path to each node; nodes on a cycle have rank 0."""
    import networkx as nx

    graph = nx.DiGraph(edges)
    graph.add_nodes_from(nodes)
    rank: dict[Hashable, int] = dict.fromkeys(nodes, 0)
    if nx.is_directed_acyclic_graph(graph):
        for id in nx.topological_sort(graph):
            rank[id] = max((rank[before] + 1 for before in graph.predecessors(id)), default=0)
        for id in nodes:  # nodes without inputs go right above their first consumer
            if not graph.in_degree(id) and graph.out_degree(id):
                rank[id] = min(rank[after] for after in graph.successors(id)) - 1
    return rank


def _chain(source: int, target: int, rank: dict[Hashable, int]) -> list[Hashable]:
    """Return the points of an edge: its ends, and one in each rank between them."""
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
    """Order each row by the mean positions of neighbours, down and up; return the centres."""
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
    """Place the items of a row side by side, centred at 0; passing edges are narrower than boxes."""
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
