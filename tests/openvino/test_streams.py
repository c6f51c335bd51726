"""Concurrent runs: their number and threads, as set by OpenVINO's properties."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.backends.core.threads import at_most, most
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.openvino.config import check_config
from ir_runtime.openvino.devices import Streams
from ir_runtime.ops import Input, Op, Output, op, registry
from ir_runtime.ops._define.operation import T_FLOAT

ALLOWED: list[int] = []
MEETING = threading.Barrier(1)


@pytest.fixture(autouse=True)
def operation() -> Iterator[None]:
    """An operation that waits until all runs have reached it, and records how many of 64 threads each may use."""

    @op("ProbeThreads-1")
    class Threads(Op):
        """Return the input."""

        data = Input(T_FLOAT, "any")
        output = Output(T_FLOAT, "the same")

        def infer(self, data: Value) -> PartialShape:
            return data.shape

        def evaluate(self, data: Array) -> Array:
            MEETING.wait(600)
            ALLOWED.append(most(64))
            return data

    ALLOWED.clear()
    yield
    registry.remove(Threads)


def compiled(**config: Any) -> ir.CompiledModel:
    net = Net()
    net.result(net.op("ProbeThreads", net.parameter("x", "2", out="FP32 2"), out="FP32 2"))
    return ir.compile_model(ir.read_model(net.xml(), net.weights), "CPU", config)


@pytest.mark.parametrize(
    ("config", "threads", "count", "share"),
    [
        ({"INFERENCE_NUM_THREADS": 8}, 8, 1, 8),
        ({"INFERENCE_NUM_THREADS": "8", "NUM_STREAMS": "4"}, 8, 4, 2),
        ({"INFERENCE_NUM_THREADS": 2, "NUM_STREAMS": 3}, 2, 3, 1),
        ({"INFERENCE_NUM_THREADS": 6, "NUM_STREAMS": "AUTO"}, 6, 6, 1),
        ({"INFERENCE_NUM_THREADS": 6, "NUM_STREAMS": "NUMA"}, 6, 1, 6),
        ({"INFERENCE_NUM_THREADS": 6, "PERFORMANCE_HINT": "THROUGHPUT"}, 6, 6, 1),
        (
            {
                "INFERENCE_NUM_THREADS": 6,
                "PERFORMANCE_HINT": "THROUGHPUT",
                "PERFORMANCE_HINT_NUM_REQUESTS": 2,
            },
            6,
            2,
            3,
        ),
        ({"INFERENCE_NUM_THREADS": 6, "PERFORMANCE_HINT": "LATENCY"}, 6, 1, 6),
    ],
)
def test_properties_say_how_threads_are_shared(
    config: dict[str, Any], threads: int, count: int, share: int
) -> None:
    found = Streams.of(check_config(config))
    assert (found.threads, found.count, found.share(1)) == (threads, count, share)
    model = compiled(**config)
    assert model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") == count
    model(np.zeros(2, np.float32))
    assert [share] == ALLOWED
    assert most(64) == 64


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"INFERENCE_NUM_THREADS": "many"},
            "INFERENCE_NUM_THREADS must be a non-negative integer, got 'many'",
        ),
        ({"NUM_STREAMS": -7}, "NUM_STREAMS must be a non-negative integer, got -7"),
        (
            {"PERFORMANCE_HINT": "SPEED"},
            "PERFORMANCE_HINT must be one of LATENCY, THROUGHPUT, CUMULATIVE_THROUGHPUT, got 'SPEED'",
        ),
    ],
)
def test_what_is_no_number_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ir.InputError, match=message):
        compiled(**config)


def test_runs_at_once_share_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    model = compiled(INFERENCE_NUM_THREADS=8)
    monkeypatch.setitem(globals(), "MEETING", threading.Barrier(2))
    requests = [model.create_infer_request() for _ in range(2)]
    for request in requests:
        request.start_async(np.zeros(2, np.float32))
    for request in requests:
        request.wait()
    assert sorted(ALLOWED) == [4, 8]  # the first was alone when it began
    monkeypatch.setitem(globals(), "MEETING", threading.Barrier(1))
    model(np.zeros(2, np.float32))
    assert ALLOWED[-1] == 8


@pytest.mark.parametrize(("mode", "jobs"), [("LATENCY", 1), ("THROUGHPUT", 3)])
def test_a_queue_has_as_many_requests_as_the_model_is_compiled_for(mode: str, jobs: int) -> None:
    """With a single request, callbacks are called in order of the runs, as programs written for OpenVINO expect."""
    assert len(ir.AsyncInferQueue(compiled(INFERENCE_NUM_THREADS=3, PERFORMANCE_HINT=mode))) == jobs


def test_limits_nest_and_end() -> None:
    with at_most(4):
        with at_most(2):
            assert most(64) == 2
        assert (most(64), most(3)) == (4, 3)
    with at_most(None):
        assert most(64) == 64
