"""Emulated bf16 and f16 against PyTorch, which computes in them on any processor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.ir.tensor import Array

pytestmark = pytest.mark.oracle

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((2, 3, 16, 16)).astype(np.float32)
W1, W2 = (RANDOM.standard_normal((16, n, 3, 3)).astype(np.float32) / (3 * n**0.5) for n in (3, 16))
B1 = np.round(16 * RANDOM.standard_normal((1, 16, 1, 1))).astype(np.float32) / 16  # exact in bf16 and f16
W3 = RANDOM.standard_normal((16, 10)).astype(np.float32) / 4


def network(folder: Path) -> ir.Model:
    """Convolutions with a shortcut, pooling, and a matrix product; layers have names."""

    def named(node: Any, name: str) -> Any:
        node.set_friendly_name(name)
        return node

    x = op.parameter(list(X.shape), np.float32, name="x")
    y = named(op.convolution(x, op.constant(W1), [1, 1], [1, 1], [1, 1], [1, 1]), "conv1")
    first = named(op.relu(named(op.add(y, op.constant(B1)), "biased")), "relu1")
    y = named(op.convolution(first, op.constant(W2), [1, 1], [1, 1], [1, 1], [1, 1]), "conv2")
    y = named(op.tanh(named(op.add(y, first), "sum")), "tanh")
    y = named(op.reduce_mean(y, op.constant([2, 3]), False), "pooled")
    y = named(op.matmul(y, op.constant(W3), False, False), "scores")
    ov.save_model(ov.Model([y], [x]), folder / "net.xml", compress_to_fp16=False)
    return ir.read_model(folder / "net.xml")


def torch_side(precision: str, w2: Array = W2) -> Callable[..., dict[Any, Array]]:
    """The network computed by PyTorch, each tensor rounded to the precision."""
    import torch

    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[precision]
    stored = [torch.from_numpy(array).to(dtype) for array in (X, W1, B1, w2, W3)]

    def side(inputs: list[Array], names: list[str]) -> dict[Any, Array]:
        x, w1, b1, w2, w3 = stored
        found = {"conv1": torch.conv2d(x, w1, padding=1)}
        found["biased"] = found["conv1"] + b1
        found["relu1"] = torch.relu(found["biased"])
        found["conv2"] = torch.conv2d(found["relu1"], w2, padding=1)
        found["sum"] = found["conv2"] + found["relu1"]
        found["tanh"] = torch.tanh(found["sum"])
        found["pooled"] = found["tanh"].mean((2, 3))
        found["scores"] = found["pooled"] @ w3
        arrays: dict[Any, Array] = {name: tensor.float().numpy() for name, tensor in found.items()}
        return {name: arrays[name] for name in names if name in arrays} | {0: arrays["scores"]}

    return side


@pytest.mark.parametrize("precision", ["bf16", "f16"])
def test_pytorch_is_explained(precision: str, tmp_path: Path) -> None:
    model = network(tmp_path)
    report = debug.compare(model, X, torch_side(precision), precision=precision)
    assert report.explained, str(report)
    assert report.ran == (precision,)
    assert len(report.units) == 8
    assert all(unit.equal > 0.95 for unit in report.units), [(unit.name, unit.equal) for unit in report.units]
    assert debug.compare(model, X, torch_side(precision)).verdict == "unexplained"


@pytest.mark.parametrize("precision", ["bf16", "f16"])
def test_a_wrong_weight_is_found_beside_that_rounding(precision: str, tmp_path: Path) -> None:
    wrong = W2.copy()
    wrong[3] *= 1.5
    report = debug.compare(network(tmp_path), X, torch_side(precision, wrong), precision=precision)
    assert report.first is not None
    assert report.first.name == "conv2"
