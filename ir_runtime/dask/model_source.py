"""The source from which workers read a model: the path of its file, or its contents."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from ..errors import InputError
from ..limits import DEFAULT, Limits
from ..openvino.blob import read_blob, write_blob
from ..openvino.model import Model
from ..openvino.reading import read_model

__all__ = ["ModelLike", "ModelSource", "open_source"]

ModelLike = Model | str | Path


@dataclass(frozen=True)
class ModelSource:
    """A model identified by the SHA-256 of its contents.

    A pickle contains the path of an ``.xml``, which the reading process memory-maps, or the contents of the model.
    """

    digest: str
    path: str | None = None
    blob: bytes | None = field(default=None, repr=False, compare=False)
    limits: Limits = field(default=DEFAULT, compare=False)
    has_own_memory: bool = field(default=False, compare=False)
    """Whether a memory limit was set; otherwise, that of the machine that reads the model applies."""

    @classmethod
    def of(cls, model: ModelLike) -> ModelSource:
        """Return the source of a model, or of the path of an ``.xml``."""
        if isinstance(model, Model):
            blob = write_blob(model)
            return cls(hashlib.sha256(blob).hexdigest(), None, blob)
        path = str(Path(model).absolute())
        return cls(_digest(path, _stamp(path)), path)

    def embed(self, model: Model) -> ModelSource:
        """Return a source with the contents of the model, so that workers do not need its file."""
        return self if self.blob is not None else replace(self, blob=write_blob(model))

    def with_limits(self, limits: Limits) -> ModelSource:
        """Return a source with the limits with which workers read and run the model."""
        return replace(self, limits=limits, has_own_memory=limits.memory != DEFAULT.memory)

    def read(self) -> Model:
        """Read the model.

        Raises:
            InputError: if the file is missing, or has changed since planning.
        """
        limits = self.limits if self.has_own_memory else replace(self.limits, memory=DEFAULT.memory)
        if self.blob is not None:
            return read_blob(self.blob, limits)[0]
        assert self.path is not None
        self.check()
        return read_model(self.path, limits=limits)

    def check(self) -> None:
        """Check that the file exists and has not changed since planning.

        Raises:
            InputError: if it is missing or has changed.
        """
        assert self.path is not None
        hint = "copy the file to the same path there, or send it to the workers: send=True, --send-model"
        if not Path(self.path).is_file():
            raise InputError(f"the worker has no file {self.path!r}", hint=hint)
        if _digest(self.path, _stamp(self.path)) != self.digest:
            raise InputError(f"{self.path!r} is not the file that the work was planned with", hint=hint)


def open_source(model: ModelLike) -> tuple[ModelSource, Model]:
    """Return the source of a model, and the model, which is read if it is a path.

    Raises:
        ParseError: if the file cannot be read.
    """
    return ModelSource.of(model), model if isinstance(model, Model) else read_model(model)


def _files(path: str) -> list[Path]:
    xml = Path(path)
    return [file for file in (xml, xml.with_suffix(".bin")) if file.is_file()]


def _stamp(path: str) -> tuple[tuple[int, int], ...]:
    stats = [file.stat() for file in _files(path)]
    return tuple((status.st_mtime_ns, status.st_size) for status in stats)


@lru_cache(maxsize=16)
def _digest(path: str, stamp: tuple[tuple[int, int], ...]) -> str:
    """Return the SHA-256 of an ``.xml`` and its ``.bin``, cached until ``stamp`` changes."""
    total = hashlib.sha256()
    for file in _files(path):
        with open(file, "rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()
