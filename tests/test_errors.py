"""Errors and findings: one tree, stable codes, texts that say where."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ir_runtime as ir
from ir_runtime import errors
from ir_runtime.codes import Code
from ir_runtime.diagnostics import Diagnostic, Diagnostics, Excerpt, Location, Severity

CLASSES = [getattr(errors, name) for name in errors.__all__]


def drawn() -> Iterator[tuple[str, str, str]]:
    """Each line of the tree in the docstring: the class, the class above it, what it is for."""
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        if not (found := re.match(r"( +)([A-Z]\w+Error)(?:  +(.*))?$", line)):
            continue
        depth, name = len(found[1]), found[2]
        while above and above[-1][0] >= depth:
            above.pop()
        if above:
            yield name, above[-1][1], found[3]
        above.append((depth, name))


def test_the_tree_is_as_drawn() -> None:
    assert {(name, base) for name, base, _ in drawn()} == {(c.__name__, c.__base__.__name__) for c in CLASSES}


def test_the_tree_says_what_the_classes_say() -> None:
    for name, _, purpose in drawn():
        said = (getattr(errors, name).__doc__ or "").split(".")[0].split(":")[0].split(";")[0].lower()
        assert purpose.lower() in said, name


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_is_a_runtime_error(cls: type[errors.IRError]) -> None:
    error = cls("what happened")
    assert isinstance(error, RuntimeError)
    assert isinstance(error, ir.IRError)
    assert error.args == ("what happened",)
    assert error.code == cls.default_code
    assert str(error) == f"error[{cls.default_code}]: what happened"
    assert getattr(ir, cls.__name__) is cls


@pytest.mark.parametrize("cls", CLASSES)
def test_errors_can_be_copied_and_sent_to_other_processes(cls: type[errors.IRError]) -> None:
    error = cls("what", code=Code.CYCLE, where=Location("m.xml", 3, "a", "Add-1"), hint="do this")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is cls
        assert str(again) == str(error)
        assert (again.code, again.where, again.hint) == (error.code, error.where, error.hint)


def test_the_text_of_an_error() -> None:
    error = errors.ParseError("what", where=Location("m.xml", 3, "a", "Add-1"), hint="do this")
    assert str(error) == "m.xml:3: layer 'a' (Add-1): error[IR001]: what\n  hint: do this"
    assert error.diagnostic == Diagnostic("IR001", "what", error.where, hint="do this")


def test_a_validation_error_shows_every_finding() -> None:
    findings = [Diagnostic("IR101", "one"), Diagnostic("IR102", "two", Location("m.xml", 3))]
    error = errors.ValidationError("one", diagnostics=findings)
    assert str(error) == "error[IR101]: one\nm.xml:3: error[IR102]: two"
    assert error.diagnostics == tuple(findings)
    assert str(errors.ValidationError("alone")) == "error[IR100]: alone"
    assert pickle.loads(pickle.dumps(error)).diagnostics == tuple(findings)


@pytest.mark.parametrize(
    ("location", "text"),
    [
        (Location(), ""),
        (Location("m.xml"), "m.xml"),
        (Location("m.xml", 3), "m.xml:3"),
        (Location("m.xml", 3, "a"), "m.xml:3: layer 'a'"),
        (Location("m.xml", 3, "a", "Add-1"), "m.xml:3: layer 'a' (Add-1)"),
        (Location("", None, "a"), "layer 'a'"),
        (Location("m.xml", 3, "a\n'b'"), "m.xml:3: layer \"a\\n'b'\""),
    ],
)
def test_locations(location: Location, text: str) -> None:
    assert str(location) == text


def test_reports() -> None:
    report = Diagnostics()
    assert report.ok
    assert len(report) == 0
    report.warning(Code.UNKNOWN_ATTRIBUTE, "careful", hint="look")
    assert report.ok
    report.error(Code.CYCLE, "wrong", Location("m.xml", 3, "a", "Add-1"))
    assert not report.ok
    assert [d.severity for d in report] == [Severity.WARNING, Severity.ERROR]
    first, second = report
    assert (report.errors, report.warnings) == ([second], [first])
    assert (first.layer, first.line) == (None, None)
    assert (second.layer, second.line) == ("a", 3)
    assert str(first) == "warning[IR203]: careful\n  hint: look"
    assert second.record() == {
        "code": "IR103",
        "severity": "error",
        "message": "wrong",
        "file": "m.xml",
        "line": 3,
        "layer": "a",
        "operation": "Add-1",
        "hint": None,
        "clause": None,
        "column": None,
        "excerpt": None,
        "causes": [],
    }


def test_reports_show_lines_in_the_order_of_the_file() -> None:
    """A finding without a line to show is not made anew: there may be very many."""
    report = Diagnostics()
    for line in (5, None, 3):
        report.error(Code.CYCLE, f"wrong in {line}", Location("m.xml", line))
    last, none, first = report
    shown = Excerpt(3, "<layer>", 1, 7)
    report.arrange(lambda found: shown if found.line == 3 else None)
    assert [found.excerpt for found in report] == [None, shown, None]
    nowhere, third, fifth = report
    assert nowhere is none
    assert fifth is last
    assert (third.message, third.where) == (first.message, first.where)
    report.arrange()
    assert list(report) == [nowhere, third, fifth]


def test_codes_are_stable_and_explained() -> None:
    assert all(re.fullmatch(r"IR\d{3}", code) for code in Code)
    assert len({code.value for code in Code}) == len(list(Code))
    assert all(code.summary and code.summary[0].islower() for code in Code)
    assert Code("IR103") is Code.CYCLE
    assert f"{Code.CYCLE}" == "IR103"
    assert pickle.loads(pickle.dumps(Code.CYCLE)) is Code.CYCLE


def test_every_code_is_used() -> None:
    source = "\n".join(p.read_text(encoding="utf-8") for p in Path(ir.__file__).parent.rglob("*.py"))
    unused = [code.name for code in Code if f"Code.{code.name}" not in source]
    assert unused == []


def test_a_report_prints_as_its_findings() -> None:
    report = ir.validate(
        b'<net name="a" version="11"><layers><layer id="0" name="x" type="Reluu" version="opset1"/></layers><edges/></net>'
    )
    lines = str(report).splitlines()
    assert lines[0].endswith("error[IR201]: unknown operation 'Reluu' (opset1)")
    assert lines[-1] == "1 error, 0 warnings"
