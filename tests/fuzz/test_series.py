"""Work on growth series is bounded or proportional to the file. It is counted, not timed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest

import ir_runtime as ir
from ir_runtime.analysis.constraints.constraint import Dim
from ir_runtime.analysis.constraints.probing import EVALUATIONS, LOOKUPS, Budget
from ir_runtime.analysis.constraints.solver import find_constraints
from ir_runtime.analysis.constraints.symbols import names
from ir_runtime.cli import main as program
from ir_runtime.codes import Code
from ir_runtime.debug import matching
from ir_runtime.diagnostics import Diagnostics
from ir_runtime.io.reader.ports import _Reading
from ir_runtime.ir.dimension import LONGEST
from ir_runtime.openvino import model as models
from ir_runtime.openvino.costing import cost
from ir_runtime.report.names import DEEPEST
from ir_runtime.report.scopes import fold

from .series import SERIES, SHAPES, Net, colliding, model_of
from .test_floods import lines_run
from .usage import MEMORY, SECONDS, Usage, commands

TESTS = Path(__file__).parents[1]
FEW, TIMES, MOST, NOISE = 60, 4, 1.5, 8000
"""How many of what a shape repeats, how many times as many then, and how much more than in proportion is allowed."""


def read(shape: str, count: int) -> ir.Model:
    made = SHAPES[shape](count)
    return ir.read_model(made.xml, made.weights, limits=ir.Limits(findings=10))


def growth(work: Callable[[int], object]) -> tuple[int, int]:
    """Return the lines executed for a small and a `TIMES` larger model, without the constant part."""
    work(2)
    none, few, many = (lines_run(lambda count=count: work(count)) for count in (1, FEW, TIMES * FEW))  # type: ignore[misc]
    return few - none, many - none


@pytest.mark.parametrize("shape", ["lengths_squared", "lengths_doubled", "tiles", "pads"])
def test_lengths_stay_within_64_bits(shape: str) -> None:
    made = SHAPES[shape](80)
    report = ir.validate(made.xml, made.weights, limits=ir.Limits(findings=3))
    assert {finding.code for finding in report.errors} == {Code.LENGTH}


def test_bounds_of_lengths_stay_within_64_bits() -> None:
    made = SHAPES["dynamic_lengths_squared"](5)
    model = ir.read_model(made.xml, made.weights)
    assert max((dim.max or 0) for value in model._values.values() for dim in value.shape) <= LONGEST


def test_ranks_are_limited_where_layers_add_dimensions() -> None:
    made = SHAPES["broadcast_wider"](200)
    with pytest.raises(ir.LimitError, match="a tensor has 65 dimensions") as caught:
        ir.read_model(made.xml, made.weights)
    assert caught.value.limit == "rank"
    assert caught.value.where is not None
    assert caught.value.where.layer is not None


@pytest.mark.parametrize("shape", ["names_with_slashes", "names_with_different_slashes"])
def test_scopes_are_not_nested_without_end(shape: str) -> None:
    model = read(shape, 500)
    tree = fold(model._graph, model._values)
    assert max(len(item.path or ()) for item in tree.listing.items) <= DEEPEST


@pytest.mark.parametrize(
    "shape",
    [
        "scopes_left_and_entered",
        "scopes_many_on_a_cycle",
        "scopes_side_by_side",
        "deep_chain",
        "many_readers",
    ],
)
def test_drawing_takes_work_in_proportion(shape: str) -> None:

    def draw(model: ir.Model) -> None:
        fold(model._graph, model._values)

    few, many = (lines_run(partial(draw, read(shape, count))) for count in (160, TIMES * 160))
    assert many < 2 * TIMES * few + NOISE


def test_ids_cannot_make_tables_collide() -> None:
    """Pairs of integers can be chosen with equal hashes, but not with 18 digits."""
    assert len({hash(pair) for pair in colliding(50)}) == 1
    made = SHAPES["ports_that_collide"](50)
    model = ir.read_model(made.xml)
    reading = _Reading(model._graph.layers, "m.xml", Diagnostics(), frozenset())
    tables = [reading.outputs, reading.inputs, *reading.outputs.values()]
    for table in tables:
        assert max(Counter(map(hash, table)).values(), default=1) == 1


def test_open_lengths_are_limited() -> None:
    made = SHAPES["many_inputs"](3)  # of two open lengths each
    assert ir.read_model(made.xml, limits=ir.Limits(open_lengths=6)).constraints().accepted
    model = ir.read_model(made.xml, limits=ir.Limits(open_lengths=5))
    for analyse in (model.constraints, partial(cost, model)):
        with pytest.raises(ir.LimitError, match="inputs have 6 open lengths; the limit is 5") as caught:
            analyse()
        assert caught.value.limit == "open_lengths"
        assert caught.value.where is not None
        assert caught.value.where.layer == "in2"


@pytest.mark.parametrize("shape", ["many_open_lengths", "many_inputs"])
def test_queries_about_many_inputs_are_charged(shape: str) -> None:
    """A query takes time for each dynamic dim, even if all layers have been inferred before."""
    model = read(shape, 40)
    budget = Budget(evaluations=500)
    found = find_constraints(model._graph, model._values, model._parameter_types, budget)
    assert found.undecided
    dims = len(found.symbols)
    assert budget.queries * dims <= 500 * LOOKUPS


def test_inference_of_many_ports_is_charged() -> None:
    model = read("wide_concat", 500)
    budget = Budget(evaluations=2000)
    find_constraints(model._graph, model._values, model._parameter_types, budget)
    assert budget.evaluated <= 2000 + 500
    assert budget.queries <= 20


def test_budgets_grow_with_the_file() -> None:
    assert Budget.of(0).evaluations == Budget.of(1 << 20).evaluations == EVALUATIONS
    assert Budget.of(3 << 20).evaluations == 3 * EVALUATIONS
    assert Budget.of(1 << 40).evaluations < 10 * EVALUATIONS


def test_names_of_many_lengths_take_work_in_proportion() -> None:
    graph = read("many_inputs", 1)._graph
    layer = next(iter(graph.layers))

    def name(count: int) -> None:
        dims = [Dim(layer, axis) for axis in range(count)]
        names(graph, dict.fromkeys(dims, "seq"), [(dim,) for dim in dims])

    few, many = growth(name)
    assert many < MOST * TIMES * few + NOISE


def test_confirming_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each branch doubles its rows."""
    model = read("ifs_that_differ", 20)
    monkeypatch.setitem(models._CONFIRMING, "memory", 1 << 20)
    compile, memory = models.Model._compile, list[int | None]()

    def noting(model: models.Model, backend: str | None, limits: ir.Limits) -> Any:
        memory.append(limits.memory)
        return compile(model, backend, limits)

    monkeypatch.setattr(models.Model, "_compile", noting)
    found = model.constraints()
    assert memory == [1 << 20]
    assert not any("running fails" in text for text in found.undecided)


def test_models_of_many_layers_are_not_run_to_confirm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling and running each layer takes time, however small it is."""
    monkeypatch.setattr(models.Model, "_compile_run", lambda model: pytest.fail("it is compiled"))
    found = read("deep_chain", 100).constraints(seconds=0.02)
    assert found.accepted
    assert found.undecided[-1] == "whether it runs: not run: that takes too long here"


def test_commands_that_take_a_model_are_found() -> None:
    found = {command.name: command for command in commands()}
    assert {"validate", "shapes", "cost", "report", "graph", "inspect", "diff"} <= {
        name for name, command in found.items() if not command.runs
    }
    assert {"run", "profile", "compare", "oracle", "budget", "trace-nan"} <= {
        name for name, command in found.items() if command.runs
    }
    assert "--timeout" in found["run"].arguments


@pytest.mark.parametrize("name", [command.name for command in commands()])
def test_every_command_that_takes_a_model_has_limits(name: str) -> None:
    command = program.get_command(click.Context(program), name)
    assert command is not None
    assert {"--timeout", "--max-memory"} <= {
        option for parameter in command.params for option in parameter.opts
    }


def test_usage_is_measured() -> None:
    """In a program of its own, which starts small."""
    run = ["-m", "fuzz.usage", "--command", "validate", "--shape", "deep_chain", "--size", "2000", "-v"]
    done = subprocess.run([sys.executable, *run], cwd=TESTS, capture_output=True, text=True, check=True)
    (line, *_) = done.stdout.splitlines()
    assert re.fullmatch(r" +validate +deep_chain +\d+ +[\d.]+ s +\d+ MiB  exit 0  1 file, .*", line)


def test_problems_of_commands_are_named() -> None:
    used = Usage("validate", "deep_chain", 1, seconds=1, memory=1, code=0, said="")
    assert used.problem == ""
    assert replace(used, seconds=SECONDS + 1, memory=MEMORY + 1).problem == "time memory"
    assert replace(used, code=None).problem == "killed"
    assert replace(used, said="Traceback (most recent call last)").problem == "broken"


def test_shapes_are_many_and_fill_their_size() -> None:
    assert len(SERIES) > len(SHAPES) > 20
    assert 15_000 < len(model_of("deep_chain", 20_000).xml) <= 20_000


def _zigzag(count: int) -> Net:
    """Each sum reads two adjacent inputs of a row, so only the ends distinguish the sums."""
    net = Net()
    inputs = [net.input("2", name=f"in{i}") for i in range(count)]
    net.result(*[net.add("Add", pair) for pair in pairwise(inputs)])
    return net


def _alike(count: int) -> Net:
    net = Net()
    net.result(*[net.add("ReLU", [net.input("2")]) for _ in range(count)])
    return net


def _readers(count: int) -> Net:
    net = Net()
    x = net.input("2")
    net.result(*[net.add("ReLU", [x]) for _ in range(count)])
    return net


@pytest.mark.parametrize("make", [_zigzag, _alike, _readers])
def test_matching_takes_work_in_proportion(
    make: Callable[[int], Net], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "_VISITS", 0)
    graphs = {count: ir.read_model(make(count).model().xml)._graph for count in (2, 80, TIMES * 80)}

    def match_with_itself(count: int) -> None:
        assert not matching.match(graphs[count], graphs[count]).removed

    match_with_itself(2)
    few, many = (lines_run(partial(match_with_itself, count)) for count in (80, TIMES * 80))
    assert many < 2 * TIMES * few


def test_symbols_of_costs_take_work_in_proportion() -> None:
    def count(model: ir.Model) -> None:
        cost(model)

    few, many = (lines_run(partial(count, read("lengths_known_when_run", n))) for n in (30, TIMES * 30))
    assert many < MOST * TIMES * few


@pytest.mark.parametrize("shape", ["legacy_powers", "legacy_sums"])
def test_reading_old_files_takes_work_in_proportion(shape: str) -> None:
    few, many = growth(lambda count: read(shape, count))
    assert many < MOST * TIMES * few + NOISE
