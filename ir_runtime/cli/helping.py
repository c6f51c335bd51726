"""Format help for the width of the terminal, and suggest options for misspelt ones."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import click

__all__ = [
    "Command",
    "Context",
    "GroupedCommand",
    "SectionOption",
    "store_args",
    "program_args",
    "unknown_option",
    "add_second_dash",
]

# The least width that click formats help for, in columns.
_CLICKS_NARROWEST = 52
_NARROWEST = 30
# Below this many columns, the help of an option with a long name starts on the next line.
_TWO_COLUMNS = 60
_LONG_NAME = 14
# The option that sets the compute precision has one of these names, depending on the command.
_TYPES = ("--precision", "--as", "--to", "--types")
# The key of the program's arguments in the metadata of a context.
_ARGS = f"{__name__}.args"


class Formatter(click.HelpFormatter):
    """Help formatter that supports narrow terminals and indents continued preformatted lines."""

    def __init__(
        self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None
    ) -> None:
        import shutil  # which imports the modules for compressed archives

        if width is None and (columns := shutil.get_terminal_size().columns) < _CLICKS_NARROWEST:
            width = max(columns - 2, _NARROWEST)
        super().__init__(indent_increment, width, max_width)

    def write_text(self, text: str) -> None:
        room = max(self.width - self.current_indent, 11)
        paragraphs = [_break_lines(paragraph, room) for paragraph in text.split("\n\n")]
        super().write_text("\n\n".join(paragraphs))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        rows = list(rows)
        is_narrow = self.width < _TWO_COLUMNS and max((len(name) for name, _ in rows), default=0) > _LONG_NAME
        super().write_dl(rows, 4 if is_narrow else col_max, col_spacing)


class Context(click.Context):
    """A context whose help fits the terminal."""

    formatter_class = Formatter


class SectionOption(click.Option):
    """An option listed under a section heading in the help of its command."""

    def __init__(self, *args: Any, section: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self.section = section


class GroupedCommand(click.Command):
    """A command that belongs to a group in the help of the program, with its own options grouped by section."""

    def __init__(self, *args: Any, group: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self.group = group

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                sections.setdefault(getattr(param, "section", "Options"), []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _break_lines(paragraph: str, room: int) -> str:
    """Wrap the long lines of a preformatted paragraph."""
    if "\b" not in paragraph:
        return paragraph
    return "\n".join(_continue_line(line, room) for line in paragraph.split("\n"))


def _continue_line(line: str, room: int) -> str:
    if len(line) <= room:
        return line
    start = re.match(r" *(?:\d+ +)?", line)
    indent = " " * (start.end() if start and start.end() else 2)
    return textwrap.fill(line, room, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def store_args(ctx: click.Context, args: Sequence[str]) -> None:
    """Store the arguments of the program in the context, for `unknown_option`."""
    ctx.meta[_ARGS] = list(args)


def program_args(ctx: click.Context) -> list[str]:
    """Return the arguments stored by `store_args`."""
    return list(ctx.meta.get(_ARGS, ()))


def add_second_dash(command: click.Command, args: Sequence[str]) -> list[str]:
    """Replace ``-option``, as OpenVINO's tools write it, by ``--option`` if the command only has the latter."""
    options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}

    def spelt(arg: str) -> str:
        name = arg.partition("=")[0]
        is_meant = arg[:2] != "--" and len(name) > 2 and name not in options and f"-{name}" in options
        return f"-{arg}" if is_meant else arg

    return list(map(spelt, args))


def unknown_option(problem: click.NoSuchOption) -> str:
    """Return the message for an unknown option, suggesting a similar one.

    An option such as ``-nitr`` counts as one long option, although click splits it into short ones. An option that
    sets the precision in another command, such as ``--as``, leads to its counterpart in this one.
    """
    from .._util.nearest import did_you_mean, suggestion

    name = problem.option_name
    if problem.ctx is None:
        return f"no such option {name!r}"
    options = [name for param in problem.ctx.command.params for name in (*param.opts, *param.secondary_opts)]
    if name in _TYPES:
        same = next((option for option in _TYPES if option in options), None)
        return f"no such option {name!r}{suggestion(same, before='; ')}"
    if len(name) == 2:
        arguments = [arg.partition("=")[0] for arg in program_args(problem.ctx)]
        wholes = (arg for arg in arguments if arg.startswith(name) and len(arg) > 2 and arg not in options)
        name = next(wholes, name)
    begun = sorted(option for option in options if option.startswith(name) and name != "--")
    near = suggestion(begun[0], before="; ") if begun else did_you_mean(name, options, before="; ")
    return f"no such option {name!r}{near}"


Command: TypeAlias = Callable[..., object]
