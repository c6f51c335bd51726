"""The folder of the user in which this package keeps what it can compute again."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["user_cache"]


def user_cache() -> Path | None:
    """Return the folder: in ``IR_RUNTIME_CACHE``, else by the conventions of the system.

    Returns:
        ``None`` if the package platformdirs, which knows these, is not installed, or the user has no home folder.
    """
    if variable := os.environ.get("IR_RUNTIME_CACHE"):
        return Path(variable) / "ir_runtime"
    try:
        from platformdirs import user_cache_path
    except ImportError:
        return None
    try:
        return user_cache_path("ir_runtime", appauthor=False)
    except RuntimeError:  # as in a container whose user is in no list of users
        return None
