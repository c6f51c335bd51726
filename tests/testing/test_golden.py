"""The pytest plugin: outputs are recorded and later ones judged; a failure names the layer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ir_runtime as ov
from ir_runtime import opset1
from ir_runtime.errors import InputError
from ir_runtime.testing import Golden, GoldenError, check, record

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def model(scale: float = 1.0) -> ov.Model:
    x = opset1.parameter([3, 4], np.float32, name="x")
    scaled = opset1.multiply(x, np.float32(scale), name="scaled")
    return ov.Model([opset1.exp(scaled, name="exp")], [x])


def test_the_same_side_gives_the_same_bits(tmp_path: Path) -> None:
    golden = record(tmp_path / "goldens" / "exp.npz", model(), [X], "numpy")
    np.testing.assert_array_equal(golden.outputs[0], np.exp(X))
    assert check(tmp_path / "goldens" / "exp.npz", model(), [X], "numpy").endswith("bit for bit")


def test_other_bits_pass_if_rounding_explains_them(tmp_path: Path) -> None:
    path = tmp_path / "exp.npz"
    golden = record(path, model(), [X], "numpy")
    moved = np.nextafter(golden.outputs[0], np.float32(np.inf))
    Golden([moved], "numpy", "device 1", golden.inputs).save(path)
    assert check(path, model(), [X], "numpy").startswith(
        "differs from device 1; explained: rounding explains"
    )


def test_recorded_outputs_that_were_wrong_are_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "exp.npz"
    golden = record(path, model(), [X], "numpy")
    Golden([golden.outputs[0] * np.float32(1.5)], "numpy", "device 1", golden.inputs).save(path)
    with pytest.raises(
        GoldenError, match=r"recorded with device 1\. The new ones are consistent with the model"
    ):
        check(path, model(), [X], "numpy")


def test_outputs_that_became_wrong_name_the_layer(tmp_path: Path) -> None:
    """The other side is an IR with a different second layer."""
    path, other = tmp_path / "exp.npz", tmp_path / "other.xml"
    ov.save_model(model(), other)
    record(path, model(), [X], str(other))
    ov.save_model(model(1.5), other)
    with pytest.raises(GoldenError, match="the recorded ones are consistent with the model") as found:
        check(path, model(), [X], str(other))
    assert "first unexplained: 'scaled' (Multiply-1)" in str(found.value)


def test_other_inputs_are_refused(tmp_path: Path) -> None:
    record(tmp_path / "exp.npz", model(), [X], "numpy")
    with pytest.raises(GoldenError, match="was recorded on other inputs"):
        check(tmp_path / "exp.npz", model(), [X + 1], "numpy")


def test_another_number_of_outputs_is_refused(tmp_path: Path) -> None:
    golden = record(tmp_path / "exp.npz", model(), [X], "numpy")
    Golden([*golden.outputs, X], "numpy", "device 1", golden.inputs).save(tmp_path / "exp.npz")
    with pytest.raises(GoldenError, match="2 outputs were recorded, the model has 1"):
        check(tmp_path / "exp.npz", model(), [X], "numpy")


def test_archives_of_something_else_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "exp.npz", X)
    with pytest.raises(InputError, match="has no recorded outputs"):
        check(tmp_path / "exp.npz", model(), [X], "numpy")


def test_types_that_numpy_lacks_are_kept(tmp_path: Path) -> None:
    x = opset1.parameter([3, 4], np.float32, name="x")
    narrow = ov.Model([opset1.convert(x, "bf16", name="narrow")], [x])
    record(tmp_path / "narrow.npz", narrow, [X], "numpy")
    assert check(tmp_path / "narrow.npz", narrow, [X], "numpy").endswith("bit for bit")


_TESTS = """
import numpy as np

def test_exp(ir_golden):
    ir_golden("exp.xml", {"x": np.ones((3, 4), np.float32)}, side="numpy")
    ir_golden("exp.xml", {"x": np.zeros((3, 4), np.float32)}, side="numpy")
"""


def run(folder: Path, *options: str) -> tuple[int, str]:
    """Return the outcome and the last lines of pytest, in a process with only this plugin."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "ir_runtime.testing.pytest_plugin",
        "-p",
        "no:cacheprovider",
        *options,
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout


def test_the_fixture_records_and_compares(tmp_path: Path) -> None:
    ov.save_model(model(), tmp_path / "exp.xml")
    (tmp_path / "test_models.py").write_text(_TESTS, encoding="utf-8")
    code, text = run(tmp_path)
    assert code == 1
    assert "run pytest --ir-golden-update" in text
    assert run(tmp_path, "--ir-golden-update")[0] == 0
    assert sorted(path.name for path in (tmp_path / "goldens").iterdir()) == [
        "test_models-test_exp-2.npz",
        "test_models-test_exp.npz",
    ]
    assert run(tmp_path)[0] == 0
    ov.save_model(model(2), tmp_path / "exp.xml")
    code, text = run(tmp_path)
    assert code == 1
    assert "the recorded ones are not" in text
    assert "Traceback" not in text
