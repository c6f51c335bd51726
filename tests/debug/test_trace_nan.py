"""The origins of Inf and NaN."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from harness.nets import Net

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op
from ir_runtime.cli import main


def quotient() -> Net:
    """exp(x) / (exp(x) + 1), which is NaN if exp(x) overflows."""
    net = Net()
    grown = net.op("Exp", net.parameter("x", "3"), name="grown")
    more = net.op("Add", grown, net.constant(np.float32([1]), "f32"), name="more")
    net.result(net.op("Divide", grown, more, name="quotient"))
    return net


def model() -> ir.Model:
    net = quotient()
    return ir.read_model(net.xml(), net.weights)


def test_finite_runs_have_no_origin() -> None:
    found = debug.trace_nan(model(), np.float32([0, 1, 2]))
    assert found.first is None
    assert "no Inf and no NaN in f32" in str(found)


@pytest.mark.parametrize(("precision", "x"), [("f32", 100), ("f16", 12), ("bf16", 100)])
def test_the_first_layer_is_named_with_its_place(precision: str, x: float) -> None:
    found = debug.trace_nan(model(), np.float32([0, x, 2]), precision)
    assert [origin.layer for origin in found.origins] == ["grown"]
    assert found.first is not None
    assert (found.first.kind, found.first.index, found.first.count) == ("Inf", (1,), 1)
    assert found.first.largest == pytest.approx(np.exp(x))
    assert found.first.inputs == ((0.0, float(x)),)


def test_others_are_listed_by_how_near_they_are() -> None:
    found = debug.trace_nan(model(), np.float32([0, 11, 2]), "f16")
    assert found.first is None
    assert [peak.layer for peak in found.peaks] == ["grown", "more", "quotient"]
    assert found.peaks[0].part == pytest.approx(np.exp(11) / 65504, rel=1e-3)


def test_unknown_types_are_refused() -> None:
    with pytest.raises(ir.InputError, match="unknown precision 'f8'"):
        debug.trace_nan(model(), np.float32([0, 1, 2]), "f8")


@pytest.mark.parametrize(("x", "code"), [(1, 0), (100, 1)])
def test_the_command_ends_with_whether_there_is_one(x: float, code: int, tmp_path: Path) -> None:
    net = quotient()
    (tmp_path / "net.xml").write_bytes(net.xml())
    (tmp_path / "net.bin").write_bytes(net.weights)
    np.save(tmp_path / "x.npy", np.float32([0, x, 2]))
    line = ["trace-nan", str(tmp_path / "net.xml"), "-i", str(tmp_path / "x.npy"), "--json"]
    done = CliRunner().invoke(main, line)
    assert done.exit_code == code, done.output
    assert len(json.loads(done.stdout)["origins"]) == code


def attention(mask: np.ndarray, scores: np.ndarray) -> debug.NanTrace:
    """Scores plus a mask, and the SoftMax of each row."""
    x = op.parameter(list(scores.shape), np.float32, name="scores")
    masked = op.add(x, op.constant(mask), name="masked")
    weights = op.softmax(masked, 1, name="weights")
    return debug.trace_nan(ir.Model([op.relu(weights, name="out")], [x]), scores)


def test_nan_made_of_infinities_is_found_with_its_path() -> None:
    """In a fully masked row, Inf comes from a constant and NaN from SoftMax."""
    inf = np.float32(-np.inf)
    mask = np.array([[0, inf], [inf, inf]], np.float32)
    (origin,) = attention(mask, np.zeros((2, 2), np.float32)).origins
    assert (origin.layer, origin.kind, origin.index, origin.count) == ("weights", "NaN", (1, 0), 2)
    assert origin.path == ("out",)
    assert origin.record()["path"] == ["out"]
    trace = str(attention(np.array([[inf, inf]], np.float32), np.zeros((1, 2), np.float32)))
    assert "inputs with Inf, -inf to -inf\n  reaches an output through 'out'" in trace


def test_zero_times_infinity_is_found() -> None:
    x = op.parameter([2], np.float32, name="x")
    product = op.multiply(x, op.constant(np.float32([np.inf, 1])), name="product")
    (origin,) = debug.trace_nan(ir.Model([product], [x]), np.float32([0, 1])).origins
    assert (origin.layer, origin.kind, origin.path) == ("product", "NaN", ())


def test_masks_that_reach_no_output_are_harmless() -> None:
    """Two masks of the lowest value add up to -Inf, which SoftMax maps to 0."""
    low = np.finfo(np.float32).min
    found = attention(np.array([[0, low]], np.float32), np.array([[0, low]], np.float32))
    assert found.origins == ()
    assert [origin.layer for origin in found.harmless] == ["masked"]
    assert str(found).startswith(
        "no Inf and no NaN in f32 reaches an output\nharmless, as it reaches no output: 'masked'"
    )
    assert found.record()["harmless"][0]["layer"] == "masked"


def test_what_follows_an_overflow_is_on_its_path() -> None:
    x = op.parameter([2], np.float32, name="x")
    grown = op.exp(x, name="grown")
    difference = op.subtract(grown, op.abs(grown, name="again"), name="difference")
    (origin,) = debug.trace_nan(ir.Model([difference], [x]), np.float32([1, 100])).origins
    assert (origin.layer, origin.kind, origin.path) == ("grown", "Inf", ("difference",))
