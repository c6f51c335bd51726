"""Generated cases: drawn from the declarations, correct, reproducible by seed, and minimized if they fail."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest

from ir_runtime.conformance import generate
from ir_runtime.conformance.adapters import adapter
from ir_runtime.conformance.case import SEVERAL, Case, Tolerance
from ir_runtime.conformance.generate import Generated, shrink
from ir_runtime.conformance.judge import judge
from ir_runtime.conformance.recipe import Feed, Recipe, Step, Unfit
from ir_runtime.errors import InputError
from ir_runtime.ir.element import ElementType

COUNT = 24
F32 = ElementType.f32


@cache
def generated() -> Generated:
    return Generated(COUNT, 5)


@pytest.mark.parametrize("backend", ["reference", "numpy"])
def test_our_backends_pass(backend: str) -> None:
    for meta in generated().cases:
        case = Case.parse(generated().files(meta.id))
        assert judge(case, adapter(backend)(case)).message == "", meta


def test_cases_are_of_many_operations_types_and_layers() -> None:
    operations = Counter(meta.operation for meta in generated().cases)
    assert len(operations) > COUNT // 3
    assert operations[SEVERAL] >= 3
    assert len({element for meta in generated().cases for element in meta.inputs}) >= 5


def test_a_seed_gives_the_same_cases() -> None:
    assert Generated(3, 5).digest == Generated(3, 5).digest
    assert Generated(3, 5).cases == generated().cases[:3]
    assert Generated(3, 6).digest != Generated(3, 5).digest


def test_operations_are_selected() -> None:
    chosen = Generated(4, 0, lambda name: name in ("Abs-1", "Add-1"))
    assert {meta.operation for meta in chosen.cases} <= {"Abs-1", "Add-1", SEVERAL}
    with pytest.raises(InputError, match="no operation that is selected"):
        Generated(4, 0, lambda name: name == "Abs")


def test_layers_that_are_never_valid_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfit(*_: object) -> Recipe:
        raise Unfit("never")

    monkeypatch.setattr(generate, "_layer", unfit)
    with pytest.raises(InputError, match="none of 60 layers that were drawn for generated/0-00000 is valid"):
        Generated(1, 0)


def chain() -> Recipe:
    """x[4, 5] followed by Relu, Exp and Add of 2.5, and an unused array."""
    x = np.arange(20, dtype=np.float32).reshape(4, 5) / 7
    feeds = [Feed(x, F32), Feed(x, F32), Feed(np.float32(2.5), F32, constant=True)]
    steps = [Step("Relu-1", {}, [0]), Step("Exp-1", {}, [3]), Step("Add-1", {}, [4, 2])]
    return Recipe(feeds, steps)


def test_tolerances_are_those_that_were_measured() -> None:
    x = Feed(np.float32([1, -2, 0.5]), F32)
    assert Recipe([x], [Step("Abs-1", {}, [0])]).case("generated/x").tolerances == [Tolerance()]
    assert Recipe([x], [Step("Exp-1", {}, [0])]).case("generated/x").tolerances[0].ulp < 8


def test_errors_of_layers_count_where_later_ones_cancel() -> None:
    """Adding 10,000 and subtracting it again leaves multiples of 2**-10."""
    feeds = [Feed(np.float32([0.1, -0.3]), F32), Feed(np.float32(1e4), F32, constant=True)]
    case = Recipe(feeds, [Step("Add-1", {}, [0, 1]), Step("Subtract-1", {}, [2, 1])]).case("generated/x")
    assert 2**-11 < case.tolerances[0].absolute < 2**-7
    for backend in ("reference", "numpy"):
        assert judge(case, adapter(backend)(case)).message == ""


def test_a_case_keeps_only_what_its_failure_needs() -> None:
    case = chain().case("generated/x")
    assert (case.operation, len(case.inputs), case.source) == (SEVERAL, 1, "f64")
    np.testing.assert_allclose(case.expected[0], np.exp(case.inputs[0]) + 2.5, rtol=1e-6)
    smaller = shrink(chain(), "generated/x", lambda case: b'"Exp"' in case.xml)
    assert (smaller.operation, smaller.inputs[0].tolist()) == ("Exp-1", [[1.0]])
    lengthy = shrink(chain(), "generated/x", lambda case: case.inputs[0].shape[1] > 2)
    assert lengthy.inputs[0].shape == (3, 3)  # equal lengths change together
    assert len(Case.parse(dict(lengthy.files())).inputs) == 1


def test_models_that_are_not_valid_are_unfit() -> None:
    wide = Feed(np.ones((2, 3), np.float32), F32)
    narrow = Feed(np.ones((2, 2), np.float32), F32)
    with pytest.raises(Unfit, match="IR301"):
        Recipe([wide, narrow], [Step("Add-1", {}, [0, 1])]).case("generated/x")
