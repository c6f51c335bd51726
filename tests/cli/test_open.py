"""The report of a model, opened in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from cli.conftest import Invoke
from harness.nets import write_chain


@pytest.mark.parametrize("has_browser", [True, False])
def test_a_page_is_written_and_opened(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, has_browser: bool
) -> None:
    opened: list[str] = []

    def show(address: str) -> bool:
        opened.append(address)
        return has_browser

    monkeypatch.setattr(webbrowser, "open", show)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    write_chain(folder)
    found = invoke("open chain.xml")
    assert found.exit_code == 0
    page = Path(found.stdout.strip())
    assert page.name == "chain.html"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [Path(unquote(urlsplit(address).path)) for address in opened] == [page]
    assert ("no browser was found" in found.stderr) is not has_browser
    assert "The file is valid" in found.stderr


def test_a_model_with_errors_is_shown(folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: True)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    write_chain(folder)
    (folder / "chain.bin").unlink()
    found = invoke("open chain.xml")
    assert found.exit_code == 1
    assert "error: " in found.stderr
    assert invoke("open none.xml").exit_code == 3
