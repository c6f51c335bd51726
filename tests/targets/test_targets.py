"""Networks give equal results on the kernels of every target, up to rounding."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness.other_vectors import OTHERS

import ir_runtime as ir
from ir_runtime.backends.native.codegen.target import TARGET
from ir_runtime.backends.native.codegen.targets import TARGETS
from ir_runtime.backends.native.kernels import quantized_network
from ir_runtime.ir.tensor import Array
from targets.__main__ import BOUND, compare, difference, run
from targets.machine import requirements
from targets.networks import quantized, write


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


def test_a_network_of_integers_is_one_kernel_on_every_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds where f32 products are as fast, too, as f32 sums would give other levels."""
    model, data = quantized()
    monkeypatch.setattr(quantized_network, "IS_FAST", False, raising=False)
    called = []

    def call(_: object, data: Array, *constants: Array) -> Array:
        called.append(len(constants))
        return np.zeros((1, 32, 16, 16), np.float32)

    monkeypatch.setattr(quantized_network._Network, "__call__", call)
    ir.compile_model(model, backend="native")(data)
    assert len(called) == 1


@pytest.mark.parametrize("target", [target.name for target in TARGETS.values() if target.is_arm])
def test_integers_are_multiplied_and_added_by_one_instruction_of_aarch64(target: str) -> None:
    code = """
from ir_runtime.backends.native.build.compiler import optimise, target_machine, text_of
from ir_runtime.backends.native.codegen.target import TARGET
from ir_runtime.backends.native.kernels._int8_gemm import levels_panel
machine = target_machine(TARGET, "aarch64-linux-gnu")
assembly = machine.emit_assembly(optimise(text_of(levels_panel, TARGET), machine))
assert "smlal" in assembly and "\tmul\tv" not in assembly
"""
    environment = os.environ | {"IR_RUNTIME_BUILDING": target}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
