"""Infer what a model returns for chunks of its inputs, and refuse chunks that it cannot take; nothing runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..api.model import Model
from ..api.names import find_port
from ..errors import InputError, IRError
from .runner import Runner
from .sequences import joined_shape, step_shape

__all__ = ["ArrayType", "Planner"]


@dataclass(frozen=True)
class ArrayType:
    """The shape and dtype of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass
class Planner:
    """Says what a runner returns for chunks of given shapes."""

    runner: Runner
    model: Model
    _known: dict[tuple[tuple[str, tuple[int, ...]], ...], tuple[ArrayType, ...]] = field(default_factory=dict)
    _rows: tuple[tuple[int, ...], ...] = ()
    """The shapes of a row of each output."""

    @classmethod
    def of(cls, runner: Runner, model: Model, batched: Mapping[str, tuple[int, ...]]) -> Planner:
        """Return the planner of a model that is given some of its inputs in chunks.

        Args:
            runner: how it runs; without a batch size, it gets that of the model, where that is fixed.
            model: the model of the runner.
            batched: by the names of inputs, the shapes of the whole arrays.

        Raises:
            InputError: if an input is missing or unknown, or the batch size is not the model's.
        """
        known = {port.label for port in model.inputs}
        for name in {**batched, **runner.shared}:
            find_port(model.inputs, name, "input")
        if missing := sorted(known - {*batched, *runner.shared}):
            raise InputError(f"inputs are missing: {', '.join(map(repr, missing))}")
        return cls(replace(runner, batch=_batch_size(runner, model, batched)), model)

    def outputs(self, shapes: Mapping[str, tuple[int, ...]], chunk: str) -> tuple[ArrayType, ...]:
        """Return what the runner returns for one chunk.

        Args:
            shapes: the shape of the chunk of each input.
            chunk: what to call it, such as ``rows 0 to 31``.

        Raises:
            InputError: if the model refuses it; it says why, and which chunks would do.
        """
        key = tuple(sorted(shapes.items()))
        if key not in self._known:
            found = self._infer(shapes, chunk)
            self._check_columns(found, chunk)
            self._known[key] = found
        return self._known[key]

    def _infer(self, shapes: Mapping[str, tuple[int, ...]], chunk: str) -> tuple[ArrayType, ...]:
        count = next(iter(shapes.values()))[0]
        batch = self.runner.batch or count
        sizes = [min(batch, count), *([count % batch] if count > batch and count % batch else [])]
        for size in sizes:
            found = self._piece({name: (size, *shape[1:]) for name, shape in shapes.items()}, size, chunk)
            self._check_columns(found, chunk)
        return tuple(ArrayType((count, *type.shape[1:]), type.dtype) for type in found)

    def _check_columns(self, found: Sequence[ArrayType], chunk: str) -> None:
        """Refuse outputs whose rows have other shapes where the number of rows is another one."""
        rows = tuple(type.shape[1:] for type in found)
        self._rows = self._rows or rows
        for name, shape, first in zip(self.runner.outputs, rows, self._rows, strict=True):
            if shape != first:
                raise InputError(
                    f"{chunk}: a row of output {name!r} has the shape {list(shape)}, and {list(first)} in another batch",
                    hint="choose outputs whose rows do not depend on the number of rows",
                )

    def _piece(self, shapes: Mapping[str, tuple[int, ...]], rows: int, chunk: str) -> tuple[ArrayType, ...]:
        axis = self.runner.sequence_axis
        fed = {name: self._fed(name, shape) for name, shape in shapes.items()}
        for name, shape in fed.items():
            self._check(name, shape, rows, chunk)
        model = self.model.clone()
        try:
            model.reshape({**fed, **{name: np.shape(array) for name, array in self.runner.shared.items()}})
        except IRError as reason:
            raise InputError(
                f"{chunk}: the model refuses {_show(fed)}: {reason.message}", hint=reason.hint
            ) from None
        found = []
        for name in self.runner.outputs:
            port = model.output(name)
            known = port.partial_shape
            # A state may leave the number of rows open; then it is checked when the model runs.
            if not known.rank.is_dynamic and len(known) and known[0].is_dynamic and known[0].compatible(rows):
                known[0] = rows
            if known.is_dynamic:
                raise InputError(
                    f"{chunk}: output {name!r} has the shape {known}, which depends on the data",
                    hint="choose other outputs, or run the model on each part with dask.delayed and a Runner",
                )
            shape = tuple(known.to_shape())
            if axis is not None:
                steps = next(iter(shapes.values()))[axis]
                shape = joined_shape(shape, axis, steps)
            found.append(ArrayType(self._by_rows(name, shape, rows, chunk), port.element_type.dtype))
        return tuple(found)

    def _fed(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape that the model is given at once."""
        axis = self.runner.sequence_axis
        if axis is None:
            return shape
        if not 0 < axis < len(shape):
            raise InputError(
                f"the axis of the steps must be 1 to {len(shape) - 1} for input {name!r} of shape "
                f"{list(shape)}, got {axis}",
                hint="axis 0 has the sequences",
            )
        return step_shape(shape, self.model.input(name), axis)

    def _check(self, name: str, shape: tuple[int, ...], rows: int, chunk: str) -> None:
        declared = self.model.input(name).partial_shape
        if declared.rank.is_dynamic or declared.compatible(type(declared)(list(shape))):
            return
        hint = f"reshape the model: model.reshape({{{name!r}: {[-1, *shape[1:]]}}})"
        fixed = declared[0].get_length() if len(declared) == len(shape) and declared[0].is_static else None
        if fixed is not None and fixed != rows:
            hint = (
                f"the model takes {fixed} rows at a time: rechunk axis 0 to a multiple of {fixed}, or {hint}"
            )
        raise InputError(
            f"{chunk}: input {name!r} must have the shape {declared}, got {list(shape)}",
            hint=hint,
        )

    @staticmethod
    def _by_rows(name: str, shape: tuple[int, ...], rows: int, chunk: str) -> tuple[int, ...]:
        if shape and shape[0] == rows:
            return shape
        raise InputError(
            f"{chunk}: output {name!r} has the shape {list(shape)}, but {rows} rows are expected along its first axis",
            hint="choose outputs that have a row for each row of the inputs",
        )


def _batch_size(runner: Runner, model: Model, batched: Mapping[str, tuple[int, ...]]) -> int | None:
    """Return the number of rows to run at once: the requested one, else that of the model."""
    fixed = {}
    for name in batched:
        shape = model.input(name).partial_shape
        if shape.rank.is_static and len(shape) and shape[0].is_static:
            fixed[name] = shape[0].get_length()
    for name, length in fixed.items():
        if runner.batch not in (None, length):
            raise InputError(
                f"the batch size must be {length}, as input {name!r} has the shape "
                f"{model.input(name).partial_shape}, got {runner.batch}",
                hint=f"leave it out, or reshape the model: model.reshape({{{name!r}: ...}}) with -1 in front",
            )
    return runner.batch or next(iter(fixed.values()), None)


def _show(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{list(shape)} for {name!r}" for name, shape in shapes.items())
