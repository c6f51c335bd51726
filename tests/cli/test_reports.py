"""Findings as SARIF, annotations and JSON; many files, globs, --strict, --shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import Result
from harness.nets import chain, chain_weights, passing, total, write, write_chain

Invoke = Callable[[str], Result]

# The schema that OASIS publishes, at the address that is its "id".
SCHEMA = json.loads((Path(__file__).parent / "schemas/sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
UNKNOWN = total().replace('type="Add"', 'type="Adds"')
WRONG_DIMS = chain().replace(
    "<dim>2</dim><dim>3</dim></port></output>\n</layer>",
    "<dim>2</dim><dim>4</dim></port></output>\n</layer>",
    1,
)
WARNED = passing("f32", "2").replace('element_type="f32"/>', 'element_type="f32" colour="red"/>')


@pytest.fixture
def models(folder: Path) -> Path:
    """A valid model, one with an error, one with other dims, one with a warning, and one that is not XML."""
    write_chain(folder, name="a sound")
    write(folder, UNKNOWN, "b_unknown")
    write(folder, WRONG_DIMS, "c_dims")
    (folder / "c_dims.bin").write_bytes(chain_weights())
    write(folder, WARNED, "d_warned")
    write(folder, chain()[:500], "e_cut")
    return folder


def sarif(found: Result) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(found.stdout)
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    return log


def test_sarif_fits_its_schema(models: Path, invoke: Invoke) -> None:
    found = invoke("validate '*.xml' --format sarif")
    (run,) = sarif(found)["runs"]
    assert found.exit_code == 1
    assert run["tool"]["driver"]["name"] == "ir-runtime"
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    results = {(r["ruleId"], r["level"]) for r in run["results"]}
    assert {("IR201", "error"), ("IR303", "error"), ("IR203", "warning"), ("IR002", "error")} <= results
    assert all(rules[r["ruleIndex"]] == r["ruleId"] for r in run["results"])


def test_sarif_marks_the_dim(models: Path, invoke: Invoke) -> None:
    log = sarif(invoke("validate c_dims.xml --format sarif"))
    (result,) = [r for r in log["runs"][0]["results"] if r["ruleId"] == "IR303"]
    (location,) = result["locations"]
    region = location["physicalLocation"]["region"]
    line = (models / "c_dims.xml").read_text(encoding="utf-8").splitlines()[region["startLine"] - 1]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == "4"
    assert line[region["startColumn"] - 6 :].startswith("<dim>4</dim>")
    assert location["logicalLocations"][0]["name"]


def test_sarif_of_sound_models_is_valid_and_empty(models: Path, invoke: Invoke) -> None:
    found = invoke("validate 'a sound.xml' --format sarif")
    assert found.exit_code == 0
    assert sarif(found)["runs"][0]["results"] == []


def test_addresses_in_sarif_are_quoted(models: Path, invoke: Invoke) -> None:
    write(models, UNKNOWN, "f 100%")
    log = sarif(invoke("validate 'f 100%.xml' --format sarif"))
    (result,) = log["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "f%20100%25.xml"


def test_annotations(models: Path, invoke: Invoke) -> None:
    found = invoke("validate b_unknown.xml d_warned.xml --format github")
    error, warning = found.stdout.splitlines()
    assert error.startswith("::error title=IR201%3A plus,file=b_unknown.xml,line=12::unknown operation")
    assert warning.startswith("::warning title=IR203%3A x,file=d_warned.xml,line=4::")
    assert "%0A" in error, "the hint is on a line of its own"


def test_annotations_cannot_be_broken_out_of(models: Path, invoke: Invoke) -> None:
    name = 'name="x::&#10;::error ::y,line=1%"'
    write(models, WARNED.replace('name="x"', name), "evil")
    (line,) = invoke("validate evil.xml --format github").stdout.splitlines()
    assert line.startswith("::warning title=IR203%3A x%3A%3A")
    assert line.count("::") == 2 + line.split("::", 2)[2].count("::")


def test_patterns_are_expanded(models: Path, invoke: Invoke) -> None:
    (models / "deep" / "er").mkdir(parents=True)
    write(models / "deep" / "er", UNKNOWN, "g")
    found = invoke("validate '**/g.xml' 'a*.xml' --json")
    assert [entry["file"] for entry in json.loads(found.stdout)["files"]] == ["deep/er/g.xml", "a sound.xml"]
    write(models, UNKNOWN, "h[1]")
    assert json.loads(invoke("validate 'h[1].xml' --json").stdout)["files"][0]["file"] == "h[1].xml"


def test_a_pattern_that_matches_nothing(models: Path, check: Callable[..., Result]) -> None:
    assert check("validate_no_match", "validate 'z*.xml'").exit_code == 2


def test_strict_makes_errors_of_warnings(models: Path, check: Callable[..., Result]) -> None:
    assert check("validate_strict", "validate d_warned.xml --strict").exit_code == 1


@pytest.mark.parametrize("form", ["text", "sarif"])
def test_several_processes_say_the_same(models: Path, invoke: Invoke, form: str) -> None:
    alone = invoke(f"validate '*.xml' --format {form} --jobs 1")
    together = invoke(f"validate '*.xml' --format {form} --jobs 2")
    assert (together.stdout, together.exit_code) == (alone.stdout, alone.exit_code)


def test_shapes_that_fit_and_that_do_not(models: Path, check: Callable[..., Result]) -> None:
    assert check("validate_shape_fits", "validate 'a sound.xml' --shape '[2,3]'").exit_code == 0
    assert check("validate_shape", "validate 'a sound.xml' --shape '[1..8,5]'").exit_code == 1
    assert check("validate_shape_of_nobody", "validate 'a sound.xml' --shape 'y=[2]'").exit_code == 2
