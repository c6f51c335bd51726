"""Compare an execution of a model with f64: does rounding explain the difference, and if not, where does it begin?"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..api.model import Model
from ..codes import Code
from ..errors import InputError
from ..ir.graph import Layer, Port
from ..ir.tensor import Array
from .decisions import decides, explained_decisions, is_elementwise, jumps, pinned
from .inside import InsideDecisions
from .observation import Observation, Side
from .observed import observed
from .precision import ROUNDING, emulated, perturbed
from .progress import Interrupted, stage
from .reference import Reference, as_declared, chained, check_types
from .report import Comparison, DecisionResult, OutputResult, UnitResult
from .spilling import tensors as stored
from .spilling import within_room
from .tensors import computed_layers, is_float, name_of, unit_of
from .terms import Terms, terms_of
from .verdict import Error, error_of, excess, scatter_of, with_accumulation

__all__ = ["compare", "judged"]

SEEN = 0.35
"""Which part of the time observing the side is taken to need."""
RUNS = 3
"""Runs with random rounding, beside the plain one."""


def compare(
    model: Model,
    inputs: Any,
    side: str | Side | Mapping[Any, Any] | Sequence[Any],
    types: str = "real",
    precision: str = "",
) -> Comparison:
    """Say whether rounding explains how an execution of a model differs from f64.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> debug.compare(model, inputs, "numpy").explained
    True
    >>> debug.compare(model, inputs, {0: np.array([1, 2], np.float32)}).verdict
    'unexplained'

    Args:
        model: the model; it is not changed.
        inputs: as for a compiled model.
        side: what is judged: ``"openvino"``, or ``"openvino:bf16"`` with a precision hint; ``"onnxruntime:model.onnx"``; the name of
            a backend (``"numpy"``); the path of another IR, or of an ``.npz`` of tensors by name; a mapping of tensors by
            name (``layer``, ``layer:output``, or outputs by tensor name or index), or a sequence of the outputs;
            or a function of the inputs and the names of the tensors that returns such a mapping.
        types: ``real``, or ``declared`` if what the model declares as f16 or bf16 is to be rounded to that, also in f64.
        precision: what a side ran in that does not say so itself, such as the arrays of another device: ``"f32"``,
            ``"bf16"`` or ``"f16"``.

    Returns:
        A report. Its ``units`` are judged each by what it makes of the side's own inputs, so that the layer
        stands out in which an error begins.

    Raises:
        InputError: if an input or the side is not as described.
        ExecutionError: if a layer fails on the data.
        Interrupted: on Ctrl-C, with a partial report.
    """
    return judged(model, inputs, side, types=types, precision=precision)[0]


def judged(
    model: Model, inputs: Any, side: Any, inside: bool = True, types: str = "real", precision: str = ""
) -> tuple[Comparison, list[Array]]:
    """Compare; also return the outputs in f64, with the decisions of the side.

    Args:
        model: the model.
        inputs: as for a compiled model.
        side: what is judged.
        inside: also look at the tensors between the layers, not at the outputs alone.
        types: ``real`` or ``declared``.
        precision: what a side ran in that does not say so itself.
    """
    check_types(types)
    plain = Reference(model)
    feeds = plain.feeds(inputs)
    layers = computed_layers(plain.graph)
    ports = [port for layer in layers for port in layer.output_ports] if inside else []
    if precision and precision not in ROUNDING:
        hint = "expected f32, bf16 or f16"
        raise InputError(f"unknown precision {precision!r}", code=Code.NO_SUCH_NAME, hint=hint)
    with within_room(model.limits):
        with stage(0, SEEN):
            seen = observed(model, plain, feeds, side, ports)
        if precision and not seen.ran:
            seen = replace(seen, ran=(precision,))
        work = _Work(model, plain, feeds, seen, layers, types)
        del seen  # whose tensors would stay in memory
        try:
            work.local()
            truth = work.whole()
        except KeyboardInterrupt:
            raise Interrupted(work.report(partial=True)) from None
        return work.report(), truth


@dataclass
class _Work:
    """The runs of a comparison, in the order of its methods."""

    model: Model
    plain: Reference
    feeds: list[Array]
    seen: Observation
    layers: list[Layer]
    types: str
    wide: Reference = field(init=False)
    tensors: MutableMapping[Port, Array] = field(default_factory=stored)
    rounded: MutableMapping[Port, Array] = field(default_factory=stored)
    """What the reference, in the precision of the side, makes of the side's tensors."""
    exact: MutableMapping[Port, Array] = field(default_factory=stored)
    """What f64 makes of the side's tensors."""
    inherited: dict[Port, float] = field(default_factory=dict)
    terms: dict[str, Terms] = field(default_factory=dict)
    """How many numbers each layer adds for an element."""
    units: list[UnitResult] = field(default_factory=list)
    decisions: list[DecisionResult] = field(default_factory=list)
    outputs: list[OutputResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.wide = Reference(self.model, wide=True)
        seen = dict(self.seen.tensors)
        self.seen = replace(self.seen, tensors={})
        while seen:
            port, array = seen.popitem()
            self.tensors[port] = array
        graph, types = self.plain.graph, self.plain.types
        self.computed = {layer.id for layer in self.layers}
        self.rounding = as_declared(types) if self.types == "declared" else None
        self.deciding = {layer.id: layer for layer in self.layers if decides(graph, types, layer)}
        for output, array in zip(self.plain.outputs, self.seen.outputs, strict=True):
            layer = self.deciding.get(output._port.layer)
            if layer is not None and is_elementwise(layer):  # rounding may explain what it decides
                self.tensors.setdefault(output._port, array)

    @property
    def precision(self) -> str:
        """What the side computes in."""
        return next((name for name in ("bf16", "f16") if name in self.seen.ran), "f32")

    def local(self) -> None:
        """Compute every layer from the side's own tensors, in the side's precision and in f64."""
        tensors = self.tensors
        own = stored()

        def exchange(layer: Layer, _: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            for port, array in zip(layer.output_ports, outputs, strict=False):
                if port in tensors:
                    self.rounded[port] = array
                elif layer.id in self.deciding:
                    own[port] = array
            return self._observed(layer, outputs)

        inside = InsideDecisions(self.plain.graph, self.plain.types)
        with stage(SEEN, 0.4):
            self.plain.run(self.feeds, chained(emulated(self.precision, tensors), exchange), inside.record)
        take = pinned(own)

        def judge(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            self.terms[layer.name] = terms_of(layer, inputs, outputs[0])
            if layer.id in self.deciding:
                self._judge_decision(layer, inputs, outputs)
                outputs = take(layer, inputs, outputs)
            for port, array in zip(layer.output_ports, outputs, strict=False):
                if port in tensors:
                    self.exact[port] = array
            return self._observed(layer, outputs)

        with stage(0.4, 0.6):
            self.wide.run(self.feeds, chained(self.rounding, judge), inside.replay())

    def _observed(self, layer: Layer, outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        """The side's tensors in place of the outputs of a layer, where they were observed; flat ones get their shape."""
        found = list(outputs)
        for index, port in enumerate(layer.output_ports[: len(outputs)]):
            if port in self.tensors:
                seen = self.tensors[port]
                if seen.ndim == 1 and seen.size == outputs[index].size:
                    seen = self.tensors[port] = seen.reshape(outputs[index].shape)
                found[index] = seen.astype(outputs[index].dtype, copy=False)
        return tuple(found)

    def _judge_decision(self, layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> None:
        port = Port(layer.id, 0)
        if port not in self.tensors:
            return
        taken, output, levels = self.tensors[port], outputs[0], None
        differ = max(taken.size, output.size)
        unexplained: int | None = differ
        if taken.shape == output.shape:
            rounding = 8 * ROUNDING[self.precision]
            off = jumps(layer, inputs, taken, output, rounding)
            differ, unexplained = int((off != 0).sum()), None
            if is_elementwise(layer):
                wrong = (off != 0) & ~explained_decisions(layer, inputs, taken, rounding)
                unexplained = int(wrong.sum())
                if layer.type == "FakeQuantize" and unexplained:
                    levels = float(off[wrong].max())
            elif not differ:
                unexplained = 0
        members = unit_of(self.plain.graph, port, self.tensors, self.computed)
        names = tuple(member.name for member in members)
        self.decisions.append(
            DecisionResult(layer.name, layer.operation, differ, unexplained, taken.size, levels, names)
        )

    def whole(self) -> list[Array]:
        """Compute the model in f64, and several times in the side's precision, all with the side's decisions.

        Returns:
            the outputs in f64.
        """
        own = stored()
        seen = {port: array for port, array in self.tensors.items() if port.layer in self.deciding}
        take = pinned(ChainMap(seen, own))

        def first(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            if layer.id in self.deciding:
                for port, array in zip(layer.output_ports, outputs, strict=False):
                    if port not in seen:
                        own[port] = array
            return take(layer, inputs, outputs)

        emulate, inside = emulated(self.precision), InsideDecisions(self.plain.graph, self.plain.types)
        with stage(0.6, 0.65):
            runs = [self.plain.run(self.feeds, chained(emulate, first), inside.record)]
        with stage(0.65, 0.7):
            ours = runs[0] if emulate is None else self.plain.run(self.feeds, take, inside.replay())
        for seed in range(RUNS):
            change = chained(emulate, perturbed(self.precision, seed), take)
            with stage(0.7 + 0.1 * seed / RUNS, 0.7 + 0.1 * (seed + 1) / RUNS):
                runs.append(self.plain.run(self.feeds, change, inside.replay()))
        with stage(0.8, 1):
            truth = self.wide.run(self.feeds, chained(take, self.rounding, self._inherit), inside.replay())
        for index, exact in enumerate(truth):
            self._judge_output(index, exact, [run[index] for run in runs], ours[index])
        return truth

    def _inherit(self, layer: Layer, _: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        for port, array in zip(layer.output_ports, outputs, strict=False):
            if port in self.exact and is_float(self.plain.types, port):
                self.inherited[port] = error_of(self.exact[port], array).relative
        return outputs

    def _judge_output(self, index: int, exact: Array, runs: Sequence[Array], ours: Array) -> None:
        port, found = self.plain.outputs[index], self.seen.outputs[index]
        if not is_float(self.plain.types, port._port):
            wrong = found.shape != exact.shape or bool((found != exact).any())
            self.outputs.append(
                OutputResult(port.label, np.inf if wrong else 0.0, 0.0, np.inf if wrong else 0.0, 0.0)
            )
            return
        error, scatter = error_of(found, exact), scatter_of(error_of(run, exact) for run in runs)
        self.outputs.append(
            OutputResult(
                port.label,
                error.relative,
                scatter.relative,
                excess(error, scatter),
                error_of(ours, exact).relative,
            )
        )

    def report(self, partial: bool = False) -> Comparison:
        """Return what was found."""
        graph = self.plain.graph
        for layer in self.layers:
            for port in layer.output_ports:
                numbers = is_float(self.plain.types, port) and layer.id not in self.deciding
                if numbers and port in self.exact and port in self.rounded:
                    self.units.append(self._unit(layer, port))
        seen = self.seen
        return Comparison(
            side=seen.name,
            asked=seen.asked,
            ran=seen.ran,
            outputs=tuple(self.outputs),
            units=tuple(self.units),
            decisions=tuple(self.decisions),
            boundaries=len(self.tensors) + len(seen.unobserved),
            unobserved=tuple(name_of(graph, port) for port in seen.unobserved),
            partial=partial,
        )

    def _unit(self, layer: Layer, port: Port) -> UnitResult:
        found, exact, rounded = self.tensors[port], self.exact[port], self.rounded[port]
        error: Error = error_of(found, exact)
        members = unit_of(self.plain.graph, port, self.tensors, self.computed)
        terms = max(self.terms.get(member.name, Terms()) for member in members)
        unit = ROUNDING["f32"]  # sums are added in f32, whatever is multiplied
        scatter = with_accumulation(scatter_of([error_of(rounded, exact)]), unit, terms)
        same = found.shape == rounded.shape and found.size
        equal = (
            float((found == rounded.astype(found.dtype)).mean())
            if same
            else float(found.shape == rounded.shape)
        )
        return UnitResult(
            name=name_of(self.plain.graph, port),
            operation=layer.operation,
            layers=tuple(member.name for member in members),
            excess=excess(error, scatter),
            relative=error.relative,
            inherited=self.inherited.get(port, 0.0),
            equal=equal,
        )
