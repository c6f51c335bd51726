"""What is promised of debugging, on networks of the zoo."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from models.networks import NETWORKS, save
from models.zoo import example_inputs, ir_path

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.debug.decisions import decides
from ir_runtime.debug.precision import emulated
from ir_runtime.debug.reference import Recorder, Reference
from ir_runtime.debug.tensors import is_float, name_of
from ir_runtime.debug.verdict import error_of
from ir_runtime.ir.tensor import Array

ORACLE = [
    "t5_encoder", "t5_decoder", "llama", "mobilenet_v2", "lstm", "bilstm", "small_cnn", "squeezenet1_1", "unet_3d", "ssdlite",
    "shufflenet_v2_x1_0", "whisper_encoder", "whisper_decoder", "yolo",
]  # fmt: skip
PINNED = 1e-5
"""How far f32 may be from f64, with the decisions of f32: random weights let errors grow."""


@pytest.mark.oracle
@pytest.mark.parametrize("name", ORACLE)
def test_the_oracle_runs_networks_of_every_kind(name: str) -> None:
    model, inputs = ir.read_model(ir_path(name)), example_inputs(name)
    reference = Reference(model)
    feeds = reference.feeds(inputs)
    ports = [port for layer in reference.graph for port in layer.output_ports]
    largest = Recorder(ports)
    results = reference.run(feeds, largest)
    deciding = [layer for layer in reference.graph if decides(reference.graph, reference.types, layer)]
    pins = {
        name_of(reference.graph, port): largest.tensors[port]
        for layer in deciding
        for port in layer.output_ports
        if port in largest.tensors
    }
    truth = debug.oracle(model, inputs, pin=pins)
    for found, exact, port in zip(results, truth.outputs, reference.outputs, strict=True):
        if is_float(reference.types, port._port):
            assert error_of(found, exact).relative < PINNED


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["mobilenet_v2", "squeezenet1_1", "t5_encoder", "ssdlite"])
def test_f64_takes_twice_the_memory_of_f32_and_a_layer(name: str) -> None:
    model, inputs = ir.read_model(ir_path(name)), example_inputs(name)
    reference = Reference(model)
    feeds = reference.feeds(inputs)
    recorder = Recorder(port for layer in reference.graph for port in layer.output_ports)
    reference.run(feeds, recorder)
    layer = max(array.nbytes for array in recorder.tensors.values())
    narrow, wide = (_peak(Reference(model, wide), feeds) for wide in (False, True))
    assert wide <= 2 * narrow + 2 * layer


def _peak(reference: Reference, feeds: list[Array]) -> int:
    """The most bytes that arrays take in a run."""
    tracemalloc.start()
    try:
        reference.run(feeds)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_plans_of_a_reference_share_its_weights(tmp_path) -> None:  # type: ignore[no-untyped-def]
    model, inputs = ir.read_model(save("plain_cnn", tmp_path)), NETWORKS["plain_cnn"][1]()
    first, second = Reference(model), Reference(model, wide=True)
    slots = [[array for array in each._plan.slots if array is not None] for each in (first, second)]
    addresses = [{array.ctypes.data for array in arrays if array.nbytes > 64} for arrays in slots]
    assert addresses[0]
    assert addresses[0] == addresses[1]
    first.run(inputs)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name", ["squeezenet1_1", "t5_encoder", "whisper_encoder", "whisper_decoder", "llama"]
)
def test_keeping_the_worst_layers_gains_more_than_keeping_others(name: str) -> None:
    model, inputs = ir.read_model(ir_path(name)), example_inputs(name)
    found = debug.budget(model, inputs, "bf16", keep=3)
    assert found.predicted == pytest.approx(found.total, rel=0.3)
    names, random = [cost.layer for cost in found.layers], np.random.default_rng(0)
    others = [set(random.choice(names, min(3, len(names)), replace=False)) for _ in range(3)]
    assert found.remaining <= np.mean([_without(model, inputs, set(names) - kept) for kept in others])


def _without(model: ir.Model, inputs: object, layers: set[str]) -> float:
    """The error at the outputs with some layers in bf16."""
    reference = Reference(model)
    feeds, change = reference.feeds(inputs), emulated("bf16")
    assert change is not None
    exact = reference.run(feeds)
    rounded = reference.run(feeds, lambda la, given, y: change(la, given, y) if la.name in layers else y)
    pairs = zip(reference.outputs, rounded, exact, strict=True)
    return max(error_of(a, b).relative for port, a, b in pairs if is_float(reference.types, port._port))
