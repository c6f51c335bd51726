"""The manifest of a long run: a file of JSON lines, next to the result, that records the finished chunks."""

from __future__ import annotations

import json
import os
import re
import secrets
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .._util.files import create, lock, remove, rename, reopen, write_all
from ..errors import InputError
from .targets import Target, check_targets, create_targets, place_targets, read_identity

__all__ = ["LARGEST", "Manifest", "encode_line"]

SCHEMA = 2
LARGEST = 1 << 28
"""The maximum size of a manifest in bytes, enough for millions of chunks."""

_LONGEST = 1 << 20
"""The maximum size of a line of a manifest in bytes."""

_CHECKSUM = "crc32"


class Manifest:
    """The record of a run by rows: what is computed, where it is written, and which chunks are done. It must be closed.

    The first line describes the computation (model, configuration, version, inputs, chunks), and names the file or store of
    the partial result, which has a random name until the run ends. Each other line records a chunk, after its rows are
    written, or that the result has got its final name. A line without a valid checksum is ignored: if it was truncated or
    damaged, its chunk is computed again.

    Args:
        target: the path of the result.
        partial: the path of the partial result.
        file: the manifest, open for appending.
        header: the description of the computation.
    """

    def __init__(self, target: Path, partial: Path, file: IO[bytes], header: Mapping[str, Any]) -> None:
        self.target, self.partial, self._file, self._header = target, partial, file, header
        self.done: set[int] = set()

    @staticmethod
    def path_of(target: Path) -> Path:
        """Return the path of the manifest of a result."""
        return target.with_name(f"{target.name}.manifest.jsonl")

    @classmethod
    def create(cls, target: Path, header: Mapping[str, Any], outputs: tuple[Target, ...]) -> Manifest:
        """Create the arrays and the manifest of a new result.

        Args:
            target: the path of the result.
            header: the description of the computation.
            outputs: the arrays of the result.

        Raises:
            InputError: if the result or its manifest exists, or another run is writing it.
            OSError: if the file system refuses; all created files are then removed.
        """
        path = cls.path_of(target)
        for file_path in (target, path):
            if os.path.lexists(file_path):
                raise InputError(
                    f"{str(file_path)!r} exists",
                    hint="--resume continues a run that was interrupted; else remove it and its .manifest.jsonl",
                )
        partial = target.with_name(f"{target.name}.{secrets.token_hex(8)}.part")
        with _remove_on_failure(partial):
            create_targets(place_targets(outputs, partial))
            file = create(path, buffering=0)
            try:
                manifest = cls(target, partial, file, header)
                manifest._lock()
                manifest._append({"schema": SCHEMA, **header, "partial": partial.name})
                manifest.flush()
            except BaseException:
                file.close()
                remove(path)
                raise
        return manifest

    @classmethod
    def resume(
        cls, target: Path, header: Mapping[str, Any], outputs: tuple[Target, ...], chunks: int
    ) -> Manifest:
        """Open the manifest of an interrupted run to continue it.

        Args:
            target: the path of the result.
            header: the description of the computation.
            outputs: the arrays of the result.
            chunks: the number of chunks.

        Raises:
            InputError: if the manifest is missing or damaged, or belongs to another model, input or configuration; if the
                partial result is missing, or is not that of the run; or if another run is writing the result.
        """
        path = cls.path_of(target)
        try:
            file = reopen(path)
        except OSError as reason:
            raise InputError(
                f"{path} cannot be read: {reason.strerror}", hint="run without --resume"
            ) from None
        try:
            manifest = cls(target, target, file, header)
            manifest._lock()
            finished = manifest._read_lines(chunks)
            manifest._find_result(outputs, finished, chunks)
        except BaseException:
            file.close()
            raise
        return manifest

    @property
    def path(self) -> Path:
        """The path of the manifest."""
        return self.path_of(self.target)

    def _lock(self) -> None:
        if lock(self._file.fileno()) is False:
            raise InputError(f"another run is writing {self.target}", hint="wait until it ends")

    def _read_lines(self, chunks: int) -> Mapping[str, Any] | None:
        """Read all lines, and note the finished chunks; return the identity of the result if the run has ended, else ``None``.

        Raises:
            InputError: if the manifest is damaged, or belongs to another computation.
        """
        if os.fstat(self._file.fileno()).st_size > LARGEST:
            raise self._damage_error(f"it is larger than {LARGEST >> 20} MiB")
        with open(
            os.dup(self._file.fileno()), "rb"
        ) as stream:  # shares the file position, which ends up at the end
            lines = iter(lambda: stream.readline(_LONGEST), b"")
            line = next(lines, b"")
            if (header := _decode_line(line)) is None:
                raise self._damage_error("its first line is not that of a manifest")
            self._check_header(header)
            finished = None
            for line in lines:
                record = _decode_line(line) or {}
                if "done" in record:
                    self.done.add(self._check_chunk(record["done"], chunks))
                elif "finished" in record:
                    finished = record["finished"]
        if not line.endswith(b"\n"):
            write_all(self._file, b"\n")  # ends a truncated line
        return finished

    def _check_header(self, header: Mapping[str, Any]) -> None:
        expected = json.loads(json.dumps({"schema": SCHEMA, **self._header}))
        for key, value in expected.items():
            if header.get(key) != value:
                raise InputError(
                    f"{self.path} was written for another {key}: {_abbreviate(header.get(key))}, expected {_abbreviate(value)}",
                    hint="resume with the same arguments, or remove it and the result",
                )
        name = header.get("partial")
        if not isinstance(name, str) or not re.fullmatch(
            rf"{re.escape(self.target.name)}\.[0-9a-f]{{16}}\.part", name
        ):
            raise self._damage_error(f"it names the partial result {_abbreviate(name)}")
        self.partial = self.target.with_name(name)

    def _check_chunk(self, number: object, chunks: int) -> int:
        if type(number) is not int or not 0 <= number < chunks:
            raise self._damage_error(f"it records the chunk {_abbreviate(number)}, of {chunks}")
        return number

    def _damage_error(self, why: str) -> InputError:
        return InputError(
            f"{self.path} is damaged: {why}", hint="remove it and the result, and run without --resume"
        )

    def _find_result(
        self, outputs: tuple[Target, ...], finished: Mapping[str, Any] | None, chunks: int
    ) -> None:
        """Check that the result of the run exists and is unchanged; a finished one that lacks chunks becomes partial again.

        Args:
            outputs: the arrays of the result.
            finished: the identity of the result when the run ended, or ``None`` if it did not.
            chunks: the number of chunks.

        Raises:
            InputError: if it is missing, or not the result of the run.
        """
        if not os.path.lexists(self.partial):
            if not os.path.lexists(self.target):
                raise InputError(
                    f"{self.partial} is missing: the rows that {self.path.name} records are in it",
                    hint=f"remove {self.path.name}, and run without --resume",
                )
            if finished is None or read_identity(self.target) != finished:
                raise InputError(
                    f"{self.target} is not what the run of {self.path.name} wrote",
                    hint="--resume continues only its own result: remove the manifest, or both",
                )
            if len(self.done) == chunks:
                return
            check_targets(place_targets(outputs, self.target))
            rename(self.target, self.partial)
        elif os.path.lexists(self.target):
            raise InputError(
                f"{self.target} exists, and {self.partial} is to get this name", hint="remove one of them"
            )
        check_targets(place_targets(outputs, self.partial))

    def add_done(self, chunk: int) -> None:
        """Record a chunk after its results are written."""
        self.done.add(chunk)
        self._append({"done": chunk})

    def add_failed(self, chunk: int, message: str) -> None:
        """Record a failed chunk; `resume` computes it again."""
        self._append({"failed": chunk, "message": message})

    def finish(self) -> None:
        """Rename the result to its final name, unless it already has that.

        Raises:
            InputError: if another file has got that name meanwhile.
            OSError: if the file system refuses.
        """
        if os.path.lexists(self.partial):
            self._append({"finished": read_identity(self.partial)})
            self.flush()
            rename(self.partial, self.target)

    def _append(self, line: Mapping[str, Any]) -> None:
        write_all(self._file, encode_line(line))

    def flush(self) -> None:
        """Sync the manifest to disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Sync the manifest to disk, and close it."""
        try:
            self.flush()
        finally:
            self._file.close()


@contextmanager
def _remove_on_failure(partial: Path) -> Iterator[None]:
    """Remove a partial result if the block fails."""
    try:
        yield
    except BaseException:
        remove(partial)
        raise


def encode_line(line: Mapping[str, Any]) -> bytes:
    """Return a line of a manifest as JSON with a checksum."""
    text = json.dumps(line)
    return (json.dumps({**line, _CHECKSUM: zlib.crc32(text.encode())}) + "\n").encode()


def _decode_line(line: bytes) -> dict[str, Any] | None:
    """Return the record in a line, or ``None`` if it was truncated or damaged."""
    try:
        record = json.loads(line)
        if (
            isinstance(record, dict)
            and encode_line({k: v for k, v in record.items() if k != _CHECKSUM}) == line
        ):
            return record
    except (ValueError, RecursionError):
        pass
    return None


def _abbreviate(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
