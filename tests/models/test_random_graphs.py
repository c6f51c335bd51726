"""Random graphs of all operations give OpenVINO's results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness.oracle import read
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import ir_runtime
from ir_runtime.backends import available
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array
from models.random_control import CONTROL, STATE
from models.random_graphs import ENDS, Graph, UnsafeError
from models.random_layers import RECIPES, Builder
from models.random_oracle import Oracle, RefusedError

# As tests/ops/test_oracle.py; graphs are made so that rounding does not grow.
RTOL = 1e-5

RUNS = 4
"""A backend may record the second run, and replay it in later ones."""

# The same graphs each time: what passes here passes everywhere.
often = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))


@st.composite
def graphs(draw: Any) -> Graph:
    """Draw a graph of 3 to 12 steps, some of which add several layers."""
    graph = Graph(open=draw(st.booleans()))
    builder = Builder(draw, graph)
    builder.parameter(np.random.default_rng(1).uniform(-3, 3, (2, 3)).astype(np.float32))
    recipes = [*RECIPES, *CONTROL * 2, *STATE]
    for _ in range(draw(st.integers(3, 12))):
        builder.step(recipes)
    used = {id(t) for layer in graph.layers for t in layer.sources}
    for last in [t for layer in graph.layers for t in layer.outputs]:
        if id(last) not in used and last.layer.type not in ENDS:
            graph.result(last)
    return graph


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    found = Oracle()
    yield found
    found.close()
    assert found.refused * 20 <= found.asked, "most graphs should be ones that OpenVINO runs"


def runs_of(graph: Graph) -> int:
    """Return the number of runs that are safe given the variables left by each."""
    if not graph.sinks:
        return 0
    written = {la.attributes["variable_id"]: la.sources[0] for la in graph.sinks}
    held = [la for la in graph.layers if la.type == "ReadValue"]
    fed = {la: written[la.attributes["variable_id"]].pair for la in held}
    for run in range(1, RUNS):
        try:
            found = graph.replay(fed)
        except UnsafeError:
            return run
        left = {la: written[la.attributes["variable_id"]] for la in held}
        fed = {la: found[t.layer][t.port] for la, t in left.items()}
    return RUNS


def compare(graph: Graph, oracle: Oracle) -> None:
    """Compare results with OpenVINO's, and inferred types with OpenVINO's and with the results.

    OpenVINO gets a file with static shapes, as its plugin may give empty tensors for dynamic ones.
    """
    writer, _ = graph.write()
    xml, weights = writer.xml(), writer.weights
    closed, _ = graph.write(closed=True)
    fed = [p.outputs[0].value for p in graph.parameters()]
    runs = runs_of(graph)
    wanted = oracle.ask(closed.xml(), closed.weights, fed, runs)
    theirs = inferred(xml, weights)
    model = ir_runtime.read_model(xml, weights)
    assert list(model.report) == []
    for output, shape, array in zip(model.outputs, theirs, wanted, strict=True):
        assert output.partial_shape.refines(shape), f"{output.partial_shape} is wider than OpenVINO's {shape}"
        assert output.partial_shape.contains(array.shape)
    for backend in available():
        request = ir_runtime.compile_model(model, backend=backend).create_infer_request()
        for _ in range(runs or RUNS):
            found = request.infer(fed)
        for i, array in enumerate(wanted):
            assert_close(found[i], array)


def inferred(xml: bytes, weights: bytes) -> list[ir_runtime.PartialShape]:
    try:
        model = read(xml, weights)
    except RuntimeError as reason:
        raise RefusedError from reason
    return [ir_runtime.PartialShape(str(o.get_partial_shape())) for o in model.outputs]


def assert_close(found: Array, wanted: Array) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if ElementType.from_dtype(wanted.dtype) is ElementType.bf16:
        # Without an instruction for it, the plugin cuts digits off where it should round.
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
        np.testing.assert_allclose(found, wanted, rtol=2**-7)
        return
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    largest = np.abs(wanted[np.isfinite(wanted)].astype(np.float64)).max(initial=0.0)
    np.testing.assert_allclose(found, wanted, rtol=RTOL, atol=RTOL * largest)


def agree(graph: Graph, oracle: Oracle) -> None:
    try:
        compare(graph, oracle)
    except RefusedError:
        reject()  # nothing to compare with
    except Exception as reason:
        raise AssertionError(f"{reason}\n{graph.write()[0].xml().decode()}") from reason


@settings(often, max_examples=30)
@given(graphs())
def test_agrees_with_openvino(oracle: Oracle, graph: Graph) -> None:
    agree(graph, oracle)


@pytest.mark.oracle
@settings(often, max_examples=300)
@given(graphs())
def test_more_graphs_agree_with_openvino(oracle: Oracle, graph: Graph) -> None:
    agree(graph, oracle)
