"""What a lower precision costs, layer by layer."""

from __future__ import annotations

import json
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from harness.nets import Net
from models.networks import NETWORKS, save

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op
from ir_runtime.cli import main
from ir_runtime.ops.convolution import forward as op_forward


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


def test_layers_that_are_not_rounded_are_not_computed_by_their_slow_definitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    noting = import_module("ir_runtime.debug.budget")
    define, run = noting.evaluate_layer, op_forward.convolve
    monkeypatch.setattr(
        noting, "evaluate_layer", lambda la, given: calls.append(la.name) or define(la, given)
    )
    monkeypatch.setattr(op_forward, "convolve", lambda *given: calls.append("") or run(*given))
    model, inputs = ir.read_model(save("plain_cnn", tmp_path)), NETWORKS["plain_cnn"][1]()
    layers = debug.budget(model, inputs, "bf16", keep=1).layers
    rounded = Counter(filter(None, calls))
    # alone, together, and with one kept: each time as it is and rounded
    assert set(rounded.values()) == {4, 6}
    assert calls.count("") == sum(rounded[each.layer] for each in layers if each.operation == "Convolution-1")


def test_results_are_rounded_behind_the_bias() -> None:
    """Runtimes add it in the same node: 257 - 1 is a number of bf16, which 257 is not."""
    x = op.parameter([1, 2], np.float32, name="x")
    product = op.matmul(x, op.constant(np.float32([[1], [1]])), False, False)
    node = op.relu(op.add(product, op.constant(np.float32([[-1]]))))
    (cost,) = debug.budget(ir.Model([node], [x]), np.float32([[256, 1]])).layers
    assert cost.error == 0


def test_softmax_is_computed_from_rounded_sums() -> None:
    """Not in the node of the product, unlike a bias: of 257 and 256, bf16 has 256 twice."""
    x = op.parameter([1, 2], np.float32, name="x")
    product = op.matmul(x, op.constant(np.float32([[1, 1], [1, 0]])), False, False)
    (cost,) = debug.budget(ir.Model([op.softmax(product, 1)], [x]), np.float32([[256, 1]])).layers
    assert cost.error > 0.1


def _selecting() -> ir.Model:
    """Sums the scores that are over a half, as NonMaxSuppression in a branch selects them."""
    x = op.parameter([1, 4], np.float32, name="x")
    scores = op.matmul(x, op.constant(np.eye(4, dtype=np.float32)), False, False, name="scores")
    corners = np.float32([[i, i, i + 1, i + 1] for i in range(4)])
    inner = op.parameter([1, 1, 4], np.float32)
    numbers = op.constant(4), op.constant(np.float32(0.5)), op.constant(np.float32(0.5))
    selected = op.result(op.non_max_suppression(op.constant(corners[None]), inner, *numbers).output(0))
    nothing = op.parameter([1, 1, 4], np.float32)
    others = op.result(op.constant(np.zeros((0, 3), np.int64)))
    branch = op.if_op(op.greater(op.reduce_max(x, op.constant([0, 1])), op.constant(np.float32(0))))
    branch.set_then_body(ir.Model([selected], [inner]))
    branch.set_else_body(ir.Model([others], [nothing]))
    branch.set_input(op.reshape(scores, op.constant([1, 1, 4]), False).output(0), inner, nothing)
    indices = op.gather(branch.set_output(selected, others), op.constant(2), op.constant(1))
    chosen = op.gather(scores, indices, op.constant(1))
    return ir.Model([op.reduce_sum(chosen, op.constant([0, 1]))], [x])


def test_what_a_branch_selects_in_f32_is_selected_also_in_the_lower_precision() -> None:
    found = debug.budget(_selecting(), np.float32([[0.9, 0.5001, 0.1, 0.7]]))  # 0.5001 is 0.5 in bf16
    assert 0 < found.total < 0.005


def test_a_model_without_products_says_so() -> None:
    x = op.parameter([2], np.float32, name="x")
    found = debug.budget(ir.Model([op.exp(x)], [x]), np.float32([0, 1]))
    assert str(found) == "no layer multiplies matrices: bf16 costs nothing"


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
