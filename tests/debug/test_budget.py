"""What a lower precision costs, layer by layer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from harness.nets import Net
from models.networks import NETWORKS, save

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.cli import main


@pytest.mark.parametrize("to", ["bf16", "f16", "int8", "int4"])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_layers_predict_the_whole(name: str, to: str, tmp_path: Path) -> None:
    model, inputs = ir.read_model(save(name, tmp_path)), NETWORKS[name][1]()
    found = debug.budget(model, inputs, to, keep=2)
    errors = [cost.error for cost in found.layers]
    assert errors == sorted(errors, reverse=True)
    assert found.total == pytest.approx(found.predicted, rel=1)
    assert found.kept == tuple(cost.layer for cost in found.layers[:2])
    assert found.remaining < found.total


def test_the_layer_with_weights_that_do_not_fit_costs_most() -> None:
    net, random = Net(), np.random.default_rng(0)
    even = random.choice([-1.0, 1.0], (8, 8)).astype(np.float32)  # int8 has these exactly
    uneven = random.standard_normal((8, 8)).astype(np.float32)
    first = net.op(
        "MatMul", net.parameter("x", "1,8"), net.constant(even, "f32"), name="even", transpose_b="true"
    )
    net.result(net.op("MatMul", first, net.constant(uneven, "f32"), name="uneven", transpose_b="true"))
    model = ir.read_model(net.xml(), net.weights)
    found = debug.budget(model, random.standard_normal((1, 8)).astype(np.float32), "int8", keep=1)
    assert found.kept == ("uneven",)
    assert found.layers[1].error < 1e-6 < found.layers[0].error
    assert found.remaining < 1e-6


def test_unknown_precisions_are_refused(tmp_path: Path) -> None:
    model, inputs = ir.read_model(save("plain_cnn", tmp_path)), NETWORKS["plain_cnn"][1]()
    with pytest.raises(ir.InputError, match="unknown precision 'int7'"):
        debug.budget(model, inputs, "int7")


def test_the_command_gives_the_costs_as_data(tmp_path: Path) -> None:
    path = save("plain_cnn", tmp_path)
    done = CliRunner().invoke(
        main, ["budget", str(path), "--random", "--to", "int4", "--keep", "1", "--json"]
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["kept"] == [found["layers"][0]["layer"]]
    assert found["remaining"] < found["total"]
