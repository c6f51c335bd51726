"""A model as a picklable function, which compiles it once in each process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..api.compiled import CompiledModel
from ..api.core import compile_model
from ..api.model import Model
from ..errors import ExecutionError
from ..forks import register
from ..ir.tensor import Array
from .allocator import keep_freed_memory
from .lengths import common_length
from .model_source import ModelLike, ModelSource, opened

__all__ = ["Runner"]

KEPT_MODELS = 4
"""The number of compiled models that a process keeps."""


@dataclass(frozen=True)
class Runner:
    """Run a model on arrays of any number of rows. It can be pickled; each process compiles the model once.

    A run uses one thread, as each thread of a Dask worker runs a task of its own; ``INFERENCE_NUM_THREADS`` in the
    configuration overrides that. Each run starts from the initial state: no state passes from one call to the next.

    Make one by `Runner.of`.

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
    """Inputs that are the same for all rows."""

    @classmethod
    def of(
        cls,
        model: ModelLike,
        outputs: list[str] | None = None,
        *,
        batch: int | None = None,
        config: Mapping[str, Any] | None = None,
        send: bool = False,
        sequence_axis: int | None = None,
    ) -> Runner:
        """Return the runner of a model.

        Args:
            model: a model, or the path of its ``.xml``.
            outputs: names of the outputs to return; by default all.
            batch: rows to run at once; by default all rows of a call, or the model's own batch size.
            config: OpenVINO's properties.
            send: send the contents of a file to the workers, which do not need it then.
            sequence_axis: for models with states: the axis of the inputs that has the steps of a sequence.

        Raises:
            InputError: if an output is unknown, or the backend is not available.

        >>> import numpy, pickle, ir_runtime
        >>> model = ir_runtime.read_fragment('<layer id="0" name="relu" type="ReLU" version="opset1">'
        ...     '<input><port id="0"><dim>-1</dim></port></input><output><port id="1"/></output></layer>')
        >>> runner = pickle.loads(pickle.dumps(Runner.of(model)))
        >>> runner(numpy.float32([-1, 2]))
        (array([0., 2.], dtype=float32),)
        """
        source, net = opened(model)
        sent, rows = source.sent(net) if send else source, batch or _own_batch(net)
        return cls.of_source(sent, net, outputs, batch=rows, config=config, sequence_axis=sequence_axis)

    @classmethod
    def of_source(
        cls,
        source: ModelSource,
        net: Model,
        outputs: list[str] | None = None,
        *,
        batch: int | None = None,
        config: Mapping[str, Any] | None = None,
        sequence_axis: int | None = None,
    ) -> Runner:
        """Return the runner of ``net``, which was read from ``source``; other arguments, and errors, are those of `of`."""
        from ..backends import awaited

        names = tuple(port.label for port in net.outputs)
        for name in outputs or ():
            net.output(name)  # raises for unknown names
        properties = {"INFERENCE_NUM_THREADS": 1, **(config or {})}
        backend = awaited(properties.pop("BACKEND", None), net._is_large)
        limited = source.limited(net.limits)
        return cls(limited, backend, tuple(outputs or names), batch, sequence_axis, properties)

    def __call__(self, *arrays: Array, **named: Array) -> tuple[Array, ...]:
        """Run on arrays whose first axis has the rows; inputs are passed in order, or by name.

        Raises:
            IRError: if the model refuses them, or fails.
        """
        compiled = self.compiled()
        feeds = dict(zip([port.label for port in compiled.inputs], arrays, strict=False)) | named
        parts = [self._run(compiled, part) for part in self.pieces(feeds)]
        if len(parts) == 1:
            return parts[0]
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))

    def pieces(self, feeds: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
        """Cut inputs into batches, along their first axis.

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
            from .sequences import run_sequence

            return run_sequence(compiled, feeds, self.shared, self.outputs, self.sequence_axis)
        results = compiled.infer_new_request({**self.shared, **feeds})
        return tuple(results[name] for name in self.outputs)

    def check_rows(self, outputs: tuple[Array, ...], rows: int) -> tuple[Array, ...]:
        """Return the outputs, and check that each has this many rows.

        Raises:
            ExecutionError: if one does not.
        """
        for name, array in zip(self.outputs, outputs, strict=True):
            if array.shape[:1] != (rows,):
                raise ExecutionError(
                    f"output {name!r} has the shape {list(array.shape)}, expected {rows} rows"
                )
        return outputs

    def compiled(self) -> CompiledModel:
        """Return the compiled model, which this process keeps."""
        config = tuple(sorted((k, str(v)) for k, v in self.config.items()))
        key = (self.source.digest, self.source.limits, self.backend, config)
        return _MODELS.get(key, self)

    def compile(self) -> CompiledModel:
        """Compile the model.

        Raises:
            InputError: if the model cannot be read, or a property or the backend is unknown.
        """
        keep_freed_memory()
        return compile_model(self.source.read(), backend=self.backend, config=dict(self.config))


def _own_batch(model: Model) -> int | None:
    """Return the number of rows that all inputs of a model have, if it is fixed."""
    shapes = [port.partial_shape for port in model.inputs]
    if not all(shape.rank.is_static and len(shape) and shape[0].is_static for shape in shapes):
        return None
    lengths = {shape[0].get_length() for shape in shapes}
    return lengths.pop() if len(lengths) == 1 else None


class _ModelCache:
    """A cache of the models that this process has compiled, the least recently used first."""

    def __init__(self) -> None:
        self._found: OrderedDict[object, CompiledModel] = OrderedDict()
        self._lock = threading.Lock()
        register(self)

    def get(self, key: object, runner: Runner) -> CompiledModel:
        with self._lock:  # held while compiling, so that tasks that start together compile once
            found = self._found.pop(key, None) or runner.compile()
            self._found[key] = found
            while len(self._found) > KEPT_MODELS:
                self._found.popitem(last=False)
            return found

    def after_fork(self) -> None:
        self._lock = threading.Lock()


_MODELS = _ModelCache()
