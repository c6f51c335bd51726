"""Which backend runs a model if nobody says: numba where it is installed, has its kernels, and is worth it."""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec

__all__ = ["usual"]


def usual(large: bool) -> str:
    """The name of a backend.

    Kernels that numba has not made yet are begun in the background; what is compiled until they are there
    runs on numpy.

    Args:
        large: whether the model is worth loading machine code for, which takes 50 ms.
    """
    if not large or not find_spec("numba"):
        return "numpy"
    try:
        import_module(".numba", __package__)
        making = import_module(".numba._making", __package__)
        if making.ready():
            return "numba"
        making.in_background()
    except (ImportError, OSError) as reason:  # an installation that is broken
        warnings.warn(f"numba cannot be used, so numpy is: {reason}", RuntimeWarning, stacklevel=2)
    return "numpy"
