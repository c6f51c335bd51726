"""The cache is used only if nobody else could have written to it: folders that others could replace are not trusted."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ir_runtime._util import user_cache
from ir_runtime._util.user_cache import UntrustedCacheError, check_own, check_parents, make_own_folder
from ir_runtime.debug.caching import Cache, Entry

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid"), reason="who may write is said by modes on POSIX only"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder in two others."""
    place = tmp_path / "above" / "chosen" / "ir_runtime"
    place.mkdir(parents=True, mode=0o700)
    for folder in (place.parent, place.parents[1]):
        folder.chmod(0o755)
    return place


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("mode", [0o777, 0o757, 0o702])
def test_folders_above_that_others_may_write_to_are_refused(place: Path, level: int, mode: int) -> None:
    check_parents(place)
    place.parents[level].chmod(mode)
    with pytest.raises(UntrustedCacheError, match=rf"{place.parents[level].name} may be written by others"):
        check_parents(place)


def test_a_sticky_folder_is_trusted(place: Path) -> None:
    """As /tmp, where others cannot replace one's folders."""
    place.parents[1].chmod(0o1777)
    check_parents(place)


@pytest.mark.parametrize("private", [True, False])
def test_a_group_of_the_user_alone_may_write(
    place: Path, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Systems with a private group for each user create group-writable folders."""
    monkeypatch.setattr(user_cache, "_is_private_group", lambda number: private)
    place.parent.chmod(0o775)
    if private:
        check_parents(place)
    else:
        with pytest.raises(UntrustedCacheError, match="may be written by others"):
            check_parents(place)
    place.parent.chmod(0o777)
    with pytest.raises(UntrustedCacheError, match="may be written by others"):
        check_parents(place)


def test_a_group_with_members_is_not_private(monkeypatch: pytest.MonkeyPatch) -> None:
    grp, pwd = pytest.importorskip("grp"), pytest.importorskip("pwd")
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: pwd.struct_passwd(("me", "x", 7, 9, "", "", "")))
    for name, members, expected in (
        ("me", [], True),
        ("me", ["me"], True),
        ("me", ["me", "you"], False),
        ("staff", [], False),
    ):
        monkeypatch.setattr(
            grp, "getgrgid", lambda number, entry=(name, "x", 9, members): grp.struct_group(entry)
        )
        assert user_cache._is_private_group(9) is expected
    assert not user_cache._is_private_group(8), "not the one of the user"


def of_another(status: Callable[..., os.stat_result], *paths: Path) -> Callable[..., os.stat_result]:
    """Return an ``os.lstat`` for which some paths belong to another user."""

    def changed(path: str | Path) -> os.stat_result:
        found = status(path)
        return os.stat_result((*found[:4], 12345, *found[5:])) if Path(path) in paths else found

    return changed


@pytest.mark.parametrize("level", [0, 1])
def test_folders_above_of_another_user_are_refused(
    place: Path, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "lstat", of_another(os.lstat, place.parents[level]))
    with pytest.raises(UntrustedCacheError, match="belongs to another user"):
        check_parents(place)


def test_links_are_followed_and_checked(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "link"
    link.symlink_to(place.parents[1])
    check_parents(link / "chosen" / "ir_runtime")
    place.parent.chmod(0o777)
    with pytest.raises(UntrustedCacheError, match="may be written by others"):
        check_parents(link / "chosen" / "ir_runtime")
    place.parent.chmod(0o755)
    place.parents[1].chmod(0o777)
    with pytest.raises(UntrustedCacheError, match="may be written by others"):
        check_parents(link / "chosen" / "ir_runtime")
    place.parents[1].chmod(0o755)
    monkeypatch.setattr(os, "lstat", of_another(os.lstat, link))
    with pytest.raises(UntrustedCacheError, match="link belongs to another user"):
        check_parents(link / "chosen" / "ir_runtime")


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UntrustedCacheError, match="behind too many links"):
        check_parents(tmp_path / "a" / "ir_runtime")


def test_what_does_not_exist_is_not_checked(tmp_path: Path) -> None:
    check_parents(tmp_path / "none" / "at" / "all")


def test_files_and_folders_are_told_apart(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    check_own(os.lstat(tmp_path), tmp_path, stat.S_ISDIR)
    with pytest.raises(UntrustedCacheError, match="is not a regular file"):
        check_own(os.lstat(tmp_path), tmp_path, stat.S_ISREG)


@pytest.fixture
def generous() -> Iterator[None]:
    """Set a umask that lets everybody write."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("generous")
def test_folders_that_are_made_belong_to_the_user_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    place = tmp_path / "chosen" / "ir_runtime" / "kernels"
    make_own_folder(place)
    made = (place, *place.parents[:2])
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in made] == [0o700] * 3
    check_parents(place)
    make_own_folder(place)


@pytest.mark.usefixtures("generous")
def test_the_cache_of_debugging_can_be_used_whatever_the_umask(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "ir_runtime" / "debug")
    entry = Entry(cache, "key")
    entry.write("name", {"layer": "conv"})
    assert Entry(Cache(cache.folder), "key").read("name") == ({"layer": "conv"}, [])
