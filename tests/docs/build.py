"""Write the pages and settings, run Zensical, and make search work offline."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import ir_runtime as ir
from docs.pages import Page, Section, linked, sections

__all__ = ["BuildError", "build", "make_local", "run_zensical", "write"]

SETTINGS = Path(__file__).with_name("zensical.toml")
SHIM = Path(__file__).parent / "vendor" / "iframe-worker" / "shim.js"
"""Lets a page that was opened from disk have a worker, which browsers refuse; the search is one.
iframe-worker 1.0.4 as npm has it, under the MIT licence beside it."""
FETCHED = "https://unpkg.com/iframe-worker/shim"
"""Where the plugin `offline` would load it from."""
_LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=[\"']?((?:https?:)?//[^\"'> ]+)")
_EMPTY = re.compile(r"<link\b[^>]*rel=[\"']?(?:canonical|next|prev|preconnect)")


DEMO = "demo.html"
MODEL = Path(__file__).parents[2] / "examples" / "digits" / "digits.xml"


class BuildError(Exception):
    """The site could not be built correctly."""


def build(folder: Path) -> Path:
    """Write pages and settings to a folder, and build the site below it.

    Raises:
        BuildError: if a link or an anchor is broken, or a page would load something external.
    """
    shutil.rmtree(folder / "pages", ignore_errors=True)
    found = sections()
    write(folder, found)
    write_demo(folder / "pages" / DEMO)
    run_zensical(folder)
    site = folder / "site"
    make_local(site)
    shrink(site)
    return site


def run_zensical(folder: Path) -> None:
    """Build the site.

    Raises:
        BuildError: if a link or an anchor is broken.
    """
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise BuildError(_plain(done.stdout + done.stderr))


def write_demo(path: Path) -> None:
    """Write the report shown on the landing page."""
    ir.read_model(MODEL).report(path)


def _plain(said: str) -> str:
    """Return Zensical's output without colours and its own traceback."""
    return re.sub(r"\x1b\[[\d;]*m", "", said).partition("Traceback (most")[0]


def write(folder: Path, found: Sequence[Section]) -> None:
    """Write the Markdown of all pages, and the settings with the navigation."""
    known = {page.path for section in found for page in section.pages}
    for section in found:
        for page in section.pages:
            path = folder / "pages" / page.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(linked(page, known), encoding="utf-8")
    settings = SETTINGS.read_text(encoding="utf-8")
    (folder / "zensical.toml").write_text(
        settings.replace("nav = []", f"nav = {_navigation(found)}"), encoding="utf-8"
    )


def _navigation(found: Sequence[Section]) -> str:
    lines = []
    for title, pages in found:
        if len(pages) == 1:
            lines.append(f"{{ {json.dumps(title)} = {json.dumps(pages[0].path)} }}")
            continue
        first, *others = pages
        entries = [json.dumps(first.path)]
        for group, members in groupby(others, key=lambda page: page.group):
            below = [_entry(page, leads=page.title == group) for page in members]
            entries += [f"{{ {json.dumps(group)} = [{', '.join(below)}] }}"] if group else below
        lines.append(f"{{ {json.dumps(title)} = [{', '.join(entries)}] }}")
    return "[\n  " + ",\n  ".join(lines) + "\n]"


def _entry(page: Page, leads: bool) -> str:
    """Return a navigation entry; the first page of a group has no title of its own."""
    return json.dumps(page.path) if leads else f"{{ {json.dumps(page.title)} = {json.dumps(page.path)} }}"


def shrink(site: Path) -> None:
    """Remove blank lines and indents left by templates, and a duplicate index."""
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        parts = re.split(r"(<(pre|textarea|script|style)\b.*?</\2>)", text, flags=re.DOTALL)
        kept = [
            part if place % 3 else re.sub(r"\s*\n\s*", "\n", part)
            for place, part in enumerate(parts)
            if place % 3 < 2
        ]
        path.write_text("".join(kept), encoding="utf-8")
    (site / "search.json").unlink(missing_ok=True)  # search.js has it, too, which a page from disk may load


def make_local(site: Path) -> None:
    """Replace the fetched shim by the vendored one, and refuse any other external resource."""
    shutil.copy(SHIM, site / "assets" / "javascripts" / SHIM.name)
    places = list(site.rglob("*.html"))
    replaced = 0
    for path in places:
        text = path.read_text(encoding="utf-8")
        up = "../" * len(path.relative_to(site).parts[:-1])
        new = text.replace(FETCHED, f"{up}assets/javascripts/{SHIM.name}")
        replaced += new != text
        if new != text:
            path.write_text(new, encoding="utf-8")
        outside = [tag for tag in _LOADED.finditer(new) if not _EMPTY.match(tag[0])]
        if outside:
            raise BuildError(f"{path} would load {outside[0][1]}")
    if not replaced:
        raise BuildError(f"no page loads {FETCHED}: has the plugin offline changed?")
