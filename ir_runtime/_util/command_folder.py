"""The folder in which a command of ``compare --run`` or ``conformance run`` exchanges arrays with this program.

It contains ``inputs/0.npy`` and so on, and ``names.json``, which lists inputs, outputs and tensors between layers. The
command writes ``outputs/0.npy`` and so on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .files import create

__all__ = ["Entry", "list_entries"]

_SCHEMA = 1
"""The version of ``names.json``, increased when something is renamed or removed."""


class Entry(NamedTuple):
    """A tensor in ``names.json``; its shape may be unknown before a run."""

    file: str
    name: str
    names: Sequence[str]
    type: str
    shape: Sequence[int] | None

    @classmethod
    def of(
        cls, kind: str, index: int, name: str, names: Iterable[str], type: str, shape: Sequence[int] | None
    ) -> Entry:
        """Return the entry of a tensor.

        Args:
            kind: ``inputs``, ``outputs`` or ``tensors``.
            index: its index among the tensors of that kind.
            name: its name.
            names: all of its names.
            type: its element type.
            shape: its shape, ``None`` if unknown.
        """
        return cls(f"{kind}/{index}.npy", name, sorted(names), type, shape)


def list_entries(folder: Path, entries: Mapping[str, Sequence[Entry]]) -> None:
    """Write ``names.json`` with the entries by kind, and create a folder for the arrays of each kind."""
    for kind in entries:
        (folder / kind).mkdir()
    listed = {kind: [entry._asdict() for entry in tensors] for kind, tensors in entries.items()}
    with create(folder / "names.json") as file:
        file.write(json.dumps({"schema": _SCHEMA, **listed}, indent=2).encode())
