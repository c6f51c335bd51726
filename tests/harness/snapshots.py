"""Snapshots of texts that users read, so that changes show up in review."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "snapshots"


def same_as_before(name: str, text: str) -> None:
    """Compare with ``tests/snapshots/<name>.txt``; ``UPDATE_SNAPSHOTS=1`` rewrites it."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text(encoding="utf-8")
