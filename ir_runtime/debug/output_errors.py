"""Judge the outputs of a side by the errors that rounding makes in the whole model.

The model runs in f64, and several times in the side's precision with random rounding: the largest of these errors is what
rounding explains.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, starmap
from typing import Any

import numpy as np

from .._util.records import Json
from ..ir.blocks import blocks
from ..ir.graph import Layer, Port
from ..ir.tensor import Array
from .body_decisions import BodyDecisions
from .caching import Entry, remembered, resumed
from .case import Case
from .decisions import pinned
from .precision import COPIES, perturbed
from .progress import stage
from .reference import Change, chained
from .results import OutputResult
from .spilling import Kept
from .spilling import tensors as stored
from .tensors import is_float
from .verdict import Error, difference, error_of, excess, scatter_of, with_steps

__all__ = ["OutputErrors"]

RUNS = 3
"""The number of runs with random rounding, in addition to the plain one."""


class OutputErrors:
    """The errors of the outputs.

    Args:
        case: the judged case.
        exact: the f64 results for the side's own tensors.
        inside: the decisions inside bodies.
        entry: the cache entry of finished runs, or ``None``.
    """

    def __init__(
        self,
        case: Case,
        exact: Mapping[Port, Array],
        inside: BodyDecisions,
        entry: Entry | None = None,
    ) -> None:
        self._case, self._exact, self._inside, self._entry = case, exact, inside, entry
        self.inherited: dict[Port, float] = {}
        """The relative errors of the inputs of layers."""
        self.outputs: list[OutputResult] = []
        """The outputs of the model, in order."""

    def run(self) -> Sequence[Array]:
        """Compute the model in f64, and several times in the side's precision, all with the side's decisions.

        Returns:
            the outputs in f64.
        """
        case, first = self._case, _FirstRun(self._case, self._inside)
        with stage(0, 0.125):
            resumed(self._entry, "first", first)
        take, emulate = first.take, case.numerics.emulate()
        with stage(0.125, 0.625):
            truth = self._truth(take)
        lost = self._lost(first.outputs, truth)
        errors = [self._errors(first.outputs, truth, lost)]
        with stage(0.625, 0.75):
            ours = errors[0] if emulate is None else self._errors(self._plain("ours", take), truth, lost)
        for seed in range(RUNS):
            change = chained(emulate, perturbed(case.numerics.precision, seed), take)
            with stage(0.75 + 0.25 * seed / RUNS, 0.75 + 0.25 * (seed + 1) / RUNS):
                errors.append(self._errors(self._plain(f"run-{seed}", change), truth, lost))
        self.outputs = [
            self._judge(index, exact, [run[index] for run in errors], ours[index], lost[index])
            for index, exact in enumerate(truth)
            if index not in self._case.seen.absent
        ]
        return truth

    def _plain(self, name: str, change: Change) -> Sequence[Array]:
        """Return the outputs of a run in the side's precision."""

        def compute() -> tuple[Json, list[Array]]:
            case = self._case
            copies = COPIES[case.numerics.precision]
            return None, case.reference.run(case.feeds, change, self._inside.replay(), copies)

        return remembered(self._entry, name, compute)[1]

    def _truth(self, take: Change) -> Sequence[Array]:
        """Return the outputs in f64, and record the errors of the inputs of layers."""
        case = self._case

        def compute() -> tuple[Json, list[Array]]:
            change = chained(take, case.rounding, self._inherit)
            outputs = case.wide.run(case.feeds, change, self._inside.replay())
            return [[port, error] for port, error in self.inherited.items()], outputs

        inherited, outputs = remembered(self._entry, "truth", compute)
        self.inherited = {Port(*port): error for port, error in inherited}
        return Kept(outputs)

    def _inherit(self, layer: Layer, _: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        for port, array in zip(layer.output_ports, outputs, strict=False):
            if port in self._exact and is_float(self._case.plain.types, port):
                self.inherited[port] = error_of(self._exact[port], array).relative
        return outputs

    def _lost(self, outputs: Sequence[Array], truth: Sequence[Array]) -> list[Array | None]:
        """Return a mask for each output of elements that are infinite or NaN in the side's precision, if any."""
        return [
            _lost_elements(output, exact) if is_float(self._case.plain.types, port._port) else None
            for port, output, exact in zip(self._case.plain.outputs, outputs, truth, strict=True)
        ]

    def _errors(
        self, outputs: Sequence[Array], truth: Sequence[Array], lost: Sequence[Array | None]
    ) -> list[Error]:
        """Return the errors of a run's outputs, so that the outputs need not be kept; integers have error 0."""
        ports, numerics = self._case.plain.outputs, self._case.numerics
        return [
            error_of(output, exact, numerics.limit_of(output), mask)
            if is_float(self._case.plain.types, port._port)
            else Error(0.0, 0.0, 0.0)
            for port, output, exact, mask in zip(ports, outputs, truth, lost, strict=True)
        ]

    def _judge(
        self, index: int, exact: Array, runs: Sequence[Error], ours: Error, lost: Array | None
    ) -> OutputResult:
        port, output = self._case.plain.outputs[index], self._case.seen.outputs[index]
        precision = self._case.numerics.label
        if not is_float(self._case.plain.types, port._port):
            wrong = output.shape != exact.shape or any((a != b).any() for a, b in blocks(output, exact))
            off, reason = (np.inf, difference(output, exact)) if wrong else (0.0, "")
            return OutputResult(
                port.label, off, 0.0, off, 0.0, reason=reason, precision=precision, index=index
            )
        error = error_of(output, exact, self._case.numerics.limit_of(output), lost)
        scatter = with_steps(scatter_of(runs), self._case.seen.steps.get(port._port, 0.0))
        output_excess = excess(error, scatter)
        reason = error.reason or (difference(output, exact) if output_excess == np.inf else "")
        return OutputResult(
            name=port.label,
            relative=error.relative,
            scatter=scatter.relative,
            excess=output_excess,
            ours=ours.relative,
            beyond=error.beyond,
            of=exact.size,
            reason=reason,
            precision=precision,
            index=index,
        )


def _lost_elements(output: Array, exact: Array) -> Array | None:
    if output.shape != exact.shape or all(np.isfinite(block).all() for (block,) in blocks(output)):
        return None
    lost = ~np.isfinite(output) & np.isfinite(exact)
    return lost if lost.any() else None


class _FirstRun:
    """The first run in the side's precision; the others take its decisions where the side's were not observed."""

    def __init__(self, case: Case, inside: BodyDecisions) -> None:
        self._case, self._inside, self._own = case, inside, stored()
        self._seen = {port: array for port, array in case.tensors.items() if port.layer in case.deciding}
        self.take = pinned(ChainMap(self._seen, self._own))
        """A change that applies the decisions of the side, or else of this run."""
        self.outputs: Sequence[Array] = ()
        """The outputs of this run."""

    def run(self) -> None:
        """Run the model."""
        case = self._case
        change = chained(case.numerics.emulate(), self._decide)
        copies = COPIES[case.numerics.precision]
        outputs = case.reference.run(case.feeds, change, self._inside.replay(), copies)
        self.outputs = Kept(outputs)

    def _decide(self, layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if layer.id in self._case.deciding:
            for port, array in zip(layer.output_ports, outputs, strict=False):
                if port not in self._seen:
                    self._own[port] = array
        return self.take(layer, inputs, outputs)

    def saved(self) -> tuple[Json, Iterable[Array]]:
        """Return outputs and decisions as a record and arrays."""
        return list(self._own), chain(self.outputs, self._own.values())

    def restore(self, record: Any, arrays: Iterator[Array]) -> None:
        """Restore outputs and decisions."""
        self.outputs = Kept(islice(arrays, len(self._case.plain.outputs)))
        self._own.update(zip(starmap(Port, record), arrays, strict=False))
