"""The pages of the site: they are those of the package, and what they mention becomes links."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

import ir_runtime as ir
from docs.build import BuildError, make_local, write
from docs.pages import Page, Section, linked, sections
from docs.reference import markdown, modules
from ir_runtime.cli import main
from ir_runtime.codes import Code
from ir_runtime.guides import guides
from ir_runtime.ops import registry
from ir_runtime.ops._define.describe import group


@cache
def texts() -> dict[str, str]:
    return {page.path: page.text for section in sections() for page in section.pages}


def test_every_page_of_the_package_is_there() -> None:
    wanted = {f"operations/{cls.versioned_name()}.md" for cls in registry if group(cls)}
    wanted |= {f"codes/{code}.md" for code in Code} | {f"guides/{guide.name}.md" for guide in guides()}
    wanted |= {f"commands/{name}.md" for name in ("run", "validate", "trace-nan")}
    assert wanted <= set(texts())
    assert len({path.casefold() for path in texts()}) == len(texts()), "file systems without case"


def test_a_page_is_what_the_terminal_prints() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "ir_runtime", "ops", "ReduceL2-4"], capture_output=True, text=True, check=True
    )
    assert printed.stdout.rstrip() == texts()["operations/ReduceL2-4.md"].rstrip()


def test_the_page_of_a_command_is_its_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command in ("run", "bench"):
        printed = CliRunner().invoke(main, [command, "--help"], prog_name="ir-runtime").stdout
        assert printed.rstrip() in texts()[f"commands/{command}.md"]


def test_every_public_name_is_in_the_reference() -> None:
    text = texts()["python/ir_runtime.md"]
    names = [
        name for name in ir.__all__ if not name.startswith("_") and not hasattr(getattr(ir, name), "__path__")
    ]
    modules = {"exceptions", "frontend", "helpers", "layout_helpers", "utils", "runtime"}
    assert [name for name in names if name not in modules and f"\n## {name}\n" not in text] == []
    assert "### Model.reshape\n" in text
    assert " at 0x" not in text


def test_a_class_shows_the_examples_of_those_that_it_derives_from() -> None:
    page = next(module.text for module in modules() if module.name == "ir_runtime")
    entries = {entry.partition("\n")[0]: entry for entry in page.split("\n## ")}
    assert ">>> model.add_sinks([after])" in entries["Model"]  # of the class that has the method
    assert "except ov.IRError" in entries["IRError"]
    assert "except ov.IRError" not in entries["LimitError"]


def test_the_commands_that_are_mentioned_exist() -> None:
    known = {Path(path).stem for path in texts() if path.startswith("commands/")}
    pages = {path: text for path, text in texts().items() if not path.startswith("commands/")}
    mentioned = {
        (path, command)
        for path, text in pages.items()
        for command in re.findall(r"[`$] ?ir-runtime ([a-z][\w-]*)", text)
    }
    assert len(mentioned) > 20
    assert [(path, command) for path, command in sorted(mentioned) if command not in known] == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("`ir-runtime guide debugging`", "[`ir-runtime guide debugging`](../guides/debugging.md)"),
        ("`ir-runtime explain IR301`", "[`ir-runtime explain IR301`](../codes/IR301.md)"),
        ("`ir-runtime ops ReLU-1`", "[`ir-runtime ops ReLU-1`](../operations/ReLU-1.md)"),
        ("`ir-runtime guide`", "[`ir-runtime guide`](../commands/guide.md)"),
        ("`ir-runtime run m.xml --random`", "[`ir-runtime run m.xml --random`](../commands/run.md)"),
        ("`ir-runtime ops NAME` and `x`", "[`ir-runtime ops NAME`](../commands/ops.md) and `x`"),
        ("`ir-runtime nothing`", "`ir-runtime nothing`"),
        ("```sh\n`ir-runtime run`\n```", "```sh\n`ir-runtime run`\n```"),
        ("[`ir-runtime run`](x.md)", "[`ir-runtime run`](x.md)"),
    ],
)
def test_what_is_mentioned_becomes_a_link(text: str, wanted: str) -> None:
    assert linked(Page("guides/x.md", "x", text), set(texts())) == wanted


def test_a_docstring_as_markdown() -> None:
    doc = "Do ``it``.\n\n>>> 1\n1\n\n>>> 2\n2\n\nArgs:\n    x: what\n        it is.\n    y: other.\n\nRaises:\n    InputError: if not."
    assert markdown(doc) == (
        "Do `it`.\n\n```pycon\n>>> 1\n1\n>>> 2\n2\n```\n\n**Args**\n\n* `x`: what\n        it is.\n* `y`: other.\n\n"
        "**Raises**\n\n* `InputError`: if not."
    )


def test_the_navigation_is_written(tmp_path: Path) -> None:
    pages = [Page("a/index.md", "A", "# A"), Page("a/b.md", "B", "# B")]
    write(tmp_path, [Section("Home", [Page("index.md", "Home", "# Home")]), Section("Letters", pages)])
    settings = (tmp_path / "zensical.toml").read_text(encoding="utf-8")
    assert '{ "Home" = "index.md" }' in settings
    assert '{ "Letters" = ["a/index.md", { "B" = "a/b.md" }] }' in settings
    assert (tmp_path / "pages/a/b.md").read_text(encoding="utf-8") == "# B"


def page_that_loads(tmp_path: Path, what: str) -> Path:
    (tmp_path / "assets/javascripts").mkdir(parents=True)
    (tmp_path / "a").mkdir()
    page = tmp_path / "a/page.html"
    page.write_text(what, encoding="utf-8")
    return page


def test_the_search_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    page = page_that_loads(
        tmp_path, '<a href="https://x.org"><script src="https://unpkg.com/iframe-worker/shim">'
    )
    make_local(tmp_path)
    assert 'src="../assets/javascripts/shim.js"' in page.read_text(encoding="utf-8")
    assert (tmp_path / "assets/javascripts/shim.js").exists()


def test_whatever_else_would_be_loaded_is_refused(tmp_path: Path) -> None:
    page_that_loads(tmp_path, '<link rel="stylesheet" href="https://fonts.example.org/a.css">')
    with pytest.raises(BuildError, match=r"would load https://fonts\.example\.org/a\.css"):
        make_local(tmp_path)


def test_a_build_that_fetches_nothing_is_suspicious(tmp_path: Path) -> None:
    page_that_loads(tmp_path, "<p>")
    with pytest.raises(BuildError, match="has the plugin offline changed"):
        make_local(tmp_path)
