"""The user's cache folder, for files that can be computed again, and checks of its ownership."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

__all__ = [
    "UntrustedCacheError",
    "check_own",
    "check_parents",
    "chosen_cache",
    "make_own_folder",
    "user_cache",
]

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
# Maximum number of links to follow on the way to a folder.
_MOST_LINKS = 40


class UntrustedCacheError(OSError):
    """A path of the cache that other users may have written."""


def chosen_cache() -> Path | None:
    """Return the subfolder ``ir_runtime`` of the folder that ``IR_RUNTIME_CACHE`` names; ``None`` if that is not set."""
    place = os.environ.get("IR_RUNTIME_CACHE")
    return Path(place) / "ir_runtime" if place else None


def user_cache() -> Path | None:
    """Return the cache folder: as set by ``IR_RUNTIME_CACHE``, else by the conventions of the system.

    Returns:
        The folder, or ``None`` if the package platformdirs is not installed, or the user has no home folder.
    """
    if (chosen := chosen_cache()) is not None:
        return chosen
    try:
        from platformdirs import user_cache_path
    except ImportError:
        return None
    try:
        return user_cache_path("ir_runtime", appauthor=False)
    except RuntimeError:  # such as in a container whose user has no passwd entry
        return None


def make_own_folder(path: Path) -> None:
    """Create a folder and its missing parents, accessible to the user only; those that exist are not changed.

    ``Path.mkdir(mode, parents=True)`` would apply the mode to the last folder only, and leave its parents to the umask.

    Raises:
        OSError: if a folder cannot be created.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            os.scandir(folder).close()  # fails unless another process has created the folder


def check_own(status: os.stat_result, path: Path, is_kind: Callable[[int], bool]) -> None:
    """Check that a path is a folder or a regular file, and that only the user or root can write it.

    On Windows, only the kind is checked.

    Args:
        status: the status of the path.
        path: the path, for messages.
        is_kind: ``stat.S_ISDIR`` for a folder, or ``stat.S_ISREG`` for a file.

    Raises:
        UntrustedCacheError: if it is not; the error has the reason.
    """
    if not is_kind(status.st_mode):
        raise UntrustedCacheError(
            f"{path} is not a {'folder' if is_kind is stat.S_ISDIR else 'regular file'}"
        )
    if not hasattr(os, "geteuid"):  # Windows: access lists protect the user's folders
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise UntrustedCacheError(f"{path} belongs to another user (uid {status.st_uid})")
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise UntrustedCacheError(
            f"{path} may be written by others (mode {stat.S_IMODE(status.st_mode):04o})"
        )


def check_parents(path: Path, links: int = _MOST_LINKS) -> None:
    """Check that only the user or root can replace a path, or one of its parent folders, by another.

    In a folder with the sticky bit, such as /tmp, other users can replace only their own entries. Windows is not checked.

    Args:
        path: an absolute path; parents that do not exist yet are not checked.
        links: the maximum number of symbolic links to follow.

    Raises:
        UntrustedCacheError: if others can replace one; the error has the reason.
        OSError: if the status of a folder cannot be read.
    """
    if not hasattr(os, "geteuid"):
        return
    for parent in reversed(path.parents):
        if not os.path.lexists(parent):
            return
        status = os.lstat(parent)
        if stat.S_ISLNK(status.st_mode):
            if not links:
                raise UntrustedCacheError(f"{path} is behind too many links")
            if status.st_uid not in (os.geteuid(), 0):
                raise UntrustedCacheError(f"{parent} belongs to another user (uid {status.st_uid})")
            check_parents(parent.parent / os.readlink(parent) / "inside", links - 1)
        elif stat.S_ISDIR(status.st_mode):  # a file has no entries
            check_own(_drop_harmless_bits(status), parent, stat.S_ISDIR)


def _drop_harmless_bits(status: os.stat_result) -> os.stat_result:
    """Return the status of a folder without write permissions that do not let others replace its entries."""
    is_harmless = status.st_mode & stat.S_ISVTX or (
        not status.st_mode & stat.S_IWOTH and _is_private_group(status.st_gid)
    )
    return os.stat_result((status.st_mode & ~_WRITABLE_BY_OTHERS, *status[1:])) if is_harmless else status


def _is_private_group(number: int) -> bool:
    """Return whether a group is the user's private group, with no other members."""
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return user.pw_gid == number and group.gr_name == user.pw_name and {*group.gr_mem} <= {user.pw_name}
