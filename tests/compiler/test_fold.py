"""Constant folding: which results are worth keeping."""

import numpy as np
import pytest

import ir_runtime as ov
from ir_runtime import opset7
from ir_runtime.compiler.evaluate import is_foldable


def folded(*axes):
    """Return whether the sum over some axes of a product of three constants is folded."""
    parts = [opset7.constant(np.ones(shape, np.float32)) for shape in ((64, 1, 1), (1, 64, 1), (1, 1, 512))]
    large = opset7.multiply(opset7.multiply(parts[0], parts[1]), parts[2])
    known = opset7.reduce_sum(opset7.exp(large), np.array(axes), True) if axes else opset7.exp(large)
    x = opset7.parameter([64, 64, 512], np.float32)
    compiled = ov.compile_model(ov.Model([opset7.add(x, known)], [x]), backend="numpy")
    return {step.layer.type for step in compiled._plan.steps} == {"Add"}


def test_large_results_that_become_small_are_computed_once():
    """For example, filters that are sums of a few functions at many points."""
    assert folded(1)


def test_large_results_are_computed_again():
    """Storing them would take more memory than the network itself."""
    assert not folded()


@pytest.mark.parametrize(("length", "expected"), [(1 << 24, True), ((1 << 24) + 1, False)])
def test_temporary_results_take_at_most_64_mib(length, expected):
    large = opset7.broadcast(opset7.constant(np.float32(1)), opset7.constant([length]))
    model = ov.Model([opset7.reduce_sum(large, np.array([0]))], [])
    [layer] = model._graph.of_type("Broadcast")
    assert is_foldable(model._graph, layer, model._values, 1 << 40, is_temporary=True) is expected
