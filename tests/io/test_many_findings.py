"""Very many findings: a limited number is kept, all are counted."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.cli import main
from ir_runtime.codes import Code
from ir_runtime.diagnostics import Diagnostics, More, Severity

COUNT = 5000
FEW = ir.Limits(findings=50)


def flooded(warnings: int = 0, errors: int = 0) -> bytes:
    """A model with unknown attributes and edges to missing ports."""
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2"), out="FP32 2"))
    unknown = " ".join(f'a{n}="1"' for n in range(warnings))
    edges = '<edge from-layer="0" from-port="0" to-layer="1" to-port="9"/>\n' * errors
    xml = (
        net.xml()
        .decode()
        .replace('type="ReLU" version="opset1">', f'type="ReLU" version="opset1"><data {unknown}/>')
    )
    return xml.replace("</edges>", f"{edges}</edges>").encode()


def test_findings_beyond_the_limit_are_counted() -> None:
    report = ir.validate(flooded(errors=COUNT), limits=FEW)
    assert len(report) == len(list(report)) == 50
    assert report.more == (More(Code.DANGLING_EDGE, Severity.ERROR, COUNT - 50),)
    assert report.count(Severity.ERROR) == report.count(code=Code.DANGLING_EDGE) == report.count() == COUNT
    assert not report.ok
    assert len(ir.validate(flooded(errors=COUNT))) == 1000, "unless told otherwise"
    assert not ir.validate(flooded(errors=7)).more


def test_some_of_each_kind_are_kept() -> None:
    """An error is shown, however many warnings precede it."""
    report = ir.validate(flooded(warnings=COUNT, errors=COUNT), limits=ir.Limits(findings=0))
    assert [len(found) for found in (report.errors, report.warnings)] == [10, 10]
    assert {more.times for more in report.more} == {COUNT - 10}
    with pytest.raises(ir.ValidationError) as caught:
        ir.read_model(flooded(warnings=COUNT, errors=COUNT), limits=ir.Limits(findings=0))
    assert caught.value.code == Code.DANGLING_EDGE
    assert len(caught.value.diagnostics) == 10
    assert str(caught.value).endswith(f"\nerror[{Code.DANGLING_EDGE}]: … and 4,990 more of the same")
    assert "attribute" not in str(caught.value), "warnings do not make a model invalid"


@pytest.mark.parametrize(
    ("edge", "code"),
    [
        ('<edge from-layer="0" from-port="0" to-layer="NUMBER" to-port="0"/>', Code.DANGLING_EDGE),
        ('<edge from-layer="NUMBER" from-port="0" to-layer="1" to-port="0"/>', Code.DANGLING_EDGE),
        ('<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>', Code.CONNECTED_TWICE),
        ("<edge/>", Code.BAD_ELEMENT),
    ],
)
def test_edges_of_all_kinds_are_counted(edge: str, code: Code) -> None:
    edges = "\n".join(edge.replace("NUMBER", str(77 + n)) for n in range(300))
    xml = flooded().replace(b"</edges>", f"{edges}</edges>".encode())
    few, all_of_them = (ir.validate(xml, limits=ir.Limits(findings=most)) for most in (20, 10_000))
    assert few.count(code=code) == all_of_them.count(code=code) == len(all_of_them) == 300
    assert len(few) == 20
    assert list(few) == list(all_of_them)[:20]


def test_reports_add_up() -> None:
    report, other = Diagnostics(1), Diagnostics(1)
    for number in range(15):
        report.warning(Code.UNREAD, f"number {number}")
        other.error(Code.CYCLE, f"number {number}", ir.Location("m.xml", 1, "a"))
    report.extend(other)
    assert [more.times for more in report.more] == [5, 5]
    assert report.wrong == {"a"}
    report.withdraw(lambda found: found.message == "number 3")
    assert (report.count(Severity.WARNING), report.count(Severity.ERROR)) == (14, 14)
    report.escalate()
    assert (report.count(Severity.WARNING), report.count(Severity.ERROR)) == (0, 28)
    assert {severity for _, severity, _ in report.more} == {Severity.ERROR}
    assert pickle.loads(pickle.dumps(report)).more == report.more


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("m.xml").write_bytes(flooded(warnings=12, errors=COUNT))
    return "m.xml"


def invoked(line: str, code: int = 1) -> str:
    result = CliRunner().invoke(main, line.split())
    assert result.exit_code == code, result.output
    return result.stdout


def in_text(out: str) -> int:
    assert "m.xml: error[IR102]: … and 4,990 more of the same" in out
    return out.count("error[IR102]")


def in_json(out: str) -> int:
    (found,) = json.loads(out)["files"]
    assert {"code": "IR102", "severity": "error", "count": 4990} in found["more"]
    return sum(each["code"] == "IR102" for each in found["findings"]) + 1


def in_sarif(out: str) -> int:
    (run,) = json.loads(out)["runs"]
    said = run["invocations"][0]["toolExecutionNotifications"]
    assert [(each["associatedRule"]["id"], each["message"]["text"]) for each in said] == [
        ("IR102", "… and 4,990 more of the same")
    ]
    return sum(each["ruleId"] == "IR102" for each in run["results"]) + 1


def in_annotations(out: str) -> int:
    assert "::error title=IR102,file=m.xml::… and 4,990 more of the same" in out.splitlines()
    return out.count("::error title=IR102")


@pytest.mark.parametrize(
    ("form", "read"), [("text", in_text), ("json", in_json), ("sarif", in_sarif), ("github", in_annotations)]
)
def test_every_form_says_how_many_more_there_are(form: str, read: Callable[[str], int], model: str) -> None:
    """Each format shows twelve warnings, ten errors, and a line with the number of the others."""
    assert read(invoked(f"validate {model} --max-findings 20 --format {form}")) == 10 + 1


def test_the_summary_counts_all(model: str) -> None:
    result = CliRunner().invoke(main, ["validate", model, "--max-findings", "20"])
    assert result.stderr.splitlines()[-1] == "1 file, 5000 errors, 12 warnings"
    assert result.exit_code == 1
    assert "the model has 5000 errors" in CliRunner().invoke(main, ["inspect", model]).stderr
