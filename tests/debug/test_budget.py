"""The accuracy that a lower precision costs, layer by layer."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from harness.nets import Net
from models.digit_networks import calibrating, trained
from models.lowered import Lowering, best_to_keep
from models.networks import NETWORKS, save

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op
from ir_runtime.cli import main
from ir_runtime.debug.budget import choose, difference
from ir_runtime.debug.schemes import PRECISIONS, _before_rounding
from ir_runtime.ir.element import ElementType as Type
from ir_runtime.ir.tensor import Array
from ir_runtime.ops import convolution as op_forward


@pytest.mark.parametrize("to", PRECISIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_layers_predict_the_whole(name: str, to: str, tmp_path: Path) -> None:
    model, inputs = ir.read_model(save(name, tmp_path)), NETWORKS[name][1]()
    found = debug.budget(model, inputs, to, keep=2)
    errors = [cost.error for cost in found.layers]
    assert errors == sorted(errors, reverse=True)
    assert found.total == pytest.approx(found.predicted, rel=1)
    assert len(found.kept) == 2
    assert found.remaining < found.total


def test_the_layer_with_weights_that_do_not_fit_costs_most() -> None:
    net, random = Net(), np.random.default_rng(0)
    even = random.choice([0.0, 1.0], (8, 8)).astype(np.float32)  # int8 has these exactly
    even[:, :2] = 0, 1  # so that no row is constant
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
    noting = import_module("ir_runtime.debug.schemes")
    define, run = noting.evaluate_layer, op_forward.convolve
    monkeypatch.setattr(
        noting, "evaluate_layer", lambda la, given: calls.append(la.name) or define(la, given)
    )
    monkeypatch.setattr(op_forward, "convolve", lambda *given: calls.append("") or run(*given))
    model, inputs = ir.read_model(save("plain_cnn", tmp_path)), NETWORKS["plain_cnn"][1]()
    layers = debug.budget(model, inputs, "bf16", keep=1).layers
    rounded = Counter(filter(None, calls))
    # alone, together, and with one kept, of which two may be tried: each time as it is and rounded
    assert set(rounded.values()) <= {4, 6, 8}
    assert calls.count("") == sum(rounded[each.layer] for each in layers if each.operation == "Convolution-1")


def test_results_are_rounded_behind_the_bias() -> None:
    """Runtimes fuse the bias: 257 - 1 is representable in bf16, 257 is not."""
    x = op.parameter([1, 2], np.float32, name="x")
    product = op.matmul(x, op.constant(np.float32([[1], [1]])), False, False)
    node = op.relu(op.add(product, op.constant(np.float32([[-1]]))))
    (cost,) = debug.budget(ir.Model([node], [x]), np.float32([[256, 1]])).layers
    assert cost.error == 0


def test_softmax_is_computed_from_rounded_sums() -> None:
    """SoftMax is not fused with the product, unlike a bias: 257 and 256 are both 256 in bf16."""
    x = op.parameter([1, 2], np.float32, name="x")
    product = op.matmul(x, op.constant(np.float32([[1, 1], [1, 0]])), False, False)
    (cost,) = debug.budget(ir.Model([op.softmax(product, 1)], [x]), np.float32([[256, 1]])).layers
    assert cost.error > 0.1


def _selecting() -> ir.Model:
    """Sum the scores above 0.5, as NonMaxSuppression in a branch selects them."""
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


@pytest.fixture(scope="module")
def digits() -> ir.Model:
    """A six-layer network with moderate accuracy on digits."""
    return trained("mlp", steps=60)


def _rank_correlation(first: list[float], second: list[float]) -> float:
    """Return Spearman's rank correlation; swapping two neighbours of six leaves 0.94."""
    ranks = [np.argsort(np.argsort(numbers)) for numbers in (first, second)]
    return float(np.corrcoef(*ranks)[0, 1])


@pytest.mark.parametrize("to", ["w8a8", "int8", "int4"])
def test_costs_and_gains_are_those_of_models_that_are_quantized(digits: ir.Model, to: str) -> None:
    """Each layer alone, all layers, and the best set of three are checked on models with FakeQuantize and rounded weights."""
    images = calibrating()
    brute, found = Lowering(digits, to, images), debug.budget(digits, images, to)
    alone = [brute.error({cost.layer}) for cost in found.layers]
    assert set(brute.layers) == {cost.layer for cost in found.layers}
    assert _rank_correlation(alone, [cost.error for cost in found.layers]) >= 0.9
    assert alone == pytest.approx([cost.error for cost in found.layers], rel=1e-2)
    assert brute.error(brute.layers) == pytest.approx(found.total, rel=1e-2)
    kept, best = (brute.error({*brute.layers} - {*names}) for names in (found.kept, best_to_keep(brute, 3)))
    assert kept == pytest.approx(found.remaining, rel=1e-2)
    assert found.total - kept >= 0.8 * (found.total - best)


@pytest.mark.parametrize("name", ["cnn", "depthwise", "lstm", "transformer"])
def test_layers_are_quantized_as_in_a_model(name: str) -> None:
    """Convolutions (the first with half range), depthwise convolutions, LSTM, attention, and sums of two tensors."""
    model, images = trained(name, steps=2), calibrating()[:9]
    for to in ("w8a8", "int4"):
        brute, found = Lowering(model, to, images), debug.budget(model, images, to, keep=0)
        assert set(brute.layers) == {cost.layer for cost in found.layers}
        assert brute.error(brute.layers) == pytest.approx(found.total, rel=3e-2)


def test_a_quantized_model_says_which_layers_to_put_back(digits: ir.Model) -> None:
    images = calibrating()
    quantized = Lowering(digits, "w8a8", images)
    expected = debug.budget(digits, images, "w8a8")
    found = debug.budget(quantized.model(quantized.layers), images, original=digits)
    assert (found.to, len(found.kept)) == ("stored", 3)
    assert found.total == pytest.approx(expected.total, rel=1e-2)
    costs = {cost.layer: cost.error for cost in found.layers}
    worst = {
        cost.layer: cost.error for cost in expected.layers[:3]
    }  # by activations; weights are rounded f32 here
    assert {layer: costs[layer] for layer in worst} == pytest.approx(worst, rel=3e-2)


def _compressed(kind: Any) -> tuple[ir.Model, ir.Model, Array]:
    """A product with low-bit weights, and the model that it was made from."""
    random = np.random.default_rng(3)
    codes = random.integers(0, 16, (12, 32)) - (8 if kind in (Type.i8, Type.i4) else 0)
    exact = codes + random.uniform(-0.45, 0.45, codes.shape)
    models = []
    for stored in (True, False):
        x = op.parameter([-1, 32], np.float32, name="x")
        weights = op.convert(op.constant(codes, kind), "f32") if stored else op.constant(np.float32(exact))
        scaled = op.multiply(op.subtract(weights, op.constant(np.float32(1))), op.constant(np.float32(0.3)))
        models.append(ir.Model([op.matmul(x, scaled, False, True, name="product")], [x]))
    return models[0], models[1], random.standard_normal((50, 32)).astype(np.float32)


@pytest.mark.parametrize("kind", [Type.u8, Type.i8, Type.u4, Type.i4])
def test_weights_of_few_bits_cost_about_what_rounding_them_did(kind: Any) -> None:
    stored, original, x = _compressed(kind)
    (estimated,) = debug.budget(stored, x).layers
    (exact,) = debug.budget(stored, x, original=original).layers
    truth = ir.compile_model(original)(x)[0]
    error = np.linalg.norm(ir.compile_model(stored)(x)[0] - truth) / np.linalg.norm(truth)
    assert exact.error == pytest.approx(error, rel=1e-3)
    assert estimated.error == pytest.approx(error, rel=0.3)


def test_weights_of_nf4_are_put_between_the_levels_around_them() -> None:
    levels = np.float32([-1.0, -0.2, 0.1, 1.0])
    numbers = np.repeat(levels, 500)
    drawn = _before_rounding(numbers, Type.nf4)
    assert np.array_equal(levels[np.abs(drawn[:, None] - levels).argmin(1)], numbers)
    assert np.ptp(drawn[numbers == levels[1]]) > 0.5


def test_what_several_layers_read_of_one_quantizer_is_quantized_for_each() -> None:
    """After a Concat this is impossible: the tensor is quantized as soon as one consumer has the lower precision."""
    x = op.parameter([-1, 2], np.float32, name="x")
    limits = [op.constant(np.float32(limit)) for limit in (-4, 4, -4, 4)]
    coarse = op.fake_quantize(x, *limits, 4)
    weights = op.constant(np.float32(np.eye(2)))
    direct = op.matmul(coarse, weights, False, False, name="direct")
    moved = op.matmul(op.transpose(coarse, op.constant([1, 0])), weights, True, False, name="moved")
    wide = op.constant(np.float32(np.eye(4)))
    joined = op.matmul(op.concat([coarse, x], 1), wide, False, False, name="joined")
    model = ir.Model([direct, moved, joined], [x])
    exact: list[Array] = []

    def unchanged(outputs: list[dict[str, Array]]) -> float:
        arrays = [*outputs[0].values()]
        exact.extend([] if exact else arrays)
        return sum(np.array_equal(*pair) for pair in zip(arrays, exact, strict=True))

    found = debug.budget(model, np.float32([[1, 0.2], [3, -1]]), keep=1, metric=unchanged)
    assert {cost.layer: cost.metric for cost in found.layers} == {"direct": 2, "moved": 2, "joined": 0}


def test_masks_and_pooling_are_not_quantized() -> None:
    q, mask = op.parameter([1, 4, 8], np.float32, name="q"), op.parameter([4, 4], np.float32, name="mask")
    attention = op.scaled_dot_product_attention(q, q, q, mask, name="attention")
    shifted = op.add(op.matmul(q, q, False, True, name="scores"), mask, name="shifted")
    model = ir.Model([attention, op.softmax(shifted, -1)], [q, mask])
    numbers = np.random.default_rng(0).standard_normal((1, 4, 8)).astype(np.float32)
    infinite = np.where(np.tril(np.ones((4, 4))), 0, -np.inf).astype(np.float32)
    found = debug.budget(model, [numbers, infinite], "w8a8")
    assert {cost.layer for cost in found.layers} == {"attention", "scores", "shifted"}
    assert 0 < found.total < 0.1
    x = op.parameter([1, 2, 4, 4], np.float32, name="x")
    coarse = op.fake_quantize(x, *(op.constant(np.float32(limit)) for limit in (-2, 2, -2, 2)), 8)
    pooled = op.max_pool(coarse, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)
    filters = op.constant(np.ones((1, 2, 1, 1), np.float32))
    product = op.convolution(pooled, filters, [1, 1], [0, 0], [0, 0], [1, 1], name="product")
    (cost,) = debug.budget(ir.Model([product], [x]), numbers.reshape(1, 2, 4, 4)).layers
    assert (cost.layer, cost.error > 0) == ("product", True)


def test_a_model_that_is_not_quantized_has_no_layer_to_put_back(digits: ir.Model) -> None:
    found = debug.budget(digits, calibrating()[:2], "stored")
    assert str(found) == "no layer is quantized"


def test_originals_that_are_other_models_are_refused() -> None:
    stored, original, x = _compressed(Type.i8)
    shuffled = op.constant(np.float32(np.random.default_rng(0).standard_normal((12, 32))))
    y = op.parameter([-1, 32], np.float32)
    other = ir.Model([op.matmul(y, shuffled, False, True, name="product")], [y])
    with pytest.raises(ir.InputError, match="layer 'product' has other weights in the original"):
        debug.budget(stored, x, original=other)
    nameless = ir.Model([op.matmul(y, shuffled, False, True)], [y])
    with pytest.raises(ir.InputError, match="the original has no layer 'product' with weights"):
        debug.budget(stored, x, original=nameless)
    with pytest.raises(ir.InputError, match="an original is for quantized models, and bf16 is asked for"):
        debug.budget(original, x, original=original)


def test_errors_that_cancel_each_other_are_worth_nothing() -> None:
    alone = [np.array([1.0, 0.0]), np.array([-1.0, 0.0]), np.array([0.0, 0.5])]
    assert choose(alone, 1) == [2]
    assert sorted(choose(alone, 3)) == [0, 1, 2]


def test_large_outputs_are_kept_as_few_numbers_whose_products_stay() -> None:
    random = np.random.default_rng(0)
    exact, off = random.standard_normal((2, 300_000)).astype(np.float32)
    (squares, first), (_, second) = (difference(exact + part, exact) for part in (off, off * 2))
    assert first.size < 10_000
    assert first @ second == pytest.approx(2 * squares, rel=0.1)
    assert difference(np.float32([np.inf, np.nan]), np.float32([np.inf, np.nan]))[0] == 0
    assert difference(np.float32([1]), np.float32([1, 2]))[0] == np.inf


@pytest.mark.parametrize("group", [8, 16, -1])
def test_small_groups_of_weights_cost_less(digits: ir.Model, group: int) -> None:
    images = calibrating()[:20]
    smaller, found = (debug.budget(digits, images, "int4", group_size=size) for size in (4, group))
    assert smaller.total < found.total
    assert f"all in int4, {'by channel' if group < 0 else f'groups of {group}'}: error" in str(found)


def test_several_sets_of_inputs_count_like_one_batch(digits: ir.Model) -> None:
    images = calibrating()[:12]
    whole = debug.budget(digits, images, "int8")
    sets = debug.budget(digits, [{"image": part} for part in np.split(images, 4)], "int8")
    assert sets.total == pytest.approx(whole.total, rel=1e-4)
    assert debug.budget(digits, iter([{"image": images}]), "int8") == whole
    with pytest.raises(ir.InputError, match="expected a set of inputs, got none"):
        debug.budget(digits, iter([]))


def test_a_metric_of_the_caller_orders_the_layers(digits: ir.Model) -> None:
    seen: list[list[str]] = []

    def nearness(outputs: list[dict[str, Array]]) -> float:
        seen.append([*outputs[0]])
        return -float(np.abs(outputs[0]["scores"][:, 3]).mean())

    found = debug.budget(digits, [{"image": calibrating()[:5]}], "int4", metric=nearness)
    metrics = [cost.metric for cost in found.layers]
    assert metrics == sorted(metrics)  # type: ignore[type-var]
    assert found.metric is not None
    assert f"metric {found.metric.total:.6g} ({found.metric.exact:.6g} in f32)" in str(found)
    assert found.metric.remaining >= found.metric.total
    assert seen[0] == ["scores"]
    with pytest.raises(ir.InputError, match="the metric of the outputs is None"):
        debug.budget(digits, calibrating()[:5], metric=lambda _: None)  # type: ignore[arg-type,return-value]


def test_a_metric_sees_what_is_decided_in_the_lower_precision() -> None:
    """Compared runs take the decisions of f32; a classification rate must not."""
    x = op.parameter([1, 2], np.float32, name="x")
    scores = op.matmul(x, op.constant(np.float32([[1.0, 1.003], [0, 0]])), False, False)
    best = op.topk(scores, op.constant(1), 1, "max", "value")
    model = ir.Model([best.output(1)], [x])
    found = debug.budget(
        model, np.float32([[1, 0]]), "bf16", metric=lambda y: float(next(iter(y[0].values()))[0, 0])
    )
    assert found.metric is not None
    assert (found.metric.exact, found.metric.total) == (1, 0)


def test_groups_are_refused_where_there_are_none(digits: ir.Model) -> None:
    with pytest.raises(ir.InputError, match="bf16 has no groups of weights"):
        debug.budget(digits, calibrating()[:1], "bf16", group_size=4)
    with pytest.raises(ir.InputError, match="0 weights cannot share a scale"):
        debug.budget(digits, calibrating()[:1], "int4", group_size=0)


class TestCommand:
    """`ir-runtime budget` on samples in files."""

    @pytest.fixture(autouse=True)
    def files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, digits: ir.Model) -> None:
        monkeypatch.chdir(tmp_path)
        ir.save_model(digits, "net.xml", compress_to_fp16=False)
        Path("samples").mkdir()
        for number, image in enumerate(np.split(calibrating()[:4], 4)):
            np.savez(f"samples/{number}.npz", image=image)
            np.save(f"{number}.npy", image)
        np.save("all.npy", calibrating()[:4])
        rate = "def last(outputs):\n    return -sum(abs(each['scores'][0, -1]) for each in outputs)\n"
        Path("rate.py").write_text(rate + "def wrong(outputs):\n    return 1 / 0\n", encoding="utf-8")

    def run(self, line: str) -> tuple[int, str, str]:
        """Run the command; return the exit code, stdout and stderr."""
        done = CliRunner().invoke(main, f"budget net.xml {line}".split())
        return done.exit_code, done.stdout, done.stderr

    @pytest.mark.parametrize(
        "samples", ["-i samples", "-i image=samples", "-i 0.npy -i 1.npy -i 2.npy -i 3.npy", "-i all.npy"]
    )
    def test_samples_are_a_folder_or_several_files(self, samples: str) -> None:
        code, stdout, _ = self.run(f"{samples} --to int8 --json")
        assert code == 0
        whole = debug.budget(ir.read_model("net.xml"), np.load("all.npy"), "int8")
        found = json.loads(stdout)
        assert found["total"] == pytest.approx(whole.total, rel=1e-4)
        assert found["ignored_scope"] == whole.ignored_scope
        assert ast.literal_eval(found["ignored_scope"].partition("names=")[2][:-1]) == found["kept"]

    def test_group_sizes_are_compared(self) -> None:
        code, stdout, _ = self.run("-i all.npy --to int4 --group-size 8,-1 --json")
        first = json.loads(stdout)
        (other,) = first["others"]
        assert (code, first["group_size"], other["group_size"]) == (0, 8, -1)
        assert first["total"] < other["total"]
        assert "'8,x' is not a list of numbers such as 64,128\n" in self.run("-i all.npy --group-size 8,x")[2]

    def test_metrics_are_functions_of_a_file(self) -> None:
        code, stdout, _ = self.run("-i samples --to int4 --metric rate.py:last")
        assert code == 0
        assert re.search(r"all in int4: error \S+ .*, metric -\S+ \(-\S+ in f32\)", stdout)

    @pytest.mark.parametrize(
        ("metric", "message"),
        [
            (
                "rate:last",
                "unknown module 'rate'\n  hint: --metric ./rate.py:FUNCTION runs the file in the",
            ),
            ("no.such:last", "unknown module 'no.such'"),
            ("rate.py", "'rate.py' does not name a function"),
            ("rote.py:last", "'rote.py' is not a file"),
            ("rate.py:lost", "rate.py has no function 'lost'\n  hint: did you mean 'last'?"),
            (
                "rate.py:wrong",
                "rate.py, line 4)",
            ),
            ("net.xml.py:last", "'net.xml.py' is not a file"),
        ],
    )
    def test_metrics_that_cannot_be_used_are_explained(self, metric: str, message: str) -> None:
        code, _, stderr = self.run(f"-i all.npy --metric {metric}")
        assert code == 2
        assert message in stderr

    def test_a_module_is_not_searched_in_the_working_directory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend("")
        assert self.run("-i all.npy --metric rate:last")[0] == 2
        assert "rate" not in sys.modules
        assert self.run("-i all.npy --metric statistics:mean")[0] == 2  # which is found, and takes no outputs

    def test_inputs_that_are_given_different_numbers_of_times_are_refused(self) -> None:
        x, y = (op.parameter([1], np.float32, name=name) for name in "xy")
        ir.save_model(ir.Model([op.add(x, y)], [x, y]), "two.xml")
        for name in ("a", "b", "c"):
            np.save(f"{name}.npy", np.float32([1]))
        line = "budget two.xml -i x=a.npy -i x=b.npy -i x=c.npy -i y=a.npy -i y=b.npy"
        done = CliRunner().invoke(main, line.split())
        assert (done.exit_code, "inputs are given different numbers of times: x 3, y 2" in done.stderr) == (
            2,
            True,
        )
        assert (
            CliRunner()
            .invoke(main, ["budget", "two.xml", "-i", "x=a.npy", "-i", "x=b.npy", "-i", "y=c.npy"])
            .exit_code
            == 0
        )
        done = CliRunner().invoke(
            main, ["budget", "two.xml", "-i", "x=a.npy", "-i", "y=b.npy", "-i", "c.npy"]
        )
        assert "c.npy is one input too many" in done.stderr

    def test_a_quantized_model_is_compared_with_its_original(self, digits: ir.Model) -> None:
        quantized = Lowering(digits, "w8a8", calibrating()[:4])
        ir.save_model(quantized.model(quantized.layers), "quantized.xml", compress_to_fp16=False)
        line = "budget quantized.xml -i all.npy --original net.xml"
        done = CliRunner().invoke(main, line.split())
        assert done.exit_code == 0, done.output
        assert "all as stored: error" in done.stdout
        assert "in floating point: error" in done.stdout
