"""Read corpora: zip files and folders of cases, from untrusted sources."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Protocol

from .._util.escaping import quoted
from ..codes import Code
from ..diagnostics import Location
from ..errors import InputError, LimitError
from ..limits import DEFAULT, Limits
from .case import Meta

__all__ = ["Corpus", "select"]

_MANIFEST = "MANIFEST"
_DESCRIPTION = "case.json"
_MOST_MANIFEST = 1 << 28
_MOST_DESCRIPTION = 1 << 22
_FOR_READERS = (_MANIFEST, "README.md", "LICENSE")
"""Files of a corpus that belong to no case."""


class _Files(Protocol):
    """The files of a corpus, by paths with slashes."""

    def sizes(self) -> Mapping[str, int]:
        """Return the size of each file."""

    def read(self, name: str) -> bytes:
        """Return the contents of a file."""


class Corpus:
    """The cases of a zip file or a folder.

    The files of a case are read on demand, and checked against the hashes of a ``MANIFEST`` if there is one.

    Args:
        path: a ``.zip``, a folder of cases, or the folder of a single case.
        limits: the limits of each case.

    Raises:
        InputError: if it cannot be read, has no cases, contains paths outside of it, or two cases with the same id.
    """

    def __init__(self, path: Path | str, limits: Limits = DEFAULT) -> None:
        self.path, self._limits = Path(path), limits
        self._files = _open(self.path)
        self._sizes = self._files.sizes()
        for name in self._sizes:
            _check_path(self.path, name)
        self._names: dict[str, list[str]] = {}
        for name in sorted(self._sizes):
            self._names.setdefault(name.rpartition("/")[0], []).append(name)
        self._hashes = self._read_manifest()
        self._folders: dict[str, str] = {}
        self.cases: list[Meta] = []
        """The descriptions of the cases, ordered by path."""
        for meta, folder in self._descriptions():
            if meta.id in self._folders:
                raise InputError(
                    f"{self.path}: two cases have the id {quoted(meta.id)}", code=Code.BAD_REQUEST
                )
            self._folders[meta.id] = folder
            self.cases.append(meta)
        if not self.cases:
            raise InputError(
                f"{self.path} has no case",
                code=Code.BAD_REQUEST,
                hint="a corpus is a .zip or a folder of folders, each with a case.json",
            )

    @property
    def name(self) -> str:
        """The name of the file or the folder."""
        return self.path.name

    @property
    def digest(self) -> str:
        """A hash of the descriptions of all cases."""
        text = "\n".join(map(repr, self.cases))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def files(self, identity: str) -> dict[str, bytes]:
        """Return the files of a case by name.

        Raises:
            InputError: if a file is damaged, or the files exceed the limits.
        """
        names = self._names[self._folders[identity]]
        total = sum(self._sizes[name] for name in names)
        try:
            self._limits.check("memory", total, Location(str(self.path)), f"the files of the case {identity}")
        except LimitError as problem:
            raise InputError(problem.message, code=problem.code, hint=problem.hint) from None
        return {name.rpartition("/")[2]: self._read(name) for name in names if name not in _FOR_READERS}

    def _descriptions(self) -> Iterator[tuple[Meta, str]]:
        for name in sorted(self._sizes):
            folder, _, base = name.rpartition("/")
            if base != _DESCRIPTION:
                continue
            if self._sizes[name] > _MOST_DESCRIPTION:
                raise InputError(f"{self.path}, {name} has {self._sizes[name]} bytes", code=Code.LIMIT)
            try:
                yield Meta.parse(self._read(name)), folder
            except InputError as problem:
                message = f"{self.path}, the case in {quoted(folder or '.')}: {problem.message}"
                raise InputError(message, code=problem.code, hint=problem.hint) from None

    def _read(self, name: str) -> bytes:
        contents = self._read_raw(name)
        if name in self._hashes and hashlib.sha256(contents).hexdigest() != self._hashes[name]:
            raise InputError(
                f"{self.path}, {name} has another hash than {_MANIFEST} says",
                code=Code.BAD_REQUEST,
                hint="the corpus was changed, or is damaged: get it again, or remove the MANIFEST",
            )
        return contents

    def _read_raw(self, name: str) -> bytes:
        try:
            return self._files.read(name)
        except (
            OSError,
            zipfile.BadZipFile,
            zlib.error,
            NotImplementedError,
            RuntimeError,
            EOFError,
        ) as reason:
            message = f"{self.path}, {quoted(name)} cannot be read: {reason}"
            raise InputError(message, code=Code.BAD_REQUEST) from None

    def _read_manifest(self) -> dict[str, str]:
        if self._sizes.get(_MANIFEST, _MOST_MANIFEST) >= _MOST_MANIFEST:
            return {}
        lines = self._read_raw(_MANIFEST).decode(errors="replace").splitlines()
        return {name: digest for digest, _, name in (line.partition("  ") for line in lines) if name}


def select(cases: Sequence[Meta], globs: Sequence[str]) -> list[Meta]:
    """Return the cases whose id, operation, kind or clause matches any of the patterns; without patterns, all cases.

    Raises:
        InputError: if a pattern matches no case.
    """

    def matches(case: Meta, glob: str) -> bool:
        return any(fnmatchcase(name, glob) for name in _names(case))

    for glob in globs:
        if not any(matches(case, glob) for case in cases):
            raise InputError(
                f"no case matches {glob!r}",
                code=Code.NO_SUCH_NAME,
                hint="it is compared with ids (Add-1/0001), operations (Add-1), kinds (refusal) and clauses (Add-1 C1)",
            )
    return [case for case in cases if not globs or any(matches(case, glob) for glob in globs)]


def _names(case: Meta) -> Iterator[str]:
    """Yield the names by which a case can be selected; clauses with and without their text."""
    yield from (case.id, case.operation, case.kind, *case.clauses)
    yield from (clause.partition(":")[0] for clause in case.clauses)
    yield from (f"{case.operation} {number}" for number in case.fulfils)


def _open(path: Path) -> _Files:
    if path.is_dir():
        return _Folder(path)
    try:
        return _Zip(zipfile.ZipFile(path))
    except FileNotFoundError:
        raise InputError(
            f"{path} does not exist", code=Code.BAD_REQUEST, hint="'make conformance' builds a corpus"
        ) from None
    except (OSError, zipfile.BadZipFile) as reason:
        raise InputError(
            f"{path} is not a corpus: {reason}", code=Code.BAD_REQUEST, hint="expected a .zip or a folder"
        ) from None


def _check_path(corpus: Path, name: str) -> None:
    parts: Sequence[str] = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or "\\" in name or ":" in name or "\0" in name:
        raise InputError(f"{corpus} has a file {quoted(name)}, which is outside of it", code=Code.BAD_REQUEST)


class _Zip:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def sizes(self) -> Mapping[str, int]:
        return {info.filename: info.file_size for info in self._archive.infolist() if not info.is_dir()}

    def read(self, name: str) -> bytes:
        return self._archive.read(name)


class _Folder:
    """The files of a folder; symbolic links are ignored."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def sizes(self) -> Mapping[str, int]:
        sizes = {}
        for place, _, names in os.walk(self._path):
            for name in names:
                file = Path(place) / name
                if file.is_file() and not file.is_symlink():
                    sizes[file.relative_to(self._path).as_posix()] = file.stat().st_size
        return sizes

    def read(self, name: str) -> bytes:
        return (self._path / name).read_bytes()
