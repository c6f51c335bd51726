"""Costs of running a model: arithmetic, parameters, memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness.layers import counted
from harness.nets import Net, looping
from models.collection import zoo

import ir_runtime
from ir_runtime.analysis.cost import Cost
from ir_runtime.ir.tensor import Array

EXAMPLES = Path(__file__).parents[2] / "examples"
DIGITS = EXAMPLES / "digits" / "digits.xml"
SEGMENTER = EXAMPLES / "segmenter" / "segmenter.xml"


def agree(found: Cost, run: dict[str, int], **lengths: int) -> None:
    """Compare the counted FLOPs of each layer with those of a run."""
    checked = 0
    for layer in found.layers:
        if layer.name in run:
            assert layer.flops is not None
            flops = layer.flops if isinstance(layer.flops, int) else layer.flops.at(lengths)
            assert flops == run[layer.name], layer.name
            checked += 1
    assert checked


@pytest.mark.parametrize(
    ("path", "shape", "lengths"),
    [
        (DIGITS, (3, 1, 8, 8), {"batch": 3}),
        (SEGMENTER, (2, 3, 24, 16), {"batch": 2, "height": 24, "width": 16}),
    ],
)
def test_formulas_are_what_a_run_counts(path: Path, shape: tuple[int, ...], lengths: dict[str, int]) -> None:
    model = ir_runtime.read_model(path)
    found = ir_runtime.cost(model)
    run = counted(model, [np.zeros(shape, np.float32)])
    agree(found, run, **lengths)
    layers = {layer.name for layer in found.layers}
    assert found.at(**lengths) == sum(flops for name, flops in run.items() if name in layers)
    assert ir_runtime.cost(model, shape).flops == found.at(**lengths)


def test_the_digits_by_hand() -> None:
    """Sum the convolutions and parameters in the file by hand: 24, 48 and 80 filters, and ten classes."""
    found = ir_runtime.cost(DIGITS, [1, 1, 8, 8])
    spatial = 8 * 8
    assert found.macs == spatial * 24 * 9 + spatial * 48 * 24 * 9 + 16 * 80 * 48 * 9 + 80 * 10
    assert found.parameters == sum(weights.numbers for weights in found.weights) == 46106
    assert [weights.record() for weights in found.weights] == [
        {"type": "f32", "tensors": 8, "numbers": 46106, "bytes": 46106 * 4}
    ]
    assert [each.operation for each in found.operations][:2] == ["Convolution-1", "Add-1"]
    assert all(layer.layer.type not in ("Constant", "Parameter", "Result") for layer in found.layers)


def test_lengths_are_written_as_factors() -> None:
    found = ir_runtime.cost(DIGITS)
    matmul = next(layer for layer in found.layers if layer.layer.type == "MatMul")
    assert matmul.record()["flops"] == "2·batch·10·80"
    assert found.record()["macs"] == "1231136·batch"
    assert [length.name for length in found.lengths] == ["batch"]
    assert found.peak is None


def test_the_peak_is_the_largest_sum_of_what_is_needed_together() -> None:
    """The peak is between two 8x8 convolutions: the input, 24 channels read and 48 written."""
    found = ir_runtime.cost(DIGITS, [1, 1, 8, 8])
    assert found.peak == 4 * (64 + 48 * 64 + 48 * 64)


def run_loop(trips: int) -> tuple[Cost, dict[str, int]]:
    net = looping("4", count=trips)
    model = ir_runtime.read_model(net.xml(), net.weights)
    return ir_runtime.cost(model), counted(model, [np.ones(4, np.float32)])


def test_loops_count_their_body_as_often_as_it_runs() -> None:
    found, run = run_loop(5)
    assert found.flops == sum(run.values()) == 20
    loop, twice = found.layers
    assert (loop.operation, loop.flops, loop.within) == ("Loop-5", 20, "")
    assert (twice.name, twice.flops, twice.within) == ("loop/body/twice", 4, "loop/body")


def test_loops_of_unknown_length_are_formulas() -> None:
    net = looping("4")
    found = ir_runtime.cost(ir_runtime.read_model(net.xml(), net.weights))
    assert found.record()["flops"] == "4·trips1"
    assert found.record()["run_lengths"] == [{"name": "trips1", "layer": "loop", "axis": None}]


def test_lengths_that_only_a_run_tells_have_short_names() -> None:
    """Data-dependent dims have short symbols, however long the names of their layers."""
    net = Net()
    places = net.op(
        "NonZero", net.parameter("x", "4"), name="model/" * 20 + "places", version="opset3", output_type="i64"
    )
    numbers = net.op("Convert", places, destination_type="f32")
    net.result(net.op("Exp", numbers))
    found = ir_runtime.cost(ir_runtime.read_model(net.xml()))
    (length,) = found.run_lengths
    assert length.record() == {"name": "n1", "layer": "model/" * 20 + "places", "axis": 1}
    exp = next(layer for layer in found.layers if layer.layer.type == "Exp")
    assert exp.record()["flops"] == "n1"
    assert found.record()["run_lengths"] == [length.record()]


def test_layers_without_ranks_are_named() -> None:
    text = (
        '<layer id="0" type="Abs" name="abs" version="opset1"><input><port id="0"/></input>'
        '<output><port id="1"/></output></layer>'
    )
    model = ir_runtime.read_fragment(text)
    model.reshape("...")
    found = ir_runtime.cost(model)
    assert (found.unknown, found.flops) == (("abs",), 0)


KNOWN = {
    "resnet50": (4.09e9, 25.5e6),  # 4.09 GMACs: torchvision's documentation
    "mobilenet_v2": (0.301e9, 3.49e6),  # 0.30 GMACs: torchvision's documentation
    "squeezenet1_1": (0.35e9, 1.24e6),  # 0.35 GMACs: torchvision's documentation
    "vit_b_16": (17.56e9, 86.6e6),  # 17.56 GMACs: torchvision's documentation
    "densenet121": (2.83e9, 7.9e6),  # 2.83 GMACs: torchvision's documentation
    "bert_base_128": (11.17e9, 109.5e6),  # 22.4 GFLOPs: TensorFlow's profiler, in the paper of MobileBERT
}


@pytest.mark.oracle
@pytest.mark.parametrize("path", [path for path in zoo() if path.stem in KNOWN], ids=lambda path: path.stem)
def test_known_figures_of_networks(path: Path) -> None:
    found = ir_runtime.cost(path)
    macs, parameters = KNOWN[path.stem]
    assert found.macs == pytest.approx(macs, rel=0.01)
    assert found.parameters == pytest.approx(parameters, rel=0.01)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "path",
    [p for p in zoo() if p.stem in ("mobilenet_v2", "lstm", "small_cnn", "t5_encoder")],
    ids=lambda p: p.stem,
)
def test_networks_compute_in_a_run_what_is_counted(path: Path) -> None:
    model = ir_runtime.read_model(path)
    shapes = {i: [d.min if d.is_static else 7 for d in p.partial_shape] for i, p in enumerate(model.inputs)}
    model.reshape(shapes)
    inputs: list[Array] = [np.ones(port.shape, port.element_type.dtype) for port in model.inputs]
    agree(ir_runtime.cost(model), counted(model, inputs))
