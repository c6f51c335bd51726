"""The executed graph: a node for each step of the plan, with its layers and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase

from ..diagnostics import Location
from ..executor.plan import ExecutionPlan
from ..executor.step import Step
from ..io.reader.document import Document
from ..ir.graph import Edge, Graph, Layer, Port, PortSpec
from ..ir.tensor import Array, TensorType
from .build.layer import type_name

__all__ = ["ExecutionGraph", "Performance"]

_EXECUTION_NODE = "ExecutionNode"


@dataclass(slots=True)
class Performance:
    """Measures the time of each step over all runs, and the layouts of its outputs."""

    seconds: dict[int, list[float]] = field(default_factory=dict)
    layouts: dict[int, str] = field(default_factory=dict)

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        """Ignore the start of a step."""

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        """Record the measurements of a step."""
        self.seconds.setdefault(id(step), []).append(seconds)
        self.layouts[id(step)] = ",".join(map(layout_of, outputs))


def layout_of(array: Array) -> str:
    """Return the axes from largest to smallest stride as letters: ``acdb`` is channels-last.

    >>> import numpy as np
    >>> layout_of(np.zeros((2, 3, 4, 5))), layout_of(np.zeros((2, 4, 5, 3)).transpose(0, 3, 1, 2))
    ('abcd', 'acdb')
    """
    order = sorted(range(array.ndim), key=lambda axis: (-array.strides[axis], axis))
    return "".join(ascii_lowercase[axis % 26] for axis in order)


@dataclass(slots=True)
class ExecutionGraph:
    """Builds the graph of a plan, a node for each step.

    Args:
        graph: the compiled layers.
        types: the declared types of their outputs.
        plan: the steps.
        backend: the name of the backend.
        performance: measurements of runs, or None.
    """

    graph: Graph
    types: Mapping[Port, TensorType]
    plan: ExecutionPlan
    backend: str
    performance: Performance | None = None
    layers: list[Layer] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    made: dict[Port, TensorType] = field(default_factory=dict)
    """The types of the outputs of nodes."""
    writers: dict[int, Port] = field(default_factory=dict)
    """The output that fills each slot."""

    def document(self, inputs: Sequence[Port], outputs: Sequence[tuple[Port, str]], name: str) -> Document:
        """Return the graph as a model's document.

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
            if slot not in self.writers:  # a constant
                constant = self.graph[port.layer]
                self._add(_EXECUTION_NODE, "Const", constant.name, [constant], [self.types[port]], [], [slot])
            self._add("Result", "Output", title, [title], [self.types[port]], [slot], [])
        return Document(Graph(self.layers, self.edges), name, "", 11, {})

    def _add_step(self, step: Step) -> None:
        reads = [slot for slot in step.reads if slot in self.writers]
        kind = step.pattern or type_name(step.layer.type)
        seen = {**self._kernel_info(step), **self._measurements(step)}
        self._add(_EXECUTION_NODE, kind, step.layer.name, step.layers, step.types, reads, step.writes, seen)

    def _kernel_info(self, step: Step) -> Mapping[str, str]:
        """Return the name and the precision of a kernel, which is the suffix of its name."""
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
        seen: Mapping[str, str] | None = None,
    ) -> None:
        """Add a node, and connect it."""
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
            **(seen or {}),
        }
        inputs = tuple(PortSpec(number, self.made[self.writers[slot]]) for number, slot in enumerate(reads))
        outputs = tuple(PortSpec(len(reads) + number, item) for number, item in enumerate(types))
        outputs = () if type == "Result" else outputs
        where = Location("", None, name, kind)
        self.layers.append(Layer(id, name, type, "opset1", None, where, inputs, outputs, rt_info=info))
        self.edges += [Edge(self.writers[slot], Port(id, number)) for number, slot in enumerate(reads)]
        for number, slot in enumerate(writes):
            self.writers[slot] = Port(id, number)
            self.made[Port(id, number)] = types[number]

    def _measurements(self, step: Step) -> Mapping[str, str]:
        """Return the measurements of a step: its time, and the layouts of its outputs."""
        performance = self.performance
        if performance is None or id(step) not in performance.seconds:
            return {}
        seconds = performance.seconds[id(step)]
        average = round(1e6 * sum(seconds) / len(seconds))
        return {"execTimeMcs": str(average), "outputLayouts": performance.layouts[id(step)]}
