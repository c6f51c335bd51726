"""A record of the finished chunks of a long run: a file of JSON lines beside the result."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from ..errors import InputError

__all__ = ["Manifest"]

SCHEMA = 1


class Manifest:
    """The record of which chunks are done. `create` or `resume` returns one, which must be closed.

    The first line says what is computed: model, configuration, version, inputs, chunks. Each other line is one chunk,
    and is written after its results; a truncated line is ignored.

    Args:
        path: the path of the file.
        file: open for appending.
        done: the chunks that are done.
    """

    def __init__(self, path: Path, file: IO[str], done: set[int]) -> None:
        self.path, self._file, self.done = path, file, done

    @staticmethod
    def path_of(target: Path) -> Path:
        """Return the path of the manifest of a result."""
        return target.with_name(f"{target.name}.manifest.jsonl")

    @classmethod
    def create(cls, target: Path, header: Mapping[str, Any]) -> Manifest:
        """Create the manifest of a new result."""
        path = cls.path_of(target)
        file = open(path, "x", encoding="utf-8")  # noqa: SIM115 - closed by `close`
        manifest = cls(path, file, set())
        manifest._append({"schema": SCHEMA, **header})
        manifest.flush()
        return manifest

    @classmethod
    def resume(cls, target: Path, header: Mapping[str, Any]) -> Manifest:
        """Open the manifest of a result that is to be completed.

        Raises:
            InputError: if it is missing or damaged, or was written for another model, input or configuration.
        """
        path = cls.path_of(target)
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
            former = json.loads(lines[0])
        except OSError as reason:
            raise InputError(
                f"{path} cannot be read: {reason.strerror}", hint="run without --resume"
            ) from None
        except ValueError:
            raise InputError(
                f"{path} is damaged", hint="remove it and the result, and run without --resume"
            ) from None
        expected = {"schema": SCHEMA, **header}
        if different := [key for key in expected if former.get(key) != json.loads(json.dumps(expected[key]))]:
            key = different[0]
            raise InputError(
                f"{path} was written for another {key}: {_abbreviated(former.get(key))}, expected {_abbreviated(expected[key])}",
                hint="resume with the same arguments, or remove it and the result",
            )
        done = {line["done"] for line in _complete(lines[1:-1]) if "done" in line}
        file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - closed by `close`
        if lines[-1]:
            file.write("\n")  # ends the truncated line
        return cls(path, file, done)

    def add_done(self, chunk: int) -> None:
        """Record a chunk whose results are written."""
        self.done.add(chunk)
        self._append({"done": chunk})

    def add_failed(self, chunk: int, message: str) -> None:
        """Record a chunk that failed; it is tried again when the run is resumed."""
        self._append({"failed": chunk, "message": message})

    def _append(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def flush(self) -> None:
        """Write to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Write to the disk and close."""
        self.flush()
        self._file.close()


def _complete(lines: list[str]) -> list[Mapping[str, Any]]:
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:  # truncated when the process was killed
            continue
    return found


def _abbreviated(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
