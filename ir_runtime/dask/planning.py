"""Infer what a model returns for chunks of its inputs, without running it, and refuse chunks that do not fit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._util.cached import cached_property
from .._util.command_line import on_command_line
from ..errors import InputError, IRError
from ..openvino.model import Model
from ..openvino.names import find_port
from .chunking import find_chunking
from .runner import Runner
from .sequences import joined_shape, step_shape

__all__ = ["Advise", "ArrayType", "Planner"]


Advise = Callable[[int, int], str]
"""A function that words the advice to use a batch size, and chunks of a number of rows."""


@dataclass(frozen=True)
class ArrayType:
    """The shape and dtype of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass
class Planner:
    """Infers what a runner returns for chunks of given shapes."""

    runner: Runner
    model: Model
    advise: Advise
    total: int | None
    """The rows of all chunks, if that is known."""
    _known: dict[tuple[tuple[str, tuple[int, ...]], ...], tuple[ArrayType, ...]] = field(default_factory=dict)
    _rows: tuple[tuple[int, ...], ...] = ()
    """The shapes of a row of each output."""

    @classmethod
    def of(
        cls,
        runner: Runner,
        model: Model,
        batched: Mapping[str, tuple[int, ...]],
        advise: Advise,
        total: int | None = None,
    ) -> Planner:
        """Return the planner of a model some of whose inputs are passed in chunks.

        Args:
            runner: its runner; one without a batch size gets that of the model, if it is fixed.
            model: the model of the runner.
            batched: by the names of inputs, the shapes of the whole arrays.
            advise: words the advice to use other chunks.
            total: the rows of all chunks, if that is known.

        Raises:
            InputError: if an input is missing or unknown, or the batch size is not the model's.
        """
        known = {port.label for port in model.inputs}
        for name in {**batched, **runner.shared}:
            find_port(model.inputs, name, "input")
        if missing := sorted(known - {*batched, *runner.shared}):
            raise InputError(f"inputs are missing: {', '.join(map(repr, missing))}")
        return cls(replace(runner, batch=_batch_size(runner, model, batched)), model, advise, total)

    def outputs(self, shapes: Mapping[str, tuple[int, ...]], chunk: str) -> tuple[ArrayType, ...]:
        """Return what the runner returns for one chunk.

        Args:
            shapes: the shape of the chunk of each input.
            chunk: its name in messages, such as ``rows 0 to 31``.

        Raises:
            InputError: if the model refuses it; the message says why, and which chunks it accepts.
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
        sizes = [min(batch, count or batch), *([count % batch] if count > batch and count % batch else [])]
        for size in sizes:
            piece = _of_rows(shapes, size)
            try:
                self._reshape(piece, chunk)
            except InputError as reason:
                hint = self._advice(shapes, size, reason.hint) or reason.hint
                raise InputError(reason.message, hint=hint) from None
            found = self._infer_piece(piece, size, chunk)
            self._check_columns(found, chunk)
        return tuple(ArrayType((count, *type.shape[1:]), type.dtype) for type in found)

    def _advice(self, shapes: Mapping[str, tuple[int, ...]], rows: int, other: str) -> str:
        """Return which chunks the model accepts, after it refused a number of rows; empty if that is not the reason.

        Args:
            shapes: the shapes of a chunk.
            rows: the number of rows.
            other: the hint of the error itself.
        """
        declared = [self.model.input(name).partial_shape for name in shapes]
        if any(shape.rank.is_static and not len(shape) for shape in declared):
            return ""
        first = [shape[0] for shape in declared if shape.rank.is_static]
        low = max((dim.get_min_length() for dim in first), default=1)
        high = min((dim.get_max_length() for dim in first if dim.get_max_length() >= 0), default=None)

        def accepts(count: int) -> bool:
            piece = _of_rows(shapes, count)
            with suppress(InputError):
                self._reshape(piece, "")
                return bool(self._infer_piece(piece, count, ""))
            return False

        count = next(iter(shapes.values()))[0]
        found = find_chunking(accepts, (low, high), rows, count, self.total)
        if found is None:
            return ""
        text = f"the model accepts {found} rows at a time"
        if found.batch is not None:
            return f"{text}: {self.advise(found.batch, found.chunk)}"
        assert self.total is not None
        batch = found.pattern.nearest(rows)
        rest = self.total % batch
        remove = f"leave out {rest}, or " if rest != self.total else ""
        rest_of_hint = f"; or {other}" if other else ""
        return f"{text}, and {self.total} rows cannot be split into these: {remove}add {batch - rest}{rest_of_hint}"

    def _check_columns(self, found: Sequence[ArrayType], chunk: str) -> None:
        """Refuse outputs whose rows have different shapes for different numbers of rows."""
        rows = tuple(type.shape[1:] for type in found)
        self._rows = self._rows or rows
        for name, shape, first in zip(self.runner.outputs, rows, self._rows, strict=True):
            if shape != first:
                raise InputError(
                    f"{chunk}: a row of output {name!r} has the shape {list(shape)}, and {list(first)} in another batch",
                    hint="choose outputs whose rows do not depend on the number of rows",
                )

    @cached_property
    def _scratch(self) -> Model:
        """A copy of the model, which is reshaped to chunks."""
        return self.model.clone()

    def _infer_piece(
        self, shapes: Mapping[str, tuple[int, ...]], rows: int, chunk: str
    ) -> tuple[ArrayType, ...]:
        """Return what one run returns on the shapes that the model was reshaped to.

        Raises:
            InputError: if an output does not have a row for each row of the inputs.
        """
        axis = self.runner.sequence_axis
        found = []
        for name in self.runner.outputs:
            port = self._scratch.output(name)
            known = port.partial_shape
            # A state may leave the number of rows open; it is checked when the model runs.
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

    def _reshape(self, shapes: Mapping[str, tuple[int, ...]], chunk: str) -> None:
        fed = {name: self._run_shape(name, shape) for name, shape in shapes.items()}
        for name, shape in fed.items():
            self._check(name, shape, chunk)
        shared = {name: np.shape(array) for name, array in self.runner.shared.items()}
        try:
            self._scratch.reshape({**fed, **shared})
        except IRError as reason:
            raise InputError(
                f"{chunk}: the model refuses {_show(fed)}: {reason.message}", hint=reason.hint
            ) from None

    def _run_shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of what is passed to the model in one run: all of it, or one step of a sequence."""
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

    def _check(self, name: str, shape: tuple[int, ...], chunk: str) -> None:
        declared = self.model.input(name).partial_shape
        if declared.rank.is_dynamic or declared.compatible(type(declared)(list(shape))):
            return
        python = f"model.reshape({{{name!r}: {[-1, *shape[1:]]}}})"
        option = f"--shape '{name}=[{','.join(map(str, ('?', *shape[1:])))}]'"
        hint = f"reshape the model: {option if on_command_line() else python}"
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


def _of_rows(shapes: Mapping[str, tuple[int, ...]], rows: int) -> dict[str, tuple[int, ...]]:
    return {name: (rows, *shape[1:]) for name, shape in shapes.items()}


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
