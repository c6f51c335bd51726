"""Layers that cannot be computed although their output shapes can be inferred.

OpenVINO creates such nodes and computes meaningless results. Here such a node can be created, inspected and edited, but
models that contain it cannot be read, validated, compiled or run.
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
    """Raise the error unless the caller asked for shapes only."""
    if not _asked_for_shapes.get():
        raise reason
