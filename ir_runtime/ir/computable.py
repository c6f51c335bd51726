"""Refuse to compute, where shapes are known all the same.

OpenVINO creates such nodes, and computes nonsense with them. Here a node can be created, to be looked at and changed,
while reading, validating, compiling and running refuse it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..errors import InferenceError

__all__ = ["refuse_to_compute", "shapes_alone"]

_asked_for_shapes = ContextVar("asked_for_shapes", default=False)


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Let inference return shapes of layers that cannot be computed."""
    token = _asked_for_shapes.set(True)
    try:
        yield
    finally:
        _asked_for_shapes.reset(token)


def refuse_to_compute(reason: InferenceError) -> None:
    """Raise an error of a layer whose shapes are known, unless these are all that is asked for."""
    if not _asked_for_shapes.get():
        raise reason
