"""The graph: its networkx interface, immutability, and the order of layers."""

from __future__ import annotations

import dataclasses
import gc
import random
import weakref
from types import MappingProxyType

import networkx as nx
import pytest
from harness.nets import End, Net

import ir_runtime as ir
from ir_runtime.ir.graph import Edge, Graph, Layer, Port, PortSpec
from ir_runtime.ir.shape import PartialShape


def twice() -> ir.Model:
    """An input added to itself, then reduced."""
    net = Net()
    x = net.parameter("x", "2,3", out="FP32 2 3")
    both = net.op("Add", x, x, out="FP32 2 3", name="both")
    net.result(
        net.op("ReduceSum", both, net.constant([1], name="axes"), out="FP32 2", name="sum", keep_dims=False)
    )
    return ir.read_model(net.xml(), net.weights)


def test_it_is_a_networkx_graph() -> None:
    graph = twice().graph
    assert isinstance(graph, nx.MultiDiGraph)
    assert list(graph.nodes) == [0, 1, 2, 3, 4]
    assert [graph.nodes[n]["name"] for n in graph] == ["x", "both", "axes", "sum", "result"]
    assert sorted(graph.edges(keys=True, data="output")) == [
        (0, 1, 0, 0), (0, 1, 1, 0), (1, 3, 0, 0), (2, 3, 1, 0), (3, 4, 0, 0),
    ]  # fmt: skip
    assert nx.is_directed_acyclic_graph(graph)
    assert nx.ancestors(graph, 4) == {0, 1, 2, 3}


def test_the_graph_for_users_is_the_one_that_layers_are_read_into() -> None:
    """Inference and passes walk its edges; no copy is made for networkx."""
    model = twice()
    assert model.graph is model._graph.network
    assert all(model._graph.ancestors([n]) == nx.ancestors(model.graph, n) | {n} for n in model.graph)
    assert [(s.layer, t.layer, t.number, s.number) for s, t in model._graph.edges] == list(
        model.graph.edges(keys=True, data="output")
    )


def test_models_with_one_graph_describe_their_own_shapes() -> None:
    model = twice()
    other, graph = model.clone(), model.graph
    other.reshape([4, 3])
    assert [g.nodes[1]["outputs"] for g in (graph, other.graph, model.graph)] == [
        "f32[2,3]", "f32[4,3]", "f32[2,3]",
    ]  # fmt: skip
    assert model.graph is graph
    assert other.graph is other._graph.network


def test_models_leave_no_cycles_behind() -> None:
    """Programs that read one model after another free each at once."""
    model = twice()
    assert model._graph.order
    assert model._graph.readers(model._graph.sources(model._graph[1])[0])
    gone = [weakref.ref(model._graph.network), weakref.ref(model)]
    gc.collect()
    gc.disable()
    try:
        del model
        assert [ref() for ref in gone] == [None, None]
    finally:
        gc.enable()


def test_edges_are_keyed_by_input_and_know_the_output() -> None:
    net = Net()
    parts = net.layer("Split", [net.parameter("x", "4"), net.constant(0)], ["FP32 2", "FP32 2"], num_splits=2)
    net.result(net.op("Concat", parts[1], parts[0], parts[1], out="FP32 6", axis=0))
    graph = ir.read_model(net.xml(), net.weights).graph
    assert {key: data["output"] for _, _, key, data in graph.edges(2, keys=True, data=True)} == {
        0: 1,
        1: 0,
        2: 1,
    }


def test_it_is_frozen() -> None:
    graph = twice().graph
    assert nx.is_frozen(graph)
    for change in (
        lambda: graph.add_edge(0, 4),
        lambda: graph.add_node(9),
        lambda: graph.remove_node(0),
        lambda: graph.remove_edge(0, 1, 0),
    ):
        with pytest.raises(nx.NetworkXError):
            change()


def test_layers_cannot_be_changed() -> None:
    layer = twice()._graph[3]
    assert isinstance(layer, Layer)
    for thing, name in ((layer, "name"), (layer.outputs[0], "names"), (layer.where, "line")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, name, "other")
    with pytest.raises(AttributeError, match="immutable"):
        layer.op.keep_dims = True
    with pytest.raises(TypeError):
        layer.attributes["keep_dims"] = "true"
    assert isinstance(layer.rt_info, MappingProxyType)
    assert isinstance(layer.inputs, tuple)


def test_attributes_are_typed_and_as_written() -> None:
    layer = twice()._graph[3]
    assert layer.op.keep_dims is False
    assert layer.attributes == {"keep_dims": "false"}
    assert layer.op.attributes() == {"keep_dims": False}
    assert (layer.type, layer.version, layer.where.line) == ("ReduceSum", "opset1", 7)
    assert (layer.inputs[0].id, layer.outputs[0].id, layer.outputs[0].line) == (0, 2, 7)
    assert layer.outputs[0].type.shape == PartialShape([2])
    assert str(layer) == "'sum' (ReduceSum-1)"


def plain(number: int, inputs: int = 1) -> Layer:
    ports = tuple(PortSpec(i) for i in range(inputs))
    return Layer(number, f"n{number}", "Any", "opset1", None, ir.Location(), ports, (PortSpec(9),))


def test_order_is_topological_with_lower_ids_first() -> None:
    edges = [Edge(Port(5, 0), Port(1, 0)), Edge(Port(4, 0), Port(0, 0)), Edge(Port(1, 0), Port(0, 1))]
    graph = Graph([plain(n, 2) for n in (5, 0, 4, 1)], edges)
    assert [layer.id for layer in graph] == [4, 5, 1, 0]
    assert len(graph) == 4
    assert graph[1].name == "n1"


def test_order_does_not_depend_on_how_edges_come() -> None:
    rng = random.Random(0)
    edges = [Edge(Port(a, 0), Port(b, a)) for b in range(30) for a in rng.sample(range(b), min(b, 3))]
    found = set()
    for _ in range(5):
        rng.shuffle(edges)
        found.add(tuple(layer.id for layer in Graph([plain(n, 30) for n in range(30)], edges)))
    assert len(found) == 1
    (order,) = found
    assert all(order.index(e.source.layer) < order.index(e.target.layer) for e in edges)


def test_sources_and_readers() -> None:
    graph = Graph([plain(0, 0), plain(1, 3)], [Edge(Port(0, 0), Port(1, 2)), Edge(Port(0, 0), Port(1, 0))])
    assert graph.sources(graph[1]) == (Port(0, 0), None, Port(0, 0))
    assert graph.readers(Port(0, 0)) == (Port(1, 0), Port(1, 2))
    assert graph.readers(Port(1, 0)) == ()
    assert graph.readers(Port(9, 0)) == (), "a layer of another graph"


def test_cycles() -> None:
    edges = [Edge(Port(a, 0), Port(b, 0)) for a, b in ((0, 1), (1, 2), (2, 0), (3, 4))]
    graph = Graph([plain(n, 2) for n in range(5)], [*edges, Edge(Port(2, 0), Port(4, 1))])
    assert [sorted(layer.id for layer in ring) for ring in graph.cycles()] == [[0, 1, 2]]
    assert [layer.id for layer in graph] == [3], "what is on or behind the ring has no order"
    assert [layer.id for layer in graph.walk] == [3, 0, 1, 2, 4], "but all can be walked through"
    assert Graph([plain(0)], []).cycles() == []


def test_every_knot_has_its_cycle() -> None:
    edges = [Edge(Port(a, 0), Port(b, 0)) for a, b in ((0, 0), (1, 2), (2, 1), (2, 3))]
    graph = Graph([plain(n, 2) for n in range(4)], edges)
    assert [sorted(layer.id for layer in ring) for ring in graph.cycles()] == [[0], [1, 2]]


def test_long_chains_need_no_recursion() -> None:
    net = Net()
    end: End = net.parameter("x", "1")
    for _ in range(3000):
        end = net.op("ReLU", end, out="FP32 1")
    net.result(end)
    assert len(ir.read_model(net.xml()).get_ordered_ops()) == 3002


def test_a_graph_contains_its_own_layers_only() -> None:
    graph, other = twice()._graph, twice()._graph
    assert all(layer in graph for layer in graph)
    assert graph[1] not in other
    assert dataclasses.replace(graph[1]) not in graph
    assert 1 not in graph


def test_an_inserted_layer_is_located_at_the_one_beside_it() -> None:
    graph = twice()._graph
    beside, op = graph[1], graph[3].op
    assert op is not None
    layer = Layer.inserted(7, "more", op, beside.where, (PortSpec(0),), (PortSpec(1),))
    assert (layer.id, layer.name, layer.type, layer.version) == (7, "more", "ReduceSum", "opset1")
    assert layer.where == dataclasses.replace(beside.where, layer="more", operation="ReduceSum-1")
    assert layer.operation == "ReduceSum-1"
    unknown = dataclasses.replace(layer, where=dataclasses.replace(layer.where, operation=""))
    assert unknown.operation == "ReduceSum"
