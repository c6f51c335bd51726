"""The program that passes transform: layers, what is known of their ports, and the kernels chosen so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .._util.cached import cached_property
from ..analysis.infer import Inferred
from ..backends import Backend, Fusion, Kernel, KernelTemplate, Precision, Refusal
from ..executor.plan import ExecutionPlan
from ..ir.element import ElementType
from ..ir.graph import Body, Graph, Layer, Port
from ..ir.pages import MIN_BYTES, held, is_mapped, let_go
from ..ir.quantized_weights import QuantizedWeights
from ..ir.tensor import Array, TensorType, Value
from .widen import Widened

__all__ = ["Group", "Options", "Program", "StoredWeights"]


@dataclass(frozen=True, slots=True)
class Options:
    """What a compilation was asked for.

    Args:
        backends: asked in turn for a kernel for each layer; none where the reference computes everything.
        precision: what kernels may round. Kernels read it from the context (`backends.core.precision`).
        is_body: whether the graph is a body: its types were widened with the layer around it.
        compile_graph: compiles a program to a plan; passes compile the bodies of layers with it.
    """

    backends: Sequence[Backend] = ()
    precision: Precision = field(default_factory=Precision)
    is_body: bool = False
    compile_graph: Callable[[Program, Options], ExecutionPlan] | None = None


@dataclass(frozen=True, slots=True)
class StoredWeights:
    """Weights that stay as they are stored, and the layers that dequantize them, in order."""

    weights: QuantizedWeights
    layers: tuple[Layer, ...]


@dataclass(frozen=True)
class Group:
    """Layers in topological order, and the kernel that computes the outputs of the last one; the others are not visible."""

    layers: tuple[Layer, ...]
    choose: Callable[[], KernelTemplate]
    """Returns the kernel."""
    reads: tuple[Port, ...]
    """The inputs of the kernel; where layers are in a row, each with one reader, their inputs in order."""
    pattern: str = ""
    """The name of the pattern that the layers match, if they match one."""

    @classmethod
    def of(cls, graph: Graph, layer: Layer, choose: Callable[[], KernelTemplate]) -> Group:
        """Return a group of one layer."""
        return cls((layer,), choose, graph.reads(layer))

    @cached_property
    def kernel(self) -> KernelTemplate:
        """The kernel, chosen when it is first asked for: layers that others fuse need none of their own."""
        return self.choose()

    def with_kernel(self, kernel: KernelTemplate) -> Group:
        """Return the same layers with another kernel."""
        return replace(self, choose=lambda: kernel)

    @property
    def ready(self) -> Kernel:
        """The kernel, prepared."""
        return self.kernel.prepare()

    @property
    def writes(self) -> tuple[Port, ...]:
        """The outputs of the last layer."""
        return self.layers[-1].output_ports


@dataclass(slots=True)
class Program:
    """A model between reading and running. Passes change it in place.

    Args:
        graph: the graph.
        values: what was inferred and folded, by port; it grows where compressed weights are unpacked.
        layers: those that run, as far as is known by now, in order.
        outputs: the ports to compute.
        fold: whether contents other than those of constants may be taken for fixed, and kernels may compute several
            layers; without, every layer stays observable.
        types: what was inferred, with the types inside bodies.
        widened: what was widened to give the graph, if anything was.
        packed: weights that stay compressed, as long as every reader has a kernel for that.
        kernels: kernels that a pass chose before patterns and backends are tried, by layer id.
        variables: makes the kernel of a layer that reads or assigns a variable from that for f32, by layer id.
        shape_only: the layers whose results follow from shapes alone, numbered in order, by layer id.
        fusions: the fusion that a layer ends, if patterns were asked, by layer id.
        groups: the layers that each kernel computes, in the order in which they run.
        refused: what patterns refused, and why.
        references: the layers that the reference computes, by id.
        body_peaks: bytes that the bodies of a layer need, by its id.
    """

    graph: Graph
    values: dict[Port, Value]
    layers: Sequence[Layer]
    outputs: Sequence[Port]
    fold: bool = False
    types: Inferred = field(default_factory=Inferred)
    widened: Widened | None = None
    packed: Mapping[Port, StoredWeights] = field(default_factory=dict)
    kernels: Mapping[int, KernelTemplate] = field(default_factory=dict)
    variables: Mapping[int, Callable[[Kernel], Kernel]] = field(default_factory=dict)
    shape_only: Mapping[int, int] = field(default_factory=dict)
    fusions: dict[int, Fusion | None] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    references: set[int] = field(default_factory=set)
    body_peaks: dict[int, int] = field(default_factory=dict)

    def reads(self, layer: Layer) -> tuple[Port, ...]:
        """Return the ports that a layer reads."""
        return self.graph.reads(layer)

    def type(self, port: Port) -> TensorType:
        """Return the type of a port."""
        return self.values[port].type

    def contents(self, port: Port) -> Array | None:
        """Return the contents, where they are fixed in the plan."""
        is_constant = self.graph[port.layer].type == "Constant"
        return self.values[port].known() if self.fold or is_constant else None

    def is_fixed(self, port: Port) -> bool:
        """Return whether there are `contents`, without computing them."""
        is_constant = self.graph[port.layer].type == "Constant"
        return (self.fold or is_constant) and self.values[port].is_known

    def visible_value(self, port: Port) -> Value:
        """Return what a kernel may rely on: contents only if they are fixed in the plan."""
        value = self.values[port]
        if self.is_fixed(port):
            return value
        stored = self.packed.get(port)
        return Value(value.type, quantized=None if stored is None else stored.weights)

    def initial_slot(self, port: Port) -> Array | None:
        """Return the contents of the slot of a port before a run."""
        known = self.contents(port)
        if known is None:
            return self._stand_in(port) if port in self.packed else None
        return held(known) if known.nbytes < MIN_BYTES or not self.fold else known

    def _stand_in(self, port: Port) -> Array:
        """Return zeros instead of weights that stay packed: an array of their shape, without memory."""
        type = self.type(port)
        return np.broadcast_to(np.zeros((), type.element.dtype), type.shape.static)

    def owned(self, port: Port) -> bool:
        """Return whether a constant takes memory; the pages of the file do not, as the system drops them again."""
        copied = self.values[port].element in (ElementType.boolean, ElementType.string)
        if not self.fold and (array := self.contents(port)) is not None and is_mapped(array):
            return True
        if port in self.packed and not self.is_fixed(port):
            return False
        return self.graph[port.layer].type != "Constant" or copied

    def release(self, ports: Iterable[Port]) -> None:
        """Release the pages of constants that were read; most kernels have copies."""
        for port in ports:
            if (array := self.contents(port)) is not None:
                let_go(array)

    def declared(self, port: Port) -> ElementType | None:
        """Return the element type that the model declares of a port that has another one."""
        return None if self.widened is None else self.widened.declared.get(port)

    def original(self, layer: Layer) -> Layer:
        """Return the layer of the model that a layer stands for."""
        return layer if self.widened is None else self.widened.layers.get(layer.id, layer)

    def is_inserted(self, layer: Layer) -> bool:
        """Return whether a layer converts what the model declares to what is computed, or back."""
        return self.widened is not None and layer.id in self.widened.inserted

    def widened_body(self, layer: Layer, body: Body) -> Widened | None:
        """Return what was widened to give a body of a layer."""
        return None if self.widened is None else self.widened.bodies.get((layer.id, body.name))
