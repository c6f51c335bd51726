"""Damaged or forged manifests of runs by rows are refused, or lead to the correct rows and touch nothing else."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import zarr

from ir_runtime.dask.manifest import Manifest, encode_line
from ir_runtime.dask.planning import ArrayType
from ir_runtime.dask.targets import Target, open_targets, place_targets, read_identity

from . import raw
from .corpus import Case

__all__ = ["HEADER", "WrongResultError", "cases", "changed", "resume"]

HEADER: dict[str, Any] = {"model": "0" * 64, "config": {"THREADS": "1"}, "batch": 2, "chunk": 2}
ROWS = np.arange(20, dtype=np.float32).reshape(10, 2)
CHUNKS, STEP = 5, 2
DONE = (0, 3)
"""The chunks that were written before the run was killed."""
_TOKEN = "0123456789abcdef"
_VALUES = (
    None, True, -1, 0, 7, 10**30, 0.5, float("nan"), float("inf"), "", "x", "../out.npy", "/etc/passwd", "out.npy", "\0",
    "\ud800", [], [0], {}, {"done": 0}, {"inode": 1}, "9" * 5000, [[[[]]]],
)  # fmt: skip
_KEYS = (
    "schema",
    "model",
    "config",
    "chunk",
    "partial",
    "done",
    "failed",
    "message",
    "finished",
    "crc32",
    "",
)


class WrongResultError(Exception):
    """A manifest was wrongly accepted."""


def cases() -> Iterator[Case]:
    """The manifest of a killed run, and that of a run whose last chunk failed."""
    for target in ("out.npy", "out.zarr"):
        for is_finished in (False, True):
            with tempfile.TemporaryDirectory(prefix="ir_runtime-fuzz-") as name:
                path = Path(name) / target
                _begin(path, is_finished)
                text = Manifest.path_of(path).read_bytes()
            yield Case(
                f"manifest of {target}", text, manifest_of=f"{'finished ' if is_finished else ''}{target}"
            )


def changed(base: Case, donor: Case, steps: Sequence[int]) -> Case:
    """Change bytes, or values in lines whose checksums are recomputed."""
    data, is_planted = base.xml, False
    for step in steps:
        rng = Random(step)
        if rng.random() < 0.5:
            data = raw.change(data, donor.xml, rng)
        else:
            data, is_planted = _with_value(data, rng), True
    name = f"planted {base.name}" if is_planted else base.name
    return Case(name, data, manifest_of=base.manifest_of)


def _with_value(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    try:
        record = json.loads(lines[place])
    except (ValueError, RecursionError):
        record = {}
    if not isinstance(record, dict):
        record = {}
    record.pop("crc32", None)
    key = rng.choice((*record, *_KEYS))
    if rng.random() < 0.2:
        record.pop(key, None)
    else:
        record[key] = rng.choice(_VALUES)
    lines[place] = encode_line(record)[:-1]
    return b"\n".join(lines)


def _begin(path: Path, is_finished: bool) -> None:
    """Start a result, write some of its chunks, and leave it like a killed or finished run."""
    outputs = _outputs(path)
    manifest = Manifest.create(path, HEADER, outputs)
    for chunk in DONE:
        _write(place_targets(outputs, manifest.partial), chunk)
        manifest.add_done(chunk)
    if is_finished:
        manifest.finish()
    manifest.close()


def _outputs(path: Path) -> tuple[Target, ...]:
    return open_targets(path, {"y": ArrayType(ROWS.shape, ROWS.dtype)}, STEP)


def _write(outputs: tuple[Target, ...], chunk: int) -> None:
    outputs[0].write(chunk * STEP, ROWS[chunk * STEP : (chunk + 1) * STEP])


def resume(case: Case) -> str:
    """Resume a run with the manifest of a case.

    Returns:
        ``"result"`` if it leads to a result.

    Raises:
        IRError: if the manifest is refused.
        WrongResultError: if the result is wrong although no checksum was forged, or other files have changed.
        Exception: any exception that is not an error of the package.
    """
    state, _, target = case.manifest_of.rpartition(" ")
    with tempfile.TemporaryDirectory(prefix="ir_runtime-fuzz-") as name:
        path = Path(name) / target
        _begin(path, state == "finished")
        manifest = Manifest.path_of(path)
        partial = json.loads(manifest.read_bytes().split(b"\n")[0])["partial"]
        manifest.write_bytes(_in_place(case, partial, path))
        others = _plant(Path(name), target)
        try:
            _complete(path)
        finally:
            if {other: other.read_bytes() for other in others} != others:
                raise WrongResultError(f"{case.name}: other files have changed")
        if "planted" not in case.name and not np.array_equal(_read(path), ROWS):
            raise WrongResultError(f"{case.name}: rows are wrong")
    return "result"


def _in_place(case: Case, partial: str, path: Path) -> bytes:
    """Return the manifest with the random name and the identity of this result, where it still has them."""
    lines = case.xml.split(b"\n")
    for number, line in enumerate(lines):
        try:
            record = json.loads(line)
            if encode_line({k: v for k, v in record.items() if k != "crc32"})[:-1] != line:
                continue
        except (ValueError, RecursionError, AttributeError):
            continue
        del record["crc32"]
        if str(record.get("partial", "")).startswith(f"{path.name}."):
            record["partial"] = partial
        if isinstance(record.get("finished"), dict) and "modified" in record["finished"]:
            record["finished"] = read_identity(path if path.exists() else path.with_name(partial))
        lines[number] = encode_line(record)[:-1]
    return b"\n".join(lines)


def _plant(folder: Path, target: str) -> dict[Path, bytes]:
    """Put unrelated files next to a result."""
    others = [
        folder / name for name in ("mine.part", f"{target}.part", f"{target}.{_TOKEN}.part.npy", "passwd")
    ]
    for other in others:
        other.write_bytes(b"mine")
    return dict.fromkeys(others, b"mine")


def _complete(path: Path) -> None:
    """Write the missing chunks, and finish the run."""
    outputs = _outputs(path)
    manifest = Manifest.resume(path, HEADER, outputs, CHUNKS)
    try:
        for chunk in set(range(CHUNKS)) - manifest.done:
            _write(place_targets(outputs, manifest.partial), chunk)
            manifest.add_done(chunk)
        manifest.finish()
    finally:
        manifest.close()


def _read(path: Path) -> Any:
    return np.load(path) if path.suffix == ".npy" else zarr.open(path, mode="r")[:]
