"""Regression tests for findings: files in ``cases``, named after the expected outcome, or models built here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from harness.nets import Net

from ir_runtime.codes import Code

from .corpus import Case, read
from .worker import SECONDS, guarded

FILES = sorted((Path(__file__).parent / "cases").glob("*.xml"))
BUILT: dict[Callable[[], Net], str] = {}


def built(outcome: str) -> Callable[[Callable[[], Net]], Callable[[], Net]]:
    """Register a model that is built rather than stored, with the expected outcome."""

    def register(build: Callable[[], Net]) -> Callable[[], Net]:
        BUILT[build] = outcome
        return build

    return register


def becomes(case: Case, outcome: str) -> None:
    # Beside busy processes a core computes half as much in a second; what goes wrong takes far more.
    result = guarded(case, seconds=4 * SECONDS)
    assert not result.finding, f"{result.finding}\n{result.detail}"
    assert result.outcome == outcome


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files(path: Path) -> None:
    becomes(read(path), path.stem.partition("_")[0])


@pytest.mark.parametrize("build", BUILT, ids=lambda build: build.__name__)
def test_built(build: Callable[[], Net]) -> None:
    net = build()
    becomes(Case(build.__name__, net.xml(), net.weights), BUILT[build])


@built("IR308")
def lengths_that_grow_beyond_all_numbers() -> Net:
    net = Net()
    x = net.parameter("x", "?,1..9223372036854775807")
    for _ in range(60):
        x = net.op("Concat", *[x] * 60, axis=1)
    net.result(x)
    return net


@built("model")
def lengths_that_are_multiplied_again_and_again() -> Net:
    net = Net()
    x = net.parameter("x", "1..99999999999999999")
    shape = net.op("ShapeOf", x, version="opset3", output_type="i64")
    for _ in range(250):
        shape = net.op("Multiply", shape, net.constant([9223372036854775807]))
    net.result(net.op("Reshape", x, shape, special_zero=False))
    return net


@built(Code.BAD_ATTRIBUTE)
def constant_without_a_type() -> Net:
    net = Net()
    net.result(net.op("Const", element_type="dynamic", shape="2", offset=0, size=8))
    net.weights = bytes(8)
    return net


@built(Code.BAD_ATTRIBUTE)
def attribute_that_is_a_book() -> Net:
    net = Net()
    net.result(net.op("Relu", net.parameter("x", "1e," * 100_000), name="\U0001d518\n" * 50_000))
    return net


@built(Code.UNKNOWN_OPERATION)
def names_that_are_books() -> Net:
    net = Net()
    net.result(net.op("Relu" * 50_000, net.parameter("x", "2"), version="opset" * 50_000, name="x" * 200_000))
    return net


@built("model")
def loops_in_loops_in_loops() -> Net:
    """The loop state changes its shape in the innermost body."""
    inner = Net()
    part = inner.parameter("part", "1")
    inner.result(inner.op("Concat", part, part, axis=0))
    ties = (
        '<port_map><input external_port_id="0" internal_layer_id="0"/>'
        '<output external_port_id="1" internal_layer_id="2"/></port_map>'
        '<back_edges><edge from-layer="2" to-layer="0"/></back_edges>'
    )
    for _ in range(30):
        inside = inner.xml().decode().partition("<layers>")[2].rpartition("</net>")[0]
        inner = Net()
        part = inner.parameter("part", "1")
        inner.result(inner.op("TensorIterator", part, inside=f"{ties}<body><layers>{inside}</body>"))
    return inner


@built("model")
def parts_that_also_go_round() -> Net:
    """Without any part, the loop state is empty."""
    inner = Net()
    inner.result(inner.op("Relu", inner.parameter("part", "1,2")))
    inside = inner.xml().decode().partition("<layers>")[2].rpartition("</net>")[0]
    ties = (
        '<port_map><input axis="0" external_port_id="0" internal_layer_id="0"/>'
        '<output external_port_id="1" internal_layer_id="2"/></port_map>'
        '<back_edges><edge from-layer="2" to-layer="0"/></back_edges>'
    )
    net = Net()
    x = net.parameter("x", "?,2")
    net.result(net.op("TensorIterator", x, inside=f"{ties}<body><layers>{inside}</body>"))
    return net


@built("model")
def body_that_nothing_is_fed_into() -> Net:
    """A Parameter that is neither in the port map nor read."""
    inner = Net()
    inner.parameter("unread", "?")
    inner.result(inner.op("Relu", inner.parameter("part", "1,2")))
    inside = inner.xml().decode().partition("<layers>")[2].rpartition("</net>")[0]
    ties = (
        '<port_map><input axis="0" external_port_id="0" internal_layer_id="1"/>'
        '<output axis="0" external_port_id="1" internal_layer_id="3"/></port_map>'
    )
    net = Net()
    x = net.parameter("x", "3,2")
    net.result(net.op("TensorIterator", x, inside=f"{ties}<body><layers>{inside}</body>"))
    return net


@built(Code.CONTRADICTION)
def parts_beyond_memory() -> Net:
    """Slices of a fully unknown tensor, of which there may be any number."""
    net = Net()
    net.result(
        net.layer("Split", [net.parameter("x", "..."), net.constant(0)], [""] * 2, num_splits=1 << 62)[0]
    )
    return net


@built("model")
def grid_of_a_side_beyond_memory_and_one_of_nothing() -> Net:
    net = Net()
    sizes = net.constant([844424930131971, 0]), net.constant([0, 68499574439680])
    net.result(net.op("PriorBox", *sizes, offset=0.5))
    return net


@built(Code.LIMIT)
def slice_of_an_axis_longer_than_any() -> Net:
    net = Net()
    x = net.parameter("x", "4,1495872112882155326..")
    bounds = [net.constant([n]) for n in (0, 1, 1, 1)]
    net.result(net.op("Slice", x, *bounds, version="opset8"))
    return net


@built(Code.UNKNOWN_OPERATION)
def constant_of_a_version_that_there_is_not() -> Net:
    """Its data cannot be saved."""
    net = Net()
    net.result(net.constant([1.0, 2.0], "f32"))
    net.layers[0] = net.layers[0].replace(
        'type="Const" version="opset1"', 'type="Constant" version="opset99"'
    )
    return net


@built("model")
def attributes_that_fill_the_file() -> Net:
    net = Net()
    unknown = {f"a{n}": "1" for n in range(40_000)}
    net.result(net.op("ReLU", net.parameter("x", "2"), **unknown))
    return net
