"""The conformance suite: cases are kept in files, judges see what is wrong, and sound runtimes pass."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness.sample import Sample, all_samples, case, ints, numbers

import ir_runtime as ov
from conformance.build import Built, build, cases, cases_of
from conformance.truth import Unstable, truth_of
from ir_runtime import opset1
from ir_runtime.conformance.adapters import Unsupported, adapter
from ir_runtime.conformance.case import Case, Tolerance
from ir_runtime.conformance.judge import judge, units_in_last_place
from ir_runtime.errors import InputError
from ir_runtime.ir.element import ElementType

SAMPLES = list(all_samples())


def one(sample: Sample) -> Case:
    (found,) = cases_of("X-1/0001", sample)
    return found


def reduction() -> Case:
    return one(case("ReduceL2-4", numbers(2, 3, 4), ints(1), keep_dims=True))


def test_a_case_is_read_as_it_was_written() -> None:
    written = one(case("Convert-1", numbers(3, dtype="f32"), destination_type="bf16"))
    read = Case.parse(dict(written.files()))
    assert replace(read, inputs=(), expected=()) == replace(written, inputs=(), expected=(), input_types=read.input_types, output_types=read.output_types, tolerances=read.tolerances, clauses=(), alternatives=read.alternatives)  # fmt: skip
    for ours, theirs in zip(
        (*read.inputs, *read.expected), (*written.inputs, *written.expected), strict=True
    ):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("missing", ["case.json", "model.xml"])
def test_folders_that_are_no_cases_are_refused(missing: str) -> None:
    files = dict(reduction().files())
    del files[missing]
    with pytest.raises(InputError, match=r"a case needs a case\.json and a model\.xml"):
        Case.parse(files)


def test_cases_of_another_schema_are_refused() -> None:
    files = dict(reduction().files())
    files["case.json"] = files["case.json"].replace(b'"schema": 1', b'"schema": 7')
    with pytest.raises(InputError, match="a case of schema 7, expected 1"):
        Case.parse(files)


def test_truth_is_computed_in_f64_and_rounded_once() -> None:
    sample = case("ReduceSum-1", numbers(1000, dtype="f16", low=0, high=1), ints(0))
    truth = one(sample)
    exact = sample.inputs[0].astype(np.float64).sum()
    assert truth.source == "f64"
    assert truth.expected[0] == np.float16(exact)


def test_integers_are_exact() -> None:
    found = one(case("Add-1", numbers(3, dtype="i32"), numbers(3, dtype="i32")))
    assert (found.source, found.tolerances) == ("exact", [Tolerance()])


def test_what_rounding_decides_is_no_case() -> None:
    x = opset1.parameter([1], np.float32, name="x")
    whole = opset1.floor(opset1.multiply(opset1.multiply(x, np.float32(1 / 3)), np.float32(3)))
    decided = ov.Model([opset1.convert(whole, "i32")], [x])
    with pytest.raises(Unstable, match="rounding decides"):
        truth_of(decided, [np.float32([1])])


@pytest.mark.parametrize(
    ("got", "message"),
    [
        ([1, 2], "expected shape [3], got [2]"),
        ([1, np.nan, 3], "1 of 3 elements differ, first at [1]: expected 2.0, got nan"),
        ([1, 2, np.inf], "1 of 3 elements differ, first at [2]: expected 3.0, got inf"),
        ([1.001, 2, 3], "1 of 3 elements differ, first at [0]"),
    ],
)
def test_wrong_outputs_are_described(got: list[float], message: str) -> None:
    right = reduction()
    expected = replace(
        right, expected=[np.float32([1, 2, 3])], output_types=[ElementType.f32], tolerances=[Tolerance(4)]
    )
    assert not judge(expected, [np.float32(got)]).passed
    assert message in judge(expected, [np.float32(got)]).message
    assert judge(expected, [np.nextafter(np.float32([1, 2, 3]), np.float32(9))]).passed
    assert judge(expected, []).message == "expected 1 outputs, got 0"


def test_equal_infinities_and_nan_pass() -> None:
    odd = np.float32([np.nan, np.inf, -np.inf])
    expected = replace(reduction(), expected=[odd], output_types=[ElementType.f32], tolerances=[Tolerance()])
    assert judge(expected, [odd]).passed
    assert not judge(expected, [-odd]).passed


@pytest.mark.parametrize("name", ["f32", "f16", "f64"])
def test_units_in_the_last_place_are_those_of_numpy(name: str) -> None:
    element = ElementType.parse(name)
    some = np.array([0, 1e-7, 0.1, 1, 1.5, 3, 1000], element.dtype)
    np.testing.assert_array_equal(units_in_last_place(some.astype(float), element), np.spacing(some))


@pytest.mark.parametrize("name", ["openvino", "openvino:reference", "reference", "numpy"])
def test_runtimes_pass_a_sound_case_and_fail_a_wrong_one(name: str) -> None:
    right = reduction()
    outputs = adapter(name)(right)
    assert judge(right, outputs).passed
    assert not judge(replace(right, expected=[right.expected[0] * np.float32(1.0001)]), outputs).passed


def test_unknown_runtimes_are_refused() -> None:
    with pytest.raises(InputError, match="unknown runtime 'openvin'"):
        adapter("openvin")


def test_what_evaluate_does_not_implement_is_unsupported() -> None:
    sample = case("ReduceSum-1", numbers(2, 3, dtype="f64"), ints(1), _constant=(1,))
    with pytest.raises(Unsupported):
        adapter("openvino:reference")(one(sample))


def some(every: int) -> list[Sample]:
    """Some samples of each operation, those with a right output from elsewhere among them."""
    return SAMPLES[::every]


@pytest.mark.parametrize("sample", some(150), ids=str)
def test_our_reference_passes(sample: Sample) -> None:
    built = Built()
    for found in cases(built, [sample]):
        assert judge(found, adapter("reference")(found)).message == ""


def test_the_same_samples_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert build(tmp_path / name, some(600)).cases > 5
    (first,), (second,) = ((tmp_path / name).glob("*.zip") for name in ("one", "two"))
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        names = archive.namelist()
        ids = sorted({name.rpartition("/")[0] for name in names if "/" in name})
        folder = {
            name.rpartition("/")[2]: archive.read(name) for name in names if name.startswith(ids[0] + "/")
        }
        assert Case.parse(folder).id == ids[0]
        assert len(archive.read("MANIFEST").splitlines()) == len(names) - 1
