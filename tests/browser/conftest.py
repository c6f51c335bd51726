"""Reports in real Chromium: ``make browser``. Other test runs do not collect these tests."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from harness.vendor import libraries, packed

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
PATIENCE = 180_000
"""Milliseconds that a page may take, so that a test fails on no busy machine; a page that is right takes far less."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return None if config.option.markexpr == "browser" else True


@dataclass
class Opened:
    """A page with its console messages and requests."""

    page: Any
    said: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def boxes(self) -> int:
        """The number of boxes in the graph."""
        return int(self.page.evaluate("report.views[0].placed.size"))

    def details(self) -> str:
        """The text next to the graph."""
        return str(self.page.inner_text("#details"))


Open = Callable[..., Opened]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens a page from disk; any console message fails the test."""
    from playwright.sync_api import expect

    contexts = []
    pages = []

    def open_page(html: str, width: int = 1280, height: int = 800, **context: Any) -> Opened:
        path = tmp_path / f"report{len(pages)}.html"
        path.write_text(html, encoding="utf-8")
        contexts.append(chromium.new_context(viewport={"width": width, "height": height}, **context))
        contexts[-1].set_default_timeout(PATIENCE)
        found = Opened(contexts[-1].new_page())
        pages.append(found)
        page = found.page
        page.on("console", lambda message: found.said.append(message.text))
        page.on("pageerror", lambda error: found.said.append(str(error)))
        page.on("dialog", lambda dialog: (found.said.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: found.requests.append(request.url))
        page.goto(path.as_uri())
        drawn = page.locator(
            "svg.graph .box, iframe"
        ).first  # a function would be evaluated, which pages refuse
        expect(drawn).to_be_attached()
        return found

    yield open_page
    said = [text for each in pages for text in each.said]
    requests = [each.requests for each in pages]
    for context in contexts:
        context.close()
    assert said == []
    assert all(len(each) == 1 for each in requests), requests


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, fetched from npm once."""
    (library,) = libraries(Path(__file__).with_name("axe.tsv"))
    kept = Path(__file__).parents[2] / "out" / "axe" / f"axe-{library.version}.js"
    if not kept.exists():
        with tarfile.open(fileobj=BytesIO(packed(library))) as archive:
            member = archive.extractfile(f"package/{library.path}")
            assert member is not None
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(member.read())
    return kept.read_text(encoding="utf-8")
