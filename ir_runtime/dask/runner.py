"""A model as a picklable function of arrays with any number of rows, compiled once in each process."""

from __future__ import annotations

import ctypes
import operator
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

import numpy as np

from .._util.forks import register
from ..backends.common.kept_memory import MAX_KEPT
from ..errors import ExecutionError, InputError
from ..ir.tensor import Array
from ..openvino.compiled import CompiledModel
from ..openvino.config import check_config
from ..openvino.core import compile_model
from ..openvino.model import Model
from ..openvino.node import Output
from ..openvino.shapes import PartialShape
from .lengths import common_length
from .model_source import ModelLike, ModelSource, open_source

__all__ = ["Runner", "joined_shape", "step_shape"]

KEPT_MODELS = 4
"""The maximum number of compiled models that a process caches."""


@dataclass(frozen=True)
class Runner:
    """A picklable function that runs a model on arrays of any number of rows; each process compiles the model once.

    A run uses one thread, as each thread of a Dask worker runs a task of its own; ``INFERENCE_NUM_THREADS`` in the
    configuration overrides that. Each call starts from the initial state of the model.

    Create a runner by `Runner.of`.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([-1, 2], np.float32, name="x")
    >>> runner = Runner.of(ov.Model([opset1.relu(x)], [x]), batch=2)
    >>> runner(np.float32([[-1, 2], [3, -4], [5, 6]]))[0]
    array([[0., 2.],
           [3., 0.],
           [5., 6.]], dtype=float32)
    >>> [len(piece["x"]) for piece in runner.pieces({"x": np.zeros((3, 2), np.float32)})]
    [2, 1]
    >>> runner.compiled() is runner.compiled(), runner.compile().input().partial_shape
    (True, <PartialShape: [?,2]>)
    >>> len(runner.check_rows((np.zeros((3, 2)),), 3)), Runner.of_source(runner.source, runner.source.read()).batch
    (1, None)
    """

    source: ModelSource
    backend: str
    outputs: tuple[str, ...]
    batch: int | None = None
    sequence_axis: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict, hash=False)
    shared: Mapping[str, Array] = field(default_factory=dict, hash=False, repr=False)
    """The inputs that are the same for all rows."""

    @classmethod
    def of(
        cls,
        model: ModelLike,
        outputs: Sequence[str] | str | None = None,
        *,
        batch: int | None = None,
        config: Mapping[str, Any] | None = None,
        send: bool = False,
        sequence_axis: int | None = None,
    ) -> Runner:
        """Return the runner of a model.

        Args:
            model: a model, or the path of its ``.xml``.
            outputs: the name of an output to return, or several; by default all.
            batch: the number of rows to run at once; by default all rows of a call, or the model's own batch size.
            config: OpenVINO's properties.
            send: whether pickles contain the model, so that workers do not need its file.
            sequence_axis: for models with states: the axis of the time steps of the inputs.

        Raises:
            InputError: if an output or a property is unknown, the batch is not at least 1, or the backend is not available.

        >>> import numpy, pickle, ir_runtime
        >>> model = ir_runtime.read_fragment('<layer id="0" name="relu" type="ReLU" version="opset1">'
        ...     '<input><port id="0"><dim>-1</dim></port></input><output><port id="1"/></output></layer>')
        >>> runner = pickle.loads(pickle.dumps(Runner.of(model)))
        >>> runner(numpy.float32([-1, 2]))
        (array([0., 2.], dtype=float32),)
        """
        source, net = open_source(model)
        embedded, rows = source.embed(net) if send else source, _static_batch(net) if batch is None else batch
        return cls.of_source(embedded, net, outputs, batch=rows, config=config, sequence_axis=sequence_axis)

    @classmethod
    def of_source(
        cls,
        source: ModelSource,
        net: Model,
        outputs: Sequence[str] | str | None = None,
        *,
        batch: int | None = None,
        config: Mapping[str, Any] | None = None,
        sequence_axis: int | None = None,
    ) -> Runner:
        """Return the runner of ``net``, which was read from ``source``; see `of` for the other arguments.

        Raises:
            InputError: see `of`.
        """
        from ..backends import chosen

        names = tuple(port.label for port in net.outputs)
        selected = (outputs,) if isinstance(outputs, str) else tuple(outputs or names)
        for name in selected:
            net.output(name)  # raises for unknown names
        properties = {"INFERENCE_NUM_THREADS": 1, **(config or {})}
        backend = chosen(properties.pop("BACKEND", None))
        check_config(properties)
        if batch is not None and (not isinstance(batch, SupportsIndex) or operator.index(batch) < 1):
            raise InputError(f"batch must be an integer of at least 1, got {batch!r}")
        limited = source.with_limits(net.limits)
        return cls(limited, backend, selected, batch, sequence_axis, properties)

    def __call__(self, *arrays: Array, **named_arrays: Array) -> tuple[Array, ...]:
        """Run on arrays with rows along their first axis; inputs are passed in order or by name. Return the selected outputs.

        Raises:
            IRError: if the model refuses them, or fails.
        """
        compiled = self.compiled()
        feeds = _name_inputs([port.label for port in compiled.inputs], arrays, named_arrays)
        if (empty := self._empty_outputs(compiled, feeds)) is not None:
            return empty
        parts = [self._run(compiled, part) for part in self.pieces(feeds)]
        if len(parts) == 1:
            return parts[0]
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))

    def _empty_outputs(self, compiled: CompiledModel, feeds: Mapping[str, Array]) -> tuple[Array, ...] | None:
        """Return empty outputs for inputs without rows; ``None`` if inputs have rows, or the shapes of outputs are not known.

        Many models refuse such inputs, but partitions of a filtered table often have no rows. Sequences are not handled: for models
        with a sequence axis, it is always ``None``.
        """
        if self.sequence_axis is not None or any(len(array) for array in feeds.values() if np.ndim(array)):
            return None
        ports = [compiled.output(name) for name in self.outputs]
        shapes = [port.partial_shape for port in ports]
        if not all(self._is_by_rows(shape) for shape in shapes):
            return None
        return tuple(
            np.empty((0, *(dim.get_length() for dim in list(shape)[1:])), port.element_type.dtype)
            for port, shape in zip(ports, shapes, strict=True)
        )

    def _is_by_rows(self, shape: PartialShape) -> bool:
        """Return whether an output has rows along its first axis, and static lengths along all other axes."""
        if shape.rank.is_dynamic or not len(shape):
            return False
        first, *others = shape
        has_rows = first.is_dynamic or first.get_length() == self.batch
        return has_rows and all(dim.is_static for dim in others)

    def pieces(self, feeds: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
        """Split inputs into batches along their first axis; scalars are part of every batch.

        Raises:
            InputError: if inputs have different numbers of rows.
        """
        counts = {name: len(array) for name, array in feeds.items() if np.ndim(array)}
        rows = max(common_length(counts, "rows"), 1)
        step = self.batch or rows
        for start in range(0, rows, step):
            yield {
                name: array[start : start + step] if np.ndim(array) else array
                for name, array in feeds.items()
            }

    def _run(self, compiled: CompiledModel, feeds: Mapping[str, Array]) -> tuple[Array, ...]:
        if self.sequence_axis is not None:
            return _run_sequence(compiled, feeds, self.shared, self.outputs, self.sequence_axis)
        results = compiled.infer_new_request({**self.shared, **feeds})
        return tuple(results[name] for name in self.outputs)

    def check_rows(self, outputs: tuple[Array, ...], rows: int) -> tuple[Array, ...]:
        """Return the outputs after checking that each has ``rows`` rows.

        Raises:
            ExecutionError: if an output has not.
        """
        for name, array in zip(self.outputs, outputs, strict=True):
            if array.shape[:1] != (rows,):
                raise ExecutionError(
                    f"output {name!r} has the shape {list(array.shape)}, expected {rows} rows"
                )
        return outputs

    def compiled(self) -> CompiledModel:
        """Return the compiled model from the cache of this process, compiling it if needed."""
        config = tuple(sorted((k, str(v)) for k, v in self.config.items()))
        key = (self.source.digest, self.source.limits, self.backend, config)
        return _MODELS.get(key, self)

    def compile(self) -> CompiledModel:
        """Compile the model.

        Raises:
            InputError: if the model cannot be read, or a property or the backend is unknown.
        """
        _keep_freed_memory()
        return compile_model(self.source.read(), backend=self.backend, config=dict(self.config))


def _name_inputs(
    labels: Sequence[str], arrays: Sequence[Array], named_arrays: Mapping[str, Array]
) -> dict[str, Array]:
    """Return a dict of inputs by name, from those passed in order and those passed by name; ``labels`` are the names in order.

    Raises:
        InputError: if there are more inputs than names, or an input is given twice.
    """
    if len(arrays) > len(labels):
        raise InputError(f"got {len(arrays)} inputs, the model has {len(labels)}: {', '.join(labels)}")
    placed = dict(zip(labels, arrays, strict=False))
    if twice := [name for name in placed if name in named_arrays]:
        raise InputError(f"input {twice[0]!r} is given twice")
    return placed | dict(named_arrays)


def _static_batch(model: Model) -> int | None:
    """Return the static number of rows that all inputs have in common, or ``None``."""
    shapes = [port.partial_shape for port in model.inputs]
    if not all(shape.rank.is_static and len(shape) and shape[0].is_static for shape in shapes):
        return None
    lengths = {shape[0].get_length() for shape in shapes}
    return lengths.pop() if len(lengths) == 1 else None


class _ModelCache:
    """A thread-safe LRU cache of up to `KEPT_MODELS` compiled models."""

    def __init__(self) -> None:
        self._found: OrderedDict[object, CompiledModel] = OrderedDict()
        self._lock = threading.Lock()
        register(self)

    def get(self, key: object, runner: Runner) -> CompiledModel:
        with self._lock:  # held while compiling, so that tasks that start together compile once
            compiled = self._found.pop(key, None) or runner.compile()
            self._found[key] = compiled
            while len(self._found) > KEPT_MODELS:
                self._found.popitem(last=False)
            return compiled

    def after_fork(self) -> None:
        self._lock = threading.Lock()


_MODELS = _ModelCache()


def _run_sequence(
    compiled: CompiledModel,
    feeds: Mapping[str, Array],
    shared: Mapping[str, Array],
    outputs: Sequence[str],
    axis: int,
) -> tuple[Array, ...]:
    """Run the time steps of sequences in order, from the initial state; return the joined outputs of all steps.

    Args:
        compiled: a model with states, whose inputs are single steps: with ``axis`` of length 1, or without it.
        feeds: the inputs, with all steps along ``axis``.
        shared: the inputs that are the same in every step.
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
    """Return whether an input of the model keeps the axis of the steps, with length 1; ``rank`` is that of all steps together."""
    shape = port.partial_shape
    return shape.rank.is_dynamic or len(shape) == rank


def _step(array: Array, port: Output, axis: int, step: int) -> Array:
    part = array[(slice(None),) * axis + (slice(step, step + 1),)]
    return part if _keeps_axis(array.ndim, port) else part.squeeze(axis)


def step_shape(shape: Sequence[int], port: Output, axis: int) -> tuple[int, ...]:
    """Return the shape of a step, given the shape of all steps of an input along ``axis``, and the input of the model."""
    if _keeps_axis(len(shape), port):
        return (*shape[:axis], 1, *shape[axis + 1 :])
    return (*shape[:axis], *shape[axis + 1 :])


def joined_shape(shape: Sequence[int], axis: int, steps: int) -> tuple[int, ...]:
    """Return the shape of an output joined over ``steps`` steps along ``axis``, given the shape of a step.

    An axis of length 1 is replaced; if the output has no such axis, it is inserted.
    """
    if len(shape) > axis and shape[axis] == 1:
        return (*shape[:axis], steps, *shape[axis + 1 :])
    return (*shape[:axis], steps, *shape[axis:])


def _join(parts: Sequence[Array], axis: int) -> Array:
    first = parts[0]
    if first.ndim > axis and first.shape[axis] == 1:
        return np.concatenate(parts, axis)
    return np.stack(parts, min(axis, first.ndim))


_DASK_DEFAULT = "65536"
"""Dask's default of ``MALLOC_TRIM_THRESHOLD_``, unless a user configures ``distributed.nanny.pre-spawn-environ``."""

# Parameters of mallopt(3), from <malloc.h>.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def _keep_freed_memory() -> None:
    """Set glibc's allocation thresholds to the values that they reach outside of Dask.

    ``MALLOC_TRIM_THRESHOLD_`` turns off dynamic thresholds (see mallopt(3)): each array above 128 KiB is then mapped and
    zeroed again in every run, so that models with large arrays take up to three times as long. Memory beyond the thresholds
    is still returned to the system. A value set by the user is kept.
    """
    if os.environ.get("MALLOC_TRIM_THRESHOLD_") != _DASK_DEFAULT or sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc only
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MAX_KEPT)
        mallopt(_M_TRIM_THRESHOLD, 2 * MAX_KEPT)
