"""Type inference in one pass, compared with the declarations of the file; an error does not end it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.analysis.infer import infer, is_same
from ir_runtime.codes import Code
from ir_runtime.diagnostics import Diagnostics
from ir_runtime.io.reader.model import load
from ir_runtime.ir.graph import Port
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Bounds, Value
from ir_runtime.ops import Input, Op, Output, op, registry
from ir_runtime.ops._define.operation import T_FLOAT


def report(net: Net) -> list[tuple[str, int | None, str | None]]:
    return [(d.code, d.line, d.layer) for d in ir.validate(net.xml(), net.weights)]


def shapes(net: Net) -> list[str]:
    model = ir.read_model(net.xml(), net.weights, strict=False)
    return [str(o.partial_shape) for o in model.outputs]


def reduced(out: str, x: str = "2,3", axes: object = (1,), **how: object) -> Net:
    net = Net()
    net.result(net.op("ReduceSum", net.parameter("x", x), net.constant(axes), out=out, name="sum", **how))
    return net


@pytest.mark.parametrize("declared", ["FP32 2", "FP32", "2", "", "FP32 -1", "FP32 0..5", "f32 ?"])
def test_declarations_that_agree(declared: str) -> None:
    net = reduced("")
    words = declared.split()
    precision = f' precision="{words.pop(0)}"' if words and words[0][0].isalpha() else ""
    dims = "".join(f"<dim>{d}</dim>" for d in words)
    net.layers[2] = net.layers[2].replace('<port id="2"></port>', f'<port id="2"{precision}>{dims}</port>')
    assert report(net) == []


@pytest.mark.parametrize(
    ("declared", "code"),
    [("FP32 3", Code.DECLARED_SHAPE), ("FP32 2 1", Code.DECLARED_SHAPE), ("FP32 3..9", Code.DECLARED_SHAPE),
     ("FP16 2", Code.DECLARED_TYPE), ("I64", Code.DECLARED_TYPE)],
)  # fmt: skip
def test_declarations_that_do_not(declared: str, code: Code) -> None:
    assert report(reduced(declared)) == [(code, 6, "sum")]


def test_lines_are_those_of_the_port() -> None:
    net = reduced("FP32 3")
    net.layers[2] = net.layers[2].replace("<output>", "\n\n<output>\n")
    assert report(net) == [(Code.DECLARED_SHAPE, 9, "sum")]


def test_a_mistake_does_not_hide_the_next() -> None:
    """After a layer that cannot be inferred, its declared types are used."""
    net = Net()
    x, y = net.parameter("x", "2,3"), net.parameter("y", "2,4")
    wrong = net.op("Add", x, y, out="FP32 2 5", name="wrong")
    net.result(net.op("ReduceSum", wrong, net.constant([1]), out="FP32 9", name="also", keep_dims=True))
    assert report(net) == [(Code.CONTRADICTION, 6, "wrong"), (Code.DECLARED_SHAPE, 8, "also")]
    assert shapes(net) == ["[2,1]"]


def test_unknown_operations_are_believed() -> None:
    net = Net()
    odd = net.op("Mystery", net.parameter("x", "2"), out="FP16 2 7", name="odd")
    net.result(net.op("ReduceSum", odd, net.constant([0]), out="FP16 7"))
    assert report(net) == [(Code.UNKNOWN_OPERATION, 5, "odd")]
    assert shapes(net) == ["[7]"]


def test_what_a_file_does_not_say_of_unknown_operations_stays_open() -> None:
    net = Net()
    odd = net.op("Mystery", net.parameter("x", "2"), name="odd")
    net.result(net.op("ReLU", odd, out="FP32 3"))
    assert report(net) == [(Code.UNKNOWN_OPERATION, 5, "odd")]
    assert shapes(net) == ["[...]"]


def test_shapes_are_followed_through_arithmetic() -> None:
    """ShapeOf, Gather, Concat and Reshape propagate known dims."""
    net = Net()
    x = net.parameter("x", "?,2..5,4", out="FP32 -1 -1 4")
    shape = net.op("ShapeOf", x, out="I64 3", version="opset3", output_type="i64")
    batch = net.op("Gather", shape, net.constant([0]), net.constant(0), out="I64 1", version="opset8")
    target = net.op("Concat", batch, net.constant([-1]), out="I64 2", axis=0)
    net.result(net.op("Reshape", x, target, out="FP32 -1 -1", special_zero=False))
    model = ir.read_model(net.xml(), net.weights)
    assert str(model.output().partial_shape) == "[?,8..20]"
    model.reshape([3, 2, 4])
    assert str(model.output().partial_shape) == "[3,8]"


def test_lengths_of_one_input_are_equal_to_themselves() -> None:
    net = Net()
    x = net.parameter("x", "?", out="FP32 -1")
    net.result(net.op("Add", x, net.op("ReLU", x, out="FP32 -1"), out="FP32 -1"))
    model = ir.read_model(net.xml())
    dimension = model.output().partial_shape[0]
    assert dimension.symbol is model.input().partial_shape[0].symbol
    assert dimension.symbol is not None


@pytest.fixture
def failing() -> Iterator[None]:
    """An operation with errors in inference and evaluation."""

    @op("ProbeBroken-1")
    class Broken(Op):
        """Raise an error in `infer` or in `evaluate`."""

        data = Input(T_FLOAT, "any")
        output = Output(T_FLOAT, "the same")
        when: str = "infer"

        def infer(self, data: Value) -> PartialShape:
            if self.when == "infer":
                raise IndexError("no such axis")
            return data.shape

        def evaluate(self, data: Array) -> Array:
            raise OverflowError("too much")

    yield
    registry.remove(Broken)


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize(
    ("when", "says"), [("infer", "IndexError: no such axis"), ("evaluate", "OverflowError: too much")]
)
def test_other_exceptions_become_findings(when: str, says: str) -> None:
    net = Net()
    net.result(net.op("ProbeBroken", net.constant([1], "f32"), out="FP32 1", name="broken", when=when))
    (found,) = ir.validate(net.xml(), net.weights)
    assert (found.code, found.line, found.layer) == (Code.CONTRADICTION, 5, "broken")
    assert found.message == f"inference fails on its inputs: {says}"


def test_other_types_for_inputs() -> None:
    net = reduced("FP32 2")
    graph = load(net.xml(), net.weights)[0].graph
    notes = Diagnostics()
    given = Value.unknown(ir.Type.f16, PartialShape("7,?"))
    known = infer(graph, notes, {0: given})
    assert str(known[Port(2, 0)].type) == "f16[7]"
    assert list(notes) == [], "what is declared for other inputs says nothing"


def test_contents_follow_small_constants() -> None:
    net = Net()
    net.result(net.op("Add", net.constant([1, 2]), net.constant([3, 4]), out="I64 2"))
    graph = load(net.xml(), net.weights)[0].graph
    known = infer(graph, Diagnostics())[Port(2, 0)].known()
    assert known is not None
    np.testing.assert_array_equal(known, [4, 6])


@pytest.mark.parametrize(
    ("axes", "code"),
    [([2], Code.CONTRADICTION), ([-3], Code.CONTRADICTION), ([0, 0], Code.CONTRADICTION), ([1, -1], Code.CONTRADICTION),
     ([[0]], Code.CONTRADICTION), ([], None), (1, None), ([0, 1], None), ([-1, 0], None)],
)  # fmt: skip
def test_axes_of_reductions(axes: object, code: Code | None) -> None:
    found = report(reduced("", axes=np.array(axes, np.int64)))
    assert [c for c, _, _ in found] == ([code] if code else [])


def test_values_of_known_contents_are_inferred_from_again() -> None:
    """Cached results of a layer apply to inputs of equal types, unless some contents are known."""
    plain = Value.unknown(ir.Type.f32, PartialShape([2]))
    assert is_same(plain, Value.unknown(ir.Type.f32, PartialShape([2])))
    assert not is_same(plain, Value.unknown(ir.Type.f16, PartialShape([2])))
    assert not is_same(plain, Value.unknown(ir.Type.f32, PartialShape([3])))
    bounded = Value(plain.type, bounds=Bounds(np.zeros(2, np.float32), np.ones(2, np.float32)))
    assert is_same(bounded, bounded)
    for other in (bounded, Value.constant(np.zeros(2, np.float32))):
        assert not is_same(plain, other)
        assert not is_same(other, plain)


def test_equal_layers_are_inferred_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deep networks repeat blocks: inference depends on the operation, static shapes and small constants."""
    inferred, infer_values = [], Op.infer_values

    def count(op: Op, *inputs: Value, **context: Any) -> Any:
        inferred.append((op.name, *(str(value.type) for value in inputs)))
        return infer_values(op, *inputs, **context)

    monkeypatch.setattr(Op, "infer_values", count)
    net = Net()
    end = net.parameter("x", "2,3")
    for _ in range(20):
        end = net.op(
            "Reshape",
            net.op("ReLU", end, out="FP32 2 3"),
            net.constant([2, 3]),
            out="FP32 2 3",
            special_zero=False,
        )
    net.result(net.op("Reshape", end, net.constant([3, 2]), out="FP32 3 2", special_zero=False))
    ir.read_model(net.xml(), net.weights)
    names = [name for name, *_ in inferred]
    assert (names.count("ReLU"), names.count("Reshape")) == (1, 2)
