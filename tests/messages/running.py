"""Messages for models that are valid, or nearly so, but do not run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from harness.nets import Net
from harness.refusals import Call

import ir_runtime as ir
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Input, Op, Output, op, registry
from ir_runtime.ops._define.operation import T_FLOAT

FOLDER = "messages"

X = np.ones(2, np.float32)


class _Odd(Op):
    """Base class of operations for these tests."""

    data = Input(T_FLOAT, "any")
    output = Output(T_FLOAT, "of the same shape")

    def infer(self, data: Value) -> PartialShape:
        return data.shape


class _Longer(_Odd):
    """Returns more elements than inferred."""

    def evaluate(self, data: Array) -> Array:
        return np.concatenate([data, data])


class _Vast(_Odd):
    """Asks for too much memory."""

    def evaluate(self, data: Array) -> Array:
        raise MemoryError("Unable to allocate 9 TiB")


class _Broken(_Odd):
    """Raises an unexpected error."""

    def evaluate(self, data: Array) -> Array:
        raise IndexError("list index out of range")


class _Fewer(Op):
    """Omits one of its outputs."""

    data = Input(T_FLOAT, "any")
    first = Output(T_FLOAT, "of the same shape")
    second = Output(T_FLOAT, "likewise")

    def infer(self, data: Value) -> tuple[PartialShape, ...]:
        return data.shape, data.shape

    def evaluate(self, data: Array) -> Array:
        return data


class _Confused(_Odd):
    """Raises an unexpected error in inference."""

    def infer(self, data: Value) -> PartialShape:
        raise IndexError("list index out of range")


@contextmanager
def declared(cls: type[Op]) -> Iterator[None]:
    """Declare an operation as ``Odd-1`` inside the block."""
    made = op("Odd-1")(type("Odd", (cls,), {"__doc__": cls.__doc__}))
    try:
        yield
    finally:
        registry.remove(made)


def odd(shape: str = "2") -> Net:
    net = Net()
    net.result(net.op("Odd", net.parameter("x", shape, out=f"FP32 {shape}"), out=f"FP32 {shape}", name="odd"))
    return net


def run(net: Net, **how: object) -> None:
    ir.compile_model(ir.read_model(net.xml(), **how))([X])  # type: ignore[arg-type]


def odd_one(cls: type[Op]) -> None:
    with declared(cls):
        run(odd())


def odd_pair(cls: type[Op]) -> None:
    net = Net()
    for number, end in enumerate(net.layer("Odd", [net.parameter("x", "2", out="FP32 2")], ["FP32 2"] * 2)):
        net.result(end, name=f"result_{number}")
    with declared(cls):
        run(net)


def invalid(cls: type[Op]) -> None:
    with declared(cls):
        ir.read_model(odd().xml())


def unknown(*types: str, version: str = "opset1") -> Net:
    """A chain of unknown operations."""
    net = Net()
    end = net.parameter("x", "2", out="FP32 2")
    for type in types:
        end = net.op(type, end, out="FP32 2", version=version, name=type.lower())
    net.result(end)
    return net


def not_even_looked_at() -> None:
    """Compile a model that was read with an unknown operation."""
    ir.compile_model(ir.read_model(unknown("Mystery").xml(), strict=False))


def without_weights() -> None:
    """Compile a model that was read without its weights."""
    net = Net()
    sum = net.op("Add", net.parameter("x", "2", out="FP32 2"), net.constant([1, 2], "f32"), out="FP32 2")
    net.result(sum)
    ir.compile_model(ir.read_model(net.xml(), strict=False))


def without_time() -> None:
    run(unknown("ReLU"), limits=ir.Limits(seconds=0))


REFUSALS = [
    Call("one unknown operation", lambda: ir.read_model(unknown("Mystery").xml())),
    Call("several unknown operations", lambda: ir.read_model(unknown("Mystery", "Riddle", "Riddle").xml())),
    Call("operation of an extension", lambda: ir.read_model(unknown("Mystery", version="extension").xml())),
    Call("compiled all the same", not_even_looked_at),
    Call("compiled without weights", without_weights),
    Call("no way to run it", lambda: odd_one(_Odd)),
    Call("more than was inferred", lambda: odd_one(_Longer)),
    Call("an output too few", lambda: odd_pair(_Fewer)),
    Call("not enough memory", lambda: odd_one(_Vast)),
    Call("mistake in an operation", lambda: odd_one(_Broken)),
    Call("mistake in an inference", lambda: invalid(_Confused)),
    Call("no time", without_time),
]
