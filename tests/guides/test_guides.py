"""Guides: they can be printed, their code runs, the names in them exist, and searching for terms of the field finds the code."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from harness.terminals import assert_shown, blocks, commands

import ir_runtime
from ir_runtime.cli import main
from ir_runtime.guides import guide, guides
from ir_runtime.openvino.compiling import PASS_NAMES

PACKAGE = Path(ir_runtime.__file__).parent
NAMES = [page.name for page in guides()]

Invoke = Callable[..., Result]


def invoke(*line: str) -> Result:
    return CliRunner().invoke(main, list(line), prog_name="ir-runtime")


def rows(name: str, heading: str) -> list[list[str]]:
    """Return the rows of the table under a heading, without the table's header."""
    text = guide(name).text.partition(heading)[2].partition("\n## ")[0]
    lines = [line.strip("| ") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split(" | ")] for line in lines[2:]]


def test_the_guides_there_are() -> None:
    assert {"architecture", "adding-an-operation", "adding-a-kernel", "glossary"} <= set(NAMES)
    found = invoke("guide")
    assert found.exit_code == 0
    assert all(name in found.stdout for name in NAMES)
    assert [page["name"] for page in json.loads(invoke("guide", "--json").stdout)["guides"]] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_guide_is_printed(name: str) -> None:
    found = invoke("guide", name)
    assert (found.exit_code, found.stdout) == (0, guide(name).text)
    assert json.loads(invoke("guide", name, "--json").stdout)["title"] == guide(name).title


def test_unknown_guides_are_refused() -> None:
    found = invoke("guide", "glosary")
    assert found.exit_code == 2
    assert "unknown guide 'glosary'" in found.stderr
    assert "did you mean 'glossary'?" in found.stderr


REGISTERING = [page.name for page in guides() if re.search(r"^@", page.text, re.M)]
"""Guides whose code registers operations and kernels, which stay for as long as a process."""


def test_what_their_code_registers_works() -> None:
    """Run the code of all guides in one process."""
    assert set(REGISTERING) == {"adding-an-operation", "adding-a-kernel"}
    found = [
        code for name in REGISTERING for language, code in blocks(guide(name).text) if language == "python"
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(found)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def followed() -> Iterator[object]:
    """Return the guides whose examples run in this process. Those that compare whole executions take seconds each."""
    for page in guides():
        if page.name not in REGISTERING:
            compares = re.search(
                r"^\$ ir-runtime (compare|budget)|debug\.(compare|oracle|budget)\(", page.text, re.M
            )
            yield pytest.param(page.name, marks=[pytest.mark.oracle] if compares else [])


@pytest.mark.parametrize("name", list(followed()))
def test_a_guide_can_be_followed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Python and commands run in order; commands print the shown output."""
    (tmp_path / "examples").symlink_to(PACKAGE.parent / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for language, text in blocks(guide(name).text):
        if language == "python":
            exec(text, names)
        elif language == "console":
            for command, shown in commands(text):
                assert_shown(command, shown, tmp_path)


def test_fields_that_programs_are_told_to_read_are_in_the_schemas() -> None:
    for _, command, fields in rows("agents", "# For programs and agents"):
        name = re.findall(r"`ir-runtime ([\w-]+)", command)[0]
        schema = json.loads(invoke("explain", "json", name).stdout)
        read = {re.split(r"[.\[]", field)[0] for field in re.findall(r"`([^`]+)`", fields)}
        assert read
        assert any(read <= set(shape["properties"]) for shape in schema.get("oneOf", [schema])), name


def test_the_hook_to_copy_is_the_one_that_is_defined() -> None:
    defined = (PACKAGE.parent / ".pre-commit-hooks.yaml").read_text(encoding="utf-8").splitlines()
    settings = [line.strip("- ") for line in defined if not line.startswith(("#", "  description"))]
    (local,) = (
        text
        for language, text in blocks(guide("continuous-integration").text)
        if language == "yaml" and "repo: local" in text
    )
    assert len(settings) == 5
    assert [
        line for line in settings if line not in [shown.strip("- ") for shown in local.splitlines()]
    ] == []


@pytest.mark.parametrize("file", ["-fjson.xml", "--jobs=0.xml", "--weights.xml"])
def test_the_hook_takes_names_of_files_for_nothing_else(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pre-commit appends file names to the command."""
    monkeypatch.chdir(tmp_path)
    Path(file).write_text("no model", encoding="utf-8")
    defined = (PACKAGE.parent / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    program, *arguments = re.findall(r"^  entry: (.*)$", defined, re.M)[0].split()
    assert program == "ir-runtime"
    found = CliRunner().invoke(main, [*arguments, file])
    assert (found.exit_code, found.stdout.split(":")[0]) == (1, file)


@pytest.mark.parametrize("name", NAMES)
def test_what_they_name_exists(name: str) -> None:
    paths = re.findall(
        r"`((?:ir_runtime|tests|examples|backends|[a-z_]+)/[\w/]*(?:\.py)?)`", guide(name).text
    )
    roots = (PACKAGE, PACKAGE.parent, PACKAGE / "backends/native")
    missing = [path for path in paths if not any((root / path).exists() for root in roots)]
    assert missing == []


def test_where_to_begin_names_what_stands_there() -> None:
    places = [place for _, place in rows("architecture", "## Where to begin")]
    named = [
        found for place in places for found in re.findall(r"`([\w. ]+)` (?:in|of) `([\w/]+\.py)`", place)
    ]
    assert len(named) >= 6
    for name, path in named:
        names = name.removeprefix("class ").split(".")
        text = (PACKAGE.parent / path).read_text(encoding="utf-8")
        assert all(re.search(rf"^\s*(?:def |class )?{part}\b", text, re.M) for part in names), (name, path)


def test_the_passes_are_those_there_are() -> None:
    assert [row[0].strip("`") for row in rows("architecture", "## Compiling")] == list(PASS_NAMES)


def titles(module: str, source: str) -> list[str]:
    """Return the text that describes a module: its name, the first line of its docstring, and the names that it defines."""
    tree = ast.parse(source)
    name = module.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
    defined = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [name, (ast.get_docstring(tree) or "").partition("\n")[0], *defined]


def is_titled(term: str, module: str, source: str) -> bool:
    """Return whether a module's titles contain a term, however its words are joined."""
    words = "[ _-]?".join(re.findall(r"[A-Z]*[a-z\d]+|[A-Z]+", term))
    return any(re.search(words, title, re.IGNORECASE) for title in titles(module, source))


@pytest.mark.parametrize(("term", "place"), rows("glossary", "## Where things are"))
def test_a_search_for_a_term_finds_the_place(term: str, place: str) -> None:
    """A newcomer would search for the term; a module that only mentions it is not the one."""
    module = place.strip("`")
    assert is_titled(term, module, (PACKAGE / module).read_text(encoding="utf-8"))


def test_what_only_mentions_a_term_is_not_its_place() -> None:
    mentions = '"""Kernels.\n\nNo barrier is needed."""\ndef run(): "A barrier."; barrier()  # barrier'
    assert not is_titled("barrier", "kernels/run.py", mentions)
    assert is_titled("thread pool", "a.py", "class ThreadPool: ...")
    assert is_titled("FakeQuantize", "a/fake_quantize.py", "")
    assert is_titled("tiling", "numpy/tiling/__init__.py", "")


def test_twenty_terms_lead_to_places() -> None:
    assert len(rows("glossary", "## Where things are")) >= 20


PROGRAM = re.compile(r"`(?:PYTHONPATH=tests )?(?:make [a-z]|python (?:tests/|-m )|ir-runtime bench )")
FIGURE = re.compile(r"\d(?:[.]\d+)? ?(?:ms|µs|%|times)(?:\W|$)| takes? \d|^[|].* \d", re.MULTILINE)


@pytest.mark.parametrize("section", re.split(r"^## ", guide("benchmarks").text, flags=re.MULTILINE)[1:])
def test_every_section_with_figures_names_the_program_that_makes_them(section: str) -> None:
    assert FIGURE.search(section)
    assert PROGRAM.search(section), section[:200]


def test_speed_has_no_figures_of_its_own() -> None:
    """Its figures are in `guide benchmarks`, or printed by a command that the guide names."""
    paragraphs = (part for name in ("speed", "scaling") for part in guide(name).text.split("\n\n"))
    told = [part for part in paragraphs if re.search(r"\d ?(?:ms|µs)\W|takes? [0-9.]+ times", part)]
    assert [part for part in told if "guide benchmarks" not in part and not PROGRAM.search(part)] == []


def test_programs_that_guides_name_exist_and_have_their_options() -> None:
    text = "\n".join(guide(name).text for name in NAMES)
    root = PACKAGE.parent
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z]+)", text)) <= targets
    named = re.findall(r"`python (tests/bench/\w+[.]py)([^`]*)", text)
    bench = [
        (" ".join(name), "tests/bench/models.py")
        for name in re.findall(r"`make (bench) BENCH=\"([^\"]*)", text)
    ]
    shared = (root / "tests/bench/shared.py").read_text(encoding="utf-8")
    for program, line in [*named, *((file, line) for line, file in bench)]:
        source = (root / program).read_text(encoding="utf-8") + shared
        assert [option for option in re.findall(r"--[a-z-]+", line) if f'"{option}' not in source] == [], line
