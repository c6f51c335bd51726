"""Test models round-trip through saving; files written by OpenVINO are reproduced literally."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.oracle import assert_identical, seen_by_openvino
from models.collection import COLLECTION, saved, zoo
from models.controlled import CASES

import ir_runtime as ir
from ir_runtime.analysis.random_inputs import random_array
from ir_runtime.ir.tensor import Array

models = pytest.mark.parametrize("name", COLLECTION)


def save(model: ir.Model, path: Path) -> Path:
    ir.save_model(model, path)
    return path


def contents(path: Path) -> tuple[bytes, bytes]:
    return path.read_bytes(), path.with_suffix(".bin").read_bytes()


def lines(path: Path) -> list[str]:
    """Return the lines of a file; edges are sorted, as their order has no meaning."""
    return sorted(path.read_text().splitlines())


def inputs_of(name: str, model: ir.Model) -> list[Array]:
    """Return inputs made for the model, or random ones."""
    if name in CASES:
        return CASES[name][1][0]
    shapes = [[d.min if d.is_static else max(d.min, 2) for d in port.partial_shape] for port in model.inputs]
    return [
        random_array(model._graph, model._port(port), port.element_type, tuple(s))
        for port, s in zip(model.inputs, shapes, strict=True)
    ]


@models
def test_round_trip(name: str, tmp_path: Path) -> None:
    path = saved(name)
    model = ir.read_model(path)
    once = save(model, tmp_path / "once.xml")
    again = ir.read_model(once)
    assert list(again.report) == []
    assert contents(save(again, tmp_path / "twice.xml")) == contents(once)
    assert seen_by_openvino(once) == seen_by_openvino(path)
    if not name.startswith("tiny_"):  # those are written by hand
        assert contents(once)[1] == contents(path)[1]
        assert lines(once) == lines(path)


@models
def test_results_are_the_same_to_the_bit(name: str, tmp_path: Path) -> None:
    model = ir.read_model(saved(name))
    inputs = inputs_of(name, model)
    again = ir.read_model(save(model, tmp_path / "again.xml"))
    results = [ir.compile_model(each)(inputs).to_tuple() for each in (model, again)]
    for found, wanted in zip(*results, strict=True):
        assert_identical(found, wanted)


@pytest.mark.oracle
@pytest.mark.parametrize("path", zoo(), ids=lambda path: path.stem)
def test_networks_of_the_zoo(path: Path, tmp_path: Path) -> None:
    """They are saved as OpenVINO writes them, except for the order of edges."""
    once = save(ir.read_model(path), tmp_path / "once.xml")
    assert once.with_suffix(".bin").read_bytes() == path.with_suffix(".bin").read_bytes()
    assert lines(once) == lines(path)
    assert seen_by_openvino(once) == seen_by_openvino(path)
