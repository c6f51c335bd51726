"""Networks give the same on the kernels of every target, but for rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness.other_vectors import OTHERS

from ir_runtime.backends.native.codegen.target import TARGET
from targets.__main__ import BOUND, compare, difference, run
from targets.machine import requirements
from targets.networks import write


@pytest.mark.oracle
@pytest.mark.long
def test_networks_give_the_same_on_other_targets(tmp_path: Path) -> None:
    write(tmp_path / "networks")
    for target in (TARGET.name, *OTHERS):
        run(tmp_path / "networks", tmp_path / target, target)
    for target in OTHERS:
        apart = compare(tmp_path / TARGET.name, tmp_path / target)
        assert len(apart) > 12
        assert {name: value for name, value in apart.items() if value > BOUND} == {}


def test_integers_and_what_is_no_number_must_be_the_same() -> None:
    whole, reals = np.arange(4), np.array([0, -4, np.nan, np.inf], np.float32)
    assert difference([whole, reals], [whole, reals]) == 0
    assert difference([whole], [whole[::-1]]) == np.inf
    assert difference([reals], [np.array([0, -4, np.inf, np.nan], np.float32)]) == np.inf
    assert difference([reals], [reals.astype(np.float64)]) == np.inf
    assert difference([reals[:2]], [reals[:1]]) == np.inf


def test_numbers_differ_relative_to_the_largest_one() -> None:
    assert difference([np.array([0, -4.0])], [np.array([1e-3, -4.0])]) == 1e-3 / 4
    assert difference([np.zeros(2)], [np.array([0, 1e-30])]) == np.inf


def test_an_emulated_machine_has_what_the_package_and_its_tests_need() -> None:
    names = {line.partition(">")[0].partition("=")[0] for line in requirements()}
    assert {"numpy", "lxml", "pytest", "openvino"} <= names
    assert not {"ruff", "torch"} & names
