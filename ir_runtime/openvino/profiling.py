"""Profiling of compiled models: the time of each layer, and the execution graph."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from string import ascii_lowercase
from typing import ClassVar

from ..diagnostics import Location
from ..executor.plan import ExecutionPlan
from ..executor.step import Profile, Step
from ..io.reader.document import Document
from ..ir.graph import Edge, Graph, Layer, Port, PortSpec
from ..ir.tensor import Array, TensorType
from .build.layer import type_name

__all__ = [
    "ExecutionGraph",
    "Performance",
    "ProfilingInfo",
    "Status",
    "profiling_info",
]


# Profiling information per layer.


class Status(Enum):
    """The execution status of a layer in a run."""

    NOT_RUN = 0
    OPTIMIZED_OUT = 1
    """The layer ran as part of the kernel of a previous layer."""
    EXECUTED = 2


@dataclass(eq=False, kw_only=True, slots=True)
class ProfilingInfo:
    """The timing of a layer. As OpenVINO's ``ProfilingInfo``.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> compiled = ov.compile_model(ov.Model([opset1.exp(x, name="y")], [x]), config={"PERF_COUNT": True})
    >>> request = compiled.create_infer_request()
    >>> found = request.infer(np.zeros(2, np.float32))
    >>> [(info.node_name, info.node_type) for info in request.get_profiling_info() if info.node_name == "y"]
    [('y', 'Exp')]
    """

    node_name: str = ""
    node_type: str = ""
    exec_type: str = ""
    real_time: datetime.timedelta = datetime.timedelta()
    cpu_time: datetime.timedelta = datetime.timedelta()
    status: Status = Status.NOT_RUN

    Status: ClassVar[type[Status]] = Status
    NOT_RUN = Status.NOT_RUN
    OPTIMIZED_OUT = Status.OPTIMIZED_OUT
    EXECUTED = Status.EXECUTED


def profiling_info(profile: Profile, backend: str) -> list[ProfilingInfo]:
    """Return the timings of all layers of a run, in order of execution; a fused layer has time 0."""
    entries = []
    for step, seconds in profile.times:
        kernel = step.kernel_name or backend
        entries.append(_entry(step.layer, kernel, seconds, Status.EXECUTED))
        entries += [_entry(layer, kernel, 0, Status.OPTIMIZED_OUT) for layer in step.also]
    return entries


def _entry(layer: Layer, kernel: str, seconds: float, status: Status) -> ProfilingInfo:
    span = datetime.timedelta(seconds=seconds)
    return ProfilingInfo(
        node_name=layer.name,
        node_type=type_name(layer.type),
        exec_type=kernel,
        real_time=span,
        cpu_time=span,
        status=status,
    )


# The execution graph, with a node for each step of the plan.

_EXECUTION_NODE = "ExecutionNode"


@dataclass(slots=True)
class Performance:
    """An observer that records the time of each step over all runs, and the layouts of its outputs."""

    seconds: dict[int, list[float]] = field(default_factory=dict)
    layouts: dict[int, str] = field(default_factory=dict)

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        """Ignore the start of a step."""

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        """Record the measurements of a step."""
        self.seconds.setdefault(id(step), []).append(seconds)
        self.layouts[id(step)] = ",".join(map(layout_of, outputs))


def layout_of(array: Array) -> str:
    """Return the axes by descending stride as letters, such as ``acdb`` for channels-last.

    >>> import numpy as np
    >>> layout_of(np.zeros((2, 3, 4, 5))), layout_of(np.zeros((2, 4, 5, 3)).transpose(0, 3, 1, 2))
    ('abcd', 'acdb')
    """
    order = sorted(range(array.ndim), key=lambda axis: (-array.strides[axis], axis))
    return "".join(ascii_lowercase[axis % 26] for axis in order)


@dataclass(slots=True)
class ExecutionGraph:
    """Builds the execution graph of a plan, with a node for each step.

    Args:
        graph: the compiled layers.
        types: the declared types of their outputs.
        plan: the steps.
        backend: the name of the backend.
        performance: the measurements of runs, or None.
    """

    graph: Graph
    types: Mapping[Port, TensorType]
    plan: ExecutionPlan
    backend: str
    performance: Performance | None = None
    layers: list[Layer] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    port_types: dict[Port, TensorType] = field(default_factory=dict)
    """The type of each output port of the graph."""
    writers: dict[int, Port] = field(default_factory=dict)
    """The output port that writes each slot of the plan."""

    def document(self, inputs: Sequence[Port], outputs: Sequence[tuple[Port, str]], name: str) -> Document:
        """Return the graph as the document of a model.

        Args:
            inputs: the inputs of the model.
            outputs: the outputs of the model, with the names of their Results.
            name: the name of the model.
        """
        for port, slot in zip(inputs, self.plan.inputs, strict=True):
            layer = self.graph[port.layer]
            self._add("Parameter", "Input", layer.name, [layer], [self.types[port]], [], [slot])
        for step in self.plan.steps:
            self._add_step(step)
        for (port, title), slot in zip(outputs, self.plan.outputs, strict=True):
            if slot not in self.writers:  # the output is a constant
                constant = self.graph[port.layer]
                self._add(_EXECUTION_NODE, "Const", constant.name, [constant], [self.types[port]], [], [slot])
            self._add("Result", "Output", title, [title], [self.types[port]], [slot], [])
        return Document(Graph(self.layers, self.edges), name, "", 11, {})

    def _add_step(self, step: Step) -> None:
        reads = [slot for slot in step.reads if slot in self.writers]
        kind = step.pattern or type_name(step.layer.type)
        entries = {**self._kernel_info(step), **self._measurements(step)}
        self._add(
            _EXECUTION_NODE, kind, step.layer.name, step.layers, step.types, reads, step.writes, entries
        )

    def _kernel_info(self, step: Step) -> Mapping[str, str]:
        """Return the name of a step's kernel, and its precision, which is the suffix of the name."""
        name = step.kernel_name
        return {"primitiveType": name, "runtimePrecision": name.rpartition("_")[2]} if name else {}

    def _add(
        self,
        type: str,
        kind: str,
        name: str,
        originals: Sequence[Layer | str],
        types: Sequence[TensorType],
        reads: Sequence[int],
        writes: Sequence[int],
        entries: Mapping[str, str] | None = None,
    ) -> None:
        """Add a node, and connect it to the nodes that wrote the slots it reads.

        Args:
            type: the operation of the node.
            kind: the entry ``layerType``.
            name: the name of the node.
            originals: the layers that it computes, or their names.
            types: the types of its outputs.
            reads: the slots of its inputs.
            writes: the slots of its outputs.
            entries: further entries of its runtime information, which override the defaults.
        """
        id, element = len(self.layers), types[0].element.label if types else "dynamic"
        info = {
            "execOrder": str(id),
            "execTimeMcs": "not_executed",
            "layerType": kind,
            "originalLayersNames": ",".join(
                item if isinstance(item, str) else item.name for item in originals
            ),
            "outputLayouts": "undef",
            "outputPrecisions": ",".join(item.element.label for item in types),
            "primitiveType": f"{self.backend}_{element}",
            "runtimePrecision": element,
            **(entries or {}),
        }
        inputs = tuple(
            PortSpec(number, self.port_types[self.writers[slot]]) for number, slot in enumerate(reads)
        )
        outputs = tuple(PortSpec(len(reads) + number, item) for number, item in enumerate(types))
        outputs = () if type == "Result" else outputs
        where = Location("", None, name, kind)
        self.layers.append(Layer(id, name, type, "opset1", None, where, inputs, outputs, rt_info=info))
        self.edges += [Edge(self.writers[slot], Port(id, number)) for number, slot in enumerate(reads)]
        for number, slot in enumerate(writes):
            self.writers[slot] = Port(id, number)
            self.port_types[Port(id, number)] = types[number]

    def _measurements(self, step: Step) -> Mapping[str, str]:
        """Return the average time of a step and the layouts of its outputs as rt_info entries."""
        performance = self.performance
        if performance is None or id(step) not in performance.seconds:
            return {}
        seconds = performance.seconds[id(step)]
        average = round(1e6 * sum(seconds) / len(seconds))
        return {"execTimeMcs": str(average), "outputLayouts": performance.layouts[id(step)]}
