"""Judge the outputs of a side by the errors that rounding makes in the whole model."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, starmap
from typing import Any

import numpy as np

from ..ir.graph import Layer, Port
from ..ir.tensor import Array
from ..records import Json
from .caching import Entry, remembered, resumed
from .case import Case
from .decisions import pinned
from .inside import InsideDecisions
from .precision import emulated, perturbed
from .progress import stage
from .reference import Change, chained
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
        entry: where finished runs are kept; ``None`` if they are not.
    """

    def __init__(
        self,
        case: Case,
        exact: Mapping[Port, Array],
        inside: InsideDecisions,
        entry: Entry | None = None,
    ) -> None:
        self._case, self._exact, self._inside, self._entry = case, exact, inside, entry
        self.inherited: dict[Port, float] = {}
        """The relative errors that the inputs of layers bring."""
        self.outputs: list[OutputResult] = []
        """The outputs of the model, in order."""

    def run(self) -> list[Array]:
        """Compute the model in f64, and several times in the side's precision, all with the side's decisions.

        Returns:
            the outputs in f64.
        """
        case, first = self._case, _First(self._case, self._inside)
        with stage(0, 0.125):
            resumed(self._entry, "first", first)
        take, emulate, runs = first.take, emulated(case.precision), [first.outputs]
        with stage(0.125, 0.25):
            ours = first.outputs if emulate is None else self._plain("ours", take)
        for seed in range(RUNS):
            change = chained(emulate, perturbed(case.precision, seed), take)
            with stage(0.25 + 0.25 * seed / RUNS, 0.25 + 0.25 * (seed + 1) / RUNS):
                runs.append(self._plain(f"run-{seed}", change))
        with stage(0.5, 1):
            truth = self._truth(take)
        self.outputs = [
            self._judged(index, exact, [run[index] for run in runs], ours[index])
            for index, exact in enumerate(truth)
        ]
        return truth

    def _plain(self, name: str, change: Change) -> list[Array]:
        """The outputs of a run in the types of the model."""

        def compute() -> tuple[Json, list[Array]]:
            return None, self._case.plain.run(self._case.feeds, change, self._inside.replay())

        return remembered(self._entry, name, compute)[1]

    def _truth(self, take: Change) -> list[Array]:
        """The outputs in f64, and the errors that the inputs of layers bring."""
        case = self._case

        def compute() -> tuple[Json, list[Array]]:
            change = chained(take, case.rounding, self._inherit)
            outputs = case.wide.run(case.feeds, change, self._inside.replay())
            return [[port, error] for port, error in self.inherited.items()], outputs

        inherited, outputs = remembered(self._entry, "truth", compute)
        self.inherited = {Port(*port): error for port, error in inherited}
        return outputs

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


class _First:
    """The first run in the side's precision, whose decisions the others take where the side's were not observed."""

    def __init__(self, case: Case, inside: InsideDecisions) -> None:
        self._case, self._inside, self._own = case, inside, stored()
        self._seen = {port: array for port, array in case.tensors.items() if port.layer in case.deciding}
        self.take = pinned(ChainMap(self._seen, self._own))
        """A change that takes the decisions of the side, or else of this run."""
        self.outputs: list[Array] = []
        """The outputs of this run."""

    def run(self) -> None:
        """Compute the model."""
        case = self._case
        change = chained(emulated(case.precision), self._decide)
        self.outputs = case.plain.run(case.feeds, change, self._inside.replay())

    def _decide(self, layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if layer.id in self._case.deciding:
            for port, array in zip(layer.output_ports, outputs, strict=False):
                if port not in self._seen:
                    self._own[port] = array
        return self.take(layer, inputs, outputs)

    def saved(self) -> tuple[Json, Iterable[Array]]:
        """Return outputs and decisions."""
        return list(self._own), chain(self.outputs, self._own.values())

    def restore(self, record: Any, arrays: Iterator[Array]) -> None:
        """Take over outputs and decisions."""
        self.outputs = list(islice(arrays, len(self._case.plain.outputs)))
        self._own.update(zip(starmap(Port, record), arrays, strict=False))
