"""Run a model on columns of a Dask DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from .model_source import ModelLike, open_source
from .needed import needed
from .planning import Planner
from .runner import Runner

__all__ = ["map_partitions"]


def map_partitions(
    model: ModelLike,
    frame: Any,
    columns: Mapping[str, Sequence[str] | str],
    outputs: Sequence[str] | str | None = None,
    batch: int | None = None,
    config: Mapping[str, Any] | None = None,
) -> Any:
    """Run a model on columns of each partition of a Dask DataFrame.

    >>> import dask.dataframe, pandas
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([-1, 2], "f32", name="x")
    >>> model = ov.Model([opset1.relu(x, name="y")], [x])
    >>> table = pandas.DataFrame({"a": [-1.0, 2.0], "b": [3.0, -4.0]}, dtype="float32")
    >>> rows = map_partitions(model, dask.dataframe.from_pandas(table, npartitions=2), {"x": ["a", "b"]})
    >>> rows.compute().to_numpy()
    array([[0., 3.],
           [2., 0.]], dtype=float32)

    Args:
        model: a model, or the path of its ``.xml``.
        frame: the DataFrame.
        columns: for each input, the columns to stack along its second axis; or the name of a single column, which is passed
            as an array of one axis.
        outputs: the name of an output, or several; by default all. Each must have one or two axes.
        batch: the number of rows to run at once; by default a whole partition, or the model's own batch size.
        config: OpenVINO's properties.

    Returns:
        A DataFrame with the index of ``frame``, and a column for each output with one axis, or columns ``output_0``,
        ``output_1`` … for an output with two axes.

    Raises:
        InputError: if a column or an input is unknown, or if the model refuses the columns.
    """
    pandas = needed("pandas", "map_partitions", "pip install 'dask[dataframe]'")
    if not hasattr(frame, "map_partitions"):
        hint = "dask.dataframe.from_pandas(frame, npartitions=4) makes one"
        raise InputError(f"expected a DataFrame of Dask, got {type(frame).__name__}", hint=hint)
    source, net = open_source(model)
    runner = Runner.of_source(source, net, outputs, batch=batch, config=config)
    for column in (c for names in columns.values() for c in _as_sequence(names)):
        if column not in frame.columns:
            raise InputError(
                f"unknown column {column!r}", hint=f"available are {', '.join(map(str, frame.columns))}"
            )
    shapes = {name: (1,) if isinstance(names, str) else (1, len(names)) for name, names in columns.items()}
    planner = Planner.of(runner, net, shapes, _advise)
    types = planner.outputs(
        {n: (planner.runner.batch or 1, *s[1:]) for n, s in shapes.items()}, "a partition"
    )
    meta = _table(pandas, planner.runner.outputs, [np.empty((0, *t.shape[1:]), t.dtype) for t in types], None)
    return frame.map_partitions(_run, planner.runner, dict(columns), meta=meta)


def _advise(batch: int, chunk: int) -> str:
    return f"use batch={batch}, and partitions with numbers of rows that it accepts, too"


def _as_sequence(names: Sequence[str] | str) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def _run(frame: Any, runner: Runner, columns: Mapping[str, Sequence[str] | str]) -> Any:
    pandas = needed("pandas", "map_partitions")
    feeds = {n: frame[c if isinstance(c, str) else list(c)].to_numpy() for n, c in columns.items()}
    return _table(pandas, runner.outputs, runner(**feeds), frame.index)


def _table(pandas: Any, names: Sequence[str], arrays: Sequence[Any], index: Any) -> Any:
    table_columns: dict[str, Any] = {}
    for name, array in zip(names, arrays, strict=True):
        if array.ndim > 2:
            raise InputError(f"output {name!r} has {array.ndim} axes; a table has columns of one or two")
        wide = array.ndim == 2
        table_columns |= (
            {f"{name}_{i}": array[:, i] for i in range(array.shape[1])} if wide else {name: array}
        )
    return pandas.DataFrame(table_columns, index=index)
