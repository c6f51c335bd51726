"""Booleans of any byte: every byte but 0 is true, on every backend, in every run, wherever it enters a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ov
from ir_runtime import opset13 as ops
from ir_runtime.backends import available
from ir_runtime.ir.array import as_booleans
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Input, Op, Output, op, registry
from ir_runtime.ops._define.operation import T_BOOLEAN

backends = pytest.mark.parametrize("backend", available())
BYTES = [0, 1, 2, 3, 127, 128, 254, 255] * 8
"""Enough for kernels that compute many at once."""
RUNS = 4
"""The first ones, one that is recorded, and one that replays it."""


def view(numbers: Any = BYTES) -> Array:
    return np.array(numbers, np.uint8).view(np.bool_)


def everything(x: Any, y: Any) -> list[Any]:
    """A model with all operations that kernels compute on two boolean tensors."""
    one, zero = ops.constant(np.float32(1)), ops.constant(np.float32(0))
    axis = ops.constant(np.array([0]))
    return [
        ops.logical_not(x),
        ops.logical_and(x, y),
        ops.logical_or(x, y),
        ops.logical_xor(x, y),
        ops.equal(x, y),
        ops.not_equal(x, y),
        ops.convert(x, "u8"),
        ops.convert(x, "i32"),
        ops.convert(x, "f32"),
        ops.select(x, one, zero),
        ops.reduce_logical_and(x, axis, keep_dims=True),
        ops.reduce_logical_or(x, axis, keep_dims=True),
        ops.non_zero(x, "i64"),
        ops.concat([x, y], 0),
    ]


def as_bytes(results: Any) -> list[Any]:
    """Return arrays, with booleans as bytes."""
    return [(x.view(np.uint8) if x.dtype == np.bool_ else x).tolist() for x in results]


def outcomes(compiled: ov.CompiledModel, *feeds: Any) -> list[Any]:
    """Return the results of each run."""
    return [as_bytes(compiled(list(feeds)).to_tuple()) for _ in range(RUNS)]


def parameters() -> tuple[Any, Any]:
    return tuple(ops.parameter([len(BYTES)], np.bool_, name=name) for name in "xy")  # type: ignore[return-value]


def expected() -> list[Any]:
    x, y = np.array(BYTES) != 0, np.array(BYTES[::-1]) != 0
    u8 = x.astype(np.uint8)
    found = [
        ~x, x & y, x | y, x ^ y, x == y, x != y, u8, u8, u8, u8, x.all(keepdims=True), x.any(keepdims=True),
        np.array(x.nonzero()), np.concatenate([x, y]),
    ]  # fmt: skip
    return as_bytes(found)


@backends
@pytest.mark.parametrize("shared", [False, True])
def test_inputs(backend: str, shared: bool) -> None:
    x, y = parameters()
    compiled = ov.compile_model(ov.Model(everything(x, y), [x, y]), backend=backend)
    first, second = view(), view(BYTES[::-1])
    given = [ov.Tensor(array, shared_memory=True) for array in (first, second)] if shared else [first, second]
    assert outcomes(compiled, *given) == [expected()] * RUNS
    assert first.view(np.uint8).tolist() == BYTES, "the caller's memory is not changed"


@backends
def test_tensors_of_requests(backend: str) -> None:
    x, y = parameters()
    request = ov.compile_model(ov.Model(everything(x, y), [x, y]), backend=backend).create_infer_request()
    mine = view([1] * len(BYTES))
    request.set_tensor("x", ov.Tensor(mine, shared_memory=True))
    request.set_tensor("y", ov.Tensor(view(BYTES[::-1]), shared_memory=True))
    request.infer()
    mine[:] = view()  # is seen, as the memory is shared
    for _ in range(RUNS):
        assert as_bytes(request.infer().to_tuple()) == expected()


@backends
@pytest.mark.parametrize("folded", [True, False])
def test_constants(backend: str, folded: bool) -> None:
    _, y = parameters()
    first = ops.constant(view(), shared_memory=True)
    if folded:
        compiled = ov.compile_model(
            ov.Model(everything(first, ops.constant(ov.Tensor(view(BYTES[::-1])))), []), backend=backend
        )
        assert outcomes(compiled) == [expected()] * RUNS
    else:
        compiled = ov.compile_model(ov.Model(everything(first, y), [y]), backend=backend)
        assert outcomes(compiled, view(BYTES[::-1])) == [expected()] * RUNS


@backends
def test_weights_of_a_file(backend: str, tmp_path: Path) -> None:
    _, y = parameters()
    first = ops.constant(np.ones(len(BYTES), np.bool_))
    path = tmp_path / "model.xml"
    kinds = [
        kind for kind in everything(first, y) if kind.get_type_name() != "NonZero"
    ]  # whose shape is in the file
    ov.save_model(ov.Model(kinds, [y]), path)
    weights = path.with_suffix(".bin")
    stored = weights.read_bytes()
    assert stored.count(bytes([1]) * len(BYTES)) == 1
    weights.write_bytes(stored.replace(bytes([1]) * len(BYTES), bytes(BYTES)))
    compiled = ov.compile_model(ov.read_model(path), backend=backend)
    wanted = expected()
    del wanted[-2]
    assert outcomes(compiled, view(BYTES[::-1])) == [wanted] * RUNS


@backends
def test_an_input_of_another_type(backend: str) -> None:
    """Booleans are cast to the type of the input."""
    x = ops.parameter([len(BYTES)], np.float32, name="x")
    compiled = ov.compile_model(ov.Model([ops.relu(x)], [x]), backend=backend)
    assert outcomes(compiled, view()) == [[[float(n != 0) for n in BYTES]]] * RUNS


@backends
def test_variables(backend: str) -> None:
    from ir_runtime.op.util import Variable, VariableInfo

    _, y = parameters()
    info = VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape([len(BYTES)]), ov.Type.boolean, "v"
    variable = Variable(info)
    read = ops.read_value(y, variable)
    assign = ops.assign(read, variable)
    model = ov.Model(everything(read, y), [assign], [y], "with a variable")
    request = ov.compile_model(model, backend=backend).create_infer_request()
    for _ in range(RUNS):
        request.query_state()[0].state = ov.Tensor(view(), shared_memory=True)
        assert as_bytes(request.infer([view(BYTES[::-1])]).to_tuple()) == expected()


class Asks(ov.Op):
    """A custom operation that returns arbitrary bytes."""

    def __init__(self, inputs: Any = None) -> None:
        super().__init__(self, inputs)

    def validate_and_infer_types(self) -> None:
        self.set_output_type(0, ov.Type.boolean, self.get_input_partial_shape(0))

    def clone_with_new_inputs(self, inputs: Any) -> Any:
        return Asks(inputs)

    def evaluate(self, outputs: Any, inputs: Any) -> bool:
        outputs[0].data[...] = view()
        return True

    def has_evaluate(self) -> bool:
        return True


@pytest.fixture
def declared() -> Iterator[type[Op]]:
    """An operation declared like those of the package."""

    @op("ProbeBytes-1")
    class Bytes(Op):
        """Return arbitrary bytes."""

        data = Input(T_BOOLEAN, "any")
        output = Output(T_BOOLEAN, "others")

        def infer(self, data: Value) -> PartialShape:
            return data.shape

        def evaluate(self, data: Array) -> Array:
            return view()

    yield Bytes
    registry.remove(Bytes)


@backends
def test_operations_from_outside(backend: str) -> None:
    _, y = parameters()
    compiled = ov.compile_model(ov.Model(everything(Asks([y]).output(0), y), [y]), backend=backend)
    assert outcomes(compiled, view(BYTES[::-1])) == [expected()] * RUNS


@backends
def test_operations_that_are_declared(backend: str, declared: type[Op]) -> None:
    net = Net()
    x = net.parameter("x", str(len(BYTES)), "boolean", out=f"BOOL {len(BYTES)}")
    made = net.op("ProbeBytes", x, out=f"BOOL {len(BYTES)}")
    net.result(net.op("LogicalNot", made, out=f"BOOL {len(BYTES)}"))
    compiled = ov.compile_model(ov.read_model(net.xml(), net.weights), backend=backend)
    assert outcomes(compiled, view()) == [[[int(n == 0) for n in BYTES]]] * RUNS


def test_evaluating_a_node() -> None:
    x, _ = parameters()
    found = ov.Tensor(np.zeros(len(BYTES), np.int32))
    assert ops.convert(x, "i32").evaluate([found], [ov.Tensor(view(), shared_memory=True)])
    assert found.data.tolist() == [int(n != 0) for n in BYTES]


def test_arrays_that_are_right_are_not_copied() -> None:
    for array in (
        np.ones(3, bool),
        np.zeros((0, 2), bool),
        np.full(3, 2, np.uint8),
        np.ones((4, 4), bool)[::2, 1:],
    ):
        assert as_booleans(array) is array


def test_one_boolean_stays_an_array() -> None:
    found = as_booleans(view(2).reshape(()))
    assert isinstance(found, np.ndarray)
    assert found.view(np.uint8) == 1


def test_views_with_gaps() -> None:
    assert as_booleans(view().reshape(8, 8)[::2, 1::3]).view(np.uint8).max() == 1
