"""Mutants are programs that differ in one place, and the tests that are run for one have to do with it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from .__main__ import Examiner, Outcome, exit_code, summary
from .mutate import mutants_of
from .related import ROOMS, other_tests, related_tests, samples_of

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "ir_runtime"
SOURCE = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    LONG = 1 << 2

@dataclass(frozen=True)
class Größe:
    def clip(self, x: Literal[1], most: int = 3) -> int:
        if x < 0 and not self.signed:
            raise ValueError(f"{x + 1}")
        self.count += 1
        return min(x, most) if most else None
"""


def test_operators_constants_and_statements_are_changed() -> None:
    changes = [(mutant.before, mutant.after) for mutant in mutants_of(SOURCE)]
    assert changes == [
        ("3", "(4)"),
        ("x < 0 and not self.signed", "(x < 0 or not self.signed)"),
        ("x < 0", "(x <= 0)"),
        ("0", "(1)"),
        ("not self.signed", "(self.signed)"),
        ('raise ValueError(f"{x + 1}")', "pass"),
        ("self.count += 1", "self.count -= 1"),
        ("1", "(2)"),
        ("return min(x, most) if most else None", "return None"),
        ("min(x, most) if most else None", "(min(x, most) if not most else None)"),
    ]


def test_a_mutant_is_a_program_that_differs_in_its_line() -> None:
    for mutant in mutants_of(SOURCE):
        assert ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(SOURCE))
        changed = [
            number
            for number, (line, other) in enumerate(
                zip(SOURCE.splitlines(), mutant.source.splitlines(), strict=True), 1
            )
            if line != other
        ]
        assert changed == [mutant.line]
        assert mutant.scope == ("Größe", "clip")


@pytest.mark.parametrize(
    ("module", "scope", "test"),
    [
        ("ops/movement/extend.py", ("PadBase", "_length"), "ops/test_movement_rest.py"),
        ("ops/_define/operation.py", ("Registry", "add"), "ops/test_contract.py"),
        ("analysis/cost.py", ("_Walk",), "analysis/test_cost.py"),
        ("compiler/match.py", ("ShapeCache",), "compiler/test_shape_cache.py"),
        ("compiler/narrow.py", ("_Narrowing",), "compiler/test_narrow.py"),
    ],
)
def test_related_tests_are_found(module: str, scope: tuple[str, ...], test: str) -> None:
    assert (PACKAGE / module).exists()
    assert TESTS / test in related_tests(TESTS, Path(module), scope)


def test_tests_of_other_parts_are_not_run_for_a_name_in_common() -> None:
    module = Path("analysis/constraints/lengths.py")
    assert TESTS / "backends" / "test_lengths.py" not in related_tests(TESTS, module, ("explore",))


@pytest.mark.parametrize("room", ROOMS)
def test_every_part_has_tests(room: str) -> None:
    assert (PACKAGE / room).is_dir()
    assert (TESTS / room).is_dir()


def test_samples_of_an_operation_are_run() -> None:
    arguments = samples_of(TESTS, Path("ops/shape.py"), ("Unsqueeze", "infer"))
    assert arguments[-1] == "Unsqueeze-"
    assert all(Path(file).exists() for file in arguments[:-2])
    assert samples_of(TESTS, Path("ops/detection/regions.py"), ("bins",))[-1] == "ROIPooling-"
    assert samples_of(TESTS, Path("executor/plan.py"), ("ExecutionPlan",)) == []


@pytest.mark.parametrize("scope", [("ReadValue3", "evaluate"), ("_ReadValueBase", "_read_value")])
def test_tests_that_name_an_operation_are_run(scope: tuple[str, ...]) -> None:
    """In whatever folder they are."""
    module = Path("ops/infrastructure.py")
    chosen = [*related_tests(TESTS, module, scope), *other_tests(TESTS, module, scope)]
    assert TESTS / "models" / "test_variables.py" in chosen
    assert len(chosen) == len(set(chosen))


@pytest.mark.parametrize(
    ("fails", "outcome"),
    [
        (lambda source: "", Outcome.SURVIVES),
        (lambda source: "test_it.py::test" * (source != SOURCE), Outcome.DIES),
        (lambda source: "signal 24" * (source != SOURCE), Outcome.DIES),
        (lambda source: "test_it.py::test", Outcome.UNKNOWN),
        (lambda source: "tests cannot be collected", Outcome.UNKNOWN),
    ],
)
def test_a_test_that_always_fails_kills_no_mutant(
    fails: Callable[[str], str], outcome: Outcome, tmp_path: Path
) -> None:
    module = Path("io/sizes.py")
    file = tmp_path / "ir_runtime" / module
    file.parent.mkdir(parents=True)
    file.write_text(SOURCE)
    examiner = Examiner(tmp_path, lambda folder, arguments: fails(file.read_text()))
    for mutant in mutants_of(SOURCE):
        assert examiner.examine(module, mutant)[0] is outcome
        assert file.read_text() == SOURCE


@pytest.mark.parametrize(
    ("outcomes", "code", "text"),
    [
        ({Outcome.DIES: 19, Outcome.SURVIVES: 1}, 0, "19 of 20 mutants die"),
        ({Outcome.DIES: 18, Outcome.SURVIVES: 2}, 1, "18 of 20 mutants die"),
        ({Outcome.DIES: 19, Outcome.UNKNOWN: 1}, 3, "19 of 19 mutants die; 1 more met tests that fail"),
    ],
)
def test_tests_that_always_fail_have_an_exit_code(outcomes: dict[Outcome, int], code: int, text: str) -> None:
    assert exit_code(Counter(outcomes)) == code
    assert summary(Counter(outcomes)).startswith(text)
