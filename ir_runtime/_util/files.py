"""Writing of files, for the whole package.

Nothing is written through a symbolic link: a file is created under an unused name, or replaces a regular file by a rename.
A link that appears after the checks is not followed either.
"""

from __future__ import annotations

import filecmp
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "check_own",
    "create",
    "folder_target",
    "lock",
    "make_folders",
    "named",
    "remove",
    "remove_stale",
    "rename",
    "reopen",
    "replace_files",
    "replace_in_folder",
    "resolve_target",
    "save_text",
    "stream_to",
    "sync_folder",
    "temporary_file",
    "temporary_name",
    "write_all",
    "write_npy",
    "write_raw",
]

# The part of temporary file names that makes them unique.
_TOKEN = re.compile("[0-9a-f]{8}")
# Flags to fail on a link, and not to block on a named pipe.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK |= getattr(os, "O_BINARY", 0)
# Maximum bytes of an array that are copied at once to be written.
_AT_ONCE = 1 << 24
_REMOVE = "remove it, or choose another name"


def create(path: Path | str, mode: int = 0o666, buffering: int = -1) -> IO[bytes]:
    """Create a file and open it for writing.

    Args:
        path: its path, at which nothing exists, not even a link.
        mode: its permissions, before the umask is applied.
        buffering: as in ``open``; for an unbuffered file (0), use `write_all`.

    Raises:
        OSError: if the file system refuses.
    """
    return open(path, "xb", buffering, opener=lambda name, flags: os.open(name, flags, mode))


def reopen(path: Path | str) -> IO[bytes]:
    """Open an existing file for reading and writing, without a buffer.

    Raises:
        InputError: if it is a link, has a second name, or is not a regular file.
        OSError: if the file system refuses.
    """
    check_own(path, stat.S_ISREG)
    descriptor = os.open(path, os.O_RDWR | _NO_LINK)
    try:
        check_own(path, stat.S_ISREG, os.fstat(descriptor))
        return open(descriptor, "r+b", buffering=0)
    except BaseException:
        os.close(descriptor)
        raise


def stream_to(descriptor: int) -> IO[bytes]:
    """Return a stream that writes to an open descriptor, such as that of a pipe, and closes it."""
    return open(descriptor, "wb")


def check_own(path: Path | str, is_kind: Callable[[int], bool], status: os.stat_result | None = None) -> None:
    """Check that a path is a folder, or a regular file without hard links, so that writes have no effect elsewhere.

    Args:
        path: the path.
        is_kind: ``stat.S_ISREG`` for a file, or ``stat.S_ISDIR`` for a folder.
        status: the status of the open file; by default, that of the path.

    Raises:
        InputError: if it is anything else, such as a symbolic link.
        OSError: if it does not exist.
    """
    checked = os.lstat(path) if status is None else status
    if stat.S_ISLNK(checked.st_mode):
        raise _link_error(Path(path), "file" if is_kind is stat.S_ISREG else "folder")
    if not is_kind(checked.st_mode):
        problem = f"{str(path)!r} is not a {'regular file' if is_kind is stat.S_ISREG else 'folder'}"
    elif is_kind is stat.S_ISREG and checked.st_nlink > 1:
        problem = f"{str(path)!r} is a hard link: the same file has another name, too"
    else:
        return
    raise InputError(problem, hint=_REMOVE)


def _link_error(path: Path, kind: str) -> InputError:
    return InputError(
        f"{str(path)!r} is a symbolic link, and nothing is written through links",
        hint=f"name the {kind} itself, which is {os.path.realpath(path)!r}, or remove the link",
    )


def write_all(file: IO[bytes], data: bytes | memoryview) -> None:
    """Write all data to an unbuffered file, whose ``write`` may write only a part.

    Raises:
        OSError: if the data cannot be written.
    """
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[file.write(rest) :]


def write_npy(file: IO[bytes], array: NDArray[Any]) -> None:
    """Write an array as an ``.npy``, as `numpy.save` does.

    Raises:
        OSError: if the data cannot be written. NumPy does not notice this for the last bytes of ``tofile``.
    """
    import numpy as np

    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    write_raw(file, array.T if array.flags.f_contiguous and not array.flags.c_contiguous else array)


def write_raw(file: IO[bytes], array: NDArray[Any]) -> None:
    """Write the elements of an array in C order.

    Raises:
        OSError: if the data cannot be written.
    """
    import numpy as np

    if array.flags.c_contiguous:
        file.write(array.reshape(-1).view(np.uint8).data)
    else:  # in blocks, without a copy of the whole array
        flags: Any = ["external_loop", "buffered", "zerosize_ok"]
        count = max(_AT_ONCE // max(array.itemsize, 1), 1)
        parts: Any = np.nditer(array, flags, buffersize=count, order="C")
        for part in parts:
            file.write(part.tobytes())


def remove(path: Path | str) -> None:
    """Remove a file, or a folder with its contents, if it exists; links are removed, not followed."""
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def rename(source: Path, target: Path) -> None:
    """Rename a file or folder to an unused name in the same folder, and sync that folder.

    Raises:
        InputError: if the target exists.
        OSError: if the file system refuses.
    """
    if os.path.lexists(target):
        raise InputError(f"{str(target)!r} exists", hint=_REMOVE)
    os.rename(source, target)
    sync_folder(target.parent)


def save_text(path: Path | str, text: str) -> None:
    """Save a text as UTF-8; a file at that path is replaced once the whole text is written.

    Raises:
        InputError: if the path cannot be a file, or is a link.
        OSError: if the file system refuses.
    """
    with replace_files(Path(path)) as (file,):
        file.write(text.encode())


@contextmanager
def replace_files(*targets: Path) -> Iterator[tuple[IO[bytes], ...]]:
    """Open a file for the new contents of each target; replace all targets together, or none.

    Contents are written to temporary files in the folders of the targets, which replace the targets once all data is
    on disk. If anything fails before that, such as a full disk or Ctrl-C, the targets are unchanged and the temporary
    files are removed.

    No file system replaces several files in one step. So if files belong together, make the file that readers open first
    the **last** target. It is moved away first and put in place last: a process that opens it meanwhile finds no file,
    never one that does not match the others. A target whose contents do not change is left alone. A process that is killed
    in between leaves the former files under hidden names that end in ``.old``.

    Temporary files left by a killed process are removed by the next call.

    An existing target keeps its mode; a symbolic link is refused. Memory maps of the former files stay valid.

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
            if fcntl is None:  # Windows cannot rename an open file
                file.close()
        _put_in_place([path for path, _ in parts], places)


@contextmanager
def temporary_file(target: Path, mode: int = 0o666) -> Iterator[tuple[Path, IO[bytes]]]:
    """Create a temporary file beside a target; yield its path and the open file; remove it at the end unless it was moved.

    It is locked while open, so that other processes do not remove it as stale.

    Args:
        target: the file that it may replace.
        mode: its permissions, before the umask is applied.
    """
    remove_stale(target)
    path, file = _create_locked(target, mode)
    try:
        with file:
            yield path, file
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def named(target: Path) -> Iterator[None]:
    """Let errors of the file system within the block name the target instead of a temporary file."""
    try:
        yield
    except OSError as reason:
        reason.filename, reason.filename2 = str(target), None
        raise


def _create_locked(target: Path, mode: int) -> tuple[Path, IO[bytes]]:
    while True:
        path = temporary_name(target, "part")
        file = create(path, mode)
        try:
            if lock(file.fileno()) is not False and path.exists():
                return path, file
        except BaseException:
            file.close()
            path.unlink(missing_ok=True)
            raise
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
    """Remove a file or folder unless another process has locked it or, on Windows, has it open."""
    with suppress(OSError):
        if fcntl is None:
            path.unlink()  # Windows refuses to remove an open file
            return
        descriptor = os.open(path, os.O_RDONLY | _NO_LINK)
        try:
            if lock(descriptor):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        finally:
            os.close(descriptor)


def lock(descriptor: int) -> bool | None:
    """Lock an open file or folder; return True, False if another process has locked it, or ``None`` if locks are not supported."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


@contextmanager
def make_folders(*targets: Path) -> Iterator[None]:
    """Create the missing folders that are to contain the targets; remove them again if the block fails, unless they have contents.

    Raises:
        OSError: if the file system refuses.
    """
    around = (folder for target in targets for folder in reversed(target.absolute().parents))
    with ExitStack() as created:
        for folder in around:
            if not folder.exists():
                folder.mkdir(exist_ok=True)
                created.callback(_remove_folder, folder)
        yield
        created.pop_all()


def _remove_folder(folder: Path) -> None:
    with suppress(OSError):  # it may no longer be empty
        folder.rmdir()


def temporary_name(target: Path, suffix: str) -> Path:
    """Return an unused hidden path beside a target, with a random name that ends in ``.suffix``."""
    return target.absolute().with_name(f".{target.name[:50]}.{secrets.token_hex(4)}.{suffix}")


def resolve_target(target: Path) -> Path:
    """Return the path of a target file, with links in its folders resolved.

    Raises:
        InputError: if the target cannot be a regular file, or is a link. A link is neither followed, which would replace a
            file elsewhere, nor replaced, which would leave that file unchanged.
    """
    place = Path(os.path.realpath(target.parent), target.name)
    if not place.parent.is_dir():
        problem = f"the folder {str(target.parent)!r} to save {target.name!r} in does not exist"
    elif place.is_symlink():
        raise _link_error(target, "file")
    elif target.name in ("", "..") or place.is_dir():
        problem = f"{str(target)!r} is a folder, but would become a file"
    elif place.exists() and not place.is_file():
        problem = f"{str(target)!r} is not a regular file, and cannot be replaced"
    else:
        return place
    raise InputError(problem)


def folder_target(target: Path) -> Path:
    """Return the path of a target folder, with links in its parent folders resolved.

    Raises:
        InputError: if the target cannot be a folder, or is a link.
    """
    if target.is_symlink():
        raise _link_error(target, "folder")
    place = Path(os.path.realpath(target))
    if not place.parent.is_dir():
        raise InputError(f"the folder {str(target.parent)!r} to save {target.name!r} in does not exist")
    if place.exists() and not place.is_dir():
        raise InputError(f"{str(target)!r} is a file, but would become a folder")
    return place


@contextmanager
def replace_in_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder for new files of a target folder; move all of them into the target together, or none.

    Files with the same names are replaced, and other files in the target are kept. If the target does not exist, it appears with
    all files at once.

    Raises:
        InputError: if the target cannot be a folder, or a file of it cannot be replaced.
        OSError: if the file system refuses.
    """
    place = folder_target(target)
    beside = place / "all" if place.exists() else place
    remove_stale(beside)
    stage = temporary_name(beside, "part")
    with named(target):
        stage.mkdir()
    lock_descriptor = os.open(stage, os.O_RDONLY) if os.name == "posix" else None
    try:
        if lock_descriptor is not None:
            lock(lock_descriptor)
        yield stage
        if place.exists():
            fresh = sorted(stage.iterdir())
            _put_in_place(fresh, [resolve_target(place / file.name) for file in fresh])
        else:
            os.rename(stage, place)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        if lock_descriptor is not None:
            os.close(lock_descriptor)


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
        sync_folder(folder)


def _same(new: Path, place: Path) -> bool:
    return place.exists() and filecmp.cmp(new, place, shallow=False)


def _restore(changed: dict[Path, Path], former: dict[Path, Path]) -> None:
    for new, place in reversed(changed.items()):
        if not new.exists():  # it is in its place
            place.unlink(missing_ok=True)
    for place, aside in former.items():
        if aside.exists():
            os.replace(aside, place)


def sync_folder(folder: Path) -> None:
    """Flush the folder to disk, where the system supports it."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
