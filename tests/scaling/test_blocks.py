"""`map_blocks`: models on Dask arrays."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import ir_runtime as ov
from ir_runtime import opset13 as op
from ir_runtime.dask import Runner, map_blocks
from ir_runtime.dask import runner as runner_module
from ir_runtime.dask.needed import needed

from .models import dense, rows, running_sum, two_inputs

X = rows(22)


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
@pytest.mark.parametrize("chunks", [4, 8, 22, (4, 12, 6)])
def test_results_are_those_of_one_process(scheduler: str, chunks: Any) -> None:
    found = map_blocks(dense(), da.from_array(X, chunks=(chunks, -1)), batch=4)
    scores, total = dask.compute(*found, scheduler=scheduler)
    expected = Runner.of(dense(), batch=4)(X)
    assert np.array_equal(scores, expected[0])
    assert np.array_equal(total, expected[1])
    assert np.allclose(total, X.sum(1), atol=1e-5)


def test_shapes_and_types_are_inferred_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Runner, "__call__")
    found = map_blocks(dense(), {"x": da.from_array(X, chunks=(8, -1))})
    assert found["scores"].chunks == ((8, 8, 6), (4,))
    assert found["total"].chunks == ((8, 8, 6),)
    assert found[0].dtype == np.float32


def test_outputs_are_chosen_by_name() -> None:
    [total] = map_blocks(dense(), da.from_array(X), outputs=["total"])
    assert np.allclose(total.compute(), X.sum(1), atol=1e-5)


def test_an_output_may_be_one_name() -> None:
    assert Runner.of(dense(), "total").outputs == ("total",)
    assert map_blocks(dense(), da.from_array(X), "total").names == ("total",)


def test_unknown_outputs_of_the_result_are_named() -> None:
    with pytest.raises(KeyError, match="did you mean 'total'"):
        map_blocks(dense(), da.from_array(X))["totals"]


def test_numpy_arrays_are_given_to_every_run() -> None:
    x, bias = op.parameter([-1, 2], np.float32, name="x"), op.parameter([2], np.float32, name="bias")
    model = ov.Model([op.result(op.add(x, bias))], [x, bias], "biased")
    inputs = {"x": da.zeros((6, 2), dtype=np.float32, chunks=(2, -1)), "bias": np.float32([1, 2])}
    assert map_blocks(model, inputs)[0].compute().tolist() == [[1, 2]] * 6


def test_a_fixed_batch_is_the_batch_size() -> None:
    found = map_blocks(dense(rows=2), da.from_array(X, chunks=(8, -1)), outputs=["total"])
    assert np.allclose(found[0].compute(), X.sum(1), atol=1e-5)


def test_a_runner_alone_takes_the_batch_size_of_the_model() -> None:
    assert Runner.of(dense(rows=2)).batch == 2
    [total] = Runner.of(dense(rows=2), ["total"])(X)
    assert np.allclose(total, X.sum(1), atol=1e-5)
    assert Runner.of(dense()).batch is None


def test_each_sequence_starts_from_the_initial_state() -> None:
    x = np.random.default_rng(2).integers(0, 9, (5, 4, 3)).astype(np.float32)
    [found] = map_blocks(running_sum(), da.from_array(x, chunks=(2, -1, -1)), sequence_axis=1)
    assert found.shape == (5, 4, 3)
    assert np.array_equal(found.compute(), np.cumsum(x, 1))


REFUSED = {
    "shape": (
        da.zeros((4, 5)),
        {},
        r"rows 0 to 3: input 'x' must have the shape .*, got \[4, 5\]",
        "reshape",
    ),
    "columns": (da.zeros((4, 6), chunks=(2, 3)), {}, "one chunk along axis 1, got 2", "rechunk({1: -1})"),
    "fixed batch": (da.zeros((5, 6), chunks=(3, 6)), {"rows": 2}, "rows 0 to 2: .*shape", "accepts 2 rows"),
    "batch": (da.zeros((4, 6)), {"rows": 2, "batch": 4}, "batch size must be 2", "leave it out"),
    "output": (da.zeros((4, 6)), {"outputs": ["totl"]}, "unknown output 'totl'", "total"),
    "lengths": (da.zeros((4, 6))[da.zeros(4) < 1], {}, "chunks of unknown length", "compute_chunk_sizes"),
    "scalar": (da.zeros(()), {}, "a scalar", "NumPy"),
    "axis": (da.zeros((2, 3, 6)), {"sequence_axis": 3}, "must be 1 to 2", "axis 0"),
    "batch of 0": (da.zeros((4, 6)), {"batch": 0}, "batch must be an integer of at least 1, got 0", ""),
    "property": (da.zeros((4, 6)), {"config": {"NUM_STREAM": 1}}, "'NUM_STREAM'", "NUM_STREAMS"),
    "array": (np.zeros((4, 6)), {}, "at least one input must be a Dask array", "from_array"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_chunks_that_do_not_fit_are_refused_at_once(case: str) -> None:
    array, how, message, hint = REFUSED[case]
    model = dense(rows=how.get("rows", -1))
    with pytest.raises(ov.InputError, match=message) as refused:
        map_blocks(model, {"x": array}, **{key: value for key, value in how.items() if key != "rows"})
    assert hint in refused.value.hint


def test_inputs_that_are_missing_or_unknown_are_named() -> None:
    with pytest.raises(ov.InputError, match="unknown input 'z'"):
        map_blocks(two_inputs(), {"z": da.zeros((2, 6))})
    with pytest.raises(ov.InputError, match="inputs are missing: 'x'"):
        map_blocks(two_inputs(), {"y": da.zeros((2, 6))})


def test_inputs_must_have_the_same_chunks() -> None:
    inputs = {"x": da.zeros((4, 6), chunks=(2, 6)), "y": da.zeros((4, 6), chunks=(4, 6))}
    with pytest.raises(ov.InputError, match="the same chunks"):
        map_blocks(two_inputs(), inputs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: run(X, X), "got 2 inputs, the model has 1: x"),
        (lambda run: run(X, x=X), "input 'x' is given twice"),
    ],
)
def test_runners_take_each_input_once(call: Callable[[Runner], object], message: str) -> None:
    with pytest.raises(ov.InputError, match=message):
        call(Runner.of(dense()))


def test_outputs_without_rows_are_refused() -> None:
    x = op.parameter([-1, 6], np.float32, name="x")
    model = ov.Model([op.result(op.reduce_mean(x, op.constant(np.array([0]))))], [x], "mean")
    with pytest.raises(ov.InputError, match=r"has the shape .* but 4 rows are expected"):
        map_blocks(model, da.zeros((4, 6)))


def test_the_model_is_in_the_graph_once() -> None:
    model = dense(width=50_000)
    one, many = (
        len(pickle.dumps(dict(map_blocks(model, da.zeros((n, 50_000), chunks=(1, -1)))[0].__dask_graph__())))
        for n in (1, 9)
    )
    assert one > 800_000  # the weights
    assert many - one < 100_000


def test_a_process_compiles_a_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile = Runner.compile
    monkeypatch.setattr(Runner, "compile", lambda self: compiled.append(1) or compile(self))
    monkeypatch.setattr(runner_module, "_MODELS", runner_module._ModelCache())
    map_blocks(dense(), da.from_array(X, chunks=(1, -1)))[0].compute(scheduler="threads")
    assert compiled == [1]


def test_what_is_not_installed_is_named() -> None:
    with pytest.raises(
        ov.InputError, match="reading x needs no_such_package, which is not installed"
    ) as refused:
        needed("no_such_package.part", "reading x")
    assert refused.value.hint == "pip install 'ir_runtime[dask]'"


def test_data_frames() -> None:
    import dask.dataframe as frames
    import pandas

    from ir_runtime.dask import map_partitions

    table = pandas.DataFrame(X, columns=list("abcdef"))
    found = map_partitions(dense(), frames.from_pandas(table, npartitions=3), {"x": list("abcdef")})
    assert list(found.columns) == ["scores_0", "scores_1", "scores_2", "scores_3", "total"]
    got = found.compute()
    assert np.allclose(got["total"], X.sum(1), atol=1e-5)
    assert got.index.tolist() == table.index.tolist()
    with pytest.raises(ov.InputError, match="expected a DataFrame of Dask, got DataFrame") as refused:
        map_partitions(dense(), table, {"x": list("abcdef")})
    assert "from_pandas" in refused.value.hint


def test_partitions_without_rows() -> None:
    import dask.dataframe as frames
    import pandas

    from ir_runtime.dask import map_partitions

    table = pandas.DataFrame(X, columns=list("abcdef"))
    frame = frames.from_pandas(table, npartitions=3)
    some = map_partitions(dense(), frame[frame["a"] > 0], {"x": list("abcdef")}, "total").compute()
    assert some.index.tolist() == table.index[table["a"] > 0].tolist()
    none = map_partitions(dense(rows=2), frame[frame["a"] > 99], {"x": list("abcdef")}, "total").compute()
    assert len(none) == 0


def test_chunks_without_rows() -> None:
    x = da.from_array(X, chunks=((8, 0, 14), (6,)))
    for model in (dense(), dense(rows=2)):
        [total] = map_blocks(model, x, "total")
        assert total.chunks == ((8, 14),)  # as Dask concatenates
        assert np.allclose(total.compute(), X.sum(1), atol=1e-5)
        assert map_blocks(model, x[:0], "total")[0].compute().shape == (0,)
