"""Dims unknown when a kernel was chosen are checked before it runs, on every backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from harness.nets import Net, looping

import ir_runtime as ir
from ir_runtime.analysis.error_context import Expected, RefusedInputError
from ir_runtime.backends import Kernel, any_lengths, available
from ir_runtime.executor.guard import REMEMBERED, LengthCheck, add_length_check
from ir_runtime.ir.dimension import Dimension, Symbol
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, TensorType, Value
from ir_runtime.ops import Op, Output, op, registry

backends = pytest.mark.parametrize("backend", available())


def read(net: Net) -> ir.Model:
    return ir.read_model(net.xml(), net.weights)


def convolution(*filters: int, type: str = "Convolution") -> Net:
    net = Net()
    spatial = len(filters) - (3 if type == "GroupConvolution" else 2)
    x = net.parameter("x", "?" + ",?" * (spatial + 1), out="FP32 -1" + " -1" * (spatial + 1))
    w = net.constant(np.linspace(-1, 1, int(np.prod(filters))).reshape(filters), "f32")
    each = ",".join("1" * spatial)
    none = ",".join("0" * spatial)
    how = {"strides": each, "dilations": each, "pads_begin": none, "pads_end": none}
    net.result(net.op(type, x, w, out="FP32 -1 -1" + " -1" * spatial, **how))
    return net


def product(depth: int, columns: int) -> Net:
    net = Net()
    x = net.parameter("x", "?,?", out="FP32 -1 -1")
    w = net.constant(np.linspace(-1, 1, depth * columns).reshape(depth, columns), "f32")
    net.result(net.op("MatMul", x, w, out=f"FP32 -1 {columns}", transpose_a="false", transpose_b="false"))
    return net


def compressed(element: str, depth: int = 64, columns: int = 128) -> Net:
    net = Net()
    x = net.parameter("x", "?,?", out="FP32 -1 -1")
    codes = net.constant(np.arange(columns * depth).reshape(columns, depth) % 4, element)
    wide = net.op("Convert", codes, out=f"FP32 {columns} {depth}", destination_type="f32")
    scale = net.constant(np.linspace(0.5, 1, columns)[:, None], "f32")
    w = net.op("Multiply", wide, scale, out=f"FP32 {columns} {depth}")
    net.result(net.op("MatMul", x, w, out=f"FP32 -1 {columns}", transpose_a="false", transpose_b="true"))
    return net


def attention() -> Net:
    net = Net()
    q, k, v = (net.parameter(name, "?,?,?,?", out="FP32 -1 -1 -1 -1") for name in "qkv")
    how = {"version": "opset13", "causal": "false"}
    net.result(net.op("ScaledDotProductAttention", q, k, v, out="FP32 -1 -1 -1 -1", **how))
    return net


Lengths = tuple[tuple[int, ...], ...]
CASES: dict[str, tuple[Net, Lengths, list[Lengths]]] = {
    "pointwise": (convolution(8, 4096, 1, 1), ((1, 4096, 3, 3),), [((1, 1, 3, 3),), ((1, 4095, 3, 3),), ((1, 0, 3, 3),)]),
    "3x3": (convolution(16, 32, 3, 3), ((1, 32, 14, 14),), [((1, 16, 14, 14),), ((1, 33, 14, 14),), ((1, 32, 2, 14),)]),
    "5x5": (convolution(8, 16, 5, 5), ((1, 16, 9, 9),), [((1, 8, 9, 9),), ((1, 32, 9, 9),)]),
    "picture": (convolution(8, 3, 3, 3), ((1, 3, 9, 9),), [((1, 1, 9, 9),), ((1, 4, 9, 9),)]),
    "groups": (convolution(2, 8, 16, 3, 3, type="GroupConvolution"), ((1, 32, 9, 9),), [((1, 16, 9, 9),), ((1, 31, 9, 9),)]),
    "depthwise": (convolution(32, 1, 1, 3, 3, type="GroupConvolution"), ((1, 32, 9, 9),), [((1, 1, 9, 9),), ((1, 33, 9, 9),)]),
    "volumes": (convolution(32, 1, 1, 2, 3, 3, type="GroupConvolution"), ((1, 32, 3, 9, 9),), [((1, 1, 3, 9, 9),), ((1, 33, 3, 9, 9),), ((1, 32, 1, 9, 9),)]),
    "groups in a vector": (convolution(8, 4, 4, 3, 3, type="GroupConvolution"), ((1, 32, 9, 9),), [((1, 8, 9, 9),), ((1, 36, 9, 9),)]),
    "a group in a vector": (convolution(2, 16, 16, 3, 3, type="GroupConvolution"), ((1, 32, 9, 9),), [((1, 16, 9, 9),), ((1, 48, 9, 9),)]),
    "product": (product(64, 64), ((3, 64),), [((1, 1),), ((3, 63),), ((64, 3),), ((3, 0),)]),
    **{
        element: (compressed(element), ((3, 64),), [((3, 1),), ((3, 32),), ((3, 65),), ((2, 64), )][:3])
        for element in ("u2", "u4", "u6", "i8", "nf4")
    },
    "attention": (attention(), ((1, 2, 5, 16),) * 3, [
        ((1, 2, 5, 16), (1, 2, 5, 8), (1, 2, 5, 16)),
        ((1, 2, 5, 16), (1, 2, 6, 16), (1, 2, 5, 16)),
    ]),
}  # fmt: skip


def arrays(lengths: Lengths) -> list[Array]:
    return [
        np.random.default_rng(n).standard_normal(shape).astype(np.float32) for n, shape in enumerate(lengths)
    ]


@backends
@pytest.mark.parametrize("name", CASES)
def test_wrong_lengths_are_refused_as_by_the_reference(name: str, backend: str) -> None:
    net, right, wrong = CASES[name]
    reference = ir.compile_model(read(net), backend="reference")
    compiled = ir.compile_model(read(net), backend=backend)
    wanted = reference(arrays(right))[0]
    for lengths in wrong:
        with pytest.raises(ir.ExecutionError) as theirs:
            reference(arrays(lengths))
        with pytest.raises(ir.ExecutionError) as ours:
            compiled(arrays(lengths))
        assert ours.value.where == theirs.value.where
        np.testing.assert_allclose(compiled(arrays(right))[0], wanted, rtol=1e-4, atol=1e-4)


@pytest.fixture
def inferred(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the operations whose types are inferred."""
    found: list[str] = []
    infer_types = Op.infer_types

    def spy(self: Op, *inputs: Value, **context: Any) -> Any:
        found.append(self.name)
        return infer_types(self, *inputs, **context)

    monkeypatch.setattr(Op, "infer_types", spy)
    return found


def pooling() -> Net:
    net = Net()
    x = net.parameter("x", "?,32,?,?", out="FP32 -1 32 -1 -1")
    how = {
        "strides": "1,1",
        "pads_begin": "0,0",
        "pads_end": "0,0",
        "kernel": "3,3",
        "rounding_type": "floor",
    }
    net.result(
        net.op("AvgPool", x, out="FP32 -1 32 -1 -1", **how, **{"exclude-pad": "true", "auto_pad": "explicit"})
    )
    return net


@pytest.mark.parametrize("backend", [name for name in available() if name != "reference"])
def test_inference_is_asked_once_for_each_shape(inferred: list[str], backend: str) -> None:
    compiled = ir.compile_model(read(pooling()), backend=backend)
    inferred.clear()
    for length in (9, 10):
        compiled(np.ones((1, 32, length, length), np.float32))
    asked = len(inferred)
    for length in (9, 10):
        compiled(np.ones((1, 32, length, length), np.float32))
    assert len(inferred) == asked > 0


@backends
def test_known_lengths_are_not_looked_at(backend: str) -> None:
    """Kernels with static shapes are called without checks."""
    net = Net()
    x = net.parameter("x", "1,32,9,9", out="FP32 1 32 9 9")
    how = {
        "strides": "1,1",
        "pads_begin": "0,0",
        "pads_end": "0,0",
        "kernel": "3,3",
        "rounding_type": "floor",
    }
    net.result(net.op("MaxPool", x, out="FP32 1 32 7 7", **how, auto_pad="explicit"))
    compiled = ir.compile_model(read(net), backend=backend)
    assert all(
        "checking" not in getattr(step.kernel.run, "__qualname__", "") for step in compiled._plan.steps
    )


def check_of(
    *shapes: PartialShape, made: PartialShape | None = None, infer: Callable[..., Any]
) -> LengthCheck:
    f32 = ElementType.f32

    class Layer:
        op = type("Op", (), {"infer_types": staticmethod(infer)})()
        where = None

    expected = Expected((Layer(),), (tuple((n, 0) for n in range(len(shapes))),), (f32,) * len(shapes))  # type: ignore[arg-type]
    result = TensorType(f32, PartialShape.dynamic() if made is None else made)
    return LengthCheck(
        expected, tuple(TensorType(f32, s) for s in shapes), (None,) * len(shapes), ((result,),)
    )


def anything(*inputs: Value) -> tuple[TensorType, ...]:
    return (TensorType(ElementType.f32, PartialShape.dynamic()),)


def first(*inputs: Value) -> tuple[TensorType, ...]:
    return (inputs[0].type,)


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def test_lengths_that_were_known_must_still_hold() -> None:
    check = check_of(PartialShape([-1, 4]), infer=anything)
    check.accept([zeros(7, 4)])
    with pytest.raises(RefusedInputError, match=r"expected the inferred shape \[\?,4\], got \[7,5\]"):
        check.accept([zeros(7, 5)])
    with pytest.raises(RefusedInputError, match=r"got \[4\]"):
        check.accept([zeros(4)])


def test_lengths_of_one_symbol_must_be_equal() -> None:
    rows = Dimension.between(0, None, Symbol("rows"))
    check = check_of(PartialShape([rows, 4]), PartialShape([rows]), infer=anything)
    check.accept([zeros(7, 4), zeros(7)])
    with pytest.raises(RefusedInputError, match=r"got \[6\]"):
        check.accept([zeros(7, 4), zeros(6)])


def test_a_result_may_not_contradict_what_was_known() -> None:
    """For example, when the declaration in the file is wrong."""
    check = check_of(PartialShape([-1]), made=PartialShape([7]), infer=first)
    check.accept([zeros(7)])
    with pytest.raises(RefusedInputError, match=r"expected the inferred shape \[7\], got \[8\]"):
        check.accept([zeros(8)])


def test_not_all_shapes_are_remembered() -> None:
    check = check_of(PartialShape([-1]), infer=anything)
    kernel = add_length_check(Kernel(lambda x: x), check)
    for length in range(REMEMBERED + 3):
        kernel(zeros(length))
    assert len(check.accepted) == 3


def test_a_kernel_may_say_itself_what_suits_it() -> None:
    asked: list[int] = []

    def infer(*inputs: Value) -> tuple[TensorType, ...]:
        asked.append(inputs[0].shape[0].min)
        return anything()

    check = check_of(PartialShape([-1]), infer=infer)
    kernel = add_length_check(Kernel(lambda x: x, accepts=lambda x: len(x) == 3), check)
    kernel(zeros(3))
    assert asked == []
    kernel(zeros(4))
    assert asked == [4]
    plain = Kernel(lambda x: x, accepts=any_lengths)
    assert add_length_check(plain, check) is plain


@backends
def test_a_variable_holds_what_was_inferred(backend: str) -> None:
    """ReadValue-3 is inferred from its initial value, but a different shape is assigned."""
    net = Net()
    x = net.parameter("x", "?,4", out="FP32 -1 4")
    held = net.op(
        "ReadValue", net.constant(np.zeros((2, 4)), "f32"), version="opset3", variable_id="v", out="FP32 2 4"
    )
    net.layer("Assign", [x], ["FP32 -1 4"], version="opset3", variable_id="v")
    net.result(net.op("ReLU", held, out="FP32 2 4"))
    request = ir.compile_model(read(net), backend=backend).create_infer_request()
    request.infer([np.ones((3, 4), np.float32)])
    with pytest.raises(ir.ExecutionError, match=r"returned f32\[3,4\], but f32\[2,4\] was inferred"):
        request.infer([np.ones((3, 4), np.float32)])


@backends
def test_a_body_is_given_what_was_inferred(backend: str) -> None:
    net = looping("?", joined=True, part_size=3, count=2)
    with pytest.raises(ir.ExecutionError, match="was inferred"):
        ir.compile_model(read(net), backend=backend)([np.ones(2, np.float32)])


@pytest.fixture
def liar() -> Iterator[None]:
    @op("ProbeLies-1")
    class Liar(Op):
        """Infer 64 columns, and return one."""

        output = Output(ElementType.f32, "a row")
        pure = False

        def infer(self) -> PartialShape:
            return PartialShape([1, 64])

        def evaluate(self) -> Array:
            return zeros(1, 1)

    yield
    registry.remove(Liar)


@backends
def test_an_operation_from_outside_gives_what_it_infers(backend: str, liar: None) -> None:
    net = Net()
    row = net.op("ProbeLies", out="FP32 1 64")
    w = net.constant(np.ones((64, 64)), "f32")
    net.result(net.op("MatMul", row, w, out="FP32 1 64", transpose_a="false", transpose_b="false"))
    with pytest.raises(ir.IRError, match=r"returned f32\[1,1\], but f32\[1,64\] was inferred"):
        ir.compile_model(read(net), backend=backend)([])
