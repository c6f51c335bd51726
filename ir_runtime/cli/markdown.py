"""Render Markdown for a terminal."""

from __future__ import annotations

import re

from .terminal import columns

__all__ = ["rendered"]

# Links that can be clicked in some terminals; pagers show their escapes.
_HYPERLINK = re.compile(r"\x1b\]8;[^\x1b\x07]*(?:\x1b\\|\x07)")


def rendered(text: str) -> str:
    """Render a page for a terminal; for pipes and files, return it unchanged."""
    width = columns()
    return text if width is None else render(text, width)


def render(text: str, width: int) -> str:
    """Render a page for a terminal of this width."""
    from io import StringIO

    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    # No background colours: those that rich has suit dark terminals.
    theme = Theme({"markdown.code": "cyan", "markdown.h1": "bold", "markdown.h2": "bold"})
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
        theme=theme,
    )
    with console.capture() as captured:
        console.print(Markdown(text, code_theme="ansi_dark", justify="left"))
    lines = _HYPERLINK.sub("", captured.get()).split("\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(map(str.rstrip, lines)).strip("\n"))
