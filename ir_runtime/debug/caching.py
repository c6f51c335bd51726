"""Cache finished steps in files, so that interrupted work can resume."""

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

from .._util.files import create, replace_files, write_raw
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
from .progress import is_stop, skip_stage

__all__ = ["Cache", "Entry", "Step", "caching", "entry_for", "load_or_compute", "restore_or_run"]

_VERSIONED = ("openvino", "onnxruntime")
"""Sides that are packages."""


class Cache:
    """A cache folder that only the user may write; created on first write.

    Raises:
        InputError: if the path is not a folder, belongs to another user, or is writable by others.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.used = folder, set[Path]()
        if folder.exists():
            self.check()

    def check(self) -> None:
        """Check that the folder is writable only by the user."""
        status = os.lstat(self.folder)
        if not stat.S_ISDIR(status.st_mode):
            message = f"{str(self.folder)!r} cannot be used as a cache: it is not a folder"
            raise InputError(message, code=Code.BAD_REQUEST)
        if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            message = f"{str(self.folder)!r} cannot be used as a cache: it belongs to another user"
            raise InputError(message, code=Code.BAD_REQUEST)
        if hasattr(os, "geteuid") and (mode := stat.S_IMODE(status.st_mode)) & 0o022:
            message = f"{str(self.folder)!r} cannot be used as a cache: others may write it (mode {mode:04o})"
            raise InputError(message, code=Code.BAD_REQUEST, hint=f"chmod go-w {self.folder}")

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Remove the entries used in the block at its end, unless it was interrupted or timed out and so may be resumed."""
        before = set(self.used)
        try:
            yield
        except BaseException as reason:
            if not is_stop(reason):
                self._remove(before)
            raise
        self._remove(before)

    def _remove(self, kept: set[Path]) -> None:
        for path in self.used - kept:
            shutil.rmtree(path, ignore_errors=True)
        self.used = kept


class Entry:
    """The saved results of one task: named records, each with its arrays.

    Args:
        cache: the cache.
        key: the key of the entry, which names its folder.
        within: the prefix of names, for a subtask.
    """

    def __init__(self, cache: Cache, key: str, within: str = "") -> None:
        self.cache, self._key, self._within = cache, key, within
        self._folder = cache.folder / key
        cache.used.add(self._folder)

    def part(self, name: str) -> Entry:
        """Return a view of the entry for a subtask, with a separate namespace."""
        return Entry(self.cache, self._key, f"{self._within}{name}-")

    def read(self, name: str) -> tuple[Any, list[Array]] | None:
        """Return the record and the arrays saved under a name; ``None`` if missing or damaged."""
        name = f"{self._within}{name}"
        with suppress(OSError, ValueError, KeyError, TypeError):
            if self._folder.lstat().st_uid != os.lstat(self._folder.parent).st_uid:
                return None
            saved = json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))
            arrays = [self._array(f"{name}.{i}", *what) for i, what in enumerate(saved["arrays"])]
            return saved["record"], arrays
        return None

    def write(self, name: str, record: Json, arrays: Iterable[Array] = ()) -> None:
        """Write a record and its arrays; ignore a full disk."""
        name, types = f"{self._within}{name}", list[tuple[str, tuple[int, ...]]]()
        with suppress(OSError):
            make_own_folder(self._folder)
            self.cache.check()
            for index, array in enumerate(arrays):
                path = self._folder / f"{name}.{index}"
                path.unlink(missing_ok=True)  # arrays read before may be mapped from it
                with create(path) as file:
                    write_raw(file, array)
                types.append((array.dtype.name, array.shape))
            with replace_files(self._folder / f"{name}.json") as (file,):
                file.write(json.dumps({"record": record, "arrays": types}).encode())

    def _array(self, name: str, dtype: str, shape: Sequence[int]) -> Array:
        path, of = self._folder / name, np.dtype(dtype)
        if 0 in shape or not shape:
            return np.fromfile(path, of).reshape(shape)
        return np.memmap(path, of, "r", shape=tuple(shape)).view(np.ndarray)


def load_or_compute(
    entry: Entry | None, name: str, compute: Callable[[], tuple[Json, Sequence[Array]]]
) -> tuple[Any, Sequence[Array]]:
    """Return a record and its arrays from the cache, or compute and cache them.

    Args:
        entry: the entry; ``None`` disables caching.
        name: the name of the step.
        compute: computes the record and the arrays.
    """
    if entry is None:
        return compute()
    if (saved := entry.read(name)) is not None:
        skip_stage()
        return saved
    with entry.cache.ending():  # the entries of its substeps
        record, arrays = compute()
        entry.write(name, record, arrays)
    return record, arrays


class Step(Protocol):
    """A step of a task that stores its results in itself, so that they can be saved and restored."""

    def run(self) -> None:
        """Do the work."""

    def saved(self) -> tuple[Json, Iterable[Array]]:
        """Return the results as a record and arrays."""
        ...

    def restore(self, record: Any, arrays: Iterator[Array]) -> None:
        """Restore saved results."""


def restore_or_run(entry: Entry | None, name: str, step: Step) -> None:
    """Restore the results of a step from the cache, or run the step and cache them.

    Args:
        entry: the entry; ``None`` disables caching.
        name: the name of the step.
        step: the step.
    """
    if entry is not None and (saved := entry.read(name)) is not None:
        skip_stage()
        record, arrays = saved
        step.restore(record, _one_by_one(arrays))
        return
    step.run()
    if entry is not None:
        entry.write(name, *step.saved())


def _one_by_one(arrays: list[Array]) -> Iterator[Array]:
    """Yield arrays, dropping each before the next, as pages mapped by an array count as memory."""
    arrays.reverse()
    while arrays:
        yield arrays.pop()


_CACHE: ContextVar[Cache | None] = ContextVar("debug_cache", default=None)


@contextmanager
def caching(folder: Path | None) -> Iterator[None]:
    """Cache finished steps of the block in a folder; remove them at the end unless the block is interrupted."""
    if folder is None:
        yield
        return
    cache = Cache(folder)
    with cache.ending(), setting(_CACHE, cache):
        yield


def entry_for(kind: str, model: Model, feeds: Iterable[Array], side: object) -> Entry | None:
    """Return the cache entry of a task, keyed by the contents of model and inputs; ``None`` without a cache.

    Args:
        kind: the kind of task.
        model: the model.
        feeds: an array for each input, and any other arrays that the task depends on.
        side: the judged side; ``None`` is returned if it has no identity, like a function.
    """
    cache = _CACHE.get()
    if cache is None or (described := _identify(side)) is None:
        return None
    digest = blake2b(repr([kind, __version__, described]).encode(), digest_size=20)
    runnable = model._runnable()
    digest.update(repr([port.partial_shape for port in runnable.inputs]).encode())
    _add(digest, runnable._graph)
    for feed in feeds:
        digest.update(repr((feed.dtype.name, feed.shape)).encode())
        digest.update(_bytes(feed))
    return Entry(cache, digest.hexdigest())


def _identify(side: object) -> tuple[str, ...] | None:
    """Return the identity of a side: digests of its files, or its name and version; ``None`` if it has none."""
    if not isinstance(side, str | Path) or str(side).endswith(".npz"):  # arrays need no cache
        return None
    path, (name, _, rest) = Path(side), str(side).partition(":")
    if path.suffix == ".xml":
        return tuple(_digest_of(file) for file in (path, path.with_suffix(".bin")) if file.is_file())
    if name == "onnxruntime":
        from .onnxruntime_side import onnx_files

        return name, _version_of(name), *map(_digest_of, onnx_files(rest))
    return str(side), _version_of(name)


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, blake2b).hexdigest()


def _version_of(side: str) -> str:
    with suppress(PackageNotFoundError):
        return version(side if side in _VERSIONED else "numpy")
    return ""


def _add(digest: blake2b, graph: Graph) -> None:
    """Add a graph to a digest, including the contents of constants."""
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
