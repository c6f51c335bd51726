"""Finding the first faulty layer by running parts of the model."""

from __future__ import annotations

import json
import math
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from harness.debugging import FAULTS, WrongLayer
from models.networks import NETWORKS, save

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.cli import main
from ir_runtime.debug.bisect import Cuts
from ir_runtime.debug.compare import judge
from ir_runtime.debug.reference import Recorder, Reference
from ir_runtime.debug.tensors import computed_layers, is_float
from ir_runtime.ir.graph import Layer
from ir_runtime.ir.tensor import Array
from ir_runtime.ops._define.describe import group

_MOVES = ("movement", "shape")


def _faults(model: ir.Model, inputs: list[Array], count: int) -> list[WrongLayer]:
    """Yield sides with one faulty layer that affects the outputs."""
    reference, random = Reference(model), np.random.default_rng(0)
    able = [layer.name for layer in computed_layers(reference.graph) if _computes(reference, layer)]
    drawn = (WrongLayer(random.choice(able), FAULTS[random.choice(list(FAULTS))]) for _ in range(5 * count))
    shown = (side for side in drawn if not judge(model, inputs, side, inside=False)[0].explained)
    return [next(shown) for _ in range(count)]


def _computes(reference: Reference, layer: Layer) -> bool:
    moves = group(type(layer.op)) in _MOVES
    return is_float(reference.types, layer.output_ports[0]) and not moves


@pytest.mark.parametrize("name", NETWORKS)
def test_five_random_faults_are_found_in_their_layer(name: str, tmp_path: Path) -> None:
    model, inputs = ir.read_model(save(name, tmp_path)), NETWORKS[name][1]()
    reference = Reference(model)
    recorder = Recorder(port for layer in reference.graph for port in layer.output_ports)
    reference.run(inputs, recorder)
    cuts = Cuts(model, reference, inputs)
    widest = max(
        sum(recorder.tensors[port].nbytes for port in cuts.crossing(place))
        for place in range(len(cuts.layers) + 1)
    )
    for side in _faults(model, inputs, 5):
        side.runs = 0
        found = debug.bisect(model, inputs, side)
        assert found.layers == (side.name,)
        assert side.runs == found.runs <= 2 * math.log2(found.of)
        assert found.kept <= widest


def test_a_difference_that_rounding_explains_is_a_result(tmp_path: Path) -> None:
    path = save("plain_cnn", tmp_path)
    model, inputs = ir.read_model(path), NETWORKS["plain_cnn"][1]()
    found = debug.bisect(model, inputs, "numpy")
    assert (bool(found), found.layers, found.layer, found.runs) == (False, (), "", 1)
    assert str(found).startswith(
        "explained: rounding explains how numpy differs from f64: nothing to find\noutput "
    )
    assert "0 of 0" not in str(found)
    done = CliRunner().invoke(main, ["bisect", str(path), "--against", "numpy", "--random", "--json"])
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert (record["layer"], record["layers"], record["report"]["verdict"]) == (None, [], "explained")


def test_layers_that_are_wrong_together_only_are_named_together(tmp_path: Path) -> None:
    """For example a faulty fusion, which needs both layers."""
    model, inputs = ir.read_model(save("plain_cnn", tmp_path)), NETWORKS["plain_cnn"][1]()
    layers = [layer.name for layer in computed_layers(Reference(model).graph)]
    first, second = layers[4], layers[5]
    side = WrongLayer(second, FAULTS["scaled"], needs=first)
    found = debug.bisect(model, inputs, side)
    assert {first, second} <= set(found.layers)
    assert len(found.layers) < len(layers)
    assert f"not in parts: the {len(found.layers)} layers" in str(found)


def test_the_command_names_the_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, side = save("residual", tmp_path), WrongLayer("", FAULTS["scaled"])
    side.name = computed_layers(Reference(ir.read_model(path)).graph)[6].name
    monkeypatch.setattr(import_module("ir_runtime.debug.compare"), "side_of", lambda _: side)
    done = CliRunner().invoke(main, ["bisect", str(path), "--against", "numpy", "--random", "--json"])
    assert done.exit_code == 1, done.output
    assert json.loads(done.stdout)["layer"] == side.name
