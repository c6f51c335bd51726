"""Chunk sizes that a model refuses: the messages name the constraint, and chunk sizes that work."""

from __future__ import annotations

import re
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import ir_runtime as ov
from ir_runtime import opset13 as op
from ir_runtime.dask import map_blocks

from .models import rows
from .test_by_rows import run


def model(first: int | ov.Dimension = -1, group: int = 1) -> ov.Model:
    """A model of ``first`` rows, reshaped to groups and back."""
    x = op.parameter(ov.PartialShape([first, 6]), np.float32, name="x")
    x.output(0).set_names({"x"})
    parts = op.reshape(op.relu(x), op.constant(np.array([-1, group, 6])), False)
    return ov.Model([op.result(op.reshape(parts, op.constant(np.array([-1, 6])), False))], [x], "model")


BOUNDED = ov.Dimension(2, 8)
CASES: dict[str, tuple[ov.Model, int, int, int | None, str]] = {
    "static": (model(4), 12, 6, None, "accepts 4 rows"),
    "static, far": (model(3000), 6000, 500, None, "accepts 3000 rows"),
    "bounds": (model(BOUNDED), 20, 20, None, "accepts 2 to 8 rows"),
    "bounds, batch": (model(BOUNDED), 20, 20, 10, "accepts 2 to 8 rows"),
    "bounds, rest": (model(BOUNDED), 9, 9, 8, "accepts 2 to 8 rows"),
    "multiples": (model(group=4), 12, 6, None, "accepts multiples of 4 rows"),
    "multiples, batch": (model(group=4), 24, 12, 6, "accepts multiples of 4 rows"),
    "multiples, far": (model(group=40), 240, 30, None, "accepts multiples of 40 rows"),
    "bounded multiples": (
        model(ov.Dimension(1, 8), 4),
        16,
        16,
        None,
        "accepts multiples of 4, at most 8 rows",
    ),
}
"""A model, the rows of all chunks and of one, the batch, and the constraint."""


@pytest.mark.parametrize("case", CASES)
def test_the_chunking_that_is_suggested_works(case: str) -> None:
    net, total, chunk, batch, constraint = CASES[case]
    x = rows(total)
    with pytest.raises(ov.InputError, match="rows 0 to") as refused:
        map_blocks(net, da.from_array(x, chunks=(chunk, -1)), batch=batch)
    assert constraint in refused.value.hint
    found = re.search(r"x\.rechunk\(({0: (\d+)})\), with batch=(\d+)", refused.value.hint)
    assert found, refused.value.hint
    better = da.from_array(x, chunks=(int(found[2]), -1))
    [result] = map_blocks(net, better, batch=int(found[3]))
    assert np.array_equal(result.compute(scheduler="sync"), np.maximum(x, 0))


@pytest.mark.parametrize("case", ["static", "bounds", "multiples, batch"])
def test_the_options_that_are_suggested_work(folder: Path, case: str) -> None:
    net, total, chunk, batch, constraint = CASES[case]
    ov.save_model(net, "net.xml", compress_to_fp16=False)
    np.save("x.npy", rows(total))
    line = "net.xml -i x.npy -o out.npy --scheduler threads --workers 1"
    refused = run(f"{line} --chunk {chunk}" + (f" --batch {batch}" if batch else ""), 2).stderr
    assert constraint in refused
    found = re.search(r"at a time: (--batch \d+ --chunk \d+)$", refused.strip())
    assert found, refused
    run(f"{line} {found[1]}")
    assert np.array_equal(np.load("out.npy"), np.maximum(rows(total), 0))


@pytest.mark.parametrize(
    ("net", "total", "hint"),
    [
        (model(4), 10, "leave out 2, or add 2; or reshape the model: model.reshape({'x': [-1, 6]})"),
        (model(group=4), 3, "multiples of 4 rows at a time, and 3 rows cannot be split into these: add 1"),
    ],
)
def test_rows_that_no_chunking_fits_are_named(net: ov.Model, total: int, hint: str) -> None:
    with pytest.raises(ov.InputError) as refused:
        map_blocks(net, da.zeros((total, 6), chunks=(5, 6), dtype=np.float32))
    assert refused.value.hint.endswith(hint)


def test_the_shape_that_is_suggested_works(folder: Path) -> None:
    ov.save_model(model(4), "net.xml", compress_to_fp16=False)
    np.save("x.npy", rows(10))
    line = "net.xml -i x.npy -o out.npy --scheduler threads --workers 1"
    found = re.search(r"reshape the model: (--shape .*)", run(f"{line} --chunk 5", 2).stderr)
    assert found
    run(f"{line} --chunk 5 {found[1]}")
    assert np.array_equal(np.load("out.npy"), np.maximum(rows(10), 0))


def test_partitions_whose_numbers_of_rows_are_unknown() -> None:
    import dask.dataframe
    import pandas

    from ir_runtime.dask import map_partitions

    columns = list("abcdef")
    frame = dask.dataframe.from_pandas(pandas.DataFrame(rows(16), columns=columns), npartitions=2)
    with pytest.raises(ov.InputError) as refused:
        map_partitions(model(group=4), frame, {"x": columns})
    hint = "the model accepts multiples of 4 rows at a time: use batch=4, and partitions with numbers of rows that it accepts, too"
    assert refused.value.hint == hint
    found = map_partitions(model(group=4), frame, {"x": columns}, batch=4).compute(scheduler="sync")
    assert np.array_equal(found.to_numpy(), np.maximum(rows(16), 0))
