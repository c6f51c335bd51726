"""OpenVINO's performance counters, compared with the times of this package."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ..ir.tensor import Array
from ..openvino.model import Model
from ..openvino.saving import save_model
from .interfaces import CompiledNode
from .profiled import ProfileReport
from .sides import OPENVINO, Setting, Side
from .timed import ComparedTime, StepTime

__all__ = ["compared"]


class _Node(NamedTuple):
    """A node executed by OpenVINO: its implementation, its layers, and its seconds."""

    kind: str
    layers: tuple[str, ...]
    seconds: float


def compared(
    report: ProfileReport, model: Model, feeds: Sequence[Array], runs: int, threads: int | None
) -> ProfileReport:
    """Run a model with OpenVINO's CPU plugin in f32, and add its counters to a report.

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
    """Return the smallest sets of layers that neither runtime splits, the slowest first."""
    import networkx as nx

    together = nx.Graph()
    computed = {"step": [step.layers for step in steps], "node": [node.layers for node in nodes]}
    for kind, compared in computed.items():
        for number, layers in enumerate(compared):
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
