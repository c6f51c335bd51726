"""Cases round-trip through files; damaged or hostile ones are refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import jsonschema
import ml_dtypes
import numpy as np
import pytest
from harness import conformance_cases

import ir_runtime
from ir_runtime.conformance.adapters import Crashed, Unsupported, adapter
from ir_runtime.conformance.case import Case, Tolerance, decode, encode
from ir_runtime.conformance.judge import judge
from ir_runtime.errors import InputError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array
from ir_runtime.limits import Limits

SCHEMA = Path(ir_runtime.__file__).parent / "cli" / "schemas" / "conformance-case.json"
F32 = ElementType.f32


@pytest.fixture(name="relu")
def _relu() -> Case:
    return conformance_cases.relu()


@pytest.fixture(name="counter")
def _counter() -> Case:
    return conformance_cases.counter()


def test_case_json_has_its_schema(relu: Case, counter: Case) -> None:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for case in (relu, replace(relu, kind="refusal", expected=[], output_types=[], tolerances=[]), counter):
        jsonschema.validate(case.record(), schema)


def test_every_field_is_read_as_it_was_written(relu: Case) -> None:
    case = replace(relu, fulfils=["C1", "C2"], alternatives=[[np.float32([1, 1])], [np.float32([3, 3])]])
    copy = Case.parse(dict(case.files()))
    assert copy.record() == case.record()
    assert [answer[0].tolist() for answer in copy.answers] == [[0, 2], [1, 1], [3, 3]]
    assert (copy.xml, copy.weights) == (case.xml, case.weights)


@pytest.mark.parametrize("label", ["bf16", "f8e4m3", "i4", "u4", "nf4", "u1", "f4e2m1", "boolean", "string"])
def test_arrays_of_any_type_are_decoded_as_they_were_encoded(label: str) -> None:
    element = ElementType.parse(label)
    array = np.array(["é", ""], object) if label == "string" else np.array([0, 1]).astype(element.dtype)
    copy = decode(encode(array, element), element)
    assert copy.dtype == element.dtype
    np.testing.assert_array_equal(copy, array)


def pickled(array: Array) -> bytes:
    file = BytesIO()
    np.save(file, array.astype(object), allow_pickle=True)
    return file.getvalue()


def huge(_: Array) -> bytes:
    file = BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (1 << 40,)}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


def other_type(array: Array) -> bytes:
    file = BytesIO()
    np.save(file, array.astype(np.int64))
    return file.getvalue()


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (pickled, "holds Python objects, which are never read"),
        (huge, "a tensor has 1099511627776 elements"),
        (other_type, "expected f32, got int64"),
        (lambda _: b"nonsense", "input_0.npy cannot be read"),
    ],
)
def test_hostile_arrays_are_refused(relu: Case, write: Callable[[Array], bytes], message: str) -> None:
    files = dict(relu.files()) | {"input_0.npy": write(relu.inputs[0])}
    with pytest.raises(InputError, match=message):
        Case.parse(files, Limits(elements=1 << 30))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("id", "../../etc", "is not of words"),
        ("id", "a/../b", "is not of words"),
        ("kind", "valu", "the kind is 'valu', expected 'value'"),
        ("source", "guess", "the source is 'guess'"),
        ("inputs", ["f33"], "'f33' is not an element type"),
        ("inputs", ["f32"] * 9999, "more than 4096 arrays"),
        ("steps", 2, "1 inputs and 1 outputs of 2 steps"),
        ("outputs", [{"type": "f32", "ulp": -1, "absolute": 0, "predicate": ""}], "a tolerance of -1.0"),
        ("outputs", [{"type": "f32", "ulp": 1, "absolute": 0, "predicate": "all"}], "the predicate is 'all'"),
        ("outputs", 3, "case.json cannot be read"),
        ("version", "x", "case.json cannot be read"),
    ],
)
def test_damaged_descriptions_are_refused(relu: Case, field: str, value: Any, message: str) -> None:
    files = dict(relu.files())
    files["case.json"] = json.dumps({**relu.record(), field: value}).encode()
    with pytest.raises(InputError, match=message):
        Case.parse(files)


@pytest.mark.parametrize("raw", [b"", b"[1]", b"[" * 100_000, b"{}"])
def test_what_is_no_description_is_refused(relu: Case, raw: bytes) -> None:
    with pytest.raises(InputError, match=r"case\.json cannot be read"):
        Case.parse({**dict(relu.files()), "case.json": raw})


def test_missing_arrays_are_named(relu: Case) -> None:
    files = dict(relu.files())
    del files["expected_0.npy"]
    with pytest.raises(InputError, match=r"the case lacks expected_0\.npy"):
        Case.parse(files)


def test_any_of_several_answers_is_right(relu: Case) -> None:
    other = np.float32([5, 5])
    case = replace(relu, alternatives=[[other]])
    assert judge(case, [other]).passed
    assert judge(case, relu.expected).passed
    wrong = judge(case, [np.float32([5, 2])])
    assert wrong.message == "output 0: 1 of 2 elements differ, first at [0]: expected 0.0, got 5.0"


def test_predicates_leave_open_what_a_page_does(relu: Case) -> None:
    nan = replace(relu, expected=[np.float32([np.nan, 1])])
    any_order = replace(relu, tolerances=[Tolerance(predicate="any-order")])
    any_nan = replace(nan, tolerances=[Tolerance(predicate="any-where-nan")])
    shape = replace(relu, tolerances=[Tolerance(predicate="shape")])
    assert judge(any_order, [np.float32([2, 0])]).passed
    assert not judge(any_order, [np.float32([2, 2])]).passed
    assert judge(any_nan, [np.float32([7, 1])]).passed
    assert judge(any_nan, [np.float32([np.nan, 1])]).passed
    assert not judge(any_nan, [np.float32([7, 3])]).passed
    assert not judge(nan, [np.float32([7, 1])]).passed
    for case in (shape, replace(relu, kind="shape")):
        assert judge(case, [np.float32([7, 8])]).passed
        assert not judge(case, [np.float32([7])]).passed


def test_outputs_of_another_type_are_wrong(relu: Case) -> None:
    bf16 = [relu.expected[0].astype(ml_dtypes.bfloat16)]
    assert judge(relu, bf16).message == "output 0: expected float32, got bfloat16"


def test_outputs_of_a_model_that_must_be_refused_are_wrong(relu: Case) -> None:
    assert not judge(replace(relu, kind="refusal"), relu.expected).passed


@pytest.mark.parametrize("name", ["openvino", "reference", "numpy"])
def test_variables_keep_their_values_between_steps(counter: Case, name: str) -> None:
    assert judge(counter, adapter(name)(counter)).message == ""


def test_evaluate_keeps_no_variables(counter: Case) -> None:
    with pytest.raises(Unsupported, match="keeps no variables"):
        adapter("openvino:reference")(counter)


COMMAND = """
import json, os, sys
import numpy as np
os.chdir(sys.argv[-1])
(x,), (y,) = (json.load(open("names.json"))[side] for side in ("inputs", "outputs"))
array = np.load(x["file"])
assert array.shape == tuple(x["shape"])
{body}
np.save(y["file"], np.maximum(array, 0))
"""


def run_command(case: Case, folder: Path, body: str) -> Any:
    script = folder / "device.py"
    script.write_text(COMMAND.format(body=body))
    return adapter(f"{sys.executable} {script}")(case)


def test_commands_leave_their_outputs_in_the_folder(relu: Case, tmp_path: Path) -> None:
    assert judge(relu, run_command(relu, tmp_path, "")).message == ""


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("print('no Relu'); sys.exit(4)", Unsupported, "no Relu"),
        ("raise ValueError('no such axis')", RuntimeError, "ValueError: no such axis"),
        ("os.abort()", Crashed, "SIGABRT"),
    ],
)
def test_commands_say_by_their_end_what_they_think(
    relu: Case, tmp_path: Path, body: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run_command(relu, tmp_path, body)
