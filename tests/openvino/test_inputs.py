"""Inputs of other element types are cast as in OpenVINO; ``strict`` refuses them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner
from harness.dropin import assert_same
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.cli import main

PRECISIONS = {"f32": "FP32", "f16": "FP16", "f64": "FP64", "boolean": "BOOL"}


def text(element: str, shape: str) -> bytes:
    """A model that returns its input."""
    net = Net()
    says = PRECISIONS.get(element, element.upper())
    net.result(net.parameter("x", shape, element, out=f"{says} {shape.replace(',', ' ').replace('?', '-1')}"))
    return net.xml()


@cache
def compiled(package: str, element: str, shape: str) -> Any:
    api = pytest.importorskip(package)
    return api.Core().compile_model(api.Core().read_model(text(element, shape)), "CPU")


ARRAYS: dict[str, np.ndarray] = {
    "u8": np.uint8([1, 200]),
    "i32": np.int32([-1, 2]),
    "i64": np.int64([2**15, 3]),
    "bool": np.array([True, False]),
    "f16": np.float16([1.5, 2]),
    "f32": np.float32([-1.75, 0]),
    "f64": np.float64([1.5, 2]),
    "bf16": np.array([1.5, 2], ml_dtypes.bfloat16),
    "other byte order": np.array([1.5, 2], ">f4"),
    "objects": np.array([1, 2.5], object),
    "not contiguous": np.float64([1, 9, 2, 9])[::2],
    "read only": np.broadcast_to(np.float64(3), 2),
}
CALLS: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "call": lambda model, x: model(x)[0],
    "list": lambda model, x: model([x])[0],
    "name": lambda model, x: model({"x": x})[0],
    "request": lambda model, x: model.create_infer_request().infer({0: x})[0],
    "copied": lambda model, x: model.create_infer_request().infer([x], share_inputs=False)[0],
    "shared": lambda model, x: model.create_infer_request().infer([x], share_inputs=True)[0],
}


@pytest.mark.parametrize("element", ["f32", "f16", "i64", "i32", "u8", "i8", "boolean"])
@pytest.mark.parametrize("given", ARRAYS)
def test_arrays_are_cast(element: str, given: str) -> None:
    array = ARRAYS[given]
    if (
        element in ("u8", "i8", "i32", "i64")
        and given in ("objects", "f32", "f16", "f64")
        and array.min() < 0
    ):
        array = abs(array)  # a negative float as an unsigned integer is whatever the processor makes of it
    for call in CALLS.values():
        assert_same(
            call(compiled("ir_runtime", element, "2"), array), call(compiled("openvino", element, "2"), array)
        )


@pytest.mark.parametrize("shape", ["", "1", "1,1", "?"])
@pytest.mark.parametrize("given", [np.array(1.5), np.float64(2.5), np.array(3, np.int32)])
def test_scalars_fill_shapes_of_one_element(shape: str, given: Any) -> None:
    ours, theirs = (
        compiled(package, "f32", shape)({"x": given})[0] for package in ("ir_runtime", "openvino")
    )
    assert_same(ours, theirs)


def test_a_scalar_fills_nothing_larger() -> None:
    for shape in ("2", "?,?"):
        with pytest.raises(ir.InputError, match=r"has shape \[\]"):
            compiled("ir_runtime", "f32", shape)({"x": np.array(1.5)})


def test_a_given_array_stays_as_it_was() -> None:
    given = np.float64([1, 2])
    result = compiled("ir_runtime", "f32", "2")(given)[0]
    result[:] = 9
    np.testing.assert_array_equal(given, [1, 2])


@pytest.mark.parametrize("package", ["ir_runtime", "openvino"])
@pytest.mark.parametrize("how", ["infer", "call", "set_tensor"])
def test_tensors_are_not_cast(package: str, how: str) -> None:
    api, model = pytest.importorskip(package), compiled(package, "f32", "2")
    tensor = api.Tensor(np.float64([1, 2]))
    request = model.create_infer_request()
    with pytest.raises(RuntimeError):
        {
            "infer": request.infer,
            "call": model,
            "set_tensor": lambda given: request.set_tensor("x", given[0]),
        }[how]([tensor])


@pytest.mark.parametrize(
    ("element", "given"),
    [
        ("f32", np.array(["1", "2"])),
        ("f32", np.array([1, 2j])),
        ("f32", np.array([None, 1], object)),
        ("f32", np.array(["1", 2], object)),
        ("f32", np.array(["2020-01-01", "2020-01-02"], "M8[D]")),
        ("i4", np.int8([1, 2])),
        ("f8e4m3", np.float32([1, 2])),
        ("string", np.float32([1, 2])),
    ],
)  # fmt: skip
def test_what_only_looks_like_numbers_is_refused(element: str, given: np.ndarray) -> None:
    model = ir.compile_model(ir.read_model(text(element, "2")))
    with pytest.raises(ir.InputError, match=r"input 'x' is "):
        model(given)


@pytest.mark.parametrize("dtype", ["float16", "int16", "uint16", ">u2"])
def test_arrays_of_sixteen_bits_are_the_bits_of_bf16_as_in_openvino(dtype: str) -> None:
    array = np.array([1.5, -2], ml_dtypes.bfloat16).view(np.uint16)
    array = array.astype(dtype) if dtype == ">u2" else array.view(dtype)
    for call in CALLS.values():
        with pytest.warns(RuntimeWarning, match="is bf16: an array of .*16 is taken for its bits") as warned:
            ours = call(compiled("ir_runtime", "bf16", "2"), array)
        assert ours.astype(np.float32).tolist() == [1.5, -2]
        assert [warning.filename for warning in warned] == [__file__]
    if dtype != ">u2":
        for name in CALLS if dtype == "float16" else ("call", "list", "name", "shared"):
            theirs = CALLS[name](compiled("openvino", "bf16", "2"), array)
            assert theirs.view(np.uint16).tolist() == ours.view(np.uint16).tolist()
    with pytest.raises(ir.InputError, match="expected bf16"):
        ir.compile_model(ir.read_model(text("bf16", "2")), strict=True)(array)


@pytest.mark.parametrize("dtype", ["float16", "int16", "uint16"])
def test_tensors_of_ports_of_bf16_take_the_bits_of_arrays(dtype: str) -> None:
    array = np.array([1.5, -2], ml_dtypes.bfloat16).view(dtype)
    for package in ("ir_runtime", "openvino"):
        model = compiled(package, "bf16", "2")
        with pytest.warns(RuntimeWarning):
            tensor = pytest.importorskip(package).Tensor(model.input(0), array)
        assert np.shares_memory(tensor.data, array)
        assert model({"x": tensor})[0].view(np.uint16).tolist() == array.view(np.uint16).tolist()


@pytest.mark.parametrize("package", ["ir_runtime", "openvino"])
def test_bf16_takes_the_values_of_states_of_other_real_types(package: str) -> None:
    api = pytest.importorskip(package)
    ops = import_module(f"{package}.opset13")
    info = api.op.util.VariableInfo()
    info.data_shape, info.data_type, info.variable_id = api.PartialShape([2]), api.Type.bf16, "v"
    variable = api.op.util.Variable(info)
    read = ops.read_value(ops.constant(np.zeros(2), api.Type.bf16), variable)
    outputs, sinks = [ops.result(ops.convert(read, "f32"))], [ops.assign(read, variable)]
    model = api.Model(results=outputs, sinks=sinks, parameters=[], variables=[variable])
    request = api.compile_model(model, "CPU").create_infer_request()
    request.query_state()[0].state = api.Tensor(np.float16([1.5, -2]))
    assert request.infer()[0].tolist() == [1.5, -2]


def test_bf16_takes_the_values_of_f32() -> None:
    result = ir.compile_model(ir.read_model(text("bf16", "2")))(np.float32([1.5, -2]))[0]
    assert result.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(result.astype(np.float32), [1.5, -2])


def test_strict_models_refuse_other_types() -> None:
    model = ir.read_model(text("f32", "2"))
    for strict in (ir.compile_model(model, strict=True), ir.Core().compile_model(model, "CPU", strict=True)):
        request = strict.create_infer_request()
        for given in (np.float64([1, 2]), np.uint8([1, 2])):
            for run in (strict, request.infer, strict.infer_new_request):
                with pytest.raises(ir.InputError, match="expected f32"):
                    run([given])
        np.testing.assert_array_equal(request.infer([np.float32([1, 2])])[0], [1, 2])
        np.testing.assert_array_equal(strict([[1, 2]])[0], [1, 2])


def test_the_command_line_refuses_other_types(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_bytes(text("f32", "2"))
    np.save(tmp_path / "x.npy", np.float64([1, 2]))
    result = CliRunner().invoke(main, ["run", str(tmp_path / "m.xml"), "-i", str(tmp_path / "x.npy")])
    assert result.exit_code
    assert "input 'x' is f64, expected f32" in result.output


@pytest.mark.parametrize(
    ("shape", "given"),
    [("2", [1, 2]), ("2,3", [[1, 2, 3], [4, 5, 6]]), ("1,2", [[1, 2]]), ("?,?", [[1, 2]]), ("2,1", [[1], [2]]), ("2,1,1", [[[[1]], [[2]]]])],
)  # fmt: skip
def test_lists_of_numbers_are_data(shape: str, given: list[Any]) -> None:
    for element in ("f32", "i64"):
        ours = compiled("ir_runtime", element, shape)(given)[0]
        assert ours.tolist() == (given if shape != "2,1,1" else given[0])
    if shape != "2,1,1":  # of which OpenVINO takes only arrays
        assert_same(ours, compiled("openvino", "i64", shape)(given)[0])


def test_lists_of_every_element_type_are_converted_where_nothing_is_lost() -> None:
    for given in ([np.uint8(1), np.uint8(2)], [1.0, 2.0], [True, 2], [np.int32(1), 2]):
        for element in ("f32", "i64", "u8"):
            assert compiled("ir_runtime", element, "2")([given])[0].tolist() == [1, 2]
    with pytest.raises(ir.InputError, match="cannot represent"):
        compiled("ir_runtime", "u8", "2")([[1.5, 2]])


def test_inputs_of_background_runs_and_queues_are_cast() -> None:
    for package in ("ir_runtime", "openvino"):
        api, model = pytest.importorskip(package), compiled(package, "f32", "2")
        request = model.create_infer_request()
        request.start_async({"x": np.uint8([1, 2])})
        request.wait()
        assert request.get_output_tensor().data.tolist() == [1, 2]
        queue, found = api.AsyncInferQueue(model, 1), []
        queue.set_callback(lambda done, _, found=found: found.append(done.get_output_tensor().data.tolist()))
        queue.start_async({0: np.float64([3, 4])})
        queue.start_async([np.int32([5, 6])])
        queue.wait_all()
        assert found == [[3, 4], [5, 6]]
