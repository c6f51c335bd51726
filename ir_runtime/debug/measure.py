"""Measure a model for its report: times, memory, errors, histograms of activations, and changes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from .._util.escaping import quoted
from ..executor.step import Step
from ..ir.graph import Port
from ..ir.tensor import Array
from ..openvino.compiled import CompiledModel
from ..openvino.const_ports import ConstOutput
from ..openvino.core import compile_model
from ..openvino.feeding import bind
from ..openvino.model import Model, source_of
from ..openvino.profiling import Status
from ..report import Conclusion, Measures, OldModel
from ..report.constants import histogram, sample
from ..report.feature_maps import FeatureMaps, feature_maps
from .compare import compare
from .diff import diff_with_pairs
from .observation import Observation, Repeated, Side, SideLike
from .recorded_side import Recorded
from .reference import Reference
from .results import Comparison
from .sides import side_of, to_recorded
from .trace_nan import NanTrace, trace_nan

__all__ = ["measure", "old_model"]


def measure(  # noqa: PLR0913 (one for each option of the command)
    model: Model,
    inputs: object,
    *,
    profile: bool = False,
    runs: int = 5,
    against: SideLike | None = None,
    precision: str | None = None,
    histograms: bool = False,
    pictures: bool = False,
    backend: str | None = None,
) -> Measures:
    """Run a model, and return measurements for its report.

    >>> import numpy as np, ir_runtime
    >>> from ir_runtime import opset13
    >>> x = opset13.parameter([4], np.float32, "x")
    >>> model = ir_runtime.Model([opset13.relu(x)], [x])
    >>> measures = measure(model, [np.float32([-1, 0, 1, 2])], profile=True, runs=1)
    >>> measures.memory["x"], model.report(measures=measures).html.count("Time by scope") > 0
    (16, True)

    Args:
        model: the model; it is not changed.
        inputs: as for a compiled model.
        profile: measure the time of each layer.
        runs: the number of timed runs, after an untimed one; their median is reported.
        against: a side to compare with, as for `compare`.
        precision: the precision in which to trace Inf and NaN, as for `trace_nan`.
        histograms: compute histograms of activations and weights.
        pictures: keep the outputs of layers as pictures, with those of the side and the difference.
        backend: the backend to time.

    Raises:
        InputError: if an input, the side or the precision is not as described.
    """
    compiled = compile_model(model, backend=backend, config={"PERF_COUNT": True})
    feeds = bind(compiled.inputs, inputs)
    judged, theirs = _judge(model, feeds, against, pictures)
    activations = _Activations(model, histograms, pictures, theirs)
    outputs = compiled(feeds, observers=[activations]).to_tuple()
    for layer, feed in zip(model._graph.of_type("Parameter"), feeds, strict=True):
        activations.memory[layer.name] = feed.nbytes
    names = [port.label for port in (*compiled.inputs, *compiled.outputs)]
    tensors = list(zip(names, [*feeds, *outputs], strict=True))
    measures = Measures(
        memory=activations.memory,
        activations=activations.counts,
        tensors=tensors,
        histograms=histograms,
        pictures=activations.pictures,
        conclusions=[] if precision is not None else list(_not_finite(compiled.outputs, outputs)),
    )
    if profile:
        times, fused = _times(compiled, feeds, runs)
        measures = replace(measures, times=times, fused=fused)
    if judged is not None:
        measures = replace(
            measures,
            errors=_errors(model, judged),
            against=judged.side,
            conclusions=[_verdict(judged), *measures.conclusions],
        )
    if precision is not None:
        traced = trace_nan(model, feeds, precision, peaks=len(activations.memory))
        broken = {
            origin.layer: f"makes {origin.kind} of finite inputs in {precision}" for origin in traced.origins
        }
        peaks = {peak.layer: peak.part for peak in traced.peaks}
        conclusions = [*measures.conclusions, _origins(traced)]
        measures = replace(measures, broken=broken, peaks=peaks, conclusions=conclusions)
    return measures


class _Watched:
    """A wrapper of a side that keeps its last observation."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self.seen: Observation | None = None

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Run the side, and keep the observation."""
        self.seen = self._side.observe(model, reference, feeds, ports)
        return self.seen


def _judge(
    model: Model, feeds: Sequence[Array], against: SideLike | None, pictures: bool
) -> tuple[Comparison | None, Mapping[Port, Array]]:
    """Compare with a side, if there is one; also return its tensors if pictures are requested."""
    if against is None:
        return None, {}
    side = to_recorded(against)
    if not pictures or isinstance(side, Recorded | Repeated):
        return compare(model, feeds, against), {}
    watched = _Watched(side_of(side))
    judged = compare(model, feeds, watched)
    if watched.seen is None:
        return judged, {}
    results = [next(iter(model._graph.reads(layer))) for layer in model._graph.of_type("Result")]
    outputs = {
        port: array
        for number, (port, array) in enumerate(zip(results, watched.seen.outputs, strict=True))
        if number not in watched.seen.absent
    }
    return judged, outputs | dict(watched.seen.tensors)


def _verdict(judged: Comparison) -> Conclusion:
    """Summarize a comparison, with the layer where the difference starts."""
    if judged.explained:
        return Conclusion("note", f"Rounding explains how {judged.side} differs from f64.")
    severity = "error" if judged.verdict == "unexplained" else "warning"
    decision = judged.first_decision
    layer = "" if judged.overflow is None else judged.overflow.layer
    layer = layer if decision is None else decision.name
    text = f"{judged.summary[0].upper()}{judged.summary[1:]}."
    if judged.likeness is not None:
        text += f" It {judged.likeness}."
    if judged.first is not None:
        layer = judged.first.layers[-1]
    command = f"ir-runtime compare {{file}} --against {shlex.quote(judged.side)} --random"
    return Conclusion(severity, text, layer, command)


def _origins(traced: NanTrace) -> Conclusion:
    """Summarize a trace, with the layer where Inf or NaN starts."""
    first = traced.first
    if first is None:
        return Conclusion("note", f"{traced.summary.splitlines()[0].capitalize()}.")
    others = f", and {len(traced.origins) - 1} more do" if len(traced.origins) > 1 else ""
    text = f"In {traced.precision}, {quoted(first.layer)} ({first.operation}) makes {first.kind}, which reaches an output{others}."
    return Conclusion(
        "error", text, first.layer, f"ir-runtime trace-nan {{file}} --as {traced.precision} --random"
    )


def _not_finite(ports: Sequence[ConstOutput], outputs: Sequence[Array]) -> Iterator[Conclusion]:
    """Yield a conclusion for each output with Inf or NaN."""
    for port, output in zip(ports, outputs, strict=True):
        if output.dtype.kind != "f" or np.isfinite(output).all():
            continue
        nan = int(np.isnan(output).sum())
        count, kind = (nan, "NaN") if nan else (int(np.isinf(output).sum()), "Inf")
        text = f"Output {quoted(port.label)} has {count:,} {kind} among {output.size:,} numbers."
        command = "ir-runtime trace-nan {file} --random"
        yield Conclusion("error" if nan else "warning", text, port.node.friendly_name, command)


def _errors(model: Model, judged: Comparison) -> Mapping[str, float]:
    """Return the error of each layer relative to the error that rounding explains, by layer name."""
    names = {layer.name for layer in model._graph}
    excesses: dict[str, float] = {}
    for unit in judged.units:
        name = unit.name if unit.name in names else unit.name.rpartition(":")[0]  # one of several outputs
        excesses[name] = max(excesses.get(name, 0.0), unit.excess)
    return excesses


@dataclass
class _Activations:
    """Observer that records size, histogram and pictures of layer outputs."""

    model: Model
    wanted: bool
    pictured: bool = False
    theirs: Mapping[Port, Array] = field(default_factory=dict)
    pictures: dict[str, FeatureMaps] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    counts: dict[str, tuple[Sequence[int], float, float]] = field(default_factory=dict)

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        """Do nothing before a layer."""

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        """Record the outputs of a layer outside of bodies."""
        layer = step.layer
        outside = self.model._graph.layers.get(layer.id)
        if outside is None or outside.name != layer.name:
            return
        self.memory[layer.name] = sum(array.nbytes for array in outputs)
        if self.pictured and outputs:
            maps = feature_maps(outputs[0], self.theirs.get(Port(layer.id, 0)))
            self.pictures |= {} if maps is None else {layer.name: maps}
        if self.wanted and outputs and outputs[0].dtype.kind == "f":
            counted = histogram(sample(outputs[0]))
            if counted is not None:
                self.counts[layer.name] = counted


def _times(
    compiled: CompiledModel, feeds: Sequence[Array], runs: int
) -> tuple[Mapping[str, float], Mapping[str, str]]:
    """Return the median time of each step in milliseconds by its first layer, and for each other layer the step that computes it."""
    request = compiled.create_infer_request()
    times: dict[str, list[float]] = {}
    fused: dict[str, str] = {}
    for run in range(runs + 1):
        request.reset_state()
        request.infer(list(feeds))
        first = ""
        for entry in request.get_profiling_info():
            if entry.status is Status.OPTIMIZED_OUT:
                fused[entry.node_name] = first
            else:
                first = entry.node_name
                if run:
                    times.setdefault(first, []).append(entry.real_time.total_seconds() * 1000)
    return {name: median(values) for name, values in times.items()}, fused


def old_model(old: Model, new: Model, constraints: bool = True) -> OldModel:
    """Return an older model to show beside a newer one, with the changes by layer.

    >>> import numpy as np, ir_runtime
    >>> from ir_runtime import opset13
    >>> x, y = opset13.parameter([4], np.float32, "x"), opset13.parameter([4], np.float32, "x")
    >>> old, new = ir_runtime.Model([opset13.relu(x)], [x]), ir_runtime.Model([opset13.relu(opset13.exp(y))], [y])
    >>> page = new.report(old=old_model(old, new))

    Args:
        old: the older model.
        new: the newer model, whose report shows both.
        constraints: also find the input constraints of the older model, which may take seconds.
    """
    changes, pairs = diff_with_pairs(old, new)
    ours = {layer.name: layer.id for layer in reversed(list(old._graph))}
    theirs = {layer.name: layer.id for layer in reversed(list(new._graph))}
    removed: dict[int, list[str]] = {}
    changed: dict[int, list[str]] = {}
    for change in changes.changes:
        text = f"{change.kind}: {change.what}" if change.what else change.kind
        if change.kind == "added":
            if (id := theirs.get(change.layer)) is not None:
                changed.setdefault(id, []).append(text)
        elif (id := ours.get(change.layer.partition("/body/")[0], ours.get(change.layer))) is not None:
            removed.setdefault(id, []).append(text)
            if id in pairs:
                changed.setdefault(pairs[id], []).append(text)
    return OldModel(source_of(old, constraints), pairs, removed, changed)
