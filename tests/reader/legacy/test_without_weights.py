"""Old files without their ``.bin``: shapes and costs follow from what they declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from harness.legacy import CASES, Case, LegacyNet
from reader.legacy.test_networks import NETWORKS, Twin

import ir_runtime as ir


def cost(net: LegacyNet, weights: bytes | None) -> dict[str, Any]:
    """Count the cost of a file; whether shapes are declared ones is left out."""
    record = ir.cost(ir.read_model(net.xml(), weights, strict=False)).record()
    for layer in record["layers"]:
        del layer["is_declared"]
    return record


@pytest.mark.parametrize("build", NETWORKS)
def test_the_cost_is_that_of_the_file_with_its_weights(build: Callable[[], Twin]) -> None:
    net = build().net
    assert cost(net, None) == cost(net, bytes(net.weights))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.type} {case.data}"[:80])
def test_missing_weights_are_the_only_error_of_a_layer(case: Case) -> None:
    net = case.net()
    model = ir.read_model(net.xml(), strict=False)
    assert {str(found.code) for found in model.report.errors} <= {"IR004"}
    with_weights = ir.read_model(net.xml(), net.weights)
    assert [port.partial_shape for port in model.outputs] == [
        port.partial_shape for port in with_weights.outputs
    ]
    assert [la.type for la in model._graph] == [la.type for la in with_weights._graph]


def test_such_a_file_is_neither_run_nor_written() -> None:
    net = NETWORKS[0]().net
    model = ir.read_model(net.xml(), strict=False)
    with pytest.raises(ir.UnsupportedError, match="have no data"):
        ir.compile_model(model)
    with pytest.raises(ir.IRError, match="no weights were found"):
        ir.save_model(model, "never.xml")
