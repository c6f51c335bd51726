"""Messages for names that the package does not have."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import openvino
import pytest

import ir_runtime
from ir_runtime import _version


def _ours(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(f"ir_runtime.{module}".rstrip(".")), name)
    except (AttributeError, ImportError):
        return None


def outcome(program: str) -> str:
    """Return the result or the error of a program."""
    try:
        exec(program, {"ov": ir_runtime})
    except (AttributeError, ImportError) as reason:
        return f"{type(reason).__name__}: {reason}"
    return "nothing"


CASES = {
    "ov.RemoteTensor": "AttributeError: module 'ir_runtime' has no attribute 'RemoteTensor': memory of GPUs",
    "from ir_runtime import RemoteTensor": "ModuleNotFoundError: cannot import 'RemoteTensor' from 'ir_runtime': memory of",
    "ov.read_modle": "AttributeError: module 'ir_runtime' has no attribute 'read_modle'; did you mean 'read_model'?",
    "from ir_runtime import read_modle": "cannot import 'read_modle' from 'ir_runtime'; did you mean 'read_model'?",
    "from ir_runtime.exceptions import UserInputEror": "ImportError: cannot import 'UserInputEror' from 'ir_runtime.exceptions'; did you mean 'UserInputError'?",
    "import ir_runtime.tools.benchmark.main": "cannot import 'benchmark' from 'ir_runtime.tools': OpenVINO's benchmark_app",
    "from ir_runtime.frontend.pytorch import ts_decoder": "cannot import 'ts_decoder' from 'ir_runtime.frontend.pytorch': models of other",
    "from ir_runtime.frontend import FrontEndManger": "did you mean 'FrontEndManager'?",
    "ov.utils.get_cmake_path": "AttributeError: module 'ir_runtime.utils' has no attribute 'get_cmake_path': it is a helper",
    "import ir_runtime.runtime.opset": "ModuleNotFoundError: cannot import 'opset' from 'ir_runtime'",
    "ov.Core().create_tensor": "AttributeError: 'Core' object has no attribute 'create_tensor': memory of GPUs",
    "ov.Core().read_modl": "AttributeError: 'Core' object has no attribute 'read_modl'; did you mean 'read_model'?",
}


@pytest.mark.parametrize("program", CASES)
def test_what_is_said(program: str) -> None:
    assert CASES[program] in outcome(program)


def test_names_that_are_not_there_can_be_asked_for() -> None:
    assert not hasattr(ir_runtime, "RemoteTensor")
    assert not hasattr(ir_runtime.Core(), "create_tensor")
    assert getattr(ir_runtime, "RemoteTensor", None) is None


CONVERSIONS = [
    ("", "convert_model"), ("tools.ovc", "convert_model"), ("frontend", "FrontEndManager"), ("frontend.frontend", "FrontEnd"),
    ("frontend.pytorch", "ModuleExtension"), ("frontend.tensorflow", "ConversionExtension"),
    ("frontend.onnx", "OpExtension"), ("frontend.paddle", "OpExtension"), ("frontend.jax", "Decoder"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name"), CONVERSIONS)
def test_conversion_says_what_to_do_only_when_it_is_called(module: str, name: str) -> None:
    found = _ours(module, name)
    assert found.__doc__
    with pytest.raises(
        ir_runtime.UnsupportedError, match=r"openvino\.convert_model and openvino\.save_model"
    ):
        found("model.onnx")


def test_the_former_namespace_has_the_same_objects() -> None:
    runtime = importlib.import_module("ir_runtime.runtime")
    assert runtime.Core is ir_runtime.Core
    assert importlib.import_module("ir_runtime.runtime.properties.hint") is ir_runtime.properties.hint
    assert "Core" in dir(runtime)


def test_importing_does_not_import_what_answers() -> None:
    code = "import ir_runtime, sys; print([n for n in ('difflib', 'ir_runtime._util.absent', 'ir_runtime.frontend') if n in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


def test_the_version_is_that_of_the_api() -> None:
    assert ir_runtime.get_version().split("-")[0] == openvino.get_version().split("-")[0]
    assert ir_runtime.get_version().endswith(_version.__version__)


def test_modules_of_the_former_place_are_the_same() -> None:
    code = "import ir_runtime.properties.hint as new, ir_runtime.runtime.properties.hint as old; assert old is new"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
