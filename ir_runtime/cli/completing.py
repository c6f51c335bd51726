"""Complete the words of a command line: files, layers, inputs, operations, codes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from html import unescape
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

from .helping import kept_args

__all__ = ["attach"]

_Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

# The start tags of layers, and their attributes; an .xml is searched as text, which is quick.
_LAYER = re.compile(rb"<layer\s((?:[^<>\"']++|\"[^<\"]*\"|'[^<']*')*+)>")
_ATTRIBUTE = re.compile(rb"(?<!\S)(name|type)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_MOST_BYTES = 1 << 26
_HIDDEN = ("Const", "Result")
_ARRAYS = (".npy", ".npz")


def attach(name: str, command: click.Command) -> None:
    """Set the completers of a command's parameters by their names."""
    completers = _COMPLETERS | _OF_COMMANDS.get(name, {})
    for param in command.params:
        if (completer := completers.get(param.name or "")) is not None:
            param._custom_shell_complete = completer


def _starting(words: Iterable[str], start: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(start)]


def _files(*endings: str) -> _Completer:
    """Complete files with these endings; if there are folders, leave it to the shell."""

    def complete(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
        entries = list(_entries(start, endings))
        if not entries or any(word.endswith("/") for word in entries):
            return [CompletionItem(start, type="file")]
        return [CompletionItem(word) for word in entries]

    return complete


def _entries(start: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Yield the files with these endings, and the folders with a slash, that begin with a text."""
    folder, part = os.path.split(start)
    try:
        with os.scandir(folder or ".") as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if not entry.name.startswith(part) or (entry.name.startswith(".") and not part):
                    continue
                if entry.name.startswith("-") and not folder:  # which would be an option
                    continue
                if entry.is_dir():
                    yield os.path.join(folder, entry.name) + "/"
                elif entry.name.lower().endswith(endings):
                    yield os.path.join(folder, entry.name)
    except OSError:
        return


def _layers(ctx: click.Context, _: click.Parameter, start: str) -> list[CompletionItem]:
    return _starting((name for name, type in _in_model(ctx) if type not in _HIDDEN), start)


def _inputs(ctx: click.Context, _: click.Parameter, start: str) -> list[CompletionItem]:
    """Complete ``NAME=FILE`` and ``FILE``."""
    name, equals, path = start.partition("=")
    arrays = [word for word in _entries(path if equals else start, _ARRAYS) if not word.endswith("/")]
    if equals:
        return [CompletionItem(f"{name}={word}") for word in arrays]
    inputs = [
        each
        for each, type in _in_model(ctx)
        if type == "Parameter" and each.startswith(start) and "=" not in each
    ]
    files = list(_entries("", _ARRAYS)) or [""]
    pairs = [f"{each}={file}" for each in inputs for file in files if not file.endswith("/")]
    return [CompletionItem(word) for word in (*arrays, *pairs)] or [CompletionItem(start, type="file")]


def _in_model(ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the name and type of each layer of the model on the command line, if no option is called so."""
    # Options without their value keep click from parsing the line, so that the arguments themselves are searched.
    path = next((arg for arg in kept_args(ctx) if arg.endswith(".xml")), "")
    try:
        with open(path, "rb") as file:
            text = file.read(_MOST_BYTES) if os.path.isfile(path) else b""
    except OSError:
        return
    for tag in _LAYER.finditer(text):
        attributes = {key: _text(one or other) for key, one, other in _ATTRIBUTE.findall(tag[1])}
        name = attributes.get(b"name")
        if name and not name.startswith("-"):
            yield name, attributes.get(b"type") or ""


def _text(value: bytes) -> str | None:
    """Return the text of an attribute, as a parser reads it; ``None`` if it is not in UTF-8."""
    try:
        return unescape(re.sub(r"[\t\r\n]", " ", value.decode()))
    except UnicodeDecodeError:
        return None


def _codes(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    from ..codes import Code

    items = [CompletionItem(code.value, help=code.summary) for code in Code]
    return [item for item in items if item.value.startswith(start.upper())]


def _operations(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    from ..ops import registry

    names = {name: None for cls in registry for name in (cls.name, cls.versioned_name())}
    return _starting(names if "-" in start else dict.fromkeys(cls.name for cls in registry), start)


def _guides(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    from ..guides import guides

    return [CompletionItem(page.name, help=page.title) for page in guides() if page.name.startswith(start)]


def _releases(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    from ..releases.release import releases

    return _starting(map(str, releases()), start)


def _backends(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    return _starting(("native", "numpy", "reference"), start)


_MODEL = _files(".xml")
_COMPLETERS: dict[str, _Completer] = {
    **dict.fromkeys(("model", "models", "path", "old", "new"), _MODEL),
    "weights": _files(".bin"),
    "files": _inputs,
    "layers": _layers,
    "code": _codes,
    "backend": _backends,
    "for_release": _releases,
    "results": _files(*_ARRAYS),
    **dict.fromkeys(("output", "labels", "report_folder"), _files("")),
}
_OF_COMMANDS: dict[str, dict[str, _Completer]] = {"ops": {"name": _operations}, "guide": {"name": _guides}}
