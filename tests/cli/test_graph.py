"""``ir-runtime graph``, and ``model.graph`` as a networkx graph."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Any

import networkx as nx
import pytest
from click.testing import Result
from harness.nets import Net, looping
from lxml import etree

import ir_runtime
from ir_runtime.openvino.drawing import WIDTH, dot_of, model_explorer, record, svg_of

EXAMPLES = Path(__file__).parents[2] / "examples"
DIGITS = EXAMPLES / "digits" / "digits.xml"
SEGMENTER = EXAMPLES / "segmenter" / "segmenter.xml"

Invoke = Callable[[str], Result]


def of(model: ir_runtime.Model, constants: bool = False) -> dict[str, Any]:
    return record(model._graph, model._values, model.name, constants)


def loop() -> ir_runtime.Model:
    net = looping("4", count=3)
    return ir_runtime.read_model(net.xml(), net.weights)


def graphml(graph: nx.MultiDiGraph) -> nx.MultiDiGraph:
    file = io.BytesIO()
    nx.write_graphml(graph, file)
    file.seek(0)
    return nx.read_graphml(file, int, force_multigraph=True)


def gexf(graph: nx.MultiDiGraph) -> nx.MultiDiGraph:
    file = io.BytesIO()
    nx.write_gexf(graph, file)
    file.seek(0)
    return nx.MultiDiGraph(nx.read_gexf(file, int))


def gml(graph: nx.MultiDiGraph) -> nx.MultiDiGraph:
    return nx.parse_gml("\n".join(nx.generate_gml(graph)), destringizer=int, label="label")


def node_link(graph: nx.MultiDiGraph) -> nx.MultiDiGraph:
    return nx.node_link_graph(json.loads(json.dumps(nx.node_link_data(graph, edges="links"))), edges="links")


@pytest.mark.parametrize("write", [graphml, gexf, gml, node_link])
@pytest.mark.parametrize("path", [DIGITS, SEGMENTER], ids=lambda path: path.stem)
def test_the_writers_of_networkx_save_the_graph(
    path: Path, write: Callable[[nx.MultiDiGraph], nx.MultiDiGraph]
) -> None:
    graph = ir_runtime.read_model(path).graph
    found = write(graph)
    keys = {"name", "type", "operation", "attributes", "outputs", "line"}
    for node, data in graph.nodes(data=True):
        assert {key: found.nodes[node][key] for key in keys} == data
    edges = {(s, t, d["input"], d["output"], d["element"], d["shape"]) for s, t, d in graph.edges(data=True)}
    assert edges == {
        (s, t, d["input"], d["output"], d["element"], d["shape"]) for s, t, d in found.edges(data=True)
    }


def test_the_graph_follows_the_model() -> None:
    model = ir_runtime.read_model(DIGITS)
    before = model.graph
    assert model.graph is before
    model.reshape([2, 1, 8, 8])
    shapes = [data["shape"] for _, _, data in model.graph.out_edges(_input(model), data=True)]
    assert shapes == ["[2,1,8,8]"]


def _input(model: ir_runtime.Model) -> int:
    return next(id for id, data in model.graph.nodes(data=True) if data["type"] == "Parameter")


def test_json_has_the_layers_and_edges_of_the_file(invoke: Invoke) -> None:
    found = json.loads(invoke(f"graph {quote(str(DIGITS))} --format json --constants").stdout)
    model = ir_runtime.read_model(DIGITS)
    assert found["version"] == 1
    assert [node["id"] for node in found["nodes"]] == list(model._graph.layers)
    assert len(found["edges"]) == len(model._graph.edges)
    relu = next(node for node in found["nodes"] if node["type"] == "ReLU")
    assert relu["scope"] == ["strokes", "2"]
    assert [(out["type"], out["shape"]) for out in relu["outputs"]] == [("f32", "[?,24,8,8]")]
    assert relu["line"] == model._graph[relu["id"]].where.line


def test_a_dash_is_stdout(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(f"graph {quote(str(DIGITS))} -o -").stdout == invoke(f"graph {quote(str(DIGITS))}").stdout
    assert invoke(f"report {quote(str(DIGITS))} -o -").stdout.startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == []


def test_constants_are_left_out_unless_asked_for(invoke: Invoke) -> None:
    found = json.loads(invoke(f"graph {quote(str(DIGITS))} --format json").stdout)
    assert "Constant" not in {node["type"] for node in found["nodes"]}
    ids = {node["id"] for node in found["nodes"]}
    assert {edge["source"] for edge in found["edges"]} <= ids


def test_bodies_are_graphs_of_their_layer() -> None:
    found = of(loop())
    body = next(node["bodies"][0] for node in found["nodes"] if node["bodies"])
    assert body["name"] == "body"
    assert {node["type"] for node in body["nodes"]} == {"Parameter", "Add", "Result"}
    assert next(n for n in body["nodes"] if n["type"] == "Add")["outputs"][0]["shape"] == "[4]"


def test_dot_can_be_read(invoke: Invoke) -> None:
    """Check nodes and edges by a pattern, without Graphviz."""
    text = invoke(f"graph {quote(str(DIGITS))}").stdout
    nodes = set(re.findall(r"^ +(n\d+) \[label=\"(?:[^\"\\]|\\.)*\"(?:, style=rounded)?\];$", text, re.M))
    edges = re.findall(r"^ +(n\d+) -> (n\d+) \[label=\"(?:[^\"\\]|\\.)*\"\];$", text, re.M)
    assert len(nodes) == 16
    assert len(edges) == 15
    assert {end for edge in edges for end in edge} <= nodes
    assert len(text.splitlines()) == len(nodes) + len(edges) + 3
    assert 'label="Parameter-1\\nimage", style=rounded' in text


def test_names_that_mean_something_in_dot_are_quoted() -> None:
    net = Net(name="a &quot;b&quot; \\ c")
    net.result(net.op("Abs", net.parameter("x", "2"), name='q"];\\'))
    text = dot_of(of(ir_runtime.read_model(net.xml())))
    assert 'label="Abs-1\\nq\\"];\\\\"' in text
    assert text.startswith('digraph "a \\"b\\" \\\\ c" {')


def test_bodies_are_clusters_in_dot() -> None:
    text = dot_of(of(loop()))
    assert re.search(r'subgraph cluster_n\d_0 \{\n +label="loop/body";', text)
    assert text.count("{") == text.count("}") == 2


def drawing(text: str) -> etree._Element:
    return etree.fromstring(text.encode())


def boxes(root: etree._Element) -> Iterator[tuple[float, float]]:
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        yield float(rect.attrib["x"]), float(rect.attrib["y"])


@pytest.mark.parametrize("path", [DIGITS, SEGMENTER], ids=lambda path: path.stem)
def test_svg_has_a_box_for_each_layer_and_none_overlap(invoke: Invoke, path: Path) -> None:
    root = drawing(invoke(f"graph {quote(str(path))} --format svg").stdout)
    places = list(boxes(root))
    assert len(places) == len(of(ir_runtime.read_model(path))["nodes"])
    rows: dict[float, list[float]] = {}
    for x, y in places:
        rows.setdefault(y, []).append(x)
    for row in rows.values():
        assert all(b - a >= WIDTH for a, b in pairwise(sorted(row)))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert all(0 <= x <= width - WIDTH and 0 <= y <= height for x, y in places)


def test_edges_go_down_in_svg() -> None:
    root = drawing(svg_of(of(ir_runtime.read_model(SEGMENTER))))
    paths = [path.attrib["d"] for path in root.iter("{http://www.w3.org/2000/svg}path")]
    assert paths
    for path in paths:
        heights = [float(y) for y in re.findall(r",(-?[\d.]+)", path)]
        assert heights == sorted(heights)


def test_names_are_text_in_svg() -> None:
    net = Net(name="&lt;b>&amp;")
    net.result(net.op("Abs", net.parameter("x", "2"), name="<script>alert(1)</script>"))
    root = drawing(svg_of(of(ir_runtime.read_model(net.xml()))))
    assert not [each for each in root.iter() if "script" in each.tag]


def test_characters_that_are_not_printed_are_written_out() -> None:
    """For example, one that reverses the text direction."""
    net = Net(name="to\u202egether")
    net.result(net.op("Abs", net.parameter("x", "2"), name="a\u202eb"))
    found = of(ir_runtime.read_model(net.xml()))
    for text in (dot_of(found), svg_of(found)):
        assert "\u202e" not in text
        assert "a\\" in text
        assert "u202eb" in text
        assert "u202egether" in text


def test_graphs_with_a_cycle_are_drawn() -> None:
    net = Net()
    x = net.parameter("x", "2", out="FP32 2")
    a = net.op("Add", x, x, name="a", out="FP32 2")
    b = net.op("Abs", a, name="b", out="FP32 2")
    net.edges = [edge for edge in net.edges if edge[2:] != (a.layer, 1)]
    net.edges.append((b.layer, b.port, a.layer, 1))
    net.result(b)
    found = of(ir_runtime.read_model(net.xml(), strict=False))
    assert len(list(boxes(drawing(svg_of(found))))) == 4


def test_model_explorer_has_graph_collections() -> None:
    found = model_explorer(of(loop(), constants=True))
    (graph,) = found["graphCollections"][0]["graphs"]
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert len(nodes) == len(graph["nodes"])
    assert all(edge["sourceNodeId"] in nodes for node in nodes.values() for edge in node["incomingEdges"])
    twice = next(node for node in nodes.values() if node["label"] == "Add")
    assert twice["namespace"] == "loop:body"
    assert all(isinstance(each["value"], str) for node in nodes.values() for each in node["attrs"])
    relu = next(
        node
        for node in model_explorer(of(ir_runtime.read_model(DIGITS)))["graphCollections"][0]["graphs"][0][
            "nodes"
        ]
        if node["label"] == "ReLU"
    )
    assert relu["namespace"] == "strokes/2"
    assert relu["outputsMetadata"] == [
        {"id": "0", "attrs": [{"key": "tensor_shape", "value": "f32[?,24,8,8]"}]}
    ]


@pytest.mark.parametrize("form", ["dot", "svg", "json", "model-explorer"])
def test_files_are_written(invoke: Invoke, tmp_path: Path, form: str) -> None:
    found = invoke(f"graph {quote(str(DIGITS))} --format {form} -o {quote(str(tmp_path))}/out")
    assert (found.exit_code, found.stdout) == (0, "")
    assert (tmp_path / "out").read_text() == invoke(f"graph {quote(str(DIGITS))} --format {form}").stdout


def test_a_folder_that_is_not_there_is_named(invoke: Invoke) -> None:
    found = invoke(f"graph {quote(str(DIGITS))} -o missing/out.dot")
    assert found.exit_code == 2
    assert "missing" in found.stderr
