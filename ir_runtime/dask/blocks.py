"""Run a model on each chunk of Dask arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .._util.nearest import did_you_mean
from ..errors import InputError
from ..ir.tensor import Array
from ..openvino.model import Model
from .lengths import row_range
from .model_source import ModelLike, ModelSource, open_source
from .needed import needed
from .planning import Planner
from .runner import Runner

if TYPE_CHECKING:
    import dask.array

__all__ = ["Arrays", "map_blocks"]


class Arrays(tuple[Any, ...]):
    """The outputs of a model, as Dask arrays, by index or name.

    >>> Arrays(["scores"], [1])["scores"]
    1
    """

    names: tuple[str, ...]

    def __new__(cls, names: Sequence[str], arrays: Sequence[Any]) -> Arrays:
        """Create a tuple of named arrays."""
        named_arrays = super().__new__(cls, arrays)
        named_arrays.names = tuple(names)
        return named_arrays

    def __getitem__(self, key: Any) -> Any:
        """Return an array by its index or name."""
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key in self.names:
            return super().__getitem__(self.names.index(key))
        raise KeyError(f"unknown output {key!r}{did_you_mean(key, self.names, before='; ')}")

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return the arguments of `__new__` for copies and pickles."""
        return self.names, tuple(self)


def map_blocks(
    model: ModelLike,
    inputs: Mapping[str, Any] | Any,
    outputs: Sequence[str] | str | None = None,
    batch: int | None = None,
    config: Mapping[str, Any] | None = None,
    *,
    sequence_axis: int | None = None,
    send: bool | None = None,
) -> Arrays:
    """Run a model on each chunk of Dask arrays.

    Results are lazy, but dtypes, shapes and chunks of the outputs are inferred at once, so that chunks that the model refuses
    raise an error here.

    Args:
        model: a model, or the path of its ``.xml``.
        inputs: the inputs by name: Dask arrays, all chunked in the same way along their first axis only; NumPy arrays are
            passed to every run as they are. A single array is the only input.
        outputs: the name of an output, or several; by default all. Each must have a row for each row of the inputs.
        batch: the number of rows to run at once, within a chunk; by default the whole chunk, or the model's own batch size.
        config: OpenVINO's properties. A run uses one thread, unless ``INFERENCE_NUM_THREADS`` is set.
        sequence_axis: for models with states: the axis of the time steps; each row is a sequence that starts from the initial
            state.
        send: whether to send the contents of a model's file to the workers; by default, if a worker of the current client
            does not have the same file.

    Returns:
        The outputs as Dask arrays, by index or name, with the chunks of the inputs along their first axis.

    Raises:
        InputError: if an input is missing or unknown, or if the model refuses a chunk.

    >>> import dask.array, numpy, ir_runtime
    >>> model = ir_runtime.read_fragment('<layer id="0" name="exp" type="Exp" version="opset1">'
    ...     '<input><port id="0"><dim>-1</dim></port></input><output><port id="1"><dim>-1</dim></port></output></layer>')
    >>> map_blocks(model, dask.array.zeros(5, dtype=numpy.float32, chunks=2))[0].compute()
    array([1., 1., 1., 1., 1.], dtype=float32)
    """
    dask, array = needed("dask", "map_blocks"), needed("dask.array", "map_blocks")
    source, net = open_source(model)
    runner = Runner.of_source(source, net, outputs, batch=batch, config=config, sequence_axis=sequence_axis)
    arrays_by_name = inputs if isinstance(inputs, Mapping) else {net.input().label: inputs}
    cut = {name: value for name, value in arrays_by_name.items() if isinstance(value, array.Array)}
    if not cut:
        raise InputError(
            "at least one input must be a Dask array",
            hint="dask.array.from_array makes one; a DataArray of xarray has one as x.data",
        )
    shared = {name: np.asarray(value) for name, value in arrays_by_name.items() if name not in cut}
    chunks = _chunks(cut)
    shapes = {name: x.shape for name, x in cut.items()}
    total = sum(size for _, size in chunks)
    planner = Planner.of(replace(runner, shared=shared), net, shapes, _advise, total)
    types = [planner.outputs(_shapes(cut, size), row_range(start, start + size)) for start, size in chunks]
    final = replace(planner.runner, source=_readable_by_workers(source, net, send))
    return Arrays(final.outputs, _assemble(dask, array, final, cut, types))


def _chunks(arrays: Mapping[str, dask.array.Array]) -> list[tuple[int, int]]:
    """Return the first row and the number of rows of each chunk.

    Raises:
        InputError: if arrays are chunked along other axes or in different ways, have chunks of unknown length, or have no rows.
    """
    for name, x in arrays.items():
        if np.isnan(sum(map(sum, x.chunks))):
            raise InputError(
                f"input {name!r} has chunks of unknown length", hint="x.compute_chunk_sizes() finds them"
            )
        if axes := [axis for axis, sizes in enumerate(x.chunks) if axis and len(sizes) > 1]:
            rest = ", ".join(f"{axis}: -1" for axis in axes)
            raise InputError(
                f"input {name!r} must have one chunk along axis {axes[0]}, got {len(x.chunks[axes[0]])}",
                hint=f"x.rechunk({{{rest}}}) joins them",
            )
        if not x.ndim:
            raise InputError(
                f"input {name!r} is a scalar, which has no rows", hint="give it as a NumPy array"
            )
    for (one, x), (two, y) in pairwise(arrays.items()):
        if x.chunks[0] != y.chunks[0]:
            raise InputError(
                f"inputs must have the same chunks along axis 0, got {x.chunks[0]} of {one!r} and {y.chunks[0]} of {two!r}",
                hint=f"rechunk {two!r} to {{0: {x.chunks[0]}}}" if len(x) == len(y) else "",
            )
    sizes = next(iter(arrays.values())).chunks[0]
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    return list(zip(starts, map(int, sizes), strict=True))


def _advise(batch: int, chunk: int) -> str:
    return f"rechunk the inputs, x.rechunk({{0: {chunk}}}), with batch={batch}"


def _shapes(arrays: Mapping[str, dask.array.Array], rows: int) -> dict[str, tuple[int, ...]]:
    return {name: (rows, *map(int, x.shape[1:])) for name, x in arrays.items()}


def _readable_by_workers(source: ModelSource, net: Model, send: bool | None) -> ModelSource:
    """Return a source that workers can read.

    If ``send`` is true, it has the contents of the model; if false, it is ``source`` itself; if ``None``, it has the contents
    unless all workers have the file of the model.
    """
    if send is None and source.blob is None:
        from .cluster import visible_to_workers

        send = not visible_to_workers(source)
    return source.embed(net) if send else source


def _assemble(
    dask: Any, array: Any, runner: Runner, inputs: Mapping[str, Any], types: Sequence[Sequence[Any]]
) -> list[Any]:
    """Return a Dask array for each output; the runner is a task of the graph, and sent to each worker once.

    Args:
        dask: the module ``dask``.
        array: the module ``dask.array``.
        runner: the runner.
        inputs: the Dask array of each input.
        types: the type of each output for each chunk.
    """
    name = f"runner-{dask.base.tokenize(runner.source.digest, runner)}"
    shared = dask.delayed(runner, name=name, traverse=False)
    call = dask.delayed(_call, pure=True, nout=len(runner.outputs))
    blocks = [x.to_delayed().ravel() for x in inputs.values()]
    parts = [call(shared, tuple(inputs), *row) for row in zip(*blocks, strict=True)]
    return [
        array.concatenate([
            array.from_delayed(part[index], results[index].shape, results[index].dtype)
            for part, results in zip(parts, types, strict=True)
        ])
        for index in range(len(runner.outputs))
    ]  # fmt: skip


def _call(runner: Runner, names: Sequence[str], *arrays: Array) -> tuple[Array, ...]:
    return runner.check_rows(runner(**dict(zip(names, arrays, strict=True))), len(arrays[0]))
