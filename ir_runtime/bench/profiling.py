"""Measure the time of each layer of a model, and optionally that of OpenVINO's nodes by its performance counters."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from .._util.escaping import visible
from ..analysis.cost import Cost, LayerCount
from ..backends import chosen as chosen_backend
from ..errors import InputError
from ..executor.step import Profile, Step, TimedStep
from ..ir.graph import Graph, Layer, Port
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType, Value
from ..openvino.compiled import CompiledModel
from ..openvino.core import compile_model
from ..openvino.costing import cost
from ..openvino.feeding import bind
from ..openvino.model import Model
from ..openvino.random_feeds import random_feeds
from ..openvino.reading import read_model
from ..openvino.saving import save_model
from .interfaces import CompiledNode
from .peaks import Peaks, measure_peaks
from .profiled import ComparedTime, ProfileReport, RunTimes, StepTime, TimelineEvent
from .sides import OPENVINO, Setting, Side

if TYPE_CHECKING:
    from ..report import Measures

__all__ = ["add_openvino_times", "add_profile", "profile"]

_WARM_UP = 2


def profile(
    model: str | Path | Model,
    inputs: Any = None,
    *,
    runs: int = 5,
    backend: str | None = None,
    threads: int | None = None,
    against: str | None = None,
    seed: int = 0,
    name: str = "",
) -> ProfileReport:
    """Measure the time of each layer of a model.

    Runs alternate: one is timed as a whole, the next one is observed step by step. The steps are those of the compiled model,
    so that a step may compute several layers.

    >>> import ir_runtime
    >>> report = ir_runtime.profile("examples/digits/digits.xml", runs=2, backend="numpy")
    >>> len(report.runs), report.slowest[0].operations[0], sum(step.calls for step in report.outermost) >= 5
    (2, 'Convolution-1', True)

    Args:
        model: a path, or a model.
        inputs: the inputs, as a compiled model takes them; by default random values, with dynamic lengths as short as possible.
        runs: the number of measured runs of each kind.
        backend: the backend; by default, the one that would run the model.
        threads: the number of threads; by default, chosen by the backend.
        against: ``openvino`` to compare with OpenVINO.
        seed: the seed of random inputs.
        name: the name of the model in the report; by default its path or its name.

    Raises:
        InputError: if the file cannot be opened, the inputs do not fit, or ``against`` is unknown.
        ParseError: if the file is not an IR.
        ValidationError: if the model is not valid.
    """
    if against not in (None, "openvino"):
        raise InputError(f"unknown runtime {against!r}", hint="expected openvino")
    net = model.clone() if isinstance(model, Model) else read_model(model)
    feeds = (
        [*random_feeds(net, {}, seed).arrays.values()]
        if inputs is None
        else bind(net._const_inputs(), inputs)
    )
    net.reshape({index: PartialShape(array.shape) for index, array in enumerate(feeds)})
    chosen = chosen_backend(backend)
    config = {} if threads is None else {"INFERENCE_NUM_THREADS": threads}
    compiled = compile_model(net, config=config, backend=chosen)
    peaks = measure_peaks(compiled.backend, threads)
    seconds, watched = _measure(compiled, feeds, runs)
    steps = _Steps(watched, _Sizes(compiled, cost(net)))
    times = steps.times()
    peaks = peaks.at_least(max((1e9 * (step.gflops or 0) for step in times), default=0))
    report = ProfileReport(
        name or (net.friendly_name if isinstance(model, Model) else str(model)),
        compiled.backend,
        threads,
        times,
        median(seconds),
        steps.runs(),
        peaks,
        (min(seconds), max(seconds)),
    )
    if against is None:
        return report

    return add_openvino_times(report, net, feeds, runs, threads)


@dataclass
class _Watched:
    """An observed run and the times of its steps."""

    start: float
    seconds: float
    cpu: float
    profile: Profile


def _measure(
    compiled: CompiledModel, feeds: Sequence[Array], runs: int
) -> tuple[list[float], list[_Watched]]:
    """Return the seconds of unobserved runs, and the observed runs in between."""
    arrays, plain, watched = list(feeds), [], []
    for _ in range(_WARM_UP):
        compiled._run_arrays(arrays)
    for _ in range(runs):
        start = time.perf_counter()
        compiled._run_arrays(arrays)
        plain.append(time.perf_counter() - start)
        observer = Profile()
        cpu, start = time.process_time(), time.perf_counter()
        compiled._run_arrays(arrays, [observer])
        seconds = time.perf_counter() - start
        watched.append(_Watched(start, seconds, time.process_time() - cpu, observer))
    return plain, watched


@dataclass
class _Sizes:
    """The FLOPs and bytes of steps.

    Args:
        compiled: the compiled model.
        cost: the costs of its layers.
    """

    compiled: CompiledModel
    cost: Cost

    def __post_init__(self) -> None:
        self._counts: Mapping[tuple[str, bool], LayerCount] = {
            (layer.name, bool(layer.within)): layer for layer in self.cost.layers
        }
        self._graph: Graph = self.compiled._model._graph
        self._values: Mapping[Port, Value] = self.compiled._model._values

    def _count(self, layer: Layer, inside: bool) -> LayerCount | None:
        """Return the cost of a layer of the model itself, or with ``inside``, of a body; ``None`` if it was not counted."""
        return self._counts.get((layer.name, inside))

    def main(self, step: Step, inside: bool) -> int:
        """Return the index of the layer with the most FLOPs in a step, 0 if none is known; ``inside`` for a step of a body."""
        counts = [self._count(layer, inside) for layer in step.layers]
        flops = [cost.flops if cost is not None and isinstance(cost.flops, int) else 0 for cost in counts]
        return flops.index(max(flops))

    def flops(self, step: Step, inside: bool) -> int | None:
        """Return the FLOPs of all layers of a step, or ``None`` if unknown; ``inside`` for a step of a body."""
        counts = [cost.flops for layer in step.layers if (cost := self._count(layer, inside)) is not None]
        numbers = [count for count in counts if isinstance(count, int)]
        return sum(numbers) if len(numbers) == len(counts) else None

    def bytes(self, step: Step) -> int | None:
        """Return the bytes that a step reads and writes, without tensors between fused layers, or ``None`` if unknown."""
        inner, last = {layer.id for layer in step.layers}, step.layers[-1]
        if self._graph.layers.get(last.id) is not last:
            return self._within_body(step)
        read = {s for layer in step.layers for s in self._graph.reads(layer) if s.layer not in inner}
        types = [self._type(port) for port in (*read, *last.output_ports)]
        if not all(type.shape.is_static for type in types):
            return None
        return sum(type.element.nbytes(Value(type).count.min) for type in types)

    def _type(self, port: Port) -> TensorType:
        """Return the type of a port in memory: as stored for constants and parameters, else as computed."""
        type = self._values[port].type
        is_stored = self._graph[port.layer].type in ("Constant", "Parameter")
        return type if is_stored else TensorType(self.compiled._computed_type(type.element), type.shape)

    def _within_body(self, step: Step) -> int | None:
        """Return the bytes of a step of a body, or ``None`` if it has several layers or unknown lengths."""
        cost = self._count(step.layer, True)
        if cost is None or step.also or not isinstance(cost.read, int) or not isinstance(cost.written, int):
            return None
        return cost.read + cost.written

    def within(self, step: Step) -> str:
        """Return the name of the body that contains a step; ``body`` if unknown."""
        cost = self._count(step.layer, True)
        return cost.within if cost is not None else "body"


class _Steps:
    """The steps of all runs, each listed once.

    Args:
        watched: the runs.
        sizes: computes the FLOPs and bytes of a step.
    """

    def __init__(self, watched: Sequence[_Watched], sizes: _Sizes) -> None:
        self._watched, self._sizes = watched, sizes
        self._places: dict[int, int] = {}
        self._steps: list[tuple[Step, int]] = []
        for timed in sorted(self._all(), key=lambda timed: timed.start):
            if id(timed.step) not in self._places:
                self._places[id(timed.step)] = len(self._steps)
                self._steps.append((timed.step, timed.depth))

    def _all(self) -> Iterable[TimedStep]:
        return (timed for run in self._watched for timed in run.profile.steps)

    def times(self) -> tuple[StepTime, ...]:
        """Return the time of each step, in execution order."""
        runs = [self._by_step(run) for run in self._watched]
        return tuple(
            self._time(step, depth, [times_of_run.get(place, ()) for times_of_run in runs])
            for place, (step, depth) in enumerate(self._steps)
        )

    def _by_step(self, run: _Watched) -> Mapping[int, Sequence[float]]:
        times: dict[int, list[float]] = {}
        for timed in run.profile.steps:
            times.setdefault(self._places[id(timed.step)], []).append(timed.seconds)
        return times

    def _time(self, step: Step, depth: int, runs: Sequence[Sequence[float]]) -> StepTime:
        totals = [sum(calls) for calls in runs]
        return StepTime(
            layers=tuple(layer.name for layer in step.layers),
            operations=tuple(layer.where.operation or layer.type for layer in step.layers),
            pattern=step.pattern,
            seconds=median(totals),
            calls=sum(map(len, runs)) / len(runs),
            within=self._sizes.within(step) if depth else "",
            flops=self._sizes.flops(step, bool(depth)),
            bytes=self._sizes.bytes(step),
            range=(min(totals), max(totals)),
            main=self._sizes.main(step, bool(depth)),
        )

    def runs(self) -> tuple[RunTimes, ...]:
        """Return the timeline of each run."""
        return tuple(
            RunTimes(
                run.start,
                run.seconds,
                run.cpu,
                tuple(
                    TimelineEvent(self._places[id(timed.step)], timed.start, timed.seconds)
                    for timed in sorted(run.profile.steps, key=lambda timed: timed.start)
                ),
            )
            for run in self._watched
        )


class _Node(NamedTuple):
    """An execution node of OpenVINO: its type and implementation, its layers, and its time in seconds."""

    kind: str
    layers: tuple[str, ...]
    seconds: float


def add_openvino_times(
    report: ProfileReport, model: Model, feeds: Sequence[Array], runs: int, threads: int | None
) -> ProfileReport:
    """Run a model with OpenVINO's CPU plugin in f32, and add its performance counters to a report.

    Args:
        report: the report of this package.
        model: the model.
        feeds: an array for each input.
        runs: the number of measured runs, after an unmeasured one.
        threads: the number of threads; ``None`` for OpenVINO's default.

    Raises:
        InputError: if OpenVINO is not installed, or refuses the model.
    """
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.xml")
        save_model(model, path, compress_to_fp16=False)
        side = Side(OPENVINO, Setting(path, threads=threads, counters=True))
        latencies, nodes = _count(side, feeds, runs)
    return replace(report, other=median(latencies), compared=tuple(_join(report.outermost, nodes)))


def _count(side: Side, feeds: Sequence[Array], runs: int) -> tuple[list[float], list[_Node]]:
    request = side.request(feeds)
    latencies: list[float] = []
    times: dict[str, list[float]] = {}
    for number in range(runs + 1):
        side.reset(request)
        start = time.perf_counter()
        request.infer()
        if number:  # the first run warms up
            latencies.append(time.perf_counter() - start)
            for result in request.get_profiling_info():
                times.setdefault(result.node_name, []).append(result.real_time.total_seconds())
    seconds = {name: median(entries) for name, entries in times.items()}
    return latencies, [_node(op, seconds) for op in side.compiled.get_runtime_model().get_ordered_ops()]


def _node(op: CompiledNode, seconds: Mapping[str, float]) -> _Node:
    info = op.get_rt_info()
    details = {key: str(getattr(info[key], "value", info[key])) for key in info}
    kind = f"{details.get('layerType', op.get_type_name())} ({details.get('primitiveType', '')})"
    layers = tuple(name for name in details.get("originalLayersNames", "").split(",") if name)
    return _Node(kind, layers, seconds.get(op.get_friendly_name(), 0.0))


def _join(steps: Sequence[StepTime], nodes: Sequence[_Node]) -> list[ComparedTime]:
    """Compare the times of the smallest sets of layers that neither runtime splits, slowest first."""
    import networkx as nx

    together = nx.Graph()
    computed = {"step": [step.layers for step in steps], "node": [node.layers for node in nodes]}
    for kind, members in computed.items():
        for number, layers in enumerate(members):
            together.add_edges_from(((kind, number), ("layer", name)) for name in layers)
    rows = []
    for component in nx.connected_components(together):
        ours = [steps[member] for kind, member in sorted(component) if kind == "step"]
        theirs = [nodes[member] for kind, member in sorted(component) if kind == "node"]
        if ours:
            rows.append(
                ComparedTime(
                    tuple(dict.fromkeys(name for step in ours for name in step.layers)),
                    len(ours),
                    sum(step.seconds for step in ours),
                    tuple(node.kind for node in theirs if node.seconds),
                    sum(node.seconds for node in theirs),
                )
            )
    return sorted(rows, key=lambda row: -row.seconds)


def add_profile(measures: Measures, report: ProfileReport) -> Measures:
    """Add the times of a profile to measurements, with speeds relative to the peaks of the machine."""
    inner = {(step.within, step.name): step.seconds * 1e3 for step in report.steps if step.within}
    rates = {step.name: text for step in report.outermost if (text := _rate(step, report.peaks))}
    return replace(
        measures,
        times={step.name: step.seconds * 1e3 for step in report.outermost},
        inner=inner,
        rates=rates,
        fused={layer: step.name for step in report.outermost for layer in step.layers if layer != step.name},
    )


def _rate(step: StepTime, peaks: Peaks) -> str:
    """Describe the speed of a step in a phrase; return an empty string if it has no FLOPs."""
    reached = step.efficiency(peaks)
    if not step.flops or reached is None:
        return ""
    with_others = (
        f" with {visible(step.pattern or ', '.join(layer for layer in step.layers if layer != step.name))}"
        if len(step.layers) > 1
        else ""
    )
    return (
        f"{step.gflops:.3g} GFLOP/s and {step.gbytes:.3g} GB/s{with_others}: "
        f"{100 * reached:.0f} % of the roofline, bound by {step.bound(peaks)}"
    )
