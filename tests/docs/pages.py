"""The pages of the site as Markdown: the package's terminal output, and an index page for each kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

from docs import reference
from ir_runtime.cli import main
from ir_runtime.codes import Code
from ir_runtime.explanations import explanation
from ir_runtime.guides import guides
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define.describe import TESTED_AGAINST, group, page, summary

__all__ = ["Page", "Section", "sections"]

README = Path(__file__).parents[2] / "README.md"
LANDING = Path(__file__).with_name("landing.md")


class Page(NamedTuple):
    """A page of the site."""

    path: str
    """Its file below the folder of pages."""
    title: str
    """Its title in the navigation."""
    text: str
    """Its Markdown."""
    group: str = ""
    """The heading in the navigation that it is below; none by default. A page with that title leads the group."""


class Section(NamedTuple):
    """A group of pages; the first is its index."""

    title: str
    pages: list[Page]


def sections() -> list[Section]:
    """Return all pages, in the order of the navigation."""
    return [
        Section("Home", [Page("index.md", "Home", landing())]),
        Section("Overview", [Page("overview.md", "Overview", README.read_text(encoding="utf-8"))]),
        Section("Guides", list(_guides())),
        Section("Commands", list(_commands())),
        Section("Operations", list(_operations())),
        Section("Codes", list(_codes())),
        Section("Python", list(_reference())),
    ]


def landing() -> str:
    """Return the landing page: its own text, with parts of the README, which tests run."""
    readme = README.read_text(encoding="utf-8")
    parts = {
        "console": next(re.finditer(r"^```console$.*?^```$", readme, re.DOTALL | re.MULTILINE))[0],
        "install": _section(readme, "Install"),
        "commands": _section(readme, "Three commands"),
    }
    return re.sub(
        r"\{(\w+)\}", lambda found: parts.get(found[1], found[0]), LANDING.read_text(encoding="utf-8")
    )


def _section(text: str, heading: str) -> str:
    """Return the text below a heading."""
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].strip()


def _contents(folder: str, title: str, intro: str, rows: Iterable[tuple[str, str]]) -> Page:
    """A table of the pages in a folder: names and topics."""
    lines = [f"| [{name}]({name}.md) | {_cell(about)} |" for name, about in rows]
    text = "\n".join((f"# {title}\n", f"{intro}\n", "| page | what it is about |", "|---|---|", *lines))
    return Page(f"{folder}/index.md", title, f"{text}\n")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _guides() -> Iterator[Page]:
    found = guides()
    intro = "`ir-runtime guide NAME` prints the same pages in a terminal."
    yield _contents("guides", "Guides", intro, ((page.name, page.title) for page in found))
    for guide in found:
        yield Page(f"guides/{guide.name}.md", guide.title, guide.text)


def _commands() -> Iterator[Page]:
    context = main.context_class(main, info_name="ir-runtime", terminal_width=80, **main.context_settings)
    names = main.list_commands(context)
    found = {name: command for name in names if (command := main.get_command(context, name)) is not None}
    rows = ((name, command.get_short_help_str(200)) for name, command in found.items())
    program = _help(main, context)
    yield _contents("commands", "Commands", f"What `ir-runtime --help` prints:\n\n{program}", rows)
    for name, command in found.items():
        shown = _help(command, command.context_class(command, info_name=name, parent=context))
        yield Page(f"commands/{name}.md", name, f"# ir-runtime {name}\n\n{shown}\n")


def _help(command: click.Command, context: click.Context) -> str:
    return f"```text\n{click.unstyle(command.get_help(context))}\n```"


def _operations() -> Iterator[Page]:
    ours = [cls for cls in registry if group(cls)]
    yield _table_of_operations(ours)
    for cls in sorted(ours, key=group):
        name = cls.versioned_name()
        yield Page(f"operations/{name}.md", name, page(cls), _group_title(group(cls)))


def _group_title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _table_of_operations(ours: list[type[Op]]) -> Page:
    groups: dict[str, list[type[Op]]] = {}
    for cls in ours:
        groups.setdefault(group(cls), []).append(cls)
    names = len({cls.name for cls in ours})
    lines = [
        "# Operations\n",
        f"{names} operations in {len(ours)} versions, tested against {TESTED_AGAINST}. `ir-runtime ops NAME` prints the same "
        "pages in a terminal.",
    ]
    for name, members in sorted(groups.items()):
        lines += [
            f"\n## {_group_title(name)}\n",
            "| operation | what it does |",
            "|---|---|",
        ]
        lines += [
            f"| [{cls.versioned_name()}]({cls.versioned_name()}.md) | {_cell(summary(cls))} |"
            for cls in members
        ]
    return Page("operations/index.md", "Operations", "\n".join(lines) + "\n")


def _codes() -> Iterator[Page]:
    intro = "Every error and every finding has a code. `ir-runtime explain CODE` prints the same pages in a terminal."
    yield _contents("codes", "Codes", intro, ((code.value, code.summary) for code in Code))
    for code in Code:
        yield Page(f"codes/{code.value}.md", code.value, explanation(code).markdown)


def _reference() -> Iterator[Page]:
    found = list(reference.modules())
    intro = (
        "The names that are public, and how they are used. `help(ir_runtime.NAME)` shows the same in Python."
    )
    yield _contents("python", "Python", intro, ((module.name, module.summary) for module in found))
    for module in found:
        yield Page(module.path, module.name, module.text, module.name)
        for entry in module.classes:
            yield Page(entry.path, entry.name, entry.text, module.name)


def linked(page: Page, known: set[str]) -> str:
    """Return the text of a page with references such as ``ir-runtime guide NAME`` turned into links.

    Args:
        page: the page.
        known: the paths of all pages.
    """
    up = "../" * page.path.count("/")
    parts = re.split(r"(^```.*?^```$)", page.text, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        part if part.startswith("```") else _with_links(part, up, page.path, known) for part in parts
    )


_MENTION = re.compile(r"(?<!\[)`(ir-runtime ([^\s`]+)(?: ([^\s`]+))?[^`]*)`(?!\])")
_FOLDERS = {"guide": "guides", "explain": "codes", "ops": "operations"}


def _with_links(text: str, up: str, here: str, known: set[str]) -> str:
    def link(found: re.Match[str]) -> str:
        command, name = found[2], found[3]
        paths = [f"{_FOLDERS.get(command)}/{name}.md", f"commands/{command}.md"]
        path = next((path for path in paths if path in known and path != here), None)
        return f"[`{found[1]}`]({up}{path})" if path else found[0]

    return _MENTION.sub(link, text)
