"""``ir-runtime cache``: show, remove or move the cache folder."""

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

Kept is what the debugging commands have computed, to resume from. It is computed again when it is needed.
IR_RUNTIME_CACHE says where it is, if not in the user's cache folder.
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
@click.option("--clean", "cleaned", is_flag=True, help="Remove all that is kept.")
@click.option("--move", "target", metavar="FOLDER", help="Move all to this folder.")
@as_json
def cache(cleaned: bool, target: str | None, as_json: bool) -> None:
    """Show what is kept in the cache folder; remove or move it."""
    from .._util.user_cache import user_cache
    from ..errors import InputError

    if cleaned and target is not None:
        raise click.UsageError("--clean and --move cannot be given together")
    folder = user_cache()
    if folder is None:
        raise InputError(
            "the cache folder is not known", hint="pip install platformdirs, or set IR_RUNTIME_CACHE"
        )
    found = list(_kept(folder))
    if cleaned:
        _remove(found)
    if target is not None:
        folder = _move(found, Path(target).absolute())
    found = list(_kept(folder))
    records = [each.record() for each in found]
    result(as_json, lambda: {"folder": str(folder), "kept": records}, lambda: _text(folder, found))


def _kept(folder: Path) -> Iterator[_Kept]:
    """Yield what is in the folder and belongs to this package; other files are left alone."""
    path = folder / _DEBUGGING
    if path.is_dir() and not path.is_symlink():
        sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
        yield _Kept("debugging", path, len(sizes), sum(sizes))


def _remove(found: list[_Kept]) -> None:
    for each in found:
        shutil.rmtree(each.path)
    size = sum(each.size for each in found)
    show(f"removed {plural(len(found), 'folder')}, {plain(size)} bytes", err=True)


def _move(found: list[_Kept], target: Path) -> Path:
    """Move folders below a folder, and say how it is found; return where they are."""
    from .._util.user_cache import make_own_folder, user_cache
    from ..errors import InputError

    place = target / "ir_runtime"
    if taken := next((each.path.name for each in found if (place / each.path.name).exists()), None):
        raise InputError(f"{str(place / taken)!r} exists already")
    make_own_folder(place)
    for each in found:
        shutil.move(each.path, place / each.path.name)
    said = "it is found by IR_RUNTIME_CACHE, which has that value"
    if user_cache() != place:
        said = f"it is found there with IR_RUNTIME_CACHE={target}"
    show(f"moved {plural(len(found), 'folder')} to {visible(str(place))}; {said}", err=True)
    return place


def _row(what: str, folder: str, found: list[_Kept]) -> list[str]:
    return [what, folder, plain(sum(each.files for each in found)), plain(sum(each.size for each in found))]


def _text(folder: Path, found: list[_Kept]) -> str:
    rows = [_row(each.what, each.path.name, [each]) for each in found]
    if not found:
        return f"nothing is kept in {visible(str(folder))}"
    header = ["what", "folder", "files", "bytes"]
    return table(
        f"Kept in {visible(str(folder))}", header, [*rows, _row("total", "", found)], right=("files", "bytes")
    )
