"""Networks with compressed weights against OpenVINO, on every backend."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from harness.oracle import PLUGIN, core

import ir_runtime
from ir_runtime.backends import available
from ir_runtime.compiler import quantized_weights
from ir_runtime.debug.reference import Reference
from ir_runtime.ir.tensor import Array
from ir_runtime.openvino.compiled import CompiledModel
from models.compressed import COMPRESSIONS, f32, mlp, transformer, weights

backends = pytest.mark.parametrize("backend", available())
fast = pytest.mark.parametrize("backend", [name for name in available() if name != "reference"])
compressions = pytest.mark.parametrize("compression", COMPRESSIONS)


@pytest.fixture(autouse=True)
def small_weights_are_not_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantized_weights, "MIN_HALVES", quantized_weights.MIN_NUMBERS)


def rms(found: Array, wanted: Array) -> float:
    """Return the relative RMS difference of two results."""
    return float(np.sqrt(np.mean((found - wanted) ** 2) / np.mean(wanted**2)))


def features() -> Array:
    return np.random.default_rng(0).standard_normal((5, 128)).astype(np.float32)


def tokens() -> Array:
    return np.random.default_rng(0).integers(0, 160, (2, 9))


def reference(model: ov.Model, data: Array) -> Array:
    out = ov.Tensor(ov.Type.f32, ov.Shape([0]))
    assert model.evaluate([out], [ov.Tensor(data)])
    return np.array(out.data)


@backends
@compressions
def test_mlp(compression: str, backend: str, tmp_path: Path) -> None:
    """The references multiply scales in f16, as the layers declare; the plugin and the fast backends widen to f32 first."""
    ov.save_model(mlp(COMPRESSIONS[compression]), path := tmp_path / "m.xml", compress_to_fp16=False)
    found = ir_runtime.compile_model(path, backend=backend)(features())[0]
    model = core().read_model(path)
    assert found.dtype == np.float32
    literal, wide = reference(model, features()), core().compile_model(model, "CPU", PLUGIN)(features())[0]
    assert rms(found, literal if backend == "reference" else wide) < 1e-6
    assert rms(found, wide) < 4e-3


@fast
@pytest.mark.parametrize("size", [1, 3e-5, 300])
@compressions
def test_weights_are_rounded_to_f32_alone(
    compression: str, size: float, backend: str, tmp_path: Path
) -> None:
    """Multiplying by 1 and 0 recovers the weights bit for bit, including those that f16 represents poorly."""
    op = ov.opset13
    x = op.parameter([-1, 96], np.float32)
    made = COMPRESSIONS[compression](np.float32(size) * weights(70, 96))
    ov.save_model(
        ov.Model([op.matmul(x, made, False, True)], [x]), path := tmp_path / "m.xml", compress_to_fp16=False
    )
    ones = np.eye(96, dtype=np.float32)
    wanted = Reference(ir_runtime.read_model(path), wide=True).run([ones])[0].astype(np.float32)
    compiled = ir_runtime.compile_model(path, backend=backend)
    np.testing.assert_array_equal(compiled(ones)[0], wanted)
    for row in (0, 50, 95):
        np.testing.assert_array_equal(compiled(ones[row : row + 1])[0], wanted[row : row + 1])


@backends
@compressions
def test_transformer(compression: str, backend: str, tmp_path: Path) -> None:
    ov.save_model(transformer(COMPRESSIONS[compression]), path := tmp_path / "m.xml", compress_to_fp16=False)
    found = ir_runtime.compile_model(path, backend=backend)(tokens())[0]
    wanted = core().compile_model(path, "CPU", PLUGIN)(tokens())[0]
    rounded = compression == "nf4"  # OpenVINO rounds the table of nf4 to f16 where Gather reads it
    allowed = 4e-3 if backend == "reference" else 3e-4 if rounded else 1e-6
    assert rms(found, wanted) < allowed


def held(compiled: CompiledModel) -> dict[str, int]:
    """Return the bytes of a plan's constants, by dtype."""
    found: dict[str, int] = {}
    for array in compiled._plan.slots:
        if array is not None and array.size > 4096:
            found[array.dtype.name] = found.get(array.dtype.name, 0) + array.nbytes
    return found


@pytest.mark.parametrize("compression", ["int4", "uint4", "nf4", "mxfp4"])
def test_what_stays_in_memory(compression: str, tmp_path: Path) -> None:
    """The reference folds nothing: it unpacks the file in each run."""
    ov.save_model(mlp(COMPRESSIONS[compression]), path := tmp_path / "m.xml", compress_to_fp16=False)
    model = ir_runtime.read_model(path)
    assert not any(v.data is not None and v.data.size > 4096 for v in model._values.values())
    assert held(ir_runtime.compile_model(model, backend="reference")) == {}


@fast
@compressions
def test_it_keeps_what_the_file_has(compression: str, backend: str, tmp_path: Path) -> None:
    """Weights and embedding tables take no additional memory."""
    if backend == "numpy" and compression in ("f8e4m3", "f16"):
        pytest.skip("NumPy has no quick way from floats of 8 or 16 bits to f32, so they are unpacked")
    for model in (mlp, transformer):
        ov.save_model(model(COMPRESSIONS[compression]), path := tmp_path / "m.xml", compress_to_fp16=False)
        compiled = ir_runtime.compile_model(path, backend=backend)
        owned = [a for a in compiled._plan.slots if a is not None and a.size > 1024 and any(a.strides)]
        assert owned == []


@backends
@pytest.mark.parametrize("name", ["mlp", "transformer"])
def test_compressed_to_f16_runs_in_f32(name: str, backend: str, tmp_path: Path) -> None:
    """Weights are f16 in the file; the arithmetic is f32."""
    model, data = (mlp(f32), features()) if name == "mlp" else (transformer(f32), tokens())
    ov.save_model(model, path := tmp_path / "m.xml", compress_to_fp16=True)
    ours = ir_runtime.read_model(path)
    types = {node.type: node.output().element_type.label for node in ours.get_ops()}
    assert any("decompression" in node.get_rt_info() for node in ours.get_ops() if node.type == "Convert")
    assert types["Convert"] == types["MatMul"] == types["Add"] == "f32"
    found = ir_runtime.compile_model(ours, backend=backend)(data)[0]
    assert rms(found, core().compile_model(path, "CPU", PLUGIN)(data)[0]) < 1e-5


@backends
def test_tensors_of_f16_stay_f16(backend: str, tmp_path: Path) -> None:
    """A model with f16 inputs and outputs keeps them, whatever the precision of its arithmetic."""
    op = ov.opset13
    x = op.parameter([2, 64], np.float16, name="x")
    w = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float16) / np.float16(8)
    y = op.softmax(op.add(op.matmul(x, op.constant(w), False, False), op.constant(np.ones(8, np.float16))), 1)
    ov.save_model(ov.Model([op.result(y)], [x]), path := tmp_path / "m.xml")
    data = np.random.default_rng(1).standard_normal((2, 64)).astype(np.float16)
    compiled = ir_runtime.compile_model(path, backend=backend)
    assert [p.element_type.label for p in (*compiled.inputs, *compiled.outputs)] == ["f16", "f16"]
    found = compiled(data)[0]
    out = ov.Tensor(ov.Type.f16, ov.Shape([2, 8]))
    assert core().read_model(path).evaluate([out], [ov.Tensor(data)])
    assert found.dtype == np.float16
    assert rms(found.astype(np.float32), out.data.astype(np.float32)) < 2e-3
