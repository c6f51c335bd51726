"""Files with finished steps, from which interrupted work resumes when it is called again."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from hashlib import blake2b, file_digest
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import ml_dtypes  # noqa: F401  its types are found by their names
import numpy as np

from .._util.files import create, replacing, write_raw
from .._util.records import Json
from .._util.scoped import setting
from .._util.user_cache import make_own_folder
from .._version import __version__
from ..codes import Code
from ..errors import InputError
from ..ir.graph import Graph
from ..ir.tensor import Array
from ..openvino.model import Model
from .matching import attributes_of
from .onnx_files import files_of
from .progress import skipped

__all__ = ["Cache", "Entry", "Step", "caching", "entry_for", "remembered", "resumed"]

_VERSIONED = ("openvino", "onnxruntime")
"""Sides that are packages."""


class Cache:
    """A folder that only the user can have written; it is made when there is something to write.

    Raises:
        InputError: if it is not a folder, belongs to another user, or others may write it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.used = folder, set[Path]()
        if folder.exists():
            self.check()

    def check(self) -> None:
        """Check that it is a folder that only the user can have written."""
        found = os.lstat(self.folder)
        if not stat.S_ISDIR(found.st_mode):
            message = f"{str(self.folder)!r} cannot be used as a cache: it is not a folder"
            raise InputError(message, code=Code.BAD_REQUEST)
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            message = f"{str(self.folder)!r} cannot be used as a cache: it belongs to another user"
            raise InputError(message, code=Code.BAD_REQUEST)
        if hasattr(os, "geteuid") and (mode := stat.S_IMODE(found.st_mode)) & 0o022:
            message = f"{str(self.folder)!r} cannot be used as a cache: others may write it (mode {mode:04o})"
            raise InputError(message, code=Code.BAD_REQUEST, hint=f"chmod go-w {self.folder}")

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Remove the entries that the block used, unless it is interrupted: after an error, nothing is resumed."""
        before = set(self.used)
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException:
            self._remove(before)
            raise
        self._remove(before)

    def _remove(self, kept: set[Path]) -> None:
        for path in self.used - kept:
            shutil.rmtree(path, ignore_errors=True)
        self.used = kept


class Entry:
    """The saved results of one piece of work: records by name, with arrays.

    Args:
        cache: where it is.
        key: what it is found by.
        within: the part of the work, with which names begin.
    """

    def __init__(self, cache: Cache, key: str, within: str = "") -> None:
        self.cache, self._key, self._within = cache, key, within
        self._folder = cache.folder / key
        cache.used.add(self._folder)

    def part(self, name: str) -> Entry:
        """Return the same entry for a part of the work, whose names do not meet those of others."""
        return Entry(self.cache, self._key, f"{self._within}{name}-")

    def read(self, name: str) -> tuple[Any, list[Array]] | None:
        """Return what was written under a name; ``None`` if nothing was, or it is damaged."""
        name = f"{self._within}{name}"
        with suppress(OSError, ValueError, KeyError, TypeError):
            if self._folder.lstat().st_uid != os.lstat(self._folder.parent).st_uid:
                return None
            found = json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))
            arrays = [self._array(f"{name}.{i}", *what) for i, what in enumerate(found["arrays"])]
            return found["record"], arrays
        return None

    def write(self, name: str, record: Json, arrays: Iterable[Array] = ()) -> None:
        """Write a record and its arrays; a full disk is no reason to fail."""
        name, types = f"{self._within}{name}", list[tuple[str, tuple[int, ...]]]()
        with suppress(OSError):
            make_own_folder(self._folder)
            self.cache.check()
            for index, array in enumerate(arrays):
                path = self._folder / f"{name}.{index}"
                path.unlink(missing_ok=True)  # arrays that were read may be mapped from it
                with create(path) as file:
                    write_raw(file, array)
                types.append((array.dtype.name, array.shape))
            with replacing(self._folder / f"{name}.json") as (file,):
                file.write(json.dumps({"record": record, "arrays": types}).encode())

    def _array(self, name: str, dtype: str, shape: Sequence[int]) -> Array:
        path, of = self._folder / name, np.dtype(dtype)
        if 0 in shape or not shape:
            return np.fromfile(path, of).reshape(shape)
        return np.memmap(path, of, "r", shape=tuple(shape)).view(np.ndarray)


def remembered(
    entry: Entry | None, name: str, compute: Callable[[], tuple[Json, Sequence[Array]]]
) -> tuple[Any, Sequence[Array]]:
    """Return a record and its arrays: from an entry, or else computed, and kept there.

    Args:
        entry: where to look; ``None`` if nothing is to be kept.
        name: the name of the step.
        compute: computes them.
    """
    if entry is None:
        return compute()
    if (known := entry.read(name)) is not None:
        skipped()
        return known
    with entry.cache.ending():  # the entries of what this step consists of
        record, arrays = compute()
        entry.write(name, record, arrays)
    return record, arrays


class Step(Protocol):
    """A step of work whose results stay in it."""

    def run(self) -> None:
        """Do the work."""

    def saved(self) -> tuple[Json, Iterable[Array]]:
        """Return the results as a record and arrays."""
        ...

    def restore(self, record: Any, arrays: Iterator[Array]) -> None:
        """Take over results that were saved."""


def resumed(entry: Entry | None, name: str, step: Step) -> None:
    """Give a step its results: from an entry, or else by its work, and keep them there.

    Args:
        entry: where to look; ``None`` if nothing is to be kept.
        name: the name of the step.
        step: the step.
    """
    if entry is not None and (known := entry.read(name)) is not None:
        skipped()
        record, arrays = known
        step.restore(record, _one_by_one(arrays))
        return
    step.run()
    if entry is not None:
        entry.write(name, *step.saved())


def _one_by_one(arrays: list[Array]) -> Iterator[Array]:
    """Yield arrays that are dropped then: what is read of mapped ones counts as memory as long as they are there."""
    arrays.reverse()
    while arrays:
        yield arrays.pop()


_CACHE: ContextVar[Cache | None] = ContextVar("debug_cache", default=None)


@contextmanager
def caching(folder: Path | None) -> Iterator[None]:
    """Keep the finished steps of the block in a folder; once it has ended without an interrupt, they are removed."""
    if folder is None:
        yield
        return
    cache = Cache(folder)
    with cache.ending(), setting(_CACHE, cache):
        yield


def entry_for(kind: str, model: Model, feeds: Iterable[Array], side: object) -> Entry | None:
    """Return the entry of a piece of work: the same for models and inputs with the same contents.

    Args:
        kind: the kind of work.
        model: the model.
        feeds: an array for each input, and others that it depends on.
        side: what is judged; for one that neither a name nor files describe, such as a function, no entry exists.
    """
    cache = _CACHE.get()
    if cache is None or (described := _described(side)) is None:
        return None
    digest = blake2b(repr([kind, __version__, described]).encode(), digest_size=20)
    runnable = model._runnable()
    digest.update(repr([port.partial_shape for port in runnable.inputs]).encode())
    _add(digest, runnable._graph)
    for feed in feeds:
        digest.update(repr((feed.dtype.name, feed.shape)).encode())
        digest.update(_bytes(feed))
    return Entry(cache, digest.hexdigest())


def _described(side: object) -> tuple[str, ...] | None:
    """Return what makes a side the same: the contents of its files, or its name and version."""
    if not isinstance(side, str | Path) or str(side).endswith(".npz"):  # arrays are there already
        return None
    path, (name, _, rest) = Path(side), str(side).partition(":")
    if path.suffix == ".xml":
        return tuple(_digest_of(each) for each in (path, path.with_suffix(".bin")) if each.is_file())
    if name == "onnxruntime":
        return name, _version_of(name), *map(_digest_of, files_of(rest))
    return str(side), _version_of(name)


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, blake2b).hexdigest()


def _version_of(side: str) -> str:
    with suppress(PackageNotFoundError):
        return version(side if side in _VERSIONED else "numpy")
    return ""


def _add(digest: blake2b, graph: Graph) -> None:
    """Add all that a graph consists of, with what its constants hold."""
    for layer in graph.layers.values():
        attributes = sorted(attributes_of(layer).items())
        digest.update(repr((layer.id, layer.name, layer.type, layer.version, attributes)).encode())
        if layer.type == "Constant" and layer.op is not None:
            digest.update(_bytes(np.asarray(layer.op.evaluate())))
        for body in layer.bodies():
            _add(digest, body.graph)
    digest.update(repr(sorted(graph.edges)).encode())


def _bytes(array: Array) -> bytes | memoryview:
    if array.dtype == object:
        return repr(array.tolist()).encode()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
