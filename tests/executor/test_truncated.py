"""A ``.bin`` truncated while the model is in use gives an error or correct results, never a signal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.backends import available

SIDE = 512
PROGRAM = """
import os, sys
import numpy as np
import ir_runtime as ir

path, backend, when = sys.argv[1:]
x = np.ones((1, {side}), np.float32)

def cut(*_):
    os.truncate(path[:-4] + ".bin", 0)

class Cutting:
    def before(self, step, inputs):
        cut()
    def after(self, step, outputs, seconds):
        pass

try:
    model = ir.read_model(path)
    if when == "read":
        cut()
    compiled = ir.compile_model(model, backend=backend)
    if when == "compiled":
        cut()
    if when == "running":
        found = compiled(x, observers=[Cutting()])
    else:
        found = compiled(x)
    if when == "between":
        cut()
        found = compiled(x)
    print(float(found[0].sum()), float(found[1].sum()))
except ir.IRError as problem:
    print(type(problem).__name__, problem.code)
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A product, a sum, and a table lookup, each with more than a page of weights."""
    net = Net()
    x = net.parameter("x", f"1,{SIDE}")
    square = net.constant(np.full((SIDE, SIDE), 0.5, np.float32), "f32", name="square")
    rows = net.op(
        "Gather", square, net.op("Convert", x, destination_type="i32"), net.constant([0]), version="opset8"
    )
    net.result(net.op("MatMul", x, square, transpose_a=False, transpose_b=False))
    net.result(net.op("Mod", rows, square))
    path = tmp_path / "m.xml"
    path.write_bytes(net.xml())
    path.with_suffix(".bin").write_bytes(net.weights)
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is mapped cannot be cut off there")
@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("when", ["read", "compiled", "between", "running"])
def test_a_file_that_is_cut_off_does_not_end_the_process(backend: str, when: str, model: Path) -> None:
    command = [sys.executable, "-c", PROGRAM.format(side=SIDE), str(model), backend, when]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(ir.__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    right = f"{SIDE * SIDE * 0.5} 0.0\n"
    refused = "ParseError IR005\n"
    wanted = {"read": {refused}, "running": {right}}.get(
        when, {right} if backend == "reference" else {refused}
    )
    assert done.stdout in wanted


def test_a_model_is_saved_over_the_file_that_it_is_read_from(model: Path) -> None:
    before = ir.compile_model(model)(np.ones((1, SIDE), np.float32))[0]
    read = ir.read_model(model)
    compiled = ir.compile_model(read)
    ir.save_model(read, model)
    for again in (compiled, ir.compile_model(read), ir.compile_model(model)):
        np.testing.assert_array_equal(again(np.ones((1, SIDE), np.float32))[0], before)
