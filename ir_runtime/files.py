"""Write files atomically."""

from __future__ import annotations

import filecmp
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from .errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["lock", "named", "temporary_file", "resolve_target", "remove_stale", "replacing", "temporary_name"]

# What makes the names of temporary files unique.
_TOKEN = re.compile("[0-9a-f]{8}")


@contextmanager
def replacing(*targets: Path) -> Iterator[tuple[IO[bytes], ...]]:
    """Open a file for the new contents of each target; replace all targets together, or none.

    What is written goes into temporary files in the folders of the targets. Only when all of it is on
    the disk are they moved to where they belong. If anything fails before that, be it a full disk or
    Ctrl-C, the targets are as they were, and the temporary files are gone.

    No file system moves several files in one step. So where files belong together, give the one that
    readers open first as the **last** target. It is moved out of the way first and put in place last:
    a process that opens it meanwhile finds no file, never one beside the contents of others. A file whose
    contents do not change stays where it is. A process that is killed in between leaves the former
    files under their names with a dot before them and ``.old`` behind.

    New files that a killed process left are removed with the next ones.

    A target that exists keeps its mode, and one that is a symbolic link is followed. What others have
    mapped of the former files stays valid.

    Raises:
        InputError: if a target cannot be a file, before anything is written.
        OSError: if the file system refuses.
    """
    places = [resolve_target(target) for target in targets]
    with ExitStack() as stack:
        parts = []
        for target, place in zip(targets, places, strict=True):
            with named(target):
                parts.append(stack.enter_context(temporary_file(place)))
        files = tuple(file for _, file in parts)
        yield files
        for file in files:
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:  # nor can an open file be moved there
                file.close()
        _put_in_place([path for path, _ in parts], places)


@contextmanager
def temporary_file(target: Path, mode: int = 0o666) -> Iterator[tuple[Path, IO[bytes]]]:
    """Open a temporary file beside a target; it is removed at the end, unless it was moved.

    As long as it is open it is locked, so that no process takes it for a leftover.

    Args:
        target: the file that it may become.
        mode: who may read and write it, as far as the user's mask allows.
    """
    remove_stale(target)
    path, file = _locked(target, mode)
    try:
        with file:
            yield path, file
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def named(target: Path) -> Iterator[None]:
    """Give errors of the file system the name of a target, where they have that of a temporary file."""
    try:
        yield
    except OSError as reason:
        reason.filename, reason.filename2 = str(target), None
        raise


def _locked(target: Path, mode: int) -> tuple[Path, IO[bytes]]:
    while True:
        path = temporary_name(target, "part")
        file = open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115 - by the caller
        if lock(file.fileno()) is not False and path.exists():
            return path, file
        file.close()  # another process removed it before it was locked


def remove_stale(target: Path) -> None:
    """Remove temporary files and folders that killed processes left beside a target."""
    start, ending = f".{target.name[:50]}.", ".part"
    with suppress(OSError), os.scandir(target.absolute().parent) as entries:
        for entry in entries:
            middle = entry.name.removeprefix(start).removesuffix(ending)
            if entry.name == f"{start}{middle}{ending}" and _TOKEN.fullmatch(middle):
                _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(path: Path) -> None:
    """Remove a file that no process has locked."""
    with suppress(OSError):
        if fcntl is None:
            path.unlink()  # which the system refuses as long as it is open
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            if lock(descriptor):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        finally:
            os.close(descriptor)


def lock(descriptor: int) -> bool | None:
    """Lock an open file or folder for this process; return False if another one has, ``None`` if unknown."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def temporary_name(target: Path, suffix: str) -> Path:
    """Return an unused hidden name in the folder of a file."""
    return target.absolute().with_name(f".{target.name[:50]}.{secrets.token_hex(4)}.{suffix}")


def resolve_target(target: Path) -> Path:
    """Resolve a path to the file that it refers to, or will refer to.

    Raises:
        InputError: if there can be no ordinary file.
    """
    place = Path(os.path.realpath(target))
    if not place.parent.is_dir():
        problem = f"the folder {str(target.parent)!r} to save {target.name!r} in does not exist"
    elif place.is_dir():
        problem = f"{str(target)!r} is a folder, but would become a file"
    elif place.exists() and not place.is_file():
        problem = f"{str(target)!r} is not a regular file, and cannot be replaced"
    else:
        return place
    raise InputError(problem)


def _put_in_place(fresh: Sequence[Path], places: Sequence[Path]) -> None:
    changed = {new: place for new, place in zip(fresh, places, strict=True) if not _same(new, place)}
    former = {place: temporary_name(place, "old") for place in changed.values() if place.exists()}
    for new, place in changed.items():
        if place in former:
            shutil.copymode(place, new)
    if len(changed) == 1:
        former = {}  # one file is replaced in one step
    try:
        for place, aside in reversed(former.items()):
            os.replace(place, aside)
        for new, place in changed.items():
            os.replace(new, place)
    except BaseException:
        _restore(changed, former)
        raise
    finally:
        for aside in former.values():
            aside.unlink(missing_ok=True)
    for folder in {place.parent for place in places}:
        _sync(folder)


def _same(new: Path, place: Path) -> bool:
    return place.exists() and filecmp.cmp(new, place, shallow=False)


def _restore(changed: dict[Path, Path], former: dict[Path, Path]) -> None:
    for new, place in reversed(changed.items()):
        if not new.exists():  # it is in its place
            place.unlink(missing_ok=True)
    for place, aside in former.items():
        if aside.exists():
            os.replace(aside, place)


def _sync(folder: Path) -> None:
    """Flush the folder to disk, where the system supports it."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
