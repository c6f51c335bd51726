"""A passing stand-in for `_language`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._language import device as device


def kernel(function: Callable[..., Any]) -> Any:
    made: list[Any] = []

    def call(*arguments: Any) -> Any:
        if not made:
            import numba

            made.append(numba.njit(nogil=True)(function))
        return made[0](*arguments)

    return call
