"""Decoders with compressed weights and dynamically quantized activations, against OpenVINO with the same settings."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from harness.oracle import PLUGIN, core
from openvino import opset13 as op

import ir_runtime
from ir_runtime.backends.native.codegen.levels import IS_FAST
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.tensor import Array
from models.compressed import Compress, constant, mlp
from models.llm import Sizes, build, step

SIZES = Sizes(layers=2, width=128, inner=256, heads=4, shared=2, vocabulary=512)
GROUP = "DYNAMIC_QUANTIZATION_GROUP_SIZE"


def compress(element: E, group: int | None, matrix: Array) -> Any:
    """Return integers with a scale for each group or output, unsigned ones with a zero point; no product is rounded to f16."""
    groups = matrix.reshape(len(matrix), -1, group or matrix.shape[1])
    highest = 2 ** (element.bits - 1) - 1
    scale = np.abs(groups).max(-1, keepdims=True) / np.float32(highest)
    zero = np.zeros_like(scale)
    if element in (E.u4, E.u8):
        zero += np.random.default_rng(0).integers(highest, highest + 3, zero.shape)
    codes = np.rint(groups / scale + zero).clip(zero - highest - 1, 2 * highest + 1)
    numbers, zeros = (
        op.convert(constant(x.astype(np.int16).astype(element.dtype), element), "f32") for x in (codes, zero)
    )
    numbers = op.subtract(numbers, zeros) if zero.any() else numbers
    found = op.multiply(numbers, op.constant(scale))
    return op.reshape(found, op.constant(np.array(matrix.shape)), False)


DECODERS: dict[str, Compress] = {
    "i8": partial(compress, E.i8, None), "u8": partial(compress, E.u8, None), "i4-32": partial(compress, E.i4, 32),
    "u4-32": partial(compress, E.u4, 32), "u4-128": partial(compress, E.u4, 128),
}  # fmt: skip
fast = pytest.mark.parametrize("backend", ["native", "numpy"])


def rms(found: Array, wanted: Array) -> float:
    """Return the relative RMS difference of two results."""
    return float(np.sqrt(np.mean((found - wanted) ** 2) / np.mean(wanted**2)))


def logits(compiled: Any) -> list[Array]:
    """Return the logits of a prompt, and of the tokens after it."""
    request = compiled.create_infer_request()
    given = [step(7, 0, SIZES), *(step(1, 7 + done, SIZES, seed=done + 1) for done in range(4))]
    return [np.array(request.infer(inputs)[0]) for inputs in given]


def saved(model: ov.Model, folder: Path) -> Path:
    ov.save_model(model, path := folder / "m.xml", compress_to_fp16=False)
    return path


def theirs(path: Path, size: int) -> Any:
    return core().compile_model(path, "CPU", PLUGIN | {GROUP: str(size)})


@fast
@pytest.mark.parametrize("weights", DECODERS)
def test_logits_are_those_of_openvino(weights: str, backend: str, tmp_path: Path) -> None:
    """They agree in each step, and are equally far from the exact ones."""
    path = saved(build(DECODERS[weights], SIZES), tmp_path)
    ours = ir_runtime.compile_model(path, config={GROUP: 32}, backend=backend)
    exact, wanted = logits(theirs(path, 0)), logits(theirs(path, 32))
    if rms(wanted[0], exact[0]) < 1e-6:
        pytest.skip("OpenVINO quantizes activations only on processors with VNNI")
    for found, near, right in zip(logits(ours), wanted, exact, strict=True):
        assert rms(found, near) < 3e-6
        assert rms(found, right) < 1.2 * rms(near, right)


@pytest.mark.parametrize(
    ("config", "backend", "followed"),
    [
        ({}, "native", 0),
        ({GROUP: 64}, "native", 64),
        ({GROUP: 64}, "numpy", 64),
        ({"EXECUTION_MODE_HINT": "PERFORMANCE"}, "native", 32 if IS_FAST else 0),
        ({"EXECUTION_MODE_HINT": "PERFORMANCE"}, "numpy", 0),
        ({"EXECUTION_MODE_HINT": "PERFORMANCE", GROUP: 0}, "native", 0),
    ],
)
def test_a_compiled_model_says_what_it_follows(
    config: dict[str, object], backend: str, followed: int, tmp_path: Path
) -> None:
    path = saved(mlp(DECODERS["i4-32"]), tmp_path)
    compiled = ir_runtime.compile_model(path, config=config, backend=backend)
    assert compiled.get_property(GROUP) == followed
    x = np.random.default_rng(0).standard_normal((5, 128)).astype(np.float32)
    exact = ir_runtime.compile_model(path, config={GROUP: 0}, backend=backend)(x)[0]
    assert (rms(compiled(x)[0], exact) > 1e-3) == (followed > 0)


def test_profiles_name_the_kernel(tmp_path: Path) -> None:
    """This includes a matrix whose last panel is wider than the result."""
    path = saved(mlp(DECODERS["i4-32"]), tmp_path)
    for size, name in ((32, "gemm_i8"), (0, "")):
        config = {GROUP: size, "PERF_COUNT": True}
        request = ir_runtime.compile_model(path, config=config, backend="native").create_infer_request()
        request.infer([np.ones((1, 128), np.float32)])
        found = {info.exec_type for info in request.get_profiling_info() if info.node_type == "MatMul"}
        assert (found == {name}) == (size > 0)


def test_what_a_backend_does_not_follow_is_said(tmp_path: Path) -> None:
    path = saved(mlp(DECODERS["i4-32"]), tmp_path)
    for size, backend in ((48, "native"), (32, "reference")):
        with pytest.warns(UserWarning, match=f"{GROUP}={size} is ignored: the backend {backend} takes 0"):
            compiled = ir_runtime.compile_model(path, config={GROUP: size}, backend=backend)
        assert compiled.get_property(GROUP) == 0
