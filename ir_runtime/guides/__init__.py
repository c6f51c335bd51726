"""Guides: Markdown pages about how the package is used, built and extended; ``ir-runtime guide`` prints them."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

from .._util.nearest import did_you_mean
from ..codes import Code
from ..errors import InputError

__all__ = ["Guide", "guide", "guides"]

_ABOUT = ("architecture", "adding-an-operation", "adding-a-kernel", "glossary")
"""Pages about the package itself; they follow those about its use."""


class Guide(NamedTuple):
    """A page: its name, its title, and its text as Markdown.

    >>> Guide("x", "X", "# X").title
    'X'
    """

    name: str
    title: str
    text: str


def guides() -> list[Guide]:
    """Return all guides: those about its use, then those about the package itself.

    >>> [page.title for page in guides()][-1]
    'Glossary'
    """
    names = {
        path.name.removesuffix(".md") for path in files(__package__).iterdir() if path.name.endswith(".md")
    }
    return [_read(name) for name in (*sorted(names.difference(_ABOUT)), *_ABOUT)]


def guide(name: str) -> Guide:
    """Return the guide of a name.

    >>> guide("glossary").title
    'Glossary'

    Raises:
        InputError: if the name is unknown.
    """
    known = [page.name for page in guides()]
    if name in known:
        return _read(name)
    raise InputError(
        f"unknown guide {name[:40]!r}",
        code=Code.NO_SUCH_NAME,
        hint=f"{did_you_mean(name, known, after=' ')}the guides are {', '.join(known)}",
    )


def _read(name: str) -> Guide:
    text = files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    return Guide(name, text.partition("\n")[0].removeprefix("# "), text)
