"""Guides: Markdown pages about how the package is built and extended; ``ir-runtime guide`` prints them."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

from ..codes import Code
from ..errors import InputError
from ..nearest import nearest

__all__ = ["Guide", "guide", "guides"]


class Guide(NamedTuple):
    """A page: its name, its title, and its text as Markdown."""

    name: str
    title: str
    text: str


def guides() -> list[Guide]:
    """Return all guides, in alphabetical order."""
    pages = sorted(path.name for path in files(__package__).iterdir() if path.name.endswith(".md"))
    return [_read(page.removesuffix(".md")) for page in pages]


def guide(name: str) -> Guide:
    """Return the guide of a name.

    Raises:
        InputError: if there is none.
    """
    known = [page.name for page in guides()]
    if name in known:
        return _read(name)
    near = nearest(name, known)
    raise InputError(
        f"unknown guide {name[:40]!r}",
        code=Code.NO_SUCH_NAME,
        hint=(f"did you mean {near}? " if near else "") + f"the guides are {', '.join(known)}",
    )


def _read(name: str) -> Guide:
    text = files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    return Guide(name, text.partition("\n")[0].removeprefix("# "), text)
