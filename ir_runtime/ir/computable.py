"""Layers whose output shapes can be inferred although their values cannot be computed.

OpenVINO creates such nodes and computes meaningless results. Here such a node can be created, inspected and edited, but
a model that contains one cannot be read, validated, compiled or run.
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
    """Let inference return the shapes of layers that cannot be computed, within the ``with`` block."""
    token = _asked_for_shapes.set(True)
    try:
        yield
    finally:
        _asked_for_shapes.reset(token)


def refuse_to_compute(reason: InferenceError) -> None:
    """Raise ``reason``, unless called inside `shapes_alone`."""
    if not _asked_for_shapes.get():
        raise reason
