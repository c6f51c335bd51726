"""Growth series: kinds of models of any size, whose processing may be superlinear.

A kind takes a number of bytes and returns a model of about that size. Most are valid, so that reading, inference, the
constraint solver, folding, counting and drawing are all reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

import numpy as np
from lxml import etree

from .floods import FLOODS, SPILLS, flooded
from .structure import Work

__all__ = ["MANY", "SERIES", "SHAPES", "Model", "model_of"]


@dataclass(frozen=True, slots=True)
class Model:
    """A file and its weights."""

    xml: bytes
    weights: bytes = b""


Maker: TypeAlias = Callable[[int], Model]
"""Makes the model with so many of what its shape repeats."""

SHAPES: dict[str, Maker] = {}


def shape(maker: Maker) -> Maker:
    """Register a kind under its name."""
    SHAPES[maker.__name__] = maker
    return maker


@dataclass
class Net:
    """A graph under construction as text; each method that adds a layer returns its id."""

    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    weights: bytearray = field(default_factory=bytearray)
    declared: bool = False

    def add(
        self,
        kind: str,
        sources: Sequence[int | tuple[int, int]] = (),
        outputs: int = 1,
        opset: str = "opset1",
        name: str | None = None,
        inner: str = "",
        **data: object,
    ) -> int:
        """Add a layer; operands are ids, or pairs of an id and an output number."""
        number = len(self.layers)
        ins = "".join(f'<port id="{i}"/>' for i in range(len(sources)))
        outs = "".join(f'<port id="{len(sources) + i}"/>' for i in range(outputs))
        said = " ".join(f'{key}="{value}"' for key, value in data.items())
        self.layers.append(
            f'<layer id="{number}" name="{name or f"{kind}{number}"}" type="{kind}" version="{opset}">'
            + (f"<data {said}/>" if said else "")
            + (f"<input>{ins}</input>" if ins else "")
            + (f"<output>{outs}</output>" if outs else "")
            + f"{inner}</layer>"
        )
        self.ports.append(len(sources))
        for place, source in enumerate(sources):
            layer, output = source if isinstance(source, tuple) else (source, 0)
            self.edges.append(
                f'<edge from-layer="{layer}" from-port="{self.ports[layer] + output}"'
                f' to-layer="{number}" to-port="{place}"/>'
            )
        return number

    def __post_init__(self) -> None:
        self.ports: list[int] = []

    def input(self, shape: str, element: str = "f32", name: str | None = None) -> int:
        return self.add("Parameter", name=name, shape=shape, element_type=element)

    def constant(self, numbers: object, element: str = "i64", name: str | None = None) -> int:
        array = np.asarray(numbers, {"i64": np.int64, "f32": np.float32, "boolean": np.uint8}[element])
        offset, text = len(self.weights), ",".join(map(str, array.shape))
        self.weights += array.tobytes()
        return self.add(
            "Const", name=name, element_type=element, shape=text, offset=offset, size=array.nbytes
        )

    def result(self, *sources: int | tuple[int, int]) -> None:
        for source in sources:
            self.add("Result", [source], 0)

    @property
    def body(self) -> str:
        """Return the layers and edges as elements."""
        layers, edges = "\n".join(self.layers), "\n".join(self.edges)
        return f"<layers>\n{layers}\n</layers><edges>\n{edges}\n</edges>"

    def model(self, *sources: int | tuple[int, int]) -> Model:
        """Return the whole model, with results."""
        self.result(*sources)
        xml = f'<?xml version="1.0"?>\n<net name="n" version="11">\n{self.body}\n</net>'
        return Model(xml.encode(), bytes(self.weights))


# Lengths that grow.


@shape
def lengths_squared(count: int) -> Model:
    """Outer products of a vector with itself, flattened: each squares the length."""
    net = Net()
    x = net.input("3")
    for _ in range(count):
        flat, column = net.constant([-1]), net.constant([1])
        wide = net.add("Unsqueeze", [x, column])
        x = net.add("Reshape", [net.add("Add", [x, wide]), flat], special_zero="true")
    return net.model(x)


@shape
def dynamic_lengths_squared(count: int) -> Model:
    net = Net()
    x = net.input("2..7")
    for _ in range(count):
        flat, column = net.constant([-1]), net.constant([1])
        wide = net.add("Unsqueeze", [x, column])
        x = net.add("Reshape", [net.add("Add", [x, wide]), flat], special_zero="true")
    return net.model(x)


@shape
def lengths_doubled(count: int) -> Model:
    net = Net()
    x = net.input("2,?")
    for _ in range(count):
        x = net.add("Concat", [x, x], axis=0)
    return net.model(x)


@shape
def open_lengths_doubled(count: int) -> Model:
    net = Net()
    x = net.input("2,?")
    for _ in range(count):
        x = net.add("Concat", [x, x], axis=1)
    return net.model(x)


@shape
def tiles(count: int) -> Model:
    net = Net()
    x, times = net.input("1,1"), net.constant([1 << 40, 1 << 40])
    for _ in range(count):
        x = net.add("Tile", [x, times])
    return net.model(x)


@shape
def pads(count: int) -> Model:
    net = Net()
    x, many = net.input("?"), net.constant([1 << 62])
    zero = net.constant(0.0, "f32")
    for _ in range(count):
        x = net.add("Pad", [x, many, many, zero], pad_mode="constant")
    return net.model(x)


@shape
def products_of_shapes(count: int) -> Model:
    """A computed length, repeatedly multiplied by itself."""
    net = Net()
    x = net.input("?,?")
    n = net.add("ShapeOf", [x], opset="opset3", output_type="i64")
    for _ in range(count):
        n = net.add("Multiply", [n, n])
    return net.model(net.add("Broadcast", [net.constant(1.0, "f32"), n], opset="opset3", mode="numpy"))


@shape
def arithmetic_on_shapes(count: int) -> Model:
    net = Net()
    x, three = net.input("?,?"), net.constant([3, 5])
    n = net.add("ShapeOf", [x], opset="opset3", output_type="i64")
    kinds = ("Add", "Multiply", "Subtract", "Divide", "Maximum", "Minimum", "FloorMod")
    for i in range(count):
        n = net.add(kinds[i % len(kinds)], [n, three])
    return net.model(net.add("Broadcast", [net.constant(1.0, "f32"), n], opset="opset3", mode="numpy"))


@shape
def shapes_of_shapes(count: int) -> Model:
    net = Net()
    x = net.input("?,?,4")
    for _ in range(count):
        n = net.add("ShapeOf", [x], opset="opset3", output_type="i64")
        x = net.add("Reshape", [x, n], special_zero="false")
    return net.model(x)


@shape
def broadcast_wider(count: int) -> Model:
    """Each layer has a higher rank."""
    net = Net()
    x, zero = net.input("?"), net.constant([0])
    for _ in range(count):
        x = net.add("Unsqueeze", [x, zero])
    return net.model(x)


@shape
def transposed_convolutions(count: int) -> Model:
    net = Net()
    x, w = net.input("1,1,?,?"), net.constant(np.ones((1, 1, 3, 3)), "f32")
    for _ in range(count):
        x = net.add(
            "ConvolutionBackpropData",
            [x, w],
            strides="1000000,1000000",
            pads_begin="0,0",
            pads_end="0,0",
            dilations="1,1",
            auto_pad="explicit",
        )
    return net.model(x)


@shape
def resized(count: int) -> Model:
    net = Net()
    x = net.input("1,1,?,?")
    for _ in range(count):
        x = net.add("DepthToSpace", [net.add("Concat", [x] * 4, axis=1)], block_size=2, mode="blocks_first")
    return net.model(x)


@shape
def convolutions(count: int) -> Model:
    net = Net()
    x, w = net.input("?,3,?,?"), net.constant(np.ones((3, 3, 3, 3)), "f32")
    for i in range(count):
        x = net.add(
            "Convolution",
            [x, w],
            strides=f"{1 + i % 2},1",
            pads_begin="1,1",
            pads_end="1,1",
            dilations="1,1",
            auto_pad="explicit",
            name=f"net/block{i // 10}/conv{i}",
        )
    return net.model(x)


# Long, wide and many.


@shape
def deep_chain(count: int) -> Model:
    net = Net()
    x = net.input("?,3")
    for _ in range(count):
        x = net.add("ReLU", [x])
    return net.model(x)


@shape
def chain_backwards(count: int) -> Model:
    """The layer with the highest id comes first."""
    net = Net()
    x = net.input("2,3")
    for _ in range(count):
        x = net.add("Exp", [x])
    found = net.model(x)
    head, _, rest = found.xml.partition(b"<layers>\n")
    layers, _, tail = rest.partition(b"\n</layers>")
    lines = b"\n".join(reversed(layers.split(b"\n")))
    return Model(head + b"<layers>\n" + lines + b"\n</layers>" + tail, found.weights)


@shape
def diamonds(count: int) -> Model:
    """The number of paths doubles with each layer."""
    net = Net()
    x = net.input("?,3")
    for _ in range(count):
        x = net.add("Add", [net.add("ReLU", [x]), net.add("Exp", [x])])
    return net.model(x)


@shape
def sums_of_itself(count: int) -> Model:
    net = Net()
    x = net.input("?,?,?")
    for _ in range(count):
        x = net.add("Add", [x, x])
    return net.model(x)


@shape
def many_readers(count: int) -> Model:
    net = Net()
    x = net.input("?,3")
    return net.model(*[net.add("ReLU", [x]) for _ in range(count)])


@shape
def wide_concat(count: int) -> Model:
    net = Net()
    x = net.input("?,3")
    return net.model(net.add("Concat", [x] * count, axis=1))


@shape
def wide_concats(count: int) -> Model:
    """sqrt(size) Concats with as many inputs each."""
    net, each = Net(), max(int(count**0.5), 1)
    x = net.input("?,3")
    for _ in range(each):
        x = net.add("Concat", [x] * each, axis=0)
    return net.model(x)


@shape
def wide_split(count: int) -> Model:
    net = Net()
    x, axis = net.input(f"?,{count}"), net.constant(1)
    split = net.add("Split", [x, axis], count, num_splits=count)
    return net.model(*[(split, i) for i in range(count)])


@shape
def split_and_joined(count: int) -> Model:
    net, each = Net(), max(int(count**0.5), 1)
    x, axis = net.input(f"?,{each}"), net.constant(1)
    for _ in range(each):
        split = net.add("Split", [x, axis], each, num_splits=each)
        x = net.add("Concat", [(split, i) for i in range(each)], axis=1)
    return net.model(x)


@shape
def all_read_all(count: int) -> Model:
    """Each layer reads all previous ones."""
    net, each = Net(), max(int(count**0.5), 1)
    made = [net.input("?,3")]
    for _ in range(each):
        made.append(net.add("Concat", made, axis=1))
    return net.model(made[-1])


@shape
def many_inputs(count: int) -> Model:
    net = Net()
    return net.model(*[net.add("ReLU", [net.input("?,?", name=f"in{i}")]) for i in range(count)])


@shape
def many_inputs_that_must_agree(count: int) -> Model:
    net = Net()
    x = net.input("?,?")
    for _ in range(count):
        x = net.add("Add", [x, net.input("?,?")])
    return net.model(x)


@shape
def many_inputs_joined(count: int) -> Model:
    net = Net()
    return net.model(net.add("Concat", [net.input("?,?") for _ in range(count)], axis=0))


@shape
def many_open_lengths(count: int) -> Model:
    net, each = Net(), 60
    x = net.input(",".join(["?"] * each))
    for _ in range(count):
        x = net.add("Add", [x, net.input(",".join(["?"] * each))])
    return net.model(x)


@shape
def many_constants(count: int) -> Model:
    net = Net()
    x = net.input("?,3")
    for i in range(count):
        x = net.add("Add", [x, net.constant([float(i)], "f32")])
    return net.model(x)


@shape
def constants_folded(count: int) -> Model:
    net = Net()
    one = x = net.constant(np.arange(64), "i64")
    for _ in range(count):
        x = net.add("Add", [x, one])
    return net.model(net.add("Reshape", [net.input("?"), x], special_zero="false"))


@shape
def folded_constants_doubled(count: int) -> Model:
    """Folded constants, each twice as long as the previous one."""
    net = Net()
    x = net.constant(np.arange(4), "i64")
    for _ in range(count):
        x = net.add("Concat", [x, x], axis=0)
    shape = net.add("ReduceProd", [x, net.constant([0])], keep_dims="true")
    return net.model(net.add("Reshape", [net.input("?"), shape], special_zero="false"))


@shape
def ranges_folded(count: int) -> Model:
    net = Net()
    x = net.constant(0)
    for _ in range(count):
        numbers = net.add(
            "Range",
            [net.constant(0), net.constant(1 << 20), net.constant(1)],
            opset="opset4",
            output_type="i64",
        )
        x = net.add("Add", [x, net.add("ReduceMax", [numbers, net.constant([0])], keep_dims="false")])
    return net.model(
        net.add(
            "Broadcast",
            [net.input(""), net.add("Unsqueeze", [x, net.constant([0])])],
            opset="opset3",
            mode="numpy",
        )
    )


@shape
def variables(count: int) -> Model:
    net = Net()
    x, results = net.input("?,3"), []
    for i in range(count):
        said = {"variable_id": f"v{i}", "variable_shape": "?,3", "variable_type": "f32"}
        read = net.add("ReadValue", [x], opset="opset6", **said)
        net.add("Assign", [read], opset="opset6", variable_id=f"v{i}")
        results.append(read)
    return net.model(*results)


@shape
def lengths_known_when_run(count: int) -> Model:
    """A new symbol and a cost formula for each layer."""
    net = Net()
    x = net.input("?")
    return net.model(*[net.add("NonZero", [x], opset="opset3", output_type="i64") for _ in range(count)])


# Bodies.


_FIXED = np.array([3, 1, 0, 1], np.int64).tobytes()
"""What bodies read, at the beginning of the weights: a number of iterations, true, and two axes."""


def _fixed(net: Net, element: str, shape: str, offset: int, size: int) -> int:
    return net.add("Const", element_type=element, shape=shape, offset=offset, size=size)


def _condition(net: Net, x: int) -> int:
    """Add a data-dependent condition."""
    most = net.add("ReduceMax", [x, _fixed(net, "i64", "2", 16, 16)], keep_dims="false")
    return net.add("Convert", [most], destination_type="boolean")


def _nested(kind: str, depth: int) -> tuple[str, int, int]:
    """Return a body with nested branches or loops, and the ids of its results: data and condition."""
    inner = Net()
    first = inner.input("?,2")
    last = _nest(inner, kind, first, depth - 1) if depth else inner.add("ReLU", [first])
    end = inner.add("Result", [last], 0)
    going = inner.add("Result", [_condition(inner, last)], 0) if kind == "Loop" else end
    return inner.body, end, going


def _nest(net: Net, kind: str, x: int, depth: int) -> int:
    body, end, going = _nested(kind, depth)
    sources = {"If": 1, "Loop": 2, "TensorIterator": 0}[kind]
    ties = (
        f'<input external_port_id="{sources}" internal_layer_id="0"/>'
        f'<output external_port_id="{sources + 1}" internal_layer_id="{end}"/>'
    )
    if kind == "If":
        parts = "".join(
            f"<{name}_port_map>{ties}</{name}_port_map><{name}_body>{body}</{name}_body>"
            for name in ("then", "else")
        )
        return net.add("If", [_condition(net, x), x], opset="opset8", inner=parts)
    back = f'<back_edges><edge from-layer="{end}" to-layer="0"/></back_edges>'
    if kind == "Loop":
        trips, go = _fixed(net, "i64", "", 0, 8), _fixed(net, "boolean", "", 8, 1)
        ties += f'<output external_port_id="-1" internal_layer_id="{going}" purpose="execution_condition"/>'
        inner = f"<port_map>{ties}</port_map>{back}<body>{body}</body>"
        return net.add("Loop", [trips, go, x], opset="opset5", inner=inner)
    inner = f"<port_map>{ties}</port_map>{back}<body>{body}</body>"
    return net.add("TensorIterator", [x], inner=inner)


def _nests(kind: str, most: int) -> Maker:
    def make(count: int) -> Model:
        net = Net(weights=bytearray(_FIXED))
        x = net.input("?,2")
        for _ in range(max(count >> most, 1)):
            x = _nest(net, kind, x, min(count.bit_length(), most))
        return net.model(x)

    return make


# An If has two branches, so its text doubles with each level, and a loop's inference visits its body repeatedly.
SHAPES["ifs_in_a_row"] = _nests("If", 0)
SHAPES["ifs_nested"] = _nests("If", 9)
SHAPES["ifs_nested_a_little"] = _nests("If", 3)
SHAPES["loops_in_a_row"] = _nests("Loop", 0)
SHAPES["iterators_in_a_row"] = _nests("TensorIterator", 0)


def _deep(kind: str) -> Maker:
    def make(count: int) -> Model:
        net = Net(weights=bytearray(_FIXED))
        x = net.input("?,2")
        for _ in range(max(count // 28, 1)):
            x = _nest(net, kind, x, min(count, 28))
        return net.model(x)

    return make


SHAPES["loops_nested"] = _deep("Loop")
SHAPES["iterators_nested"] = _deep("TensorIterator")


@shape
def ifs_that_differ(count: int) -> Model:
    """Branches return different lengths, which the next If reads."""
    net = Net()
    x = net.input("?,2")
    ties = '<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/>'
    then, other = Net(), Net()
    for branch, times in ((then, 1), (other, 2)):
        inner = branch.input("?,2")
        branch.result(branch.add("Concat", [inner] * times, axis=0))
    parts = "".join(
        f"<{name}_port_map>{ties}</{name}_port_map><{name}_body>{branch.body}</{name}_body>"
        for name, branch in (("then", then), ("else", other))
    )
    for _ in range(count):
        x = net.add("If", [net.input("", "boolean"), x], opset="opset8", inner=parts)
    return net.model(x)


@shape
def ifs_of_known_conditions(count: int) -> Model:
    net = Net()
    x, true = net.input("?,2"), net.constant(True, "boolean")
    ties = '<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="1"/>'
    branch = Net()
    branch.result(branch.input("?,2"))
    parts = "".join(
        f"<{name}_port_map>{ties}</{name}_port_map><{name}_body>{branch.body}</{name}_body>"
        for name in ("then", "else")
    )
    for _ in range(count):
        x = net.add("If", [true, x], opset="opset8", inner=parts)
    return net.model(x)


@shape
def loops_that_grow(count: int) -> Model:
    """The loop state is concatenated with itself in each iteration."""
    net, body = Net(), Net()
    inner = body.input("?,2")
    body.result(body.add("Concat", [inner, inner], axis=0))
    x, trips, go = net.input("1,2"), net.constant(1 << 40), net.constant(True, "boolean")
    parts = (
        '<port_map><input external_port_id="2" internal_layer_id="0"/>'
        '<output external_port_id="3" internal_layer_id="2"/></port_map>'
        '<back_edges><edge from-layer="2" to-layer="0"/></back_edges>'
        f"<body>{body.body}</body>"
    )
    for _ in range(count):
        x = net.add("Loop", [trips, go, x], opset="opset5", inner=parts)
    return net.model(x)


# Names.


@shape
def names_with_slashes(count: int) -> Model:
    """A single layer name with the deepest possible scope."""
    net = Net()
    x = net.add("ReLU", [net.input("?")], name="/".join(["a"] * count))
    return net.model(net.add("Exp", [x], name="/".join(["a"] * count) + "/b"))


@shape
def names_with_different_slashes(count: int) -> Model:
    net = Net()
    x = net.add("ReLU", [net.input("?")], name="/".join(map(str, range(count))))
    return net.model(net.add("Exp", [x], name="/".join(map(str, range(count)))))


@shape
def deep_scopes(count: int) -> Model:
    """sqrt(size) layers, each one scope deeper."""
    net, each = Net(), max(int(count**0.5), 1)
    x = net.input("?")
    for i in range(each):
        x = net.add("ReLU", [x], name="/".join([*(f"s{k}" for k in range(i)), f"x{i}"]))
    return net.model(x)


@shape
def scopes_left_and_entered(count: int) -> Model:
    """Scopes on cycles, which reports split."""
    net = Net()
    x = net.input("?")
    for i in range(count):
        x = net.add("ReLU", [x], name=f"{'ab'[i % 2]}/{'cd'[i // 2 % 2]}/{'ef'[i // 4 % 2]}/x{i}")
    return net.model(x)


@shape
def scopes_many_on_a_cycle(count: int) -> Model:
    net, each = Net(), max(int(count**0.5), 2)
    x = net.input("?")
    for i in range(count):
        x = net.add("ReLU", [x], name=f"s{i % each}/x{i}")
    return net.model(x)


@shape
def scopes_side_by_side(count: int) -> Model:
    net = Net()
    x = net.input("?")
    return net.model(
        *[net.add("Exp", [net.add("ReLU", [x], name=f"s{i}/a")], name=f"s{i}/b") for i in range(count)]
    )


@shape
def scopes_deep_on_cycles(count: int) -> Model:
    net, each = Net(), max(int(count**0.5), 2)
    x, scope = net.input("?"), "/".join(["s"] * each)
    for i in range(each):
        x = net.add("ReLU", [x], name=f"{scope}/{i % 2}/x{i}")
    return net.model(x)


@shape
def one_long_name(count: int) -> Model:
    net = Net()
    return net.model(net.add("ReLU", [net.input("?")], name="n" * count))


@shape
def long_names(count: int) -> Model:
    net, each = Net(), max(int(count**0.5), 1)
    x = net.input("?")
    for i in range(each):
        x = net.add("ReLU", [x], name="n" * each + str(i))
    return net.model(x)


@shape
def names_with_dots_and_numbers(count: int) -> Model:
    net, each = Net(), max(int(count**0.5), 1)
    x = net.input("?")
    for i in range(each):
        x = net.add("ReLU", [x], name=".".join(f"{k}_{i % 3}" for k in range(each // 4 + 1)))
    return net.model(x)


# Attributes.


@shape
def long_list_of_axes(count: int) -> Model:
    net = Net()
    return net.model(net.add("Reshape", [net.input("?"), net.constant([1] * count)], special_zero="false"))


@shape
def huge_rank(count: int) -> Model:
    net = Net()
    return net.model(net.add("ReLU", [net.input(",".join(["1"] * count))]))


@shape
def digits_of_lengths(count: int) -> Model:
    net = Net()
    return net.model(net.add("ReLU", [net.input("9" * count + ",?")]))


@shape
def digits_of_many_lengths(count: int) -> Model:
    net = Net()
    x = net.input("?")
    return net.model(
        *[net.add("ReLU", [net.input("9" * 18 + "," + "9" * (20 + i % 300))]) for i in range(count)], x
    )


@shape
def digits_of_numbers(count: int) -> Model:
    net = Net()
    return net.model(net.add("Clamp", [net.input("?")], min="-" + "9" * count, max="9" * count))


@shape
def digits_of_ids(count: int) -> Model:
    net = Net()
    found = net.model(net.add("ReLU", [net.input("?")]))
    return Model(found.xml.replace(b'layer id="1"', b'layer id="' + b"1" * count + b'"'))


@shape
def digits_of_strides(count: int) -> Model:
    net = Net()
    x, w = net.input("1,1,?,?"), net.constant(np.ones((1, 1, 3, 3)), "f32")
    huge = "9" * count
    return net.model(
        net.add(
            "Convolution",
            [x, w],
            strides=f"{huge},1",
            pads_begin=f"{huge},0",
            pads_end="0,0",
            dilations=f"{huge},1",
            auto_pad="explicit",
        )
    )


@shape
def long_strides(count: int) -> Model:
    net = Net()
    x, w = net.input("1,1,?,?"), net.constant(np.ones((1, 1, 3, 3)), "f32")
    ones = ",".join(["1"] * count)
    return net.model(
        net.add(
            "Convolution",
            [x, w],
            strides=ones,
            pads_begin=ones,
            pads_end=ones,
            dilations=ones,
            auto_pad="explicit",
        )
    )


@shape
def huge_windows(count: int) -> Model:
    net = Net()
    x = net.input("?,?,?,?")
    for i in range(count):
        x = net.add(
            "MaxPool",
            [x],
            strides="1,1",
            pads_begin=f"{1 << 62},{1 << 62}",
            pads_end=f"{1 << 62},{1 << 62}",
            kernel=f"{i + 1},{1 << 61}",
            rounding_type="floor",
            auto_pad="explicit",
        )
    return net.model(x)


@shape
def slices(count: int) -> Model:
    net = Net()
    x = net.input("?,?,?")
    begin, end, step = (net.constant([n] * 3) for n in (0, (1 << 63) - 1, 1))
    mask = dict.fromkeys(
        ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"), "0,0,0"
    )
    for _ in range(count):
        x = net.add("StridedSlice", [x, begin, end, step], **mask)
    return net.model(x)


@shape
def long_masks(count: int) -> Model:
    net = Net()
    x, each = net.input("?,?,?"), max(count // 20, 1)
    begin, end, step = (net.constant([n] * each) for n in (0, 5, 1))
    mask = dict.fromkeys(
        ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"),
        ",".join(["1"] * each),
    )
    return net.model(net.add("StridedSlice", [x, begin, end, step], **mask))


@shape
def equations(count: int) -> Model:
    net = Net()
    x = net.input("?,?")
    letters = "abcdefghijklmnopqrstuvwxyz"
    for i in range(count):
        a, b, c = (letters[(i + k) % 26] for k in range(3))
        x = net.add("Einsum", [x, x], opset="opset7", equation=f"{a}{b},{b}{c}->{a}{c}")
    return net.model(x)


@shape
def long_equation(count: int) -> Model:
    net = Net()
    x = net.input("?,?")
    return net.model(net.add("Einsum", [x] * count, opset="opset7", equation=",".join(["ab"] * count)))


@shape
def long_labels(count: int) -> Model:
    net = Net()
    return net.model(
        net.add("Einsum", [net.input("?,?")], opset="opset7", equation="a" * count + "->" + "b" * count)
    )


@shape
def embedded_lists(count: int) -> Model:
    """Lists of wrong sizes in every layer."""
    net = Net()
    x = net.input("?,8")
    for _ in range(count):
        x = net.add("VariadicSplit", [x, net.constant(1), net.constant([1] * 8)], 8)
        x = net.add("Concat", [(x, k) for k in range(8)], axis=1)
    return net.model(x)


# Files of older versions.


def _legacy(kind: str, inputs: int, data: str) -> Maker:
    """Return a builder of chains of legacy layers, each of which is replaced by several operations."""
    dims = "<dim>1</dim><dim>3</dim>"

    def make(count: int) -> Model:
        ports = "".join(f'<port id="{i}">{dims}</port>' for i in range(inputs))
        layers = [
            f'<layer id="0" name="x" type="Input"><output><port id="{inputs}">{dims}</port></output></layer>'
        ]
        edges = []
        for n in range(1, count + 1):
            layers.append(
                f'<layer id="{n}" name="l{n}" type="{kind}"><data {data}/><input>{ports}</input>'
                f'<output><port id="{inputs}">{dims}</port></output></layer>'
            )
            edges += [
                f'<edge from-layer="{n - 1}" from-port="{inputs}" to-layer="{n}" to-port="{i}"/>'
                for i in range(inputs)
            ]
        body = f"<layers>{''.join(layers)}</layers><edges>{''.join(edges)}</edges>"
        return Model(f'<net name="n" version="6" precision="FP32">{body}</net>'.encode())

    return make


SHAPES["legacy_powers"] = _legacy("Power", 1, 'power="1" scale="2" shift="1"')
SHAPES["legacy_sums"] = _legacy("Eltwise", 2, 'operation="sum" coeff="2,3"')


# What is wrong.


@shape
def unknown_layers(count: int) -> Model:
    net = Net()
    x = net.input("?,3")
    for i in range(count):
        x = net.add(f"Unheard{i}", [x])
    return net.model(x)


@shape
def findings_of_each_layer(count: int) -> Model:
    net = Net()
    x = net.input("?,3")
    return net.model(
        *[
            net.add(
                "Convolution",
                [x, x],
                strides="a",
                pads_begin="b",
                pads_end="-1",
                dilations="0",
                auto_pad="c",
                foo="d",
            )
            for _ in range(count)
        ]
    )


@shape
def contradictions(count: int) -> Model:
    net = Net()
    x, y = net.input("2,3"), net.input("2,5")
    for _ in range(count):
        x = net.add("Add", [x, net.add("ReLU", [y])])
    return net.model(x)


@shape
def lengths_that_cannot_be(count: int) -> Model:
    net = Net()
    x, wrong = net.input("?,3"), net.input("?,5")
    for _ in range(count):
        x = net.add("MatMul", [x, wrong], transpose_b="true")
    return net.model(x)


@shape
def ring(count: int) -> Model:
    net = Net()
    x = net.input("2")
    for _ in range(count):
        x = net.add("ReLU", [x])
    found = net.model(x)
    return Model(found.xml.replace(b'from-layer="0" from-port="0"', b'from-layer="%d" from-port="1"' % x, 1))


@shape
def rings_of_all(count: int) -> Model:
    """A cyclic graph with many edges per layer."""
    net, each = Net(), max(int(count**0.5), 2)
    x = net.input("2")
    for _ in range(each):
        net.add("Concat", [x] * each, axis=0)
    edges = [
        f'<edge from-layer="{b}" from-port="{each}" to-layer="{a}" to-port="{i}"/>'
        for a in range(1, each + 1)
        for i, b in enumerate(range(1, each + 1))
    ]
    net.edges[:] = edges
    return net.model(1)


# Numbers whose tables collide.


@shape
def ids_that_collide(count: int) -> Model:
    """Layer ids in one hash bucket: multiples of a high power of two."""
    layers = (
        f'<layer id="{i << 40}" name="p{i}" type="Parameter" version="opset1">'
        '<data shape="1" element_type="f32"/><output><port id="0"/></output></layer>\n'
        for i in range(1, min(count, 900_000) + 1)
    )
    return Model(f'<net name="n" version="11"><layers>{"".join(layers)}</layers><edges/></net>'.encode())


@shape
def ports_that_collide(count: int) -> Model:
    """Pairs of layer and port ids with equal hashes."""
    layers = (
        f'<layer id="{layer}" name="p{layer}" type="Parameter" version="opset1">'
        f'<data shape="1" element_type="f32"/><output><port id="{port}"/></output></layer>\n'
        for layer, port in colliding(count)
    )
    return Model(f'<net name="n" version="11"><layers>{"".join(layers)}</layers><edges/></net>'.encode())


_P1, _P2, _P5 = 11400714785074694791, 14029467366897019727, 2870177450012600261
_WORD = 1 << 64
_MOST = 10**18
"""Ids have at most 18 digits."""
_COLLIDING: list[tuple[int, int]] = []


def colliding(count: int) -> list[tuple[int, int]]:
    """Return pairs of numbers with equal hashes, by inverting CPython's tuple hash (xxHash)."""
    inverse = pow(_P2, -1, _WORD)
    wanted = _rotated((1234567 - (2 ^ _P5 ^ 3527539)) * pow(_P1, -1, _WORD), 33)
    layer = _COLLIDING[-1][0] if _COLLIDING else 0
    while len(_COLLIDING) < count:
        layer += 1
        mixed = _rotated(_P5 + layer * _P2, 31) * _P1
        if (port := (wanted - mixed) * inverse % _WORD) < _MOST:
            _COLLIDING.append((layer, port))
    return _COLLIDING[:count]


def _rotated(number: int, by: int) -> int:
    number %= _WORD
    return ((number << by) | (number >> (64 - by))) % _WORD


# XML and pages.


def _spilled(xml: str) -> Model:
    return Model(xml.encode())


@shape
def declared_entities(count: int) -> Model:
    """A billion laughs, many times."""
    entities = "".join(
        f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "x" * 10}">\n' for i in range(min(count, 2000))
    )
    return _spilled(
        f'<!DOCTYPE net [{entities}]><net name="&e{min(count, 2000) - 1};" version="11"><layers/><edges/></net>'
    )


@shape
def deep_elements(count: int) -> Model:
    return _spilled(
        '<net name="n" version="11">' + "<rt_info>" * count + "</rt_info>" * count + "<layers/><edges/></net>"
    )


@shape
def many_pages(count: int) -> Model:
    """The examples of a specification page, each a model."""
    layer = (
        '<layer id="1" name="a" type="ReLU"><input><port id="0"><dim>1</dim></port></input>'
        '<output><port id="1"><dim>1</dim></port></output></layer>\n'
    )
    return _spilled("# ReLU\n\n**Versioned name**: *ReLU-1*\n\n" + f"```xml\n{layer}```\n" * count)


@shape
def one_large_page(count: int) -> Model:
    net = Net()
    x = net.input("?")
    for _ in range(count):
        x = net.add("ReLU", [x])
    return _spilled("# Page\n\n" + "\n".join(net.layers))


@shape
def unclosed_pages(count: int) -> Model:
    return _spilled("# Page\n" + '<layer id="1" type="ReLU"><data a="' * count)


@shape
def page_of_quotes(count: int) -> Model:
    return _spilled("# Page\n<layer " + '"' * count + "<layer>" * (count // 8))


def _floods(name: str) -> Maker:
    def make(count: int) -> Model:
        root = etree.fromstring(Net().model().xml)
        base = Net()
        root = etree.fromstring(base.model(base.add("ReLU", [base.input("2,2")])).xml)
        work = Work(root, bytearray(), root, Random(1))
        return Model(flooded(work, name, count), bytes(work.weights))

    return make


SERIES: dict[str, Maker] = {**SHAPES, **{name: _floods(name) for name in (*FLOODS, *SPILLS)}}
"""All shapes, with the floods as further ones."""
MANY = 1 << 20
"""Counts beyond this are not asked of a shape, even if its file stays small."""


def model_of(name: str, size: int) -> Model:
    """Return a model of a kind, whose file and weights have at most, and nearly, ``size`` bytes."""
    make = SERIES[name]
    model, count, beyond = make(1), 1, MANY + 1
    while (bytes := len(model.xml) + len(model.weights)) < size - (size >> 5) and count < beyond - 1:
        guess = count * size // bytes  # short of it, as a part of a file is always there
        guess = min(max(guess, count + (count >> 5) + 1), 8 * count, (count + beyond + 1) // 2)
        larger = make(guess)
        if len(larger.xml) + len(larger.weights) <= size:
            model, count = larger, guess
        else:
            beyond = guess
    return model
