"""The smallest part of a model that still shows a difference."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from click.testing import CliRunner
from lxml import etree
from models.networks import NETWORKS, save
from openvino import opset13 as op

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as ops
from ir_runtime.cli import main
from ir_runtime.debug.reference import Reference
from ir_runtime.ir.graph import Layer, Port
from ir_runtime.ir.tensor import Array


@dataclass
class Faulty:
    """A runtime with a faulty operation, wrong only for large enough inputs."""

    type: str
    least: float = 0.0

    def observe(
        self, model: ir.Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> debug.Observation:
        own, seen = Reference(model), dict[Port, Array]()

        def change(layer: Layer, given: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            if layer.type == self.type and np.abs(given[0]).max() >= self.least:
                outputs = (outputs[0] * np.float32(1.001), *outputs[1:])
            seen.update(zip(layer.output_ports, map(np.array, outputs), strict=False))
            return outputs

        results = own.run(feeds, change)
        return debug.Observation("faulty", results, {port: seen[port] for port in ports if port in seen})


@pytest.mark.parametrize(
    ("name", "type"), [("plain_cnn", "AvgPool"), ("encoder", "MVN"), ("residual", "Convolution")]
)
def test_one_layer_is_left(name: str, type: str, tmp_path: Path) -> None:
    model, inputs = ir.read_model(save(name, tmp_path)), NETWORKS[name][1]()
    found = debug.reduce(model, inputs, Faulty(type))
    assert len(found.layers) == 1
    assert found.report.verdict == "unexplained"
    assert found.kept_weights == ()
    assert found.original > 5
    assert [node.type for node in found.model.get_ordered_ops() if node.friendly_name in found.layers] == [
        type
    ]
    original = {
        node.data.tobytes() for node in model.get_ops() if node.type == "Constant" and node.data.size > 9
    }
    left = [node.data for node in found.model.get_ops() if node.type == "Constant"]
    assert not any(data.tobytes() in original for data in left if data.dtype.kind == "f")


def test_values_stay_where_that_is_asked_for(tmp_path: Path) -> None:
    model, inputs = ir.read_model(save("residual", tmp_path)), NETWORKS["residual"][1]()
    found = debug.reduce(model, inputs, Faulty("Convolution"), keep_values=True)
    np.testing.assert_array_equal(found.inputs[0], inputs[0])
    assert "random" not in str(found)
    assert "kept as they are: " in str(found)
    found = debug.reduce(model, inputs, Faulty("Convolution"))
    assert "; weights and inputs are random numbers of the same mean and deviation\n" in str(found)


def test_an_explained_difference_is_a_result(tmp_path: Path) -> None:
    path = save("plain_cnn", tmp_path)
    model, inputs = ir.read_model(path), NETWORKS["plain_cnn"][1]()
    found = debug.reduce(model, inputs, "numpy", tmp_path / "bug")
    assert (bool(found), found.layers, found.folder) == (False, (), None)
    assert str(found).startswith(
        "explained: rounding explains how numpy differs from f64: nothing to reduce\noutput "
    )
    line = ["reduce", str(path), "--against", "numpy", "--random", "-o", str(tmp_path / "bug")]
    done = CliRunner().invoke(main, line)
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, str(found).splitlines()[0])
    assert not (tmp_path / "bug").exists()


@pytest.mark.parametrize("side", ["theirs.npz", {"0": np.zeros(1)}, lambda inputs, names: {}])
def test_a_side_must_run_other_models(side: Any, tmp_path: Path) -> None:
    model, inputs = ir.read_model(save("plain_cnn", tmp_path)), NETWORKS["plain_cnn"][1]()
    with pytest.raises(ir.InputError, match="must run parts"):
        debug.reduce(model, inputs, side)


def _edited(path: Path, renamed: bool) -> tuple[Path, str]:
    """Write the IR with a wrong epsilon, optionally with other names and ids; return the layer's name."""
    tree = etree.parse(path)
    layer = next(la for la in tree.iter("layer") if la.get("type") == "MVN")
    layer.find("data").set("eps", "0.01")
    name = layer.get("name")
    for each in tree.iter("layer") if renamed else ():
        if each.get("type") != "Parameter":
            each.set("name", f"n{each.get('id')}")
    other = path.with_name("edited.xml")
    tree.write(other)
    other.with_suffix(".bin").write_bytes(path.with_suffix(".bin").read_bytes())
    return other, name


@pytest.mark.parametrize("renamed", [False, True])
def test_another_ir_is_cut_in_the_same_places(renamed: bool, tmp_path: Path) -> None:
    path, inputs = save("encoder", tmp_path), NETWORKS["encoder"][1]()
    other, name = _edited(path, renamed)
    model = ir.read_model(path)
    assert debug.bisect(model, inputs, str(other)).layers == (name,)
    found = debug.reduce(model, inputs, other, tmp_path / "bug")
    assert found.layers == (name,)
    assert set(found.kept_weights) == {la.friendly_name for la in found.model.get_ops() if la.type == "Constant" and la.data.dtype.kind == "f"}  # fmt: skip
    assert [node.type for node in ir.read_model(tmp_path / "bug" / "other.xml").get_ordered_ops()] == [
        node.type for node in found.model.get_ordered_ops()
    ]
    shown = subprocess.run(
        [sys.executable, tmp_path / "bug" / "show.py"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("unexplained: ")


def test_another_ir_that_cannot_be_cut_says_where(tmp_path: Path) -> None:
    model, inputs = ir.read_model(save("plain_cnn", tmp_path)), NETWORKS["plain_cnn"][1]()
    other = tmp_path / "other.xml"
    x = ops.parameter(inputs[0].shape, np.float32, name="x")
    ir.save_model(ir.Model([ops.exp(x, name="whole")], [x]), other)
    with pytest.raises(ir.InputError, match="it has no such layer, and none that is connected alike"):
        debug.bisect(model, inputs, str(other))


def test_onnx_models_are_not_cut(tmp_path: Path) -> None:
    model, inputs = ir.read_model(save("plain_cnn", tmp_path)), NETWORKS["plain_cnn"][1]()
    for search in (debug.bisect, debug.reduce):
        with pytest.raises(ir.InputError, match="an ONNX model cannot be cut where the IR is"):
            search(model, inputs, "onnxruntime:net.onnx")


def test_a_part_is_extracted_with_what_it_reads(tmp_path: Path) -> None:
    model, inputs = ir.read_model(save("residual", tmp_path)), NETWORKS["residual"][1]()
    adds = [node.friendly_name for node in model.get_ordered_ops() if node.type == "Add"]
    part, feeds = debug.extract(model, adds[2], adds[1], inputs)
    assert len(part.inputs) == len(feeds)
    wanted = ir.compile_model(model, backend="reference", outputs=[adds[2]])(inputs).to_tuple()[-1]
    found = ir.compile_model(part, backend="reference")(feeds).to_tuple()[0]
    np.testing.assert_array_equal(found, wanted)


def _lstm(path: Path) -> None:
    """An LSTM over sequences of different lengths, fully dynamic, between other layers."""
    x = op.parameter([-1, -1, 4], np.float32, name="x")
    lengths = op.parameter([-1], np.int64, name="lengths")
    random = np.random.default_rng(0)

    def weights(*shape: int) -> Any:
        return op.constant(random.standard_normal(shape).astype(np.float32))

    batch = op.gather(op.shape_of(x), op.constant([0]), op.constant(0))
    state = op.broadcast(weights(1, 1, 3), op.concat([batch, op.constant([1, 3])], 0))
    sequence = op.lstm_sequence(
        op.relu(x), state, state, lengths, weights(1, 12, 4), weights(1, 12, 3), weights(1, 12), 3, "forward"
    )
    ov.save_model(ov.Model([op.tanh(sequence.output(0))], [x, lengths], "lstm"), path, compress_to_fp16=False)


@pytest.mark.skipif(
    not ov.get_version().startswith("2026.4"),
    reason="the plugin of this version is known to ignore the lengths",
)
def test_the_plugin_ignores_lengths_of_sequences_with_open_shapes(tmp_path: Path) -> None:
    path, folder = tmp_path / "lstm.xml", tmp_path / "bug"
    _lstm(path)
    np.save(tmp_path / "x.npy", np.random.default_rng(1).standard_normal((3, 7, 4)).astype(np.float32))
    np.save(tmp_path / "lengths.npy", np.int64([7, 4, 2]))
    feeds = ["-i", f"x={tmp_path / 'x.npy'}", "-i", f"lengths={tmp_path / 'lengths.npy'}"]
    done = CliRunner().invoke(main, ["bisect", str(path), "--against", "openvino", *feeds])
    assert done.exit_code == 1, done.output
    assert done.stdout.startswith("unexplained: ")
    assert "(LSTMSequence-5)" in done.stdout.splitlines()[1]
    done = CliRunner().invoke(main, ["reduce", str(path), "--against", "openvino", *feeds, "-o", str(folder)])
    assert done.exit_code == 1, done.output
    assert "reduced to 1: LSTMSequence-5" in done.stdout
    assert "with static shapes the difference is gone" in done.stdout
    shown = subprocess.run([sys.executable, folder / "show.py"], capture_output=True, text=True, check=True)
    assert float(shown.stdout.split()[-1]) > 0.1
    assert "LSTMSequence-5" in (folder / "issue.md").read_text()
    again = CliRunner().invoke(
        main, ["reduce", str(path), "--against", "openvino", *feeds, "-o", str(folder)]
    )
    assert again.exit_code == 2
    assert "is there already" in again.stderr


@pytest.mark.oracle
@pytest.mark.skipif(
    not ov.get_version().startswith("2026.4"),
    reason="the plugin of this version is known to ignore the lengths",
)
@pytest.mark.parametrize(
    ("both", "types"), [(False, ["LSTMSequence"]), (True, ["LSTMSequence", "Transpose"])]
)
def test_a_tagger_of_pytorch_is_reduced_to_the_layer_that_is_wrong(
    both: bool, types: list[str], tmp_path: Path
) -> None:
    model, inputs, wanted = _tagger(both)
    ov.save_model(model, tmp_path / "tagger.xml", compress_to_fp16=False)
    tagger = ir.read_model(tmp_path / "tagger.xml")
    np.testing.assert_allclose(ir.compile_model(tagger)(inputs)[0], wanted, atol=1e-5)
    found = debug.reduce(tagger, inputs, "openvino", out=tmp_path / "bug")
    kept = [node for node in found.model.get_ops() if node.type not in ("Parameter", "Constant", "Result")]
    assert sorted(node.type for node in kept) == types
    original = {
        node.data.tobytes() for node in tagger.get_ops() if node.type == "Constant" and node.data.size > 8
    }
    weights = [
        node.data for node in found.model.get_ops() if node.type == "Constant" and node.data.dtype.kind == "f"
    ]
    assert weights
    assert not original & {array.tobytes() for array in weights}
    shown = subprocess.run(
        [sys.executable, tmp_path / "bug" / "show.py"], capture_output=True, text=True, check=True
    )
    assert float(shown.stdout.split()[-1]) > 0.1


def _tagger(both: bool) -> tuple[Any, list[Array], Array]:
    """A uni- or bidirectional LSTM over packed sequences, as exported from PyTorch, fully dynamic."""
    import torch
    from torch import nn

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(50, 8)
            self.lstm = nn.LSTM(8, 6, batch_first=True, bidirectional=both)
            self.scores = nn.Linear(12 if both else 6, 4)

        def forward(self, words: Any, lengths: Any) -> Any:
            settings = {"batch_first": True, "enforce_sorted": False}
            packed = nn.utils.rnn.pack_padded_sequence(self.embedding(words), lengths, **settings)
            padded, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
            return torch.softmax(self.scores(torch.tanh(padded)), -1)

    torch.manual_seed(0)
    network, words, lengths = Tagger().eval(), torch.randint(0, 50, (3, 7)), torch.tensor([7, 4, 2])
    wanted = network(words, lengths).detach().numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tracing
        model = ov.convert_model(network, example_input=(words, lengths))
    return model, [words.numpy(), lengths.numpy()], wanted
