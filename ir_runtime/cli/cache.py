"""``ir-runtime cache``: list, clear or move the cache folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from .._util.escaping import visible
from .helping import GroupedCommand
from .models import as_json
from .render import Record, plain, plural, result, table
from .terminal import show

__all__ = ["cache"]

_EPILOG = """\b
ir-runtime cache
ir-runtime cache --clean
ir-runtime cache --move /fast/disk

The cache has finished steps of the debugging commands, to resume from. They are recomputed when needed.
IR_RUNTIME_CACHE sets another folder than the user's cache folder.
"""

_DEBUGGING = "debug"


@dataclass(frozen=True)
class _Kept:
    what: str
    path: Path
    files: int
    size: int

    def record(self) -> Record:
        return {"what": self.what, "folder": str(self.path), "files": self.files, "bytes": self.size}


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Keep")
@click.option("--clean", "cleaned", is_flag=True, help="Delete all cached files.")
@click.option("--move", "target", metavar="FOLDER", help="Move the cache to this folder.")
@as_json
def cache(cleaned: bool, target: str | None, as_json: bool) -> None:
    """List the contents of the cache folder, or clear or move it."""
    from .._util.user_cache import user_cache
    from ..errors import InputError

    if cleaned and target is not None:
        raise click.UsageError("--clean and --move cannot be given together")
    folder = user_cache()
    if folder is None:
        raise InputError(
            "the cache folder is not known", hint="pip install platformdirs, or set IR_RUNTIME_CACHE"
        )
    entries = list(_list_entries(folder))
    if cleaned:
        _remove(entries)
    if target is not None:
        folder = _move(entries, Path(target).absolute())
    entries = list(_list_entries(folder))
    records = [entry.record() for entry in entries]
    result(as_json, lambda: {"folder": str(folder), "kept": records}, lambda: _text(folder, entries))


def _list_entries(folder: Path) -> Iterator[_Kept]:
    """Yield the cache entries of this package; ignore other files."""
    path = folder / _DEBUGGING
    if path.is_dir() and not path.is_symlink():
        sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
        yield _Kept("debugging", path, len(sizes), sum(sizes))


def _remove(entries: list[_Kept]) -> None:
    for entry in entries:
        shutil.rmtree(entry.path)
    size = sum(entry.size for entry in entries)
    show(f"removed {plural(len(entries), 'folder')}, {plain(size)} bytes", err=True)


def _move(entries: list[_Kept], target: Path) -> Path:
    """Move cache entries to another folder, print how to make this package use it, and return its path."""
    from .._util.user_cache import make_own_folder, user_cache
    from ..errors import InputError

    place = target / "ir_runtime"
    if existing := next((entry.path.name for entry in entries if (place / entry.path.name).exists()), None):
        raise InputError(f"{str(place / existing)!r} exists already")
    make_own_folder(place)
    for entry in entries:
        shutil.move(entry.path, place / entry.path.name)
    message = "it is found by IR_RUNTIME_CACHE, which has that value"
    if user_cache() != place:
        message = f"it is found there with IR_RUNTIME_CACHE={target}"
    show(f"moved {plural(len(entries), 'folder')} to {visible(str(place))}; {message}", err=True)
    return place


def _row(what: str, folder: str, entries: list[_Kept]) -> list[str]:
    return [
        what,
        folder,
        plain(sum(entry.files for entry in entries)),
        plain(sum(entry.size for entry in entries)),
    ]


def _text(folder: Path, entries: list[_Kept]) -> str:
    rows = [_row(entry.what, entry.path.name, [entry]) for entry in entries]
    if not entries:
        return f"nothing is kept in {visible(str(folder))}"
    header = ["what", "folder", "files", "bytes"]
    return table(
        f"Kept in {visible(str(folder))}",
        header,
        [*rows, _row("total", "", entries)],
        right=("files", "bytes"),
        least=("folder",),
    )
