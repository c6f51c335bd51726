"""Cached properties and functions without a lock.

`functools.cached_property` of Python 3.11 holds a lock of the class while it computes: other objects wait for this one, and
a process that is forked meanwhile waits forever. Without a lock, as in later versions, two threads may compute the same.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Generic, TypeVar, overload

__all__ = ["cached_by_class", "cached_property"]

C = TypeVar("C", bound=type)
T = TypeVar("T")


def cached_by_class(function: Callable[[C], T]) -> Callable[[C], T]:
    """Cache a function of classes: `functools.cache` with types that mypy accepts."""
    return functools.cache(function)


if sys.version_info >= (3, 12):
    from functools import cached_property  # noqa: TID251  which is the one that is meant
else:

    class cached_property(Generic[T]):  # noqa: N801  as Python names it
        """The same as `functools.cached_property` of Python 3.12."""

        def __init__(self, function: Callable[..., T]) -> None:
            self._function, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> cached_property[T]: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None) -> T: ...

        def __get__(self, instance: object, owner: type | None = None) -> cached_property[T] | T:
            if instance is None:
                return self
            value = vars(instance)[self._name] = self._function(instance)
            return value
