"""The pages of the site are those of the package, and references in them become links."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

import ir_runtime as ir
from docs.build import DEMO, BuildError, make_local, shrink, write
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
    missing = [
        name
        for name in names
        if name not in modules
        and f"\n## {name}\n" not in text
        and not (
            {f"python/ir_runtime/{name}.md"} <= set(texts()) and f"| [{name}](ir_runtime/{name}.md) |" in text
        )
    ]
    assert missing == []
    assert " at 0x" not in text


def test_a_class_has_a_page_with_what_it_defines() -> None:
    """Inherited members are on the page of their class."""
    assert "\n## Model.reshape\n" in texts()["python/ir_runtime/Model.md"]
    constant, node = texts()["python/ir_runtime.op/Constant.md"], texts()["python/ir_runtime/Node.md"]
    assert "inherits from [Node](../ir_runtime/Node.md)" in constant
    assert "\n## Node.get_output_size\n" in node
    assert "get_output_size\n" not in constant
    pages = [path for path in texts() if path.startswith("python/")]
    assert len(pages) > 100
    assert max(len(texts()[path]) for path in pages) < 60_000, "a page that is read, not scrolled through"


def test_a_class_shows_the_examples_of_those_that_it_derives_from() -> None:
    classes = next(module.classes for module in modules() if module.name == "ir_runtime")
    entries = {entry.name: entry.text for entry in classes}
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


def test_pages_of_a_group_are_below_it(tmp_path: Path) -> None:
    pages = [
        Page("a/index.md", "A", "# A"),
        Page("a/m.md", "m", "# m", "m"),
        Page("a/m/X.md", "X", "# X", "m"),
        Page("a/z.md", "Z", "# Z"),
    ]
    write(tmp_path, [Section("Letters", pages)])
    settings = (tmp_path / "zensical.toml").read_text(encoding="utf-8")
    assert '["a/index.md", { "m" = ["a/m.md", { "X" = "a/m/X.md" }] }, { "Z" = "a/z.md" }]' in settings


def test_the_landing_page_starts_with_what_the_readme_shows() -> None:
    """Its console and commands are the README's, which tests run; its links lead to pages."""
    page = texts()["index.md"]
    assert "first unexplained: " in page
    assert "ir-runtime validate model.xml" in page
    assert "{" not in re.sub(r"\{ \.[^}]*\}", "", page), "all parts are there"
    links = re.findall(r"\]\(([\w./-]+)\)", page)
    assert len(links) > 10
    assert [link for link in links if link not in {*texts(), DEMO}] == []


def test_a_page_loses_what_no_browser_needs(tmp_path: Path) -> None:
    page = page_that_loads(
        tmp_path, "<p>\n\n   one\n  two</p>\n\n<pre>a\n\n  b</pre>\n\n<script>\n x</script>"
    )
    (tmp_path / "search.json").write_text("{}")
    shrink(tmp_path)
    assert page.read_text() == "<p>\none\ntwo</p>\n<pre>a\n\n  b</pre>\n<script>\n x</script>"
    assert not (tmp_path / "search.json").exists()


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
