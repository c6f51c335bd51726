"""Run kernels when scratch memory cannot be allocated: ``python -m harness.scratch`` prints the error of each.

It needs a process of its own, in which it provides the scratch memory of all kernels.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.nets import Net
from harness.routines import address_of, set_words, word

ALL = 1 << 30

_malloc = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_size_t)(word("allocate"))
_free = ctypes.CFUNCTYPE(None, ctypes.c_size_t)(word("release"))

live: set[int] = set()
most = 0
left = ALL


@ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_size_t)
def _allocate(size: int) -> int:
    global left, most
    left -= 1
    if left < 0:
        return 0
    address: int = _malloc(size)
    live.add(address)
    most = max(most, len(live))
    return address


@ctypes.CFUNCTYPE(None, ctypes.c_size_t)
def _release(address: int) -> None:
    live.remove(address)
    _free(address)


def allow(count: int) -> None:
    """Let the next ``count`` allocations succeed, and none after them."""
    global left, most
    left, most = count, 0


def _parameter(net: Net, *shape: int) -> Any:
    return net.parameter("x", ",".join(map(str, shape)), out=f"FP32 {' '.join(map(str, shape))}")


def _weights(net: Net, *shape: int) -> Any:
    return net.constant(np.random.default_rng(0).standard_normal(shape) * 0.1, "f32")


def convolution() -> tuple[Net, tuple[int, ...]]:
    """A Winograd convolution, whose threads wait for each other."""
    net, shape = Net(), (1, 48, 40, 40)
    given = {"strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}
    x, filters = _parameter(net, *shape), _weights(net, 64, 48, 3, 3)
    net.result(net.op("Convolution", x, filters, out="FP32 1 64 40 40", **given))
    return net, shape


def product() -> tuple[Net, tuple[int, ...]]:
    """A matrix product."""
    net, shape = Net(), (300, 260)
    net.result(net.op("MatMul", _parameter(net, *shape), _weights(net, 260, 200), out="FP32 300 200"))
    return net, shape


def choice() -> tuple[Net, tuple[int, ...]]:
    """The largest elements of rows."""
    net, shape = Net(), (40, 3000)
    how = {"axis": 1, "mode": "max", "sort": "value", "index_element_type": "i32"}
    sources, outputs = [_parameter(net, *shape), net.constant(2000)], ["FP32 40 2000", "I32 40 2000"]
    for end in net.layer("TopK", sources, outputs, version="opset11", **how):
        net.result(end)
    return net, shape


def _check(build: Callable[[], tuple[Net, tuple[int, ...]]], threads: int) -> None:
    import ir_runtime as ir

    net, shape = build()
    model = ir.read_model(net.xml(), net.weights)
    compiled = ir.compile_model(model, backend="native", config={"INFERENCE_NUM_THREADS": threads})
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)

    def run() -> list[bytes]:
        return [np.asarray(array).tobytes() for array in compiled([x]).values()]

    allow(ALL)
    wanted = run()
    asked, failed = ALL - left, 0
    assert asked > 0, build.__name__
    for _ in range(4):  # the later ones are replays
        for count in range(asked):
            allow(count)
            try:
                assert run() == wanted, build.__name__  # less was asked for, as another thread had done all
            except ir.ExecutionError as reason:
                print(reason.message)
                failed += 1
            assert not live, build.__name__
        allow(ALL)
        assert run() == wanted, build.__name__
        assert not live, build.__name__
    assert failed, build.__name__


if __name__ == "__main__":
    set_words(allocate=address_of(_allocate), release=address_of(_release))
    for each in (convolution, product, choice):
        for threads in (1, 2):
            _check(each, threads)
