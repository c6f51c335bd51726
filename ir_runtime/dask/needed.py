"""Import what the extra ``dask`` installs, or say that it is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..codes import Code
from ..errors import InputError

__all__ = ["needed"]


def needed(module: str, what: str, extra: str = "pip install 'ir_runtime[dask]'") -> Any:
    """Import a module of an optional package.

    Args:
        module: its full name.
        what: what needs it, to begin a sentence with.
        extra: the command that installs it.

    Raises:
        InputError: if it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as reason:
        package = (reason.name or module).partition(".")[0]
        raise InputError(
            f"{what} needs {package}, which is not installed", code=Code.BAD_REQUEST, hint=extra
        ) from None
