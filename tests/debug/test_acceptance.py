"""Guarantees of the debugging tools, on networks of the zoo."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from models.networks import NETWORKS, save
from models.zoo import example_inputs, ir_path

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.debug.budget import _Budgeting
from ir_runtime.debug.decisions import decides, pin_decisions
from ir_runtime.debug.reference import Change, Recorder, Reference, chain_changes
from ir_runtime.debug.tensors import is_float
from ir_runtime.debug.verdict import error_of
from ir_runtime.ir.graph import Layer
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
    assert max(_pinned_errors(name)) < PINNED


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["mobilenet_v2_int8", "resnet18_int8"])
def test_f32_with_its_own_decisions_is_within_a_millionth(name: str) -> None:
    """Without pinned decisions, 8-bit networks are off by 1 % and more."""
    assert max(_pinned_errors(name)) <= 1e-6


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(16))
def test_t5_in_f32_is_within_a_millionth_where_sums_are_exact(seed: int) -> None:
    """Sums rounded term by term are off by up to 4 times that, in OpenVINO as well: SoftMax amplifies the error."""
    model, inputs = ir.read_model(ir_path("t5_encoder")), example_inputs("t5_encoder", seed)
    rounded_once = max(_pinned_errors("t5_encoder", seed, _in_f32))
    assert rounded_once <= 1e-6
    assert max(_pinned_errors("t5_encoder", seed)) <= 4 * rounded_once
    assert debug.compare(model, inputs, "openvino:f32").explained


def _in_f32(_: Layer, __: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
    """Round each result to f32 once, whatever the precision of the computation."""
    return tuple(
        array.astype(np.float32).astype(np.float64) if array.dtype == np.float64 else array
        for array in outputs
    )


def _pinned_errors(name: str, seed: int = 0, rounding: Change | None = None) -> list[float]:
    """Return the errors of outputs against f64 with pinned decisions: those of the reference, or those of f64 after a rounding."""
    model, inputs = ir.read_model(ir_path(name)), example_inputs(name, seed)
    reference, wide = Reference(model), Reference(model, wide=True)
    feeds = reference.feeds(inputs)
    deciding = [layer for layer in reference.graph if decides(reference.graph, reference.types, layer)]
    seen = Recorder(port for layer in deciding for port in layer.output_ports)
    results = reference.run(feeds, seen)
    take = pin_decisions(seen.tensors)
    if rounding is not None:
        results = wide.run(feeds, chain_changes(take, rounding))
    return [
        error_of(found, exact).relative
        for found, exact, port in zip(results, wide.run(feeds, take), reference.outputs, strict=True)
        if is_float(reference.types, port._port)
    ]


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
    """Return the peak of array memory in a run, in bytes."""
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


BUDGETED = ["llama", "squeezenet1_1", "t5_encoder", "whisper_decoder", "whisper_encoder", "yolo"]


@pytest.mark.oracle
@pytest.mark.parametrize("name", BUDGETED)
def test_keeping_the_worst_layers_gains_more_than_keeping_others(name: str) -> None:
    model, inputs = ir.read_model(ir_path(name)), example_inputs(name)
    found = debug.budget(model, inputs, "bf16", keep=3)
    assert found.predicted == pytest.approx(found.total, rel=0.3)
    work, random = _Budgeting(model, inputs, "bf16"), np.random.default_rng(0)
    layers = [layer.id for layer in work.layers]
    others = [random.choice(layers, 3, replace=False) for _ in range(3)]
    assert found.remaining <= np.mean([work.outcome(set(layers) - set(kept)).error for kept in others])


@pytest.mark.oracle
def test_layers_predict_the_whole_on_average_where_outputs_are_few() -> None:
    """The error over ten outputs varies more between draws than the prediction is off."""
    model = ir.read_model(ir_path("small_cnn"))
    found = [debug.budget(model, example_inputs("small_cnn", seed), "bf16") for seed in range(24)]
    whole, predicted = (
        np.sqrt(np.mean(np.square(errors)))
        for errors in zip(*((each.total, each.predicted) for each in found), strict=True)
    )
    assert predicted == pytest.approx(whole, rel=0.3)
