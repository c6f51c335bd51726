"""Executions that are wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.debug.reference import Recorder, Reference, chained
from ir_runtime.debug.tensors import computed_layers
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
    """The reference, but for one layer, whose result is another one; if asked for, only where another layer is there."""

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
        results = Reference(model).run(feeds, chained(self._change if complete else None, recorder))
        return debug.Observation("wrong", results, recorder.tensors)

    def _change(self, layer: Layer, inputs: Any, outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return (self.fault(outputs[0]), *outputs[1:]) if layer.name == self.name else outputs
