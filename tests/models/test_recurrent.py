"""Recurrent networks against OpenVINO, on every backend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from harness.oracle import PLUGIN, core

import ir_runtime
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array
from models.recurrent import BATCH, LENGTHS, NETWORKS, TIME, cells, features, gated, plain, saved, tagger


def agree(path: Path, backend: str, inputs: list[Array], wanted: list[Array]) -> None:
    found = ir_runtime.compile_model(path, backend=backend)(inputs)
    for i, array in enumerate(wanted):
        assert found[i].dtype == array.dtype
        np.testing.assert_allclose(found[i], array, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("build", NETWORKS, ids=lambda build: build.__name__)
@pytest.mark.parametrize("lengths", [LENGTHS, np.full(BATCH, TIME), np.array([1, 0, 7])], ids=str)
def test_agrees_with_openvino(
    build: Callable[[int, int], ov.Model], lengths: Array, backend: str, tmp_path: Path
) -> None:
    path, inputs = saved(build, tmp_path), [features(), lengths]
    assert ir_runtime.validate(path).ok
    theirs = core().compile_model(path, "CPU", PLUGIN)(inputs)
    agree(path, backend, inputs, [theirs[i] for i in range(len(theirs))])


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("build", [tagger, gated, plain], ids=lambda build: build.__name__)
def test_every_length_of_a_dynamic_network(
    build: Callable[[int, int], ov.Model], backend: str, tmp_path: Path
) -> None:
    """OpenVINO's plugin ignores sequence lengths in dynamic networks, so it gets static shapes for each run."""
    path = saved(build, tmp_path, -1, -1)
    for lengths, time in ((LENGTHS, TIME), (np.array([1]), 1), (np.array([3, 12]), 12)):
        inputs = [features(len(lengths), time), lengths]
        model = core().read_model(path)
        model.reshape({"x": inputs[0].shape, "lengths": lengths.shape})
        theirs = core().compile_model(model, "CPU", PLUGIN)(inputs)
        agree(path, backend, inputs, [theirs[i] for i in range(len(theirs))])


@pytest.mark.parametrize("build", NETWORKS, ids=lambda build: build.__name__)
@pytest.mark.parametrize("dynamic", [False, True])
def test_infers_what_openvino_infers(
    build: Callable[[int, int], ov.Model], dynamic: bool, tmp_path: Path
) -> None:
    path = saved(build, tmp_path, -1 if dynamic else BATCH, TIME)
    theirs = {node.get_friendly_name(): node for node in core().read_model(path).get_ops()}
    for node in ir_runtime.read_model(path).get_ops():
        for output in node.outputs():
            wanted = theirs[node.friendly_name].output(output.index)
            shape = ir_runtime.PartialShape(str(wanted.get_partial_shape()))
            assert output.partial_shape.refines(shape), f"{node}: OpenVINO infers {shape}"


@pytest.mark.parametrize("backend", available())
def test_a_cell_unrolled_by_hand(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "cells.xml"
    ov.save_model(cells(), path, compress_to_fp16=False)
    inputs = [features()[:, 0]]
    theirs = core().compile_model(path, "CPU", PLUGIN)(inputs)
    agree(path, backend, inputs, [theirs[0], theirs[1]])
