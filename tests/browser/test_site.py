"""The documentation opened from disk: it searches offline, and its links are checked when it is built."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docs.build import BuildError, build, run_zensical, write
from docs.pages import Page, Section
from playwright.sync_api import expect

from browser.conftest import PATIENCE

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("docs"))


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page that may request only files, and must not log messages."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE)
    said: list[str] = []
    requests: list[str] = []
    found = context.new_page()
    found.on("console", lambda message: said.append(message.text))
    found.on("pageerror", lambda error: said.append(str(error)))
    found.on("request", lambda request: requests.append(request.url))
    yield found
    context.close()
    assert said == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []


def test_the_search_finds_an_operation(site: Path, page: Any) -> None:
    page.goto((site / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("ReduceL2", delay=20)
    page.get_by_text("Square root of the sum of squares").first.click()
    expect(page).to_have_url(re.compile("/operations/ReduceL2-4[.]html"))
    expect(page.locator("article")).to_contain_text("Specification")


def test_the_search_finds_a_task(site: Path, page: Any) -> None:
    page.goto((site / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("convert an onnx model", delay=20)
    page.get_by_text("files run everywhere without it").first.click()
    expect(page).to_have_url(re.compile("/guides/converting[.]html"))
    expect(page.locator("article")).to_contain_text("ovc model.onnx")


def test_the_landing_page_shows_a_report_and_starts(site: Path, page: Any) -> None:
    page.goto((site / "index.html").as_uri())
    shown = 'iframe[title^="A report"]'
    page.locator(shown).scroll_into_view_if_needed()
    expect(page.frame_locator(shown).get_by_text("Is it all right?")).to_be_visible()
    page.get_by_role("link", name="Start").first.click()
    expect(page.get_by_role("heading", name="Start")).to_be_in_viewport()


def test_the_site_is_small(site: Path) -> None:
    """Template indents, and lists of all operations on each page, are removed."""
    sizes = {path: path.stat().st_size for path in site.rglob("*") if path.is_file()}
    assert sum(sizes.values()) < 20 << 20
    assert max(size for path, size in sizes.items() if path.suffix == ".html") < 300_000


def test_what_a_page_mentions_can_be_followed(site: Path, page: Any) -> None:
    page.goto((site / "overview.html").as_uri())
    page.get_by_role("link", name="ir-runtime guide first-nan").first.click()
    expect(page).to_have_url(re.compile("/guides/first-nan[.]html"))
    expect(page.locator("article")).to_contain_text("trace-nan")
    page.get_by_role("link", name="Commands").first.click()
    expect(page).to_have_url(re.compile("/commands/index[.]html"))
    expect(page.locator("article")).to_contain_text("validate")


@pytest.mark.parametrize(
    ("link", "said"), [("[there](nowhere.md)", "nowhere.md"), ("[there](#nowhere)", "nowhere")]
)
def test_a_link_that_leads_nowhere_fails_the_build(link: str, said: str, tmp_path: Path) -> None:
    write(tmp_path, [Section("Home", [Page("index.md", "Home", f"# Home\n\n{link}\n")])])
    with pytest.raises(BuildError, match=said):
        run_zensical(tmp_path)
