"""The pages for contributors and reporters lead somewhere: their links, paths, guides and `make` targets exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ir_runtime.guides import guides

ROOT = Path(__file__).parents[1]
PAGES = ("CONTRIBUTING.md", ".github/SECURITY.md")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_links_resolve(page: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", text_of(page))
    relative = [target for target in targets if not target.startswith("https://")]
    assert relative
    assert [target for target in relative if not ((ROOT / page).parent / target).is_file()] == []


@pytest.mark.parametrize("page", PAGES)
def test_paths_exist(page: str) -> None:
    paths = re.findall(r"`((?:\w+/)+|[A-Z]+\.md)`", text_of(page))
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_guides_exist(page: str) -> None:
    named = set(re.findall(r"`ir-runtime guide ([\w-]+)`", text_of(page)))
    assert named
    assert named <= {guide.name for guide in guides()}


def test_the_targets_of_make_exist() -> None:
    named = set(re.findall(r"\bmake ([a-z]+)", text_of("CONTRIBUTING.md")))
    assert len(named) > 5
    assert named <= set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))


def test_the_title_of_the_security_guide_is_quoted() -> None:
    (title,) = (guide.title for guide in guides() if guide.name == "security")
    assert f"[{title}](../ir_runtime/guides/security.md)" in text_of(".github/SECURITY.md")
    assert "(.github/SECURITY.md)" in text_of("CONTRIBUTING.md")


WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash(path: Path) -> None:
    """A tag may be moved to other code; the release that a hash belongs to is beside it, the same everywhere."""
    lines = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []
    every = "".join(file.read_text(encoding="utf-8") for file in WORKFLOWS)
    versions = {tuple(line.split("@", 1)) for line in re.findall(r"uses: (.*)", every)}
    assert len({name for name, _ in versions}) == len(versions), "one release of each action"


def test_a_release_is_published_without_a_token() -> None:
    """Only the jobs that need it may ask for an identity or write, and the changelog has a part for each version."""
    text = text_of(".github/workflows/release.yml")
    jobs = dict(
        re.findall(
            r"^  (\w+):\n(    .*?)(?=^  [\w#]|\Z)", text.partition("\njobs:\n")[2], re.DOTALL | re.MULTILINE
        )
    )
    assert {name for name, job in jobs.items() if "id-token: write" in job} == {"attest", "publish"}
    assert {name for name, job in jobs.items() if "contents: write" in job} == {"announce"}
    assert "\npermissions: {}\n" in text
    assert "secrets." not in text
    assert "password" not in text
    assert re.search(r"^## \d+\.\d+\.\d+", text_of("CHANGELOG.md"), re.MULTILINE)
