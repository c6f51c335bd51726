"""OpenVINO's extension module, from which programs import public names as well; and the request of a compiled model."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import openvino
import pytest
from harness.dropin import run

import ir_runtime as ov
from ir_runtime import _pyopenvino, opset13
from ir_runtime._util.absent import sentence

THEIRS: Any = importlib.import_module("openvino._pyopenvino")


def submodules(module: ModuleType = THEIRS, path: str = "_pyopenvino") -> Iterator[tuple[str, ModuleType]]:
    """Yield the submodules of OpenVINO's extension module, without the name of the package."""
    yield path, module
    for name, inner in vars(module).items():
        if isinstance(inner, ModuleType):
            yield from submodules(inner, f"{path}.{name}")


MODULES = dict(submodules())
NAMES = [(path, name) for path, module in MODULES.items() for name in vars(module) if name[:2] != "__"]


def test_every_module_is_there_or_says_why_it_is_not() -> None:
    for path in MODULES:
        try:
            importlib.import_module(f"ir_runtime.{path}")
        except ModuleNotFoundError as reason:
            assert sentence(path) in str(reason), path  # noqa: PT017
    assert len(MODULES) > 15


def test_every_name_is_there_or_says_why_it_is_not() -> None:
    absent = []
    for path, name in NAMES:
        try:
            getattr(importlib.import_module(f"ir_runtime.{path}"), name)
        except (AttributeError, ImportError) as reason:
            assert sentence(f"{path}.{name}") in str(reason)  # noqa: PT017
            absent.append(name)
    assert len(absent) < len(NAMES) / 8


@pytest.mark.parametrize(
    "public", ["op", "op.util", "properties.hint", "preprocess", "passes", "layout_helpers"]
)
def test_names_are_those_of_the_public_module(public: str) -> None:
    mirror = importlib.import_module(f"ir_runtime._pyopenvino.{public}")
    ours: Any = ov
    for part in public.split("."):
        ours = getattr(ours, part)
    names = [name for name in ours.__all__ if not isinstance(getattr(ours, name), ModuleType)]
    assert names
    assert all(getattr(mirror, name) is getattr(ours, name) for name in names)
    assert set(ours.__all__) <= set(dir(mirror))


def test_members_of_enumerations_stand_beside_them() -> None:
    assert _pyopenvino.preprocess.RESIZE_LINEAR is ov.preprocess.ResizeAlgorithm.RESIZE_LINEAR
    assert THEIRS.preprocess.RESIZE_LINEAR == openvino.preprocess.ResizeAlgorithm.RESIZE_LINEAR


def test_names_that_only_the_compiled_module_has() -> None:
    x = opset13.parameter([2], np.float32, name="x")
    assert isinstance(x.output(0).get_tensor(), _pyopenvino.DescriptorTensor)
    assert _pyopenvino.util.replace_node is ov.utils.replace_node
    assert _pyopenvino.FrontEndManager is ov.frontend.FrontEndManager
    assert {"Core", "DescriptorTensor", "FrontEnd", "util"} <= set(dir(_pyopenvino))


UNKNOWN = {
    "from ir_runtime._pyopenvino import RemoteTensor": "memory of GPUs",
    "from ir_runtime._pyopenvino.op.util import UnaryElementwiseArithmetic": "operations have no common classes here",
    "import ir_runtime._pyopenvino.no_such_module": "the names of the public modules are here",
    "from ir_runtime._pyopenvino.op import Paramter": "did you mean 'Parameter'?",
    "import ir_runtime._pyopenvino as o; o.op.Paramter": "did you mean 'Parameter'?",
}


@pytest.mark.parametrize("program", UNKNOWN)
def test_unknown_names_say_why(program: str) -> None:
    with pytest.raises((ImportError, AttributeError)) as raised:
        exec(program)
    assert UNKNOWN[program] in str(raised.value)


def test_it_is_not_imported_before_it_is_asked_for() -> None:
    code = "import ir_runtime as o, sys; o.Core; print([n for n in sys.modules if '_pyopenvino' in n or n == 'pkgutil'])"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "[]"


THE_REQUEST = """
ops = __import__(ov.__name__, fromlist=["opset13"]).opset13
x = ops.parameter([2], np.float32, "x")
model = ov.Model([ops.relu(x)], [x])
for config in ({}, {"PERF_COUNT": True}):
    compiled = ov.compile_model(model, "CPU", config)
    note(compiled._infer_request)
    compiled(np.float32([1, -1]))
    request = compiled._infer_request
    note(request is compiled._infer_request, isinstance(request, ov.InferRequest), bool(config) <= bool(request.profiling_info))
    compiled(np.float32([3, -2]))
    note(request.results[0], request.get_input_tensor(0).data, request.get_output_tensor(0).data)
    compiled._infer_request = None
    note(compiled._infer_request)
    own = compiled.create_infer_request()
    compiled._infer_request = own
    compiled(np.float32([5, -3]))
    note(own.results[0], compiled._infer_request is own)
"""


def test_the_request_of_a_compiled_model() -> None:
    ours = run(THE_REQUEST, "ir_runtime")
    theirs = run(THE_REQUEST, "openvino")
    assert len(ours) == len(theirs) == 20
    assert all(np.array_equal(mine, its) for mine, its in zip(ours, theirs, strict=True))


def test_the_request_has_the_states_of_the_calls() -> None:
    info = ov.op.util.VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape([1]), ov.Type.f32, "sum"
    variable = ov.op.util.Variable(info)
    x = opset13.parameter([1], np.float32, "x")
    total = opset13.add(ov.op.read_value(opset13.constant(np.zeros(1, np.float32)), variable), x)
    compiled = ov.compile_model(ov.Model([total], [ov.op.assign(total, variable)], [x], [variable], "sum"))
    one = np.ones(1, np.float32)
    compiled(one)
    request = compiled._infer_request
    assert request is not None
    assert request.query_state()[0].state.data.tolist() == [1]
    assert compiled(one)[0].tolist() == [2]
    request.reset_state()
    assert compiled(one)[0].tolist() == [1]
    compiled._infer_request = None
    assert compiled(one)[0].tolist() == [1]
    assert compiled.query_state()[0].state.data.tolist() == [1]


def test_calls_need_all_inputs_whoever_has_the_request() -> None:
    x = opset13.parameter([1], np.float32, "x")
    compiled = ov.compile_model(ov.Model([opset13.relu(x)], [x]), config={"PERF_COUNT": True})
    compiled(np.ones(1, np.float32))
    assert compiled._infer_request is not None
    with pytest.raises(ov.InputError, match="'x'"):
        compiled({})


def test_the_request_must_be_one() -> None:
    x = opset13.parameter([1], np.float32, "x")
    compiled = ov.compile_model(ov.Model([opset13.relu(x)], [x]))
    with pytest.raises(TypeError, match="expected a request or None, got str"):
        compiled._infer_request = "request"
