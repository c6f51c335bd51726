"""The networks to run on each target, and their inputs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import openvino as ov
from models.kinds import KINDS, inputs_of
from models.networks import NETWORKS, save
from world.inputs import candidates

import ir_runtime as ir
from ir_runtime import opset1
from ir_runtime.ir.tensor import Array

__all__ = ["quantized", "write"]

_DIGITS = Path(__file__).parents[2] / "examples" / "digits"


def write(folder: Path, others: Sequence[Path] = ()) -> None:
    """Write the networks and their inputs to an empty folder: the digits, small ones of all kinds, an 8-bit one, and given IR files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _copy(_DIGITS / "digits.xml", folder)
    _keep(folder / "digits", [np.load(_DIGITS / "images.npy")])
    for name, (_, draw) in NETWORKS.items():
        save(name, folder)
        _keep(folder / name, draw())
    for name, build in KINDS.items():
        model = build()
        ov.save_model(model, folder / f"{name}.xml", compress_to_fp16=False)
        _keep(folder / name, inputs_of(model).values())
    model, data = quantized()
    ir.save_model(model, folder / "quantized.xml", compress_to_fp16=False)
    _keep(folder / "quantized", [data])
    for path in others:
        _copy(path, folder)
        _keep(folder / path.stem, next(candidates(path, ov.Core().read_model(path))))


def quantized() -> tuple[ir.Model, Array]:
    """Return an 8-bit network and its data, for which f32 sums would decide levels and accumulate differences."""
    random = np.random.default_rng(0)
    x = opset1.parameter([1, 3, 16, 16], np.float32, name="x")
    limits = [opset1.constant(np.float32(limit)) for limit in (-4, 4 * 127 / 128)]
    y = opset1.fake_quantize(x, *limits, *limits, 256)
    for channels in [3, *[32] * 8]:
        levels = opset1.constant(random.integers(-127, 128, (32, channels, 3, 3)).astype(np.int8))
        scale = opset1.constant(np.full((32, 1, 1, 1), 0.02 / channels**0.5, np.float32))
        w = opset1.multiply(opset1.convert(levels, np.float32), scale)
        y = opset1.convolution(y, w, [1, 1], [1, 1], [1, 1], [1, 1])
        y = opset1.fake_quantize(y, *limits, *limits, 256)
    y = opset1.reduce_mean(y, opset1.constant([2, 3]), False)
    return ir.Model([y], [x]), random.standard_normal((1, 3, 16, 16), np.float32)


def _copy(path: Path, folder: Path) -> None:
    """Copy a model; large weights are linked."""
    shutil.copy(path, folder)
    (folder / path.with_suffix(".bin").name).symlink_to(path.with_suffix(".bin").absolute())


def _keep(path: Path, arrays: Iterable[Array]) -> None:
    np.savez(path.with_suffix(".npz"), *arrays)
