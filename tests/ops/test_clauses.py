"""The clauses of operations: stated by checks, numbered, cited, each with a layer that fulfils it and one that violates it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from conformance.fulfilled import held_while
from harness.clauses import sites, unrefused, violations
from harness.sample import Sample, case, named_samples, numbers

import ir_runtime as ov
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define.describe import group, page, record
from ir_runtime.ops._define.operation import cite, clauses

OURS = [cls for cls in registry if group(cls)]
# A model has a violation of each of these only while it runs.
NOT_SHOWN = {
    "initial_value fits attribute 'variable_shape'",
}
# All are searched for by `make index`; one of each of these families here.
SOME = (
    *(
        "ReduceL2-4",
        "Add-1",
        "Gather-8",
        "Concat-1",
        "TopK-11",
        "Range-4",
        "Reshape-1",
        "Clamp-1",
        "MatMul-1",
    ),
    *("Einsum-7", "Interpolate-11", "NonMaxSuppression-9", "LSTMSequence-5", "If-8", "Convolution-1"),
)


def numbered() -> list[tuple[str, int, str]]:
    """Yield operations with the numbers and texts of their clauses."""
    names = [cls.versioned_name() for cls in OURS]
    return [(name, number, clause) for name in names for number, clause in enumerate(clauses(name), 1)]


@pytest.mark.parametrize("operation", SOME)
def test_the_numbers_are_those_of_the_index(operation: str) -> None:
    """`make index` rewrites the index."""
    assert [violation.clause for violation in violations(operation)] == list(clauses(operation))


@pytest.mark.parametrize("operation", SOME)
def test_each_clause_is_checked_by_a_refused_model(operation: str) -> None:
    for violation in violations(operation):
        assert re.match(rf"{re.escape(operation)} C\d+: ", cite(operation, violation.clause))
        assert violation.clause in violation.cited()


def test_each_clause_is_stated_by_one_check() -> None:
    """A check is in the class, in a helper, or in the declaration of a port or an attribute."""
    patterns = [site.pattern for site in sites()]
    declared = re.compile(r"the operation takes|(each input|input '\w+') (is|has)|attribute '[\w-]+' is")
    lost = [
        c for _, _, c in numbered() if not declared.match(c) and not any(p.fullmatch(c) for p in patterns)
    ]
    assert lost == []


@pytest.mark.parametrize("cls", OURS, ids=lambda cls: cls.versioned_name())
def test_each_operation_but_the_ends_has_clauses(cls: type[Op]) -> None:
    listed: Sequence[str] = clauses(cls.versioned_name())
    assert len(listed) == len(set(listed))
    assert bool(listed) == (
        cls.name not in ("Parameter", "Constant", "Result", "Assign")
        and cls.versioned_name() != "ReadValue-3"
    )


def test_each_clause_is_fulfilled_by_a_sample() -> None:
    """Its check runs and passes: in inference from constants and in a run, or in inference from inputs with a dynamic first dim."""
    lacking = []
    for operation, of_op in samples_by_operation().items():
        left = {f"C{number}" for number in range(1, len(clauses(operation)) + 1)}
        for attempt in (infer_and_run, infer_from_open_lengths):
            for sample in of_op:
                if not left:
                    break
                left.difference_update(held_while(operation, lambda run=attempt, of=sample: run(of)))  # type: ignore[misc]
        lacking += [f"{operation} {number}" for number in sorted(left)]
    assert lacking == []


def samples_by_operation() -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in sorted(named_samples().values(), key=lambda sample: sum(x.size for x in sample.inputs)):
        found.setdefault(sample.op, []).append(sample)
    return found


def infer_and_run(sample: Sample) -> None:
    sample.layer().infer_values(*sample.values())
    sample.evaluate()


def infer_from_open_lengths(sample: Sample) -> None:
    values = [
        Value.unknown(v.element, PartialShape([-1, *v.shape[1:]][: len(v.shape)])) for v in sample.values()
    ]
    sample.layer().infer_types(*values)


def test_clauses_hold_for_any_layer() -> None:
    """Clauses name no dim or axis of the violating layer, which would make several clauses of one."""
    forms = [
        (name, re.sub(r"('[^']*')|\d+", lambda found: found[1] or "N", clause))
        for name, _, clause in numbered()
    ]
    assert [form for form in forms if forms.count(form) > 1] == []


@pytest.mark.long
def test_no_check_states_a_clause_that_nothing_violates() -> None:
    assert {site.text for site in unrefused()} == NOT_SHOWN


def test_each_operation_with_clauses_has_a_sample_that_fulfils_them() -> None:
    """Layers with bodies are covered by whole models."""
    sampled = {sample.op for sample in named_samples().values()}
    bodies = {"If-8", "Loop-5", "TensorIterator-1", "ReadValue-6"}
    assert {name for name, _, _ in numbered()} - sampled == bodies


def test_decisions_are_numbered_from_those_of_the_bases_on() -> None:
    (cls,) = registry.versions("ReduceMax")
    assert len(cls.decided()) == 5
    assert "- D1: empty axes leave the data unchanged" in page(cls).replace("*", "-")
    assert record(cls)["decisions"] == list(cls.decided())


@pytest.mark.parametrize("cls", [cls for cls in OURS if cls.decided()], ids=lambda cls: cls.versioned_name())
def test_decisions_have_one_style(cls: type[Op]) -> None:
    """A decision states the behavior first, then its source: the specification, or OpenVINO."""
    for decision in cls.decided():
        assert not decision.endswith(".")
        assert re.search(r"OpenVINO|page", decision)


def test_each_decision_is_shown_by_a_sample_or_states_what_is_refused() -> None:
    shown = {(sample.op, *decision) for sample in named_samples().values() for decision in sample.decisions()}
    stated = {
        (cls.versioned_name(), f"D{number}", text)
        for cls in OURS
        for number, text in enumerate(cls.decided(), 1)
        if " is refused" not in text
    }
    assert shown == stated


def test_samples_show_decisions_by_their_beginnings() -> None:
    lost = case("Abs-1", numbers(1), _shows=("nonsense",))
    with pytest.raises(AssertionError, match="Abs-1 has no single decision"):
        lost.decisions()


def test_errors_cite_the_clause() -> None:
    text = '<net name="n" version="11"><layers><layer id="0" name="x" type="Parameter" version="opset1"><data element_type="f32" shape="2,3"/><output><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></output></layer><layer id="1" name="y" type="SoftMax" version="opset8"><data axis="2"/><input><port id="0"/></input><output><port id="1"/></output></layer><layer id="2" name="z" type="Result" version="opset1"><input><port id="0"/></input></layer></layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>'  # fmt: skip
    (finding,) = ov.validate(text.encode()).errors
    number = list(clauses("SoftMax-8")).index(finding.clause.partition(": ")[2]) + 1
    assert finding.clause.startswith(f"SoftMax-8 C{number}: ")
    assert finding.record()["clause"] == finding.clause
    assert f"\n  clause: {finding.clause}" in str(finding)
