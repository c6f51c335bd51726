"""The conformance suite: cases in files, detection of wrong outputs, and correct runtimes that pass."""

from __future__ import annotations

import fnmatch
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness.sample import Sample, all_samples, case, ints, numbers, scalar

import ir_runtime as ov
from conformance.bounds import joined
from conformance.build import REFERENCE, build
from conformance.coverage import Coverage
from conformance.fulfilled import fulfilled, with_fulfilled
from conformance.refusals import refusal_cases
from conformance.values import Unfit, cases_of, converted
from conformance.whole_models import body_cases, state_cases
from ir_runtime import opset1
from ir_runtime.conformance.adapters import Unsupported, adapter
from ir_runtime.conformance.bounds import bound_of, tolerances
from ir_runtime.conformance.case import Case, Tolerance
from ir_runtime.conformance.judge import judge, units_in_last_place
from ir_runtime.conformance.results import read_expected
from ir_runtime.conformance.truth import Bound, Truth, Unstable, truth_of
from ir_runtime.errors import InputError
from ir_runtime.ir.element import ElementType
from ir_runtime.ops import registry
from ir_runtime.ops._define.operation import clauses

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


def test_a_case_names_the_clauses_whose_checks_held_and_the_decisions_that_it_shows() -> None:
    sample = case("ReduceL2-4", numbers(2, 3, 4), ints(1), keep_dims=True)
    fed, constant = (
        set(with_fulfilled(one(each)).fulfils) for each in (sample, replace(sample, constant=(1,)))
    )
    listed = clauses("ReduceL2-4")
    once = f"C{listed.index('no axis is named twice') + 1}"
    assert {f"C{number}" for number in range(1, len(listed) + 1)} == fed | constant
    assert once in fed  # checked in the run
    default = case("ReduceL2-4", numbers(2, 3, 4), ints(1))
    of_keep_dims = listed.index("attribute 'keep_dims' is true or false") + 1
    assert f"C{of_keep_dims}" in fed
    assert f"C{of_keep_dims}" not in fulfilled(one(default))
    (shown,) = (s for s in SAMPLES if s.op == "ReduceMean-1" and s.shows == ("the mean of no",))
    (decision,) = one(shown).clauses
    assert decision.startswith("ReduceMean-1 D4: the mean of no elements is 0")


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


def test_what_rounding_decides_has_no_right_answer() -> None:
    x = opset1.parameter([1], np.float32, name="x")
    # f32 rounds the product to 1; in f64 it is less.
    whole = opset1.floor(opset1.multiply(opset1.multiply(x, np.float32(1 / 25)), np.float32(25)))
    decided = ov.Model([opset1.convert(whole, "i32")], [x])
    with pytest.raises(Unstable, match="rounding decides an output"):
        truth_of(decided, [np.float32([1])])


def test_random_numbers_are_cases_of_types_and_shapes() -> None:
    random = next(sample for sample in SAMPLES if sample.op == "RandomUniform-8")
    found = one(random)
    assert (found.kind, {tolerance.predicate for tolerance in found.tolerances}) == ("shape", {"shape"})


def test_the_lowest_number_of_a_type_is_not_that_of_f64() -> None:
    found = one(case("ReduceMax-1", numbers(2, 0), ints(1)))
    assert found.expected[0].tolist() == [np.finfo(np.float32).min] * 2


def test_where_pages_leave_a_choice_each_answer_is_right() -> None:
    nothing = one(case("ReduceMax-1", numbers(2, 0), ints(1)))
    assert judge(nothing, [np.float32([-np.inf] * 2)]).passed
    assert not judge(nothing, [np.float32([0] * 2)]).passed
    ties = one(case("TopK-11", numbers(5), scalar(3), axis=0, mode="max", sort="none"))
    values, indices = adapter("reference")(ties)
    assert judge(ties, [values[::-1], indices[::-1]]).passed
    assert not judge(ties, [values[::-1], indices + 1]).passed


def test_numbers_that_are_moved_must_be_equal_and_sums_may_differ_by_what_rounding_explains() -> None:
    assert one(case("Gather-8", numbers(5), ints(3), ints(0))).tolerances == [Tolerance()]
    found = one(case("MatMul-1", numbers(2, 50), numbers(50, 2)))
    assert 0 < found.tolerances[0].absolute < 1e-4


def test_errors_count_in_units_in_the_last_place_or_in_effects_of_a_rounding() -> None:
    assert joined(Bound(), 1, 7) == Bound(1, 0)
    assert joined(Bound(), 300, 7) == Bound(0, 7)
    assert joined(Bound(2, 3), 1e9, 1e9) == Bound(2, 3)
    truth = Truth([np.float32([1])], [ElementType.f32], "f32", [0.5])
    assert tolerances(truth, bound_of("NoSuch-1", truth.precision)) == [Tolerance(ulp=8, absolute=4)]


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


@pytest.mark.parametrize("name", ["reference", "numpy"])
def test_strings_are_compared(name: str) -> None:
    text = np.array(["a", "bc", ""], object)
    right = one(case("Gather-8", text, ints(2, 0), ints(0)))
    assert judge(right, adapter(name)(right)).passed
    assert not judge(replace(right, expected=[text[:2]]), adapter(name)(right)).passed


def test_unknown_runtimes_are_refused() -> None:
    with pytest.raises(InputError, match="unknown runtime 'openvin'"):
        adapter("openvin")


def test_what_evaluate_does_not_implement_is_unsupported() -> None:
    sample = case("ReduceSum-1", numbers(2, 3, dtype="f64"), ints(1), _constant=(1,))
    with pytest.raises(Unsupported):
        adapter("openvino:reference")(one(sample))


def some(step: int) -> dict[str, list[Sample]]:
    """A selection of the samples, by operation."""
    found: dict[str, list[Sample]] = {}
    for sample in SAMPLES[::step]:
        found.setdefault(sample.op, []).append(sample)
    return found


@pytest.mark.parametrize("sample", SAMPLES[::150], ids=str)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_our_reference_passes(sample: Sample, dynamic: bool) -> None:
    for found in cases_of("X-1/0001", sample, dynamic):
        assert judge(found, adapter("reference")(found)).message == ""


def test_samples_are_converted_to_the_types_that_they_leave_out() -> None:
    (cls,) = (cls for cls in registry.versions("Gather") if cls.since == 8)
    having = some(1)["Gather-8"]
    labels = {sample.values()[0].element.label for sample in (*having, *converted(cls, having))}
    assert labels == {element.label for element in cls.inputs[0].element.allowed}


def test_what_inference_refuses_is_no_case() -> None:
    wrong = replace(case("Add-1", numbers(2), numbers(2)), inputs=(numbers(2), numbers(3)))
    with pytest.raises(Unfit, match="refused"):
        one(wrong)


def test_variables_keep_their_values_between_steps() -> None:
    for found in state_cases():
        assert found.steps > 1
        assert judge(found, adapter("reference")(found)).message == ""


def test_bodies_have_cases() -> None:
    left_out: Counter[str] = Counter()
    found = list(body_cases(left_out))
    assert {"If-8", "Loop-5", "TensorIterator-1"} <= {each.operation for each in found}
    assert len(found) > 10 * sum(left_out.values())
    for each in found[::5]:
        assert judge(each, adapter("reference")(each)).message == ""


def test_the_same_samples_give_the_same_bytes(tmp_path: Path) -> None:
    some_samples = {name: some(1)[name][:3] for name in ("Exp-1", "RandomUniform-8")}
    first, second = (build(tmp_path / name, some_samples) for name in ("one", "two"))
    assert first.path.read_bytes() == second.path.read_bytes()
    with zipfile.ZipFile(first.path) as archive:
        names = archive.namelist()
        assert {"README.md", "LICENSE", "MANIFEST", "openvino_reference.xfail"} <= set(names)
        folders = {name.rpartition("/")[0] for name in names if name.endswith("case.json")}
        for folder in sorted(folders)[::3]:
            files = {
                name.rpartition("/")[2]: archive.read(name) for name in names if name.startswith(f"{folder}/")
            }
            assert Case.parse(files).id == folder
        assert len(archive.read("MANIFEST").splitlines()) == len(names) - 1
    kinds = {kind for _, kind in first.coverage.cases}
    assert kinds == {"value", "dynamic", "shape", "refusal"}
    missing = list(first.coverage.missing())
    assert "Add-1: no value or shape or state case" in missing
    assert not [line for line in missing if line.startswith(("Exp-1 C", "Exp-1 D"))]


def test_failures_of_the_reference_are_expected_by_operation() -> None:
    names = [cls.versioned_name() for cls in registry]
    for entry in read_expected(REFERENCE):
        assert fnmatch.filter(names, entry.pattern.partition("/")[0].rstrip("*") + "*"), entry.pattern


@pytest.mark.parametrize("operation", ["Split-1", "VariadicSplit-1", "BGRtoNV12-17"])
def test_models_that_must_be_refused_have_results(operation: str) -> None:
    """Runtimes drop layers without consumers."""
    cases = [*refusal_cases([operation])]
    assert cases
    assert all(b'type="Result"' in case.xml for case in cases)


def test_clauses_without_a_refused_case_are_listed() -> None:
    missing = list(Coverage().missing())
    assert {"Exp-1 C1: no refused case", "Exp-1 C1: no passing case", "Add-1 D1: no case"} <= set(missing)
