"""Whole networks against OpenVINO, on every backend, static and dynamic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from harness.oracle import PLUGIN, core

import ir_runtime
from ir_runtime.backends import available
from models.networks import NETWORKS, save


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("name", NETWORKS)
def test_agrees_with_openvino(name: str, backend: str, tmp_path: Path) -> None:
    path = save(name, tmp_path)
    inputs = NETWORKS[name][1]()
    theirs = core().compile_model(path, "CPU", PLUGIN)(inputs)
    assert ir_runtime.validate(path).ok
    ours = ir_runtime.compile_model(path, backend=backend)(inputs)
    assert len(ours) == len(theirs)
    for i in range(len(ours)):
        assert ours[i].dtype == theirs[i].dtype
        np.testing.assert_allclose(ours[i], theirs[i], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_infers_what_openvino_infers(name: str, tmp_path: Path) -> None:
    """Every inferred partial shape equals or refines OpenVINO's."""
    path = save(name, tmp_path)
    theirs = {node.get_friendly_name(): node for node in core().read_model(path).get_ops()}
    for node in ir_runtime.read_model(path).get_ops():
        for output in node.outputs():
            wanted = theirs[node.friendly_name].output(output.index)
            shape = ir_runtime.PartialShape(str(wanted.get_partial_shape()))
            assert output.partial_shape.refines(shape), f"{node}: OpenVINO infers {shape}"
            assert output.element_type.label == wanted.get_element_type().to_string()


@pytest.mark.parametrize("backend", available())
def test_every_shape_of_a_dynamic_network(backend: str, tmp_path: Path) -> None:
    path = save("encoder", tmp_path)
    ours = ir_runtime.compile_model(path, backend=backend)
    theirs = core().compile_model(path, "CPU", PLUGIN)
    for batch, length in ((1, 1), (3, 5), (2, 17)):
        ids = np.random.default_rng(length).integers(0, 50, (batch, length))
        mask = np.ones((batch, length), np.int64)
        wanted = theirs([ids, mask])
        for i, array in enumerate(ours([ids, mask]).to_tuple()):
            np.testing.assert_allclose(array, wanted[i], rtol=1e-4, atol=1e-5)


def test_reshape_infers_what_openvino_infers(tmp_path: Path) -> None:
    path = save("encoder", tmp_path)
    ours, theirs = ir_runtime.read_model(path), core().read_model(path)
    ours.reshape({"input_ids": [2, -1], "attention_mask": "2,1..8"})
    theirs.reshape({"input_ids": [2, -1], "attention_mask": ov.PartialShape("2,1..8")})
    for mine, other in zip(ours.outputs, theirs.outputs, strict=True):
        assert mine.partial_shape.refines(ir_runtime.PartialShape(str(other.partial_shape)))
