"""With an explicit backend, equal inputs give equal bits."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

import ir_runtime as ir
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array

SHAPE = (1, 32, 48, 48)
RUNS = 6

HASH = """
import sys
import numpy as np, ir_runtime
compiled = ir_runtime.compile_model(sys.argv[1], config={"INFERENCE_NUM_THREADS": 2})
from hashlib import sha256
results = compiled(np.load(sys.argv[2])).to_tuple()
print(compiled.backend, sha256(b"".join(a.tobytes() for a in results)).hexdigest())
"""


def weights(*shape: int) -> Any:
    return op.constant(np.random.default_rng(shape).standard_normal(shape).astype(np.float32) * 0.1)


def network() -> ov.Model:
    """Multithreaded convolutions, products, attention and norms."""
    x = op.parameter(SHAPE, np.float32, name="x")
    how = [1, 1], [1, 1], [1, 1], [1, 1]
    y = op.relu(op.convolution(x, weights(64, 32, 3, 3), *how))
    y = op.group_convolution(y, weights(64, 1, 1, 3, 3), *how)
    rows = op.reshape(y, op.constant(np.array([1, 64, -1])), False)
    z = op.matmul(op.transpose(rows, op.constant(np.array([0, 2, 1]))), weights(64, 128), False, False)
    z = op.mvn(z, op.constant(np.array([-1])), True, 1e-5, "inside_sqrt")
    attended = op.scaled_dot_product_attention(
        *[op.strided_slice(z, [0, 0], [1, 512], [1, 1], [0, 0], [0, 0])] * 3
    )
    return ov.Model([op.reduce_mean(attended, op.constant(np.array([1])), False), y, z], [x])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "net.xml"
    ov.save_model(network(), path, compress_to_fp16=False)
    np.save(path.with_name("x.npy"), data())
    return path


def data() -> Array:
    return np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)


def hashes(compiled: ir.CompiledModel) -> set[str]:
    found = (compiled(data()).to_tuple() for _ in range(RUNS))
    return {sha256(b"".join(a.tobytes() for a in arrays)).hexdigest() for arrays in found}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("backend", available())
def test_every_run_gives_the_same(model: Path, backend: str, threads: int) -> None:
    config = {"INFERENCE_NUM_THREADS": threads}
    first, second = (hashes(ir.compile_model(model, backend=backend, config=config)) for _ in range(2))
    assert len(first | second) == 1


@pytest.mark.parametrize("backend", [name for name in available() if name != "reference"])
def test_every_process_gives_the_same(model: Path, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_RUNTIME_BACKEND", backend)
    line = [sys.executable, "-c", HASH, str(model), str(model.with_name("x.npy"))]
    found = {
        subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip() for _ in range(2)
    }
    here = hashes(ir.compile_model(model, config={"INFERENCE_NUM_THREADS": 2}))
    assert found == {f"{backend} {one}" for one in here}


@pytest.mark.skipif("native" not in available(), reason="what native computes is compared")
def test_native_gives_the_same_with_any_number_of_threads(model: Path) -> None:
    configs = ({"INFERENCE_NUM_THREADS": threads} for threads in (1, 2, 3))
    assert (
        len(set.union(*(hashes(ir.compile_model(model, backend="native", config=c)) for c in configs))) == 1
    )
