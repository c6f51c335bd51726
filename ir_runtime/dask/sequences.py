"""Run models with states on whole sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..ir.tensor import Array
from ..openvino.compiled import CompiledModel
from ..openvino.node import Output
from .lengths import common_length

__all__ = ["joined_shape", "run_sequence", "step_shape"]


def run_sequence(
    compiled: CompiledModel,
    feeds: Mapping[str, Array],
    shared: Mapping[str, Array],
    outputs: Sequence[str],
    axis: int,
) -> tuple[Array, ...]:
    """Run the steps of sequences in order, from the initial state; return the outputs of all steps, concatenated.

    Args:
        compiled: a model with states.
        feeds: inputs with all their steps along ``axis``. The model takes one step, with this axis of length 1, or
            without it.
        shared: inputs that are the same in every step.
        outputs: the names of the outputs to return.
        axis: the axis of the steps, counted from 0.
    """
    ports = {name: compiled.input(name) for name in feeds}
    lengths = {name: array.shape[axis] if axis < array.ndim else 0 for name, array in feeds.items()}
    request = compiled.create_infer_request()
    parts = []
    for step in range(common_length(lengths, f"steps along axis {axis}", 1)):
        now = {name: _step(array, ports[name], axis, step) for name, array in feeds.items()}
        results = request.infer({**shared, **now})
        parts.append([results[name] for name in outputs])
    return tuple(_join(column, axis) for column in zip(*parts, strict=True))


def _keeps_axis(rank: int, port: Output) -> bool:
    """Return whether the input keeps the axis of the steps, with length 1."""
    shape = port.partial_shape
    return shape.rank.is_dynamic or len(shape) == rank


def _step(array: Array, port: Output, axis: int, step: int) -> Array:
    part = array[(slice(None),) * axis + (slice(step, step + 1),)]
    return part if _keeps_axis(array.ndim, port) else part.squeeze(axis)


def step_shape(shape: Sequence[int], port: Output, axis: int) -> tuple[int, ...]:
    """Return the shape of one step of an input."""
    if _keeps_axis(len(shape), port):
        return (*shape[:axis], 1, *shape[axis + 1 :])
    return (*shape[:axis], *shape[axis + 1 :])


def joined_shape(shape: Sequence[int], axis: int, steps: int) -> tuple[int, ...]:
    """Return the shape of an output with all steps."""
    if len(shape) > axis and shape[axis] == 1:
        return (*shape[:axis], steps, *shape[axis + 1 :])
    return (*shape[:axis], steps, *shape[axis:])


def _join(parts: Sequence[Array], axis: int) -> Array:
    first = parts[0]
    if first.ndim > axis and first.shape[axis] == 1:
        return np.concatenate(parts, axis)
    return np.stack(parts, min(axis, first.ndim))
