"""Messages for files and runs that exceed the limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from harness.nets import Net
from harness.refusals import Call

import ir_runtime as ir
from messages.files import SUM, looping

FOLDER = "messages"


def copying() -> Net:
    """Two ReLUs of x[2,3]."""
    net = Net()
    end = net.parameter("x", "2,3", out="FP32 2 3")
    for name in ("first", "second"):
        end = net.op("ReLU", end, out="FP32 2 3", name=name)
    net.result(end)
    return net


def weighing() -> Net:
    net = Net()
    net.result(net.constant([1.0, 2.0], "f32", name="weights"))
    return net


def read(net: Net, **limits: int) -> Callable[[], ir.Model]:
    return lambda: ir.read_model(net.xml(), net.weights, limits=ir.Limits(**limits))


def page(text: str, **limits: int) -> Callable[[], ir.Model]:
    return lambda: ir.read_model(text.encode(), limits=ir.Limits(**limits))


def run(net: Net, **limits: int) -> Callable[[], object]:
    x = np.ones((2, 3), np.float32)
    return lambda: ir.compile_model(read(net, **limits)())([x])


def constrain(**limits: int) -> Callable[[], object]:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "?,?", out="FP32 -1 -1"), out="FP32 -1 -1", name="first"))
    return lambda: read(net, **limits)().constraints()


REFUSALS = [
    Call("xml_bytes", read(copying(), xml_bytes=100)),
    Call("page_bytes", page("A page.\n" + SUM, page_bytes=100)),
    Call("examples", page(SUM + "and\n" + SUM, examples=1)),
    Call("layers", read(copying(), layers=2)),
    Call("edges", read(copying(), edges=2)),
    Call("nesting", read(looping(), nesting=0)),
    Call("attribute_bytes", read(copying(), attribute_bytes=4)),
    Call("open_lengths", constrain(open_lengths=1)),
    Call("rank", read(copying(), rank=1)),
    Call("elements", read(copying(), elements=4)),
    Call("constant_bytes", read(weighing(), constant_bytes=4)),
    Call("memory", run(copying(), memory=40)),
    Call("trips", run(looping(), trips=1)),
]
