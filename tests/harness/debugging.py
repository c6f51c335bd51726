"""Helpers for tests of debugging tools: faulty executions, errors of bf16, and long work that can be interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import ml_dtypes
import numpy as np
import pytest
from models.networks import NETWORKS, save

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op
from ir_runtime.debug.case import Case
from ir_runtime.debug.compare import _report
from ir_runtime.debug.judging import LayerErrors, OutputErrors
from ir_runtime.debug.openvino_side import OpenVINO, _Probing
from ir_runtime.debug.reference import Recorder, Reference, chain_changes
from ir_runtime.debug.results import Comparison
from ir_runtime.debug.tensors import computed_layers, is_float, name_of
from ir_runtime.ir.graph import Layer, Port
from ir_runtime.ir.tensor import Array

Fault = Callable[[Array], Array]
"""Takes the result of a layer; returns another one."""

FAULTS: dict[str, Fault] = {
    "scaled": lambda y: y * y.dtype.type(1 + 1e-4),
    "in f16": lambda y: y.astype(np.float16).astype(y.dtype),
    "clamped": lambda y: np.minimum(y, y.dtype.type(0.8) * y.max()),
    "shifted": lambda y: np.roll(y, 1, -1),
    "biased": lambda y: y + y.dtype.type(1e-3) * np.abs(y).max(),
}


@dataclass
class WrongLayer:
    """The reference, with the result of one layer corrupted; optionally only if another layer is present."""

    name: str
    fault: Fault
    runs: int = 0
    needs: str = ""

    def observe(
        self, model: ir.Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> debug.Observation:
        """Run the model."""
        self.runs += 1
        recorder = Recorder(ports)
        complete = not self.needs or self.needs in {la.name for la in computed_layers(reference.graph)}
        results = Reference(model).run(feeds, chain_changes(self._change if complete else None, recorder))
        return debug.Observation("wrong", results, recorder.tensors)

    def _change(self, layer: Layer, inputs: Any, outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return (self.fault(outputs[0]), *outputs[1:]) if layer.name == self.name else outputs


@cache
def runs_bf16(asked: str = "bf16") -> bool:
    """Return whether the CPU plugin computes in bf16 on this processor when the precision ``asked`` is requested.

    It does with AVX512-BF16 or AMX; with AVX512-FP16, it computes in f16 if that is requested.
    """
    x = op.parameter([16, 16], np.float32, name="x")
    weights = op.constant(np.eye(16, dtype=np.float32))
    model = ir.Model([op.matmul(x, weights, False, False)], [x])
    reference = Reference(model)
    ports = [port for layer in computed_layers(reference.graph) for port in layer.output_ports]
    return "bf16" in OpenVINO(asked).observe(model, reference, [np.ones((16, 16), np.float32)], ports).ran


def needs_bf16() -> None:
    """Skip a test where OpenVINO computes in f32 regardless of the precision hint."""
    if not runs_bf16():
        pytest.skip(
            "the processor has neither AVX512-BF16 nor AMX: OpenVINO runs f32 where bf16 is asked for"
        )


@dataclass(frozen=True)
class Figures:
    """A run that was observed, and how well the emulation reproduces it.

    Args:
        report: the report of `debug.compare`.
        faithful: the fraction of tensors between execution nodes that could be observed without changing the result.
        compiles: the number of models that OpenVINO compiled.
        equal: by tensor, the fraction of elements equal to the emulation.
        beyond: by tensor, the fraction of elements more than one bf16 ulp from it.
        seconds: CPU time.
    """

    report: Comparison
    faithful: float
    compiles: int
    equal: dict[str, float]
    beyond: dict[str, float]
    seconds: float

    @property
    def reproduced(self) -> float:
        """The fraction of tensors with more than 99 % of their elements equal to the emulation."""
        return sum(part > 0.99 for part in self.equal.values()) / len(self.equal)

    @property
    def far(self) -> dict[str, float]:
        """The tensors with more than 2 % of their elements off by more than one ulp."""
        return {name: part for name, part in self.beyond.items() if part > 0.02}


def figures(model: ir.Model, inputs: object, hint: str = "bf16") -> Figures:
    """Compare with OpenVINO at a precision hint."""
    start, run, compiles = time.process_time(), _Probing._run_probes, []

    def counting(self: _Probing, ports: object) -> object:
        compiles.append(1)
        return run(self, ports)  # type: ignore[arg-type]

    plain, wide = Reference(model), Reference(model, wide=True)
    feeds = plain.feeds(inputs)
    ports = [port for layer in computed_layers(plain.graph) for port in layer.output_ports]
    with patch.object(_Probing, "_run_probes", counting):
        seen = OpenVINO(hint).observe(model, plain, feeds, ports)
    case = Case(plain, wide, feeds, seen, "real")
    layers = LayerErrors(case, {})
    outputs = OutputErrors(case, layers.exact.tensors, layers.rounded.inside)
    layers.run()
    outputs.run()
    report = _report(case, layers, outputs)
    beyond = dict(_beyond(case, layers))
    equal = {unit.name: unit.equal for unit in report.units}
    missing = sum(is_float(plain.types, port) for port in seen.unobserved)
    numbers = sum(is_float(plain.types, port) for port in case.tensors)
    faithful = numbers / max(numbers + missing, 1)
    return Figures(report, faithful, len(compiles), equal, beyond, time.process_time() - start)


def _beyond(case: Case, layers: LayerErrors) -> Iterator[tuple[str, float]]:
    for port, rounded in layers.rounded.tensors.items():
        found = case.tensors[port]
        if found.dtype.kind == "f" and found.size:
            yield name_of(case.plain.graph, port), float((_units_apart(found, rounded) > 1).mean())


def _units_apart(a: Array, b: Array) -> Array:
    """Return the distance of two arrays in bf16 ulps."""
    return np.abs(_place(a) - _place(b))


def _place(numbers: Array) -> Array:
    """Return the position of each element, rounded to bf16, in the sequence of all bf16 values."""
    bits = numbers.astype(ml_dtypes.bfloat16).view(np.int16).astype(np.int32)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


def network(name: str, folder: Path, **limits: int) -> tuple[ir.Model, list[Array]]:
    """Return a network that is read with limits, and its inputs."""
    path = folder / f"{name}.xml"
    model = ir.read_model(path if path.exists() else save(name, folder), limits=ir.Limits(**limits))  # type: ignore[arg-type]
    return model, NETWORKS[name][1]()


def interrupting(at: float) -> Callable[[float, str], None]:
    """Return a progress callback that interrupts once this fraction of the work (0 to 1) is done."""

    def show(part: float, _: str) -> None:
        if part >= at:
            raise KeyboardInterrupt

    return show


def noting(seen: list[list[str]], at: float) -> Callable[[float, str], None]:
    """Return a progress callback that records the layers of each run in a new list, and interrupts at a fraction."""
    seen.append([])

    def show(part: float, layer: str) -> None:
        seen[-1].append(layer)
        if part >= at:
            raise KeyboardInterrupt

    return show
