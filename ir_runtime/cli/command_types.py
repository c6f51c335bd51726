"""The type of click's decorators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Command"]

Command: TypeAlias = Callable[..., object]
