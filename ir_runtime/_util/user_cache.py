"""The user's cache folder for recomputable files, and checks of its ownership."""

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
# Links on the way to a folder that are followed.
_MOST_LINKS = 40


class UntrustedCacheError(OSError):
    """A path of the cache that is not trusted."""


def chosen_cache() -> Path | None:
    """Return the folder that ``IR_RUNTIME_CACHE`` says; ``None`` if it is not set."""
    place = os.environ.get("IR_RUNTIME_CACHE")
    return Path(place) / "ir_runtime" if place else None


def user_cache() -> Path | None:
    """Return the folder: that of ``IR_RUNTIME_CACHE``, else by the conventions of the system.

    Returns:
        ``None`` if the package platformdirs, which knows these, is not installed, or the user has no home folder.
    """
    if (chosen := chosen_cache()) is not None:
        return chosen
    try:
        from platformdirs import user_cache_path
    except ImportError:
        return None
    try:
        return user_cache_path("ir_runtime", appauthor=False)
    except RuntimeError:  # as in a container whose user is in no list of users
        return None


def make_own_folder(path: Path) -> None:
    """Create a folder, and those above it that are missing, accessible to the user only.

    ``Path.mkdir(mode, parents=True)`` gives the mode to the last folder alone; others may write to those above, as far as
    the umask lets them.

    Raises:
        OSError: if one cannot be created.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            os.scandir(folder).close()  # fails unless another process made the folder meanwhile


def check_own(found: os.stat_result, path: Path, is_kind: Callable[[int], bool]) -> None:
    """Check that only the user, or root, can have written a folder or file.

    Raises:
        UntrustedCacheError: with the reason.
    """
    if not is_kind(found.st_mode):
        raise UntrustedCacheError(
            f"{path} is not a {'folder' if is_kind is stat.S_ISDIR else 'regular file'}"
        )
    if not hasattr(os, "geteuid"):  # Windows: access lists protect the user's folders
        return
    if found.st_uid not in (os.geteuid(), 0):
        raise UntrustedCacheError(f"{path} belongs to another user (uid {found.st_uid})")
    if found.st_mode & _WRITABLE_BY_OTHERS:
        raise UntrustedCacheError(f"{path} may be written by others (mode {stat.S_IMODE(found.st_mode):04o})")


def check_parents(path: Path, links: int = _MOST_LINKS) -> None:
    """Check that only the user, or root, can put another folder in the place of this one, or of one that it is in.

    In a folder such as /tmp, where the sticky bit is set, others can only replace what belongs to them.

    Args:
        path: an absolute path; what does not exist yet is not checked.
        links: how many symbolic links may be followed.

    Raises:
        UntrustedCacheError: with the reason.
        OSError: if a folder cannot be looked at.
    """
    if not hasattr(os, "geteuid"):
        return
    for parent in reversed(path.parents):
        if not os.path.lexists(parent):
            return
        found = os.lstat(parent)
        if stat.S_ISLNK(found.st_mode):
            if not links:
                raise UntrustedCacheError(f"{path} is behind too many links")
            if found.st_uid not in (os.geteuid(), 0):
                raise UntrustedCacheError(f"{parent} belongs to another user (uid {found.st_uid})")
            check_parents(parent.parent / os.readlink(parent) / "inside", links - 1)
        elif stat.S_ISDIR(found.st_mode):  # nothing can be below a file
            check_own(_without_harmless(found), parent, stat.S_ISDIR)


def _without_harmless(found: os.stat_result) -> os.stat_result:
    """Return the status of a folder without permissions by which others cannot replace what is in it."""
    is_harmless = found.st_mode & stat.S_ISVTX or (
        not found.st_mode & stat.S_IWOTH and _is_private_group(found.st_gid)
    )
    return os.stat_result((found.st_mode & ~_WRITABLE_BY_OTHERS, *found[1:])) if is_harmless else found


def _is_private_group(number: int) -> bool:
    """Return whether a group has the user as its only member, as systems have one for each user."""
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return user.pw_gid == number and group.gr_name == user.pw_name and {*group.gr_mem} <= {user.pw_name}
