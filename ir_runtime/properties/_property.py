"""A property: its name, which is also a function that pairs the name with a value."""

from __future__ import annotations

from typing import Any

__all__ = ["Property"]


class Property(str):
    """The name of a property. Called with a value, it is the pair of both, as OpenVINO's are."""

    __slots__ = ()

    def __call__(self, *value: Any) -> Any:
        """The name alone, or the name and a value."""
        return (str(self), *value) if value else str(self)
