"""Print text: unchanged to files and pipes; on a terminal, wrapped to its width, with Markdown rendered."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap

import click

__all__ = ["columns", "is_on_one_screen", "render_for_terminal", "show", "wrap_lines"]

# A source line quoted below a finding, or the markers under it, which are already truncated.
_EXCERPT = re.compile(r" *\d* \| ")
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
# The least width that is assumed for a terminal.
_NARROWEST = 20


def columns(err: bool = False) -> int | None:
    """Return the width of the terminal on stdout, or stderr if ``err``; ``None`` if it is not a terminal."""
    stream = sys.stderr if err else sys.stdout
    if stream is None or not stream.isatty():
        return None
    return max(shutil.get_terminal_size().columns, _NARROWEST)


def show(text: str, *, err: bool = False, pager: bool = False) -> None:
    """Print text; on a terminal, wrap long lines.

    Args:
        text: the text to print.
        err: print to stderr instead of stdout.
        pager: on stdout, use a pager if the text exceeds the terminal.
    """
    if (width := columns(err)) is None:
        click.echo(text, err=err)
        return
    fitting = wrap_lines(text, width)
    if pager and not err and not is_on_one_screen(text):
        context = click.get_current_context(silent=True)
        click.echo_via_pager(fitting, color=None if context is None else context.color)
        return
    click.echo(fitting, err=err)


def is_on_one_screen(text: str) -> bool:
    """Return whether a text fits on one screen of the terminal on stdout; always true for pipes and files."""
    width = columns()
    return width is None or wrap_lines(text, width).count("\n") + 2 <= shutil.get_terminal_size().lines


def wrap_lines(text: str, width: int) -> str:
    """Wrap lines longer than ``width`` between words; continuation lines are indented.

    >>> print(wrap_lines("net.xml:7: error: the shapes do not fit", 24))
    net.xml:7: error: the
      shapes do not fit
    """
    return "\n".join(_wrap_line(line, width) for line in text.split("\n"))


def _wrap_line(line: str, width: int) -> str:
    if len(_ESCAPE.sub("", line)) <= width or _EXCERPT.match(line):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    # Escapes have no width: they are taken out, and put back after wrapping.
    hidden: list[str] = []

    def hide(match: re.Match[str]) -> str:
        hidden.append(match[0])
        return "\0"

    plain = _ESCAPE.sub(hide, line)
    lines = textwrap.wrap(
        plain,
        width,
        initial_indent="",
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )
    escapes = iter(hidden)
    return re.sub("\0", lambda _: next(escapes), "\n".join(lines))


# Escape sequences of hyperlinks, which pagers would show as text.
_HYPERLINK = re.compile(r"\x1b\]8;[^\x1b\x07]*(?:\x1b\\|\x07)")


def render_for_terminal(text: str) -> str:
    """Render Markdown for the terminal; for pipes and files, return it unchanged."""
    width = columns()
    return text if width is None else render(text, width)


def render(text: str, width: int) -> str:
    """Render Markdown for a terminal of this width."""
    from io import StringIO

    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    # No background colors: rich's defaults suit only dark terminals.
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
