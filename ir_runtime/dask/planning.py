"""Infer the outputs of a model for chunks of inputs without running it, and refuse chunks that it does not accept.

The error then suggests a number of rows per chunk that the model accepts (`_find_chunking`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._util.command_line import on_command_line
from .._util.forks import cached_property
from ..analysis.constraints.lengths import Pattern, explore, in_plural, residue_text
from ..errors import InputError, IRError
from ..openvino.model import Model
from ..openvino.names import find_port
from .runner import Runner, joined_shape, step_shape

__all__ = ["ArrayType", "Chunking", "Planner"]

_Advise = Callable[[int, int], str]
"""A function ``(batch, chunk)`` that formulates the advice to use this batch size and chunk size."""


@dataclass(frozen=True)
class ArrayType:
    """The shape and dtype of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass
class Planner:
    """Infers the outputs of a runner for chunks of given shapes."""

    runner: Runner
    model: Model
    advise: _Advise
    total: int | None
    """The number of rows of all chunks, or ``None`` if unknown."""
    _known: dict[tuple[tuple[str, tuple[int, ...]], ...], tuple[ArrayType, ...]] = field(default_factory=dict)
    _rows: tuple[tuple[int, ...], ...] = ()
    """The shape of a row of each output; empty before the first chunk."""

    @classmethod
    def of(
        cls,
        runner: Runner,
        model: Model,
        batched: Mapping[str, tuple[int, ...]],
        advise: _Advise,
        total: int | None = None,
    ) -> Planner:
        """Return the planner of a model with chunked inputs.

        Args:
            runner: the runner; without a batch size, it gets that of the model if that is static.
            model: the model of the runner.
            batched: the shapes of whole arrays, by input name.
            advise: formulates the advice to use other chunks.
            total: the number of rows of all chunks, or ``None`` if unknown.

        Raises:
            InputError: if an input is missing or unknown, or the batch size differs from that of the model.
        """
        names = {port.label for port in model.inputs}
        for name in {**batched, **runner.shared}:
            find_port(model.inputs, name, "input")
        if missing := sorted(names - {*batched, *runner.shared}):
            raise InputError(f"inputs are missing: {', '.join(map(repr, missing))}")
        return cls(replace(runner, batch=_batch_size(runner, model, batched)), model, advise, total)

    def outputs(self, shapes: Mapping[str, tuple[int, ...]], chunk: str) -> tuple[ArrayType, ...]:
        """Infer the outputs of the runner for a chunk.

        Args:
            shapes: the shape of the chunk of each input.
            chunk: the name of the chunk in messages, such as ``rows 0 to 31``.

        Raises:
            InputError: if the model refuses the chunk, with the reason and chunks that it accepts; or if an output does not have a row
                for each row of the inputs, or the shape of its rows depends on their number or on the data.
        """
        key = tuple(sorted(shapes.items()))
        if key not in self._known:
            types = self._infer(shapes, chunk)
            self._check_columns(types, chunk)
            self._known[key] = types
        return self._known[key]

    def _infer(self, shapes: Mapping[str, tuple[int, ...]], chunk: str) -> tuple[ArrayType, ...]:
        count = next(iter(shapes.values()))[0]
        batch = self.runner.batch or count
        sizes = [min(batch, count or batch), *([count % batch] if count > batch and count % batch else [])]
        for size in sizes:
            piece = _set_rows(shapes, size)
            try:
                self._reshape(piece, chunk)
            except InputError as reason:
                hint = self._advice(shapes, size, reason.hint) or reason.hint
                raise InputError(reason.message, hint=hint) from None
            types = self._infer_piece(piece, size, chunk)
            self._check_columns(types, chunk)
        return tuple(ArrayType((count, *type.shape[1:]), type.dtype) for type in types)

    def _advice(self, shapes: Mapping[str, tuple[int, ...]], rows: int, other: str) -> str:
        """Return a hint about chunks that the model accepts, or an empty string if the number of rows is not the problem.

        Args:
            shapes: the shapes of a chunk.
            rows: the refused number of rows.
            other: the hint of the error itself.
        """
        declared = [self.model.input(name).partial_shape for name in shapes]
        if any(shape.rank.is_static and not len(shape) for shape in declared):
            return ""
        first = [shape[0] for shape in declared if shape.rank.is_static]
        low = max((dim.get_min_length() for dim in first), default=1)
        high = min((dim.get_max_length() for dim in first if dim.get_max_length() >= 0), default=None)

        def accepts(count: int) -> bool:
            piece = _set_rows(shapes, count)
            with suppress(InputError):
                self._reshape(piece, "")
                return bool(self._infer_piece(piece, count, ""))
            return False

        count = next(iter(shapes.values()))[0]
        chunking = _find_chunking(accepts, (low, high), rows, count, self.total)
        if chunking is None:
            return ""
        text = f"the model accepts {chunking} rows at a time"
        if chunking.batch is not None:
            return f"{text}: {self.advise(chunking.batch, chunking.chunk)}"
        assert self.total is not None
        batch = chunking.pattern.nearest(rows)
        rest = self.total % batch
        remove = f"leave out {rest}, or " if rest != self.total else ""
        rest_of_hint = f"; or {other}" if other else ""
        return f"{text}, and {self.total} rows cannot be split into these: {remove}add {batch - rest}{rest_of_hint}"

    def _check_columns(self, types: Sequence[ArrayType], chunk: str) -> None:
        """Raise an `InputError` if the shape of an output's rows differs from that in earlier chunks or batches."""
        rows = tuple(type.shape[1:] for type in types)
        self._rows = self._rows or rows
        for name, shape, first in zip(self.runner.outputs, rows, self._rows, strict=True):
            if shape != first:
                raise InputError(
                    f"{chunk}: a row of output {name!r} has the shape {list(shape)}, and {list(first)} in another batch",
                    hint="choose outputs whose rows do not depend on the number of rows",
                )

    @cached_property
    def _scratch(self) -> Model:
        """A copy of the model, to be reshaped for each chunk."""
        return self.model.clone()

    def _infer_piece(
        self, shapes: Mapping[str, tuple[int, ...]], rows: int, chunk: str
    ) -> tuple[ArrayType, ...]:
        """Return the types of the outputs of a run, for the current shapes of the model.

        Args:
            shapes: the shapes of the inputs of the run.
            rows: the number of their rows.
            chunk: the name of the chunk in messages.

        Raises:
            InputError: if an output does not have a row for each row of the inputs, or a shape that depends on the data.
        """
        axis = self.runner.sequence_axis
        types = []
        for name in self.runner.outputs:
            port = self._scratch.output(name)
            declared_shape = port.partial_shape
            # With a state, the number of rows may stay dynamic; it is checked when the model runs.
            if (
                not declared_shape.rank.is_dynamic
                and len(declared_shape)
                and declared_shape[0].is_dynamic
                and declared_shape[0].compatible(rows)
            ):
                declared_shape[0] = rows
            if declared_shape.is_dynamic:
                raise InputError(
                    f"{chunk}: output {name!r} has the shape {declared_shape}, which depends on the data",
                    hint="choose other outputs, or run the model on each part with dask.delayed and a Runner",
                )
            shape = tuple(declared_shape.to_shape())
            if axis is not None:
                steps = next(iter(shapes.values()))[axis]
                shape = joined_shape(shape, axis, steps)
            types.append(ArrayType(self._check_by_rows(name, shape, rows, chunk), port.element_type.dtype))
        return tuple(types)

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
        """Return the shape in which one run of the model takes an input, given the shape of a chunk.

        This is ``shape`` itself, or the shape of one time step if the runner steps through sequences (``sequence_axis``).

        Raises:
            InputError: if ``sequence_axis`` is not an axis of the input after the first.
        """
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
    def _check_by_rows(name: str, shape: tuple[int, ...], rows: int, chunk: str) -> tuple[int, ...]:
        if shape and shape[0] == rows:
            return shape
        raise InputError(
            f"{chunk}: output {name!r} has the shape {list(shape)}, but {rows} rows are expected along its first axis",
            hint="choose outputs that have a row for each row of the inputs",
        )


def _set_rows(shapes: Mapping[str, tuple[int, ...]], rows: int) -> dict[str, tuple[int, ...]]:
    return {name: (rows, *shape[1:]) for name, shape in shapes.items()}


def _batch_size(runner: Runner, model: Model, batched: Mapping[str, tuple[int, ...]]) -> int | None:
    """Return the number of rows to run at once: the requested batch size, else the static one of the model; ``None`` for all rows.

    Raises:
        InputError: if both are given and differ.
    """
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


# Numbers of rows to try until the model accepts one.
_GUESSES = (*range(1, 65), *range(72, 257, 8))

# The search range around the requested number of rows.
_NEAR = 1024


@dataclass(frozen=True)
class Chunking:
    """The numbers of rows that a model accepts, and a chunk size derived from them.

    Args:
        pattern: the accepted numbers.
        batch: a number that splits all rows so that the remainder is accepted, too; ``None`` if there is none.
        chunk: a multiple of the batch, near the requested chunk size.
        most: the largest accepted number, or ``None`` if unbounded.
    """

    pattern: Pattern
    batch: int | None = None
    chunk: int = 0
    most: int | None = None

    def __str__(self) -> str:
        """Return the accepted numbers as text.

        >>> print(Chunking(Pattern(2, 8), most=8), Chunking(Pattern(step=4)), Chunking(Pattern(3, 3)), sep="; ")
        2 to 8; multiples of 4; 3
        """
        pattern = self.pattern
        if pattern.single is not None:
            return str(pattern.single)
        if not pattern.regular:
            return "only some numbers of"
        if pattern.step == 1:
            return f"at least {pattern.low}" if self.most is None else f"{pattern.low} to {self.most}"
        least = f"at least {pattern.low}" if pattern.low > pattern.step else ""
        most = "" if self.most is None else f"at most {self.most}"
        numbers = in_plural(residue_text(pattern)).removeprefix("are ")
        return ", ".join(filter(None, (numbers, least, most)))


def _find_chunking(
    accepts: Callable[[int], bool],
    bounds: tuple[int, int | None],
    rows: int,
    chunk: int,
    total: int | None,
) -> Chunking | None:
    """Return the chunking nearest to the requested one, or ``None`` if no accepted number of rows is found.

    Args:
        accepts: returns whether the model accepts a number of rows at once.
        bounds: the declared minimum and maximum of rows.
        rows: the refused number of rows.
        chunk: the requested number of rows of a chunk.
        total: the number of rows of all chunks, or ``None`` if unknown.
    """
    low, high = max(bounds[0], 1), bounds[1] or max(4 * rows, _GUESSES[-1])
    guesses = (n for n in dict.fromkeys((low, *_GUESSES, high)) if low <= n <= high)
    start = next(filter(accepts, guesses), None)
    if start is None:
        return None
    pattern = explore(accepts, start, low, high)
    most = high if bounds[1] is not None else None
    if pattern.refused_above is not None:
        most = pattern.high
    near = range(max(low, rows - _NEAR), min(high, rows + _NEAR) + 1)
    for batch in sorted({*near, start, pattern.nearest(rows)}, key=lambda n: abs(n - rows)):
        if (
            pattern.contains(batch)
            and (total is None or _covers(accepts, pattern, batch, total))
            and accepts(batch)
        ):
            return Chunking(pattern, batch, max(batch, chunk // batch * batch), most)
    return Chunking(pattern, most=most)


def _covers(accepts: Callable[[int], bool], pattern: Pattern, batch: int, total: int) -> bool:
    """Return whether ``total`` rows split into batches and a remainder that the model accepts."""
    rest = total % batch
    return batch <= total and (not rest or (pattern.contains(rest) and accepts(rest)))
