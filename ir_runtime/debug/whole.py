"""Judge the outputs of a side by the errors that rounding makes in the whole model."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence

import numpy as np

from ..ir.graph import Layer, Port
from ..ir.tensor import Array
from .case import Case
from .decisions import pinned
from .inside import InsideDecisions
from .precision import emulated, perturbed
from .progress import stage
from .reference import chained
from .results import OutputResult
from .spilling import tensors as stored
from .tensors import is_float
from .verdict import error_of, excess, scatter_of

__all__ = ["OutputErrors"]

RUNS = 3
"""Runs with random rounding, beside the plain one."""


class OutputErrors:
    """The errors of the outputs.

    Args:
        case: what is judged.
        exact: what f64 makes of the side's own tensors.
        inside: the decisions inside bodies.
    """

    def __init__(self, case: Case, exact: Mapping[Port, Array], inside: InsideDecisions) -> None:
        self._case, self._exact, self._inside = case, exact, inside
        self.inherited: dict[Port, float] = {}
        """The relative errors that the inputs of layers bring."""
        self.outputs: list[OutputResult] = []
        """The outputs of the model, in order."""

    def run(self) -> list[Array]:
        """Compute the model in f64, and several times in the side's precision, all with the side's decisions.

        Returns:
            the outputs in f64.
        """
        case, own = self._case, stored()
        seen = {port: array for port, array in case.tensors.items() if port.layer in case.deciding}
        take = pinned(ChainMap(seen, own))

        def first(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            if layer.id in case.deciding:
                for port, array in zip(layer.output_ports, outputs, strict=False):
                    if port not in seen:
                        own[port] = array
            return take(layer, inputs, outputs)

        emulate = emulated(case.precision)
        inside = self._inside
        with stage(0, 0.125):
            runs = [case.plain.run(case.feeds, chained(emulate, first), inside.replay())]
        with stage(0.125, 0.25):
            ours = runs[0] if emulate is None else case.plain.run(case.feeds, take, inside.replay())
        for seed in range(RUNS):
            change = chained(emulate, perturbed(case.precision, seed), take)
            with stage(0.25 + 0.25 * seed / RUNS, 0.25 + 0.25 * (seed + 1) / RUNS):
                runs.append(case.plain.run(case.feeds, change, inside.replay()))
        with stage(0.5, 1):
            truth = case.wide.run(case.feeds, chained(take, case.rounding, self._inherit), inside.replay())
        self.outputs = [
            self._judged(index, exact, [run[index] for run in runs], ours[index])
            for index, exact in enumerate(truth)
        ]
        return truth

    def _inherit(self, layer: Layer, _: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        for port, array in zip(layer.output_ports, outputs, strict=False):
            if port in self._exact and is_float(self._case.plain.types, port):
                self.inherited[port] = error_of(self._exact[port], array).relative
        return outputs

    def _judged(self, index: int, exact: Array, runs: Sequence[Array], ours: Array) -> OutputResult:
        port, found = self._case.plain.outputs[index], self._case.seen.outputs[index]
        if not is_float(self._case.plain.types, port._port):
            wrong = found.shape != exact.shape or bool((found != exact).any())
            off = np.inf if wrong else 0.0
            return OutputResult(port.label, relative=off, scatter=0.0, excess=off, ours=0.0)
        error, scatter = error_of(found, exact), scatter_of(error_of(run, exact) for run in runs)
        return OutputResult(
            name=port.label,
            relative=error.relative,
            scatter=scatter.relative,
            excess=excess(error, scatter),
            ours=error_of(ours, exact).relative,
        )
