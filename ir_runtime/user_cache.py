"""The user's cache folder for files that can be computed again."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["chosen_cache", "user_cache"]


def chosen_cache() -> Path | None:
    """Return the folder that ``IR_RUNTIME_CACHE`` says; ``None`` if it is not set."""
    place = os.environ.get("IR_RUNTIME_CACHE")
    return Path(place) / "ir_runtime" if place else None


def user_cache() -> Path | None:
    """Return the folder: that of ``IR_RUNTIME_CACHE``, else by the conventions of the system.

    Returns:
        ``None`` if the package platformdirs, which knows these, is not installed, or the user has no home folder.
    """
    if (chosen := chosen_cache()) is not None:
        return chosen
    try:
        from platformdirs import user_cache_path
    except ImportError:
        return None
    try:
        return user_cache_path("ir_runtime", appauthor=False)
    except RuntimeError:  # as in a container whose user is in no list of users
        return None
