"""Folding of graphs: layers without boxes, scopes, and which scopes are expanded."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ir_runtime as ov
from ir_runtime import opset13 as ops
from ir_runtime.report.items import Scopes
from ir_runtime.report.names import scope_of
from ir_runtime.report.scopes import WIDEST, fold


def named(node: ov.Node, name: str) -> ov.Node:
    node.friendly_name = name
    return node


def relu(source: object, name: str) -> ov.Node:
    return named(ops.relu(source), name)


def folded(model: ov.Model) -> Scopes:
    return fold(model._graph, model._values)


def inside(tree: Scopes) -> dict[str, list[str]]:
    """Return the names of the layers with boxes, by the labels of their scopes."""
    items = tree.listing.items
    return {scope.label: [items[index].layer.name for index in scope.layers] for scope in tree.scopes}


def quotients(tree: Scopes) -> list[nx.DiGraph]:
    """Return the graph of the boxes in each scope."""
    scopes, chains = tree.scopes, {}
    for item in tree.listing.items:
        if item.is_drawn:
            chain: list[object] = [] if item.bodies else [item.index]
            at = tree.of[item.index]
            while at >= 0:
                chain.append(f"s{at}")
                at = scopes[at].parent
            chains[item.index] = chain[::-1]
    graphs: dict[object, nx.DiGraph] = {}
    for edge in tree.listing.edges:
        if edge.back or edge.source not in chains or edge.target not in chains:
            continue
        one, other = chains[edge.source], chains[edge.target]
        depth = next(k for k in range(len(one)) if one[: k + 1] != other[: k + 1])
        graphs.setdefault(one[depth - 1], nx.DiGraph()).add_edge(one[depth], other[depth])
    return list(graphs.values())


def test_constants_and_what_only_they_feed_have_no_box() -> None:
    x = ops.parameter([2], np.float32, "x")
    half = ops.convert(ops.constant(np.float16([1, 2])), "f32")
    tree = folded(ov.Model([ops.add(x, half)], [x]))
    drawn = [item.layer.type for item in tree.listing.items if item.is_drawn]
    assert drawn == ["Parameter", "Add", "Result"]


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("__module.model.layer1.0.conv/aten::_convolution/Convolution", ("model", "layer1", "0", "conv")),
        ("model/block1/conv/Conv2D", ("model", "block1", "conv")),
        ("/encoder/layer.0/MatMul", ("encoder", "layer.0")),
        ("aten::cat/Concat", None),
        ("Multiply_13212", None),
        ("SliceAssign_13/Slice", None),
        ("If_3/else_body/block/Relu", ("block",)),
    ],
)
def test_scopes_come_from_names(name: str, scope: tuple[str, ...] | None) -> None:
    assert scope_of(name) == scope


def test_a_layer_without_scope_goes_where_its_neighbours_meet() -> None:
    x = ops.parameter([1, 2], np.float32, "x")
    first = relu(x, "net/a/one")
    second = relu(relu(relu(first, "net/a/two"), "Relu_7"), "net/b/three")
    tree = folded(ov.Model([relu(second, "net/b/four")], [x]))
    assert inside(tree)["net"] == ["Relu_7"]


def test_a_convolution_without_scope_goes_to_its_bias() -> None:
    x = ops.parameter([1, 2, 4, 4], np.float32, "x")
    before = relu(x, "net/block0/relu")
    conv = named(
        ops.convolution(before, np.ones((2, 2, 1, 1), np.float32), [1, 1], [0, 0], [0, 0], [1, 1]),
        "Multiply_1",
    )
    bias = named(ops.add(conv, np.float32(1)), "net/block1/bn/Add")
    tree = folded(ov.Model([relu(relu(bias, "net/block1/relu"), "net/block0/end")], [x]))
    assert "Multiply_1" in inside(tree)["block1"]


def test_scopes_of_one_layer_vanish_and_lone_scopes_are_joined() -> None:
    x = ops.parameter([2], np.float32, "x")
    y = relu(relu(relu(x, "a/b/lone/r"), "a/b/r1"), "a/b/r2")
    labels = [scope.label for scope in folded(ov.Model([y], [x])).scopes]
    assert labels == ["", "a.b"]


def test_a_scope_that_a_path_enters_again_is_split() -> None:
    x = ops.parameter([2], np.float32, "x")
    y = relu(relu(x, "d/one"), "d/two")
    y = relu(relu(y, "e/one"), "e/two")
    y = relu(relu(y, "d/three"), "d/four")
    tree = folded(ov.Model([y], [x]))
    found = inside(tree)
    assert found["d (1)"] == ["d/one", "d/two"]
    assert found["d (2)"] == ["d/three", "d/four"]


def test_edges_that_carry_shapes_split_nothing() -> None:
    x = ops.parameter([-1, 2], np.float32, "x")
    y = relu(relu(x, "d/one"), "d/two")
    size = named(ops.gather(named(ops.shape_of(y), "e/shape"), np.int64([0]), np.int64(0)), "e/size")
    y = relu(named(ops.reshape(y, ops.concat([size, np.int64([2])], 0), False), "d/reshape"), "d/three")
    found = inside(folded(ov.Model([y], [x])))
    assert found["d"] == ["d/one", "d/two", "d/reshape", "d/three"]


def test_arithmetic_on_shapes_has_no_box_at_first() -> None:
    x = ops.parameter([-1, 2], np.float32, "x")
    size = ops.gather(ops.shape_of(x), np.int64([0]), np.int64(0))
    target = ops.concat([size, np.int64([2, 1])], 0)
    tree = folded(ov.Model([ops.reshape(x, target, False)], [x]))
    assert [i.layer.type for i in tree.listing.items if i.is_shape] == ["ShapeOf", "Gather", "Concat"]
    assert [i.layer.type for i in tree.listing.items if i.is_drawn] == ["Parameter", "Reshape", "Result"]


def test_what_is_large_is_no_arithmetic_on_shapes() -> None:
    x = ops.parameter([-1], np.float32, "x")
    length = ops.squeeze(ops.shape_of(x), np.int64(0))
    tree = folded(ov.Model([ops.range(np.int64(0), length, np.int64(1), "i64")], [x]))
    assert "Range" in [i.layer.type for i in tree.listing.items if i.is_drawn]


def loop() -> ov.Model:
    x, carried = ops.parameter([3, 2], np.float32, "x"), ops.parameter([1, 2], np.float32, "sum")
    part = ops.parameter([1, 2], np.float32, "part")
    total = named(ops.add(carried, part), "total")
    body = ov.Model([ops.result(total)], [carried, part], "body")
    found = ops.tensor_iterator()
    found.set_body(body)
    found.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 0)
    found.set_merged_input(
        carried, ops.constant(np.zeros((1, 2), np.float32)).output(0), body.results[0].output(0)
    )
    last = found.get_iter_value(body.results[0].output(0), -1)
    return ov.Model([ops.relu(last)], [x])


def test_bodies_belong_to_their_layer_and_their_ends_are_joined_to_its_ports() -> None:
    tree = folded(loop())
    items = tree.listing.items
    owner = next(item for item in items if item.layer.type == "TensorIterator")
    scope = next(scope for scope in tree.scopes if scope.owner == owner.index)
    assert sorted(items[i].layer.type for i in scope.layers) == ["Add", "Parameter", "Parameter", "Result"]
    ends = {(items[e.source].layer.type, items[e.target].layer.type, e.back) for e in tree.listing.edges}
    assert ("Parameter", "Parameter", False) in ends, "the input of the model leads to that of the body"
    assert ("Result", "ReLU", False) in ends, "the output of the body leads to the reader outside"
    assert ("Result", "Parameter", True) in ends, "what is carried from one iteration to the next"
    assert not any(owner.index in (e.source, e.target) for e in tree.listing.edges)


def test_both_bodies_of_an_if_are_scopes() -> None:
    x, flag = ops.parameter([2], np.float32, "x"), ops.parameter([], bool, "flag")
    bodies = []
    for _ in range(2):
        inner = ops.parameter([2], np.float32, "inner")
        bodies.append((ov.Model([ops.result(ops.relu(inner))], [inner], "body"), inner))
    found = ops.if_op(flag)
    found.set_then_body(bodies[0][0])
    found.set_else_body(bodies[1][0])
    found.set_input(x.output(0), bodies[0][1], bodies[1][1])
    output = found.set_output(bodies[0][0].results[0], bodies[1][0].results[0])
    model = ov.Model([ops.result(output)], [flag, x])
    labels = [scope.label for scope in folded(model).scopes]
    assert labels[2:] == ["then", "else"]
    assert labels[1].startswith("If ")
    found.friendly_name = "If"
    assert [scope.label for scope in folded(model).scopes][1] == "If", "not twice"


def test_wide_scopes_are_cut_into_parts_in_order() -> None:
    x = ops.parameter([2], np.float32, "x")
    y = x
    for number in range(4 * WIDEST):
        y = relu(y, f"r{number}")
    tree = folded(ov.Model([y], [x]))
    assert max(scope.width for scope in tree.scopes) <= WIDEST
    sizes = [scope.size for scope in tree.scopes[1:]]
    assert sum(sizes) == 4 * WIDEST + 2
    assert all(nx.is_directed_acyclic_graph(graph) for graph in quotients(tree))


def test_the_largest_scopes_are_open_while_the_picture_is_small() -> None:
    x = ops.parameter([2], np.float32, "x")
    y = x
    for block in range(8):
        for number in range(6):
            operation = ops.relu if number != block else ops.exp  # no block is a copy of another
            y = named(operation(y), f"net/block{block}/r{number}")
    tree = folded(ov.Model([y], [x]))
    shown = sum(scope.width for scope in tree.scopes if scope.open)
    assert {scope.label for scope in tree.scopes if scope.open} >= {"", "net"}
    assert 20 <= shown <= 32


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 30), st.sampled_from("abc"), st.sampled_from("xyz")),
        max_size=24,
    )
)
def test_no_scope_is_on_a_cycle(layers: list[tuple[int, int, str, str]]) -> None:
    x = ops.parameter([2], np.float32, "x")
    nodes = [x]
    for number, (one, other, outer, inner) in enumerate(layers):
        sources = nodes[one % len(nodes)], nodes[other % len(nodes)]
        nodes.append(named(ops.add(*sources), f"{outer}/{inner}/n{number}"))
    tree = folded(ov.Model([ops.result(node) for node in nodes[1:]] or [x], [x]))
    assert all(nx.is_directed_acyclic_graph(graph) for graph in quotients(tree))
    placed = [index for scope in tree.scopes for index in scope.layers]
    assert sorted(placed) == [item.index for item in tree.listing.items if item.is_drawn]


def test_arithmetic_of_masks_and_indices_is_one_scope() -> None:
    ids = ops.parameter([1, 8], np.int64, "ids")
    mask: ov.Node = ids
    for number in range(4):
        mask = ops.add(mask, np.int64(number))
    data = ops.parameter([8, 4], np.float32, "data")
    found = ops.gather(ops.relu(data), mask, np.int64(0))
    model = ov.Model([ops.exp(found)], [ids, data])
    tree = fold(model._graph, model._values)
    (scope,) = tree.scopes[1:]
    assert (scope.label, scope.size, scope.open) == ("masks and indices", 4, True)
    assert {tree.listing.items[index].layer.type for index in scope.layers} == {"Add"}


def test_small_scopes_and_masks_stay_closed_at_first() -> None:
    ids = ops.parameter([1, 8], np.int64, "ids")
    data: ov.Node = ops.parameter([1, 8], np.float32, "data")
    mask: ov.Node = ids
    for number in range(8):
        mask = named(ops.add(mask, np.int64(number)), f"masks/{number}")
    y = named(ops.select(ops.equal(mask, np.int64(9)), data, np.float32(0)), "use/select")
    for scope, count in (("small", 2), ("large", 20), ("other", 30)):
        for number in range(count):
            y = relu(y, f"{scope}/{number}")
    opened = {scope.label for scope in folded(ov.Model([y], [ids, data])).scopes if scope.open}
    assert opened == {"", "large"}, "the other one is too large for the picture"


def blocks(count: int, odd: int = -1) -> ov.Model:
    """Repeated residual blocks with Reshapes by shape arithmetic; one may differ in an attribute."""
    x = ops.parameter([-1, 8], np.float32, "x")
    y: ov.Node = ops.exp(x)
    for block in range(count):
        weights = ops.constant(np.full((8, 8), block, np.float32))
        product = named(ops.matmul(y, weights, False, block == odd), f"net/layer/{block}/product")
        y = named(ops.add(relu(product, f"net/layer/{block}/relu"), y), f"net/layer/{block}/sum")
        y = named(ops.reshape(y, ops.shape_of(product), False), f"net/layer/{block}/reshape")
    return ov.Model([relu(relu(y, "net/head/one"), "net/head/two")], [x])


def copies(tree: Scopes) -> dict[str, list[str]]:
    return {
        scope.title: [tree.scopes[number].title for number in scope.scopes]
        for scope in tree.scopes
        if scope.copies
    }


def test_repeated_blocks_are_one_box_with_their_count() -> None:
    tree = folded(blocks(12))
    assert copies(tree) == {"12 × layer": [f"layer.{number}" for number in range(12)]}
    names = [item.layer.name for item in tree.listing.items]
    twins = {names[index]: names[first] for index, first in tree.twins.items()}
    assert twins["net/layer/7/product"] == "net/layer/0/product"
    assert len(twins) == 11 * 4
    assert all(nx.is_directed_acyclic_graph(graph) for graph in quotients(tree))
    assert [scope.parent < number for number, scope in enumerate(tree.scopes)] == [True] * len(tree.scopes)


def test_copies_stay_in_one_box_unless_the_picture_would_be_tiny() -> None:
    (repeated,) = [scope for scope in folded(blocks(12)).scopes if scope.copies]
    assert repeated.open, "else there would be six boxes"
    x = ops.parameter([2], np.float32, "x")
    y: ov.Node = x
    for number in range(10):
        y = named((ops.relu, ops.exp)[number % 2](y), f"before/{number}")
    for block in range(4):
        y = relu(relu(y, f"net/block{block}/one"), f"net/block{block}/two")
    (repeated,) = [scope for scope in folded(ov.Model([y], [x])).scopes if scope.copies]
    assert (repeated.title, repeated.open) == ("4 × net", False)


def test_a_block_that_differs_in_an_attribute_is_seen_beside_the_copies() -> None:
    tree = folded(blocks(9, odd=4))
    assert copies(tree) == {
        "4 × layer (0–3)": [f"layer.{number}" for number in range(4)],
        "4 × layer (5–8)": [f"layer.{number}" for number in range(5, 9)],
    }
    assert not copies(folded(blocks(2)))


def test_blocks_between_which_a_layer_stands_are_no_copies_in_one_box() -> None:
    """A single box would be on a cycle."""
    x = ops.parameter([2], np.float32, "x")
    y: ov.Node = x
    for block in range(6):
        y = relu(relu(y, f"block{block}/one"), f"block{block}/two")
        y = named(ops.exp(y), "between") if block == 2 else y
    tree = folded(ov.Model([y], [x]))
    assert [len(labels) for labels in copies(tree).values()] == [3, 3]
    assert all(nx.is_directed_acyclic_graph(graph) for graph in quotients(tree))


def test_names_that_tell_more_than_a_number_are_not_collapsed() -> None:
    x = ops.parameter([2], np.float32, "x")
    sides = [relu(relu(x, f"{name}/one"), f"{name}/two") for name in ("query", "key", "value")]
    assert not copies(folded(ov.Model([ops.concat(sides, 0)], [x])))


def test_masks_that_one_block_refines_for_all_are_no_part_of_it() -> None:
    ids = ops.parameter([1, 8], np.int64, "ids")
    data = ops.parameter([1, 8], np.float32, "data")
    mask: ov.Node = ids
    for number in range(4):
        mask = named(ops.add(mask, np.int64(number)), f"net/mask{number}")
    mask = named(ops.equal(mask, np.int64(9)), "net/layer/0/equal")
    y: ov.Node = ops.exp(data)
    for block in range(3):
        y = named(ops.select(mask, y, np.float32(0)), f"net/layer/{block}/select")
        y = relu(y, f"net/layer/{block}/relu")
    tree = folded(ov.Model([y], [ids, data]))
    assert list(copies(tree)) == ["3 × layer"]
    (masks,) = [scope for scope in tree.scopes if scope.label == "masks and indices"]
    assert masks.size == 5


def detector(decoding: int, wraps: bool = False) -> ov.Model:
    """A backbone of 60 layers in two modules, and unnamed layers that decode its output, optionally read by a module."""
    x = ops.parameter([2], np.float32, "x")
    y: ov.Node = x
    for number in range(60):
        y = relu(y, f"{'stem' if number < 30 else 'head'}/part{number // 5}/{number}")
    for number in range(decoding):
        y = (ops.exp, ops.tanh)[number % 2](y)
    if wraps:
        y = relu(relu(y, "last/one"), "last/two")
    return ov.Model([y], [x])


def test_layers_that_follow_all_modules_are_one_box_if_there_are_many() -> None:
    tree = folded(detector(40))
    (after,) = [scope for scope in tree.scopes if scope.label == "after the modules"]
    assert (after.size, after.open, len(tree.scopes[0].layers)) == (39, False, 2), (
        "the first one joins its module"
    )
    assert all(nx.is_directed_acyclic_graph(graph) for graph in quotients(tree))


@pytest.mark.parametrize(
    "model", [detector(20), detector(100), detector(40, wraps=True)], ids=["few", "most", "between"]
)
def test_other_layers_without_a_module_stay_outside(model: ov.Model) -> None:
    assert not [scope for scope in folded(model).scopes if scope.label == "after the modules"]
