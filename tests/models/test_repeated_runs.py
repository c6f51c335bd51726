"""Repeated runs of a request on other values and shapes give the results of a newly compiled model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings

import ir_runtime
from ir_runtime import Model, PartialShape
from ir_runtime.errors import IRError
from ir_runtime.ir.tensor import Array
from models.random_graphs import Graph
from models.test_random_graphs import graphs, often

BACKENDS = [name for name in ir_runtime.backends.available() if name != "reference"]

LONGER = (0, 0, 0, 1, 1, 1, 0, 1)
"""By how much open lengths are longer in each run: recorded runs are replayed, left, and met again."""


def varied(array: Array, shape: PartialShape, longer: int, random: np.random.Generator) -> Array:
    """Return other inputs of the same kind; dynamic dims are repeated to become longer."""
    if array.dtype.kind == "f":
        array = (array * random.uniform(0.5, 1.5, array.shape)).astype(array.dtype)
    lengths = [n + longer * d.is_dynamic for n, d in zip(array.shape, shape, strict=True)]
    return np.resize(array, lengths)


def results(
    request: ir_runtime.InferRequest, fed: Sequence[Array]
) -> list[tuple[tuple[int, ...], bytes]] | None:
    """Return the shape and bytes of each result; None if the model refuses the inputs."""
    try:
        return [(x.shape, x.tobytes()) for x in request.infer(fed).values()]
    except IRError:
        return None


def compare(model: Model, first: Sequence[Array], backend: str) -> None:
    random = np.random.default_rng(5)
    request = ir_runtime.compile_model(model, backend=backend).create_infer_request()
    for longer in LONGER:
        fed = [varied(x, i.partial_shape, longer, random) for x, i in zip(first, model.inputs, strict=True)]
        new = ir_runtime.compile_model(model, backend=backend).create_infer_request()
        assert results(request, fed) == results(new, fed)


def agree(graph: Graph) -> None:
    if graph.sinks:
        return  # a variable is what the runs before left
    writer, _ = graph.write()
    model = ir_runtime.read_model(writer.xml(), writer.weights)
    for backend in BACKENDS:
        compare(model, [p.outputs[0].value for p in graph.parameters()], backend)


@settings(often, max_examples=20)
@given(graphs())
def test_runs_do_not_depend_on_those_before(graph: Graph) -> None:
    agree(graph)


@pytest.mark.oracle
@settings(often, max_examples=300)
@given(graphs())
def test_runs_of_more_graphs_do_not_depend_on_those_before(graph: Graph) -> None:
    agree(graph)
