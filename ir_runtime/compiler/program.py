"""The program that passes transform: needed layers, inferred and folded values, and chosen kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .._util.escaping import cut, visible
from .._util.forks import cached_property
from ..analysis.infer import Inferred
from ..backends import Backend, Fusion, Kernel, KernelTemplate, Precision, Refusal
from ..codes import Code
from ..errors import UnsupportedError
from ..executor.plan import ExecutionPlan
from ..ir.element import ElementType
from ..ir.graph import Body, Graph, Layer, Port
from ..ir.pages import MIN_BYTES, held, is_mapped, let_go
from ..ir.quantized_weights import QuantizedWeights
from ..ir.tensor import Array, TensorType, Value
from .widen import Widened

__all__ = [
    "Group",
    "Options",
    "Program",
    "StoredWeights",
    "listing",
    "needed_layers",
    "sinks",
]


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a compilation.

    Args:
        backends: the backends in order of preference; empty for the reference.
        precision: the precision of kernels, which read it from the context (`backends.core.precision`).
        is_body: whether the graph is the body of a layer, and so was widened with it.
        compile_graph: compiles a program to a plan; used for the bodies of layers.
    """

    backends: Sequence[Backend] = ()
    precision: Precision = field(default_factory=Precision)
    is_body: bool = False
    compile_graph: Callable[[Program, Options], ExecutionPlan] | None = None


@dataclass(frozen=True, slots=True)
class StoredWeights:
    """Quantized weights kept in stored form, and the layers that would dequantize them."""

    weights: QuantizedWeights
    layers: tuple[Layer, ...]


@dataclass(frozen=True)
class Group:
    """Layers in topological order, and the kernel that computes the outputs of the last one."""

    layers: tuple[Layer, ...]
    choose: Callable[[], KernelTemplate]
    """Chooses the kernel."""
    reads: tuple[Port, ...]
    """The inputs of the kernel: those of the first layer, then the other inputs of each layer fused as an epilogue."""
    pattern: str = ""
    """The name of the pattern that the layers match; empty if they match none."""

    @classmethod
    def of(cls, graph: Graph, layer: Layer, choose: Callable[[], KernelTemplate]) -> Group:
        """Return a group of one layer."""
        return cls((layer,), choose, graph.reads(layer))

    @cached_property
    def kernel(self) -> KernelTemplate:
        """The kernel. It is chosen on first use, as layers that are fused into others need none."""
        return self.choose()

    def with_kernel(self, kernel: KernelTemplate) -> Group:
        """Return the group with another kernel."""
        return replace(self, choose=lambda: kernel)

    @property
    def ready(self) -> Kernel:
        """The kernel after it was prepared, with packed weights."""
        return self.kernel.prepare()

    @property
    def writes(self) -> tuple[Port, ...]:
        """The outputs of the last layer."""
        return self.layers[-1].output_ports


@dataclass(slots=True)
class Program:
    """A model during compilation; passes change it in place.

    Args:
        graph: the graph.
        values: inferred and folded values by port; unpacking weights adds their contents.
        layers: the layers that remain to run, in order.
        outputs: the ports to compute.
        fold: whether folding and fusion are allowed; otherwise, every layer stays observable.
        types: the inferred types, including those of bodies.
        widened: the result of widening, if anything was widened.
        packed: weights kept in stored form, by the port where they would be dequantized.
        kernels: kernels chosen by a pass, before patterns and backends are asked, by layer id.
        variables: functions that adapt the f32 kernels of ReadValue and Assign, by layer id.
        shape_only: the positions of layers that depend on shapes alone, by layer id.
        fusions: the fusion that a layer ends, ``None`` if no pattern matched, by layer id.
        groups: the layers that each kernel computes, in execution order.
        refused: the refusals of patterns.
        references: the ids of layers that the reference computes.
        body_peaks: the peak memory of a layer's bodies in bytes, by layer id.
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
        """Return the contents of a port if they are fixed in the plan, else ``None``."""
        is_constant = self.graph[port.layer].type == "Constant"
        return self.values[port].known() if self.fold or is_constant else None

    def is_fixed(self, port: Port) -> bool:
        """Return whether `contents` has an array for a port, without computing it."""
        is_constant = self.graph[port.layer].type == "Constant"
        return (self.fold or is_constant) and self.values[port].is_known

    def visible_value(self, port: Port) -> Value:
        """Return the value of a port as kernels may rely on it: with contents only if they are fixed in the plan."""
        value = self.values[port]
        if self.is_fixed(port):
            return value
        stored = self.packed.get(port)
        return Value(value.type, quantized=None if stored is None else stored.weights)

    def initial_slot(self, port: Port) -> Array | None:
        """Return the initial contents of the slot of a port: its contents, a placeholder for packed weights, or ``None``."""
        contents = self.contents(port)
        if contents is None:
            return self._stand_in(port) if port in self.packed else None
        return held(contents) if contents.nbytes < MIN_BYTES or not self.fold else contents

    def _stand_in(self, port: Port) -> Array:
        """Return a broadcast zero with the shape of packed weights; it takes no memory."""
        type = self.type(port)
        return np.broadcast_to(np.zeros((), type.element.dtype), type.shape.static)

    def occupies_memory(self, port: Port) -> bool:
        """Return whether the contents of a port that no step writes, a constant or an input, occupy memory.

        Constants that stay mapped from the file do not count, as the system can drop their pages; nor do packed weights.
        """
        copied = self.values[port].element in (ElementType.boolean, ElementType.string)
        if not self.fold and (array := self.contents(port)) is not None and is_mapped(array):
            return True
        if port in self.packed and not self.is_fixed(port):
            return False
        return self.graph[port.layer].type != "Constant" or copied

    def release(self, ports: Iterable[Port]) -> None:
        """Release the file pages of constants that kernels have read, as most kernels keep copies."""
        for port in ports:
            if (array := self.contents(port)) is not None:
                let_go(array)

    def declared(self, port: Port) -> ElementType | None:
        """Return the element type that the model declares for a port, if it is computed in another, else ``None``."""
        return None if self.widened is None else self.widened.declared.get(port)

    def original(self, layer: Layer) -> Layer:
        """Return the model's layer that a layer was widened from, or the layer itself."""
        return layer if self.widened is None else self.widened.layers.get(layer.id, layer)

    def is_inserted(self, layer: Layer) -> bool:
        """Return whether a layer is a Convert that widening inserted."""
        return self.widened is not None and layer.id in self.widened.inserted

    def widened_body(self, layer: Layer, body: Body) -> Widened | None:
        """Return the result of widening a layer's body, or ``None`` if nothing was widened in it."""
        return None if self.widened is None else self.widened.bodies.get((layer.id, body.name))


def needed_layers(graph: Graph, outputs: Sequence[Port]) -> list[Layer]:
    """Return all Parameters, and the layers that ``outputs`` and side effects depend on, in order.

    Raises:
        UnsupportedError: if an operation is unknown, or a constant has no data.
    """
    ancestors = graph.ancestors([port.layer for port in outputs] + [layer.id for layer in sinks(graph)])
    layers = [layer for layer in graph if layer.id in ancestors or layer.type == "Parameter"]
    _check_operations(layers)
    return layers


def sinks(graph: Graph) -> list[Layer]:
    """Return the layers that run for their side effects."""
    return [layer for layer in graph if layer.op is not None and layer.op.has_side_effects]


def _check_operations(layers: Sequence[Layer]) -> None:
    unknown = [layer for layer in layers if layer.op is None]
    if not unknown:
        return
    constants = [layer for layer in unknown if layer.type in ("Constant", "Const")]
    if constants:
        raise UnsupportedError(
            "constants that the outputs depend on have no data",
            code=Code.WEIGHTS_MISSING,
            where=constants[0].where,
            hint="read the model with its .bin; the model's report has the details",
        )
    names = ", ".join(sorted({f"{layer.type} ({layer.version})" for layer in unknown}))
    raise UnsupportedError(
        f"these operations are unknown, or have invalid attributes: {names}",
        code=Code.UNKNOWN_OPERATION,
        where=unknown[0].where,
        hint="declare an operation of your own with ir_runtime.ops.op; see examples/custom_op",
    )


# The text of a program after a pass has one line for each executed layer.
#
# ::
#
#     "conv" = Convolution-1("image", const f32[16,1,3,3]) : f32[?,16,28,28]
#       + "relu" = ReLU-1("conv") : f32[?,16,28,28]
#
# A layer with ``+`` is computed by the kernel of the line above.


def listing(program: Program) -> str:
    """Return the text of a program, with one line for each executed layer."""
    return "\n".join(_lines(program))


def _lines(program: Program) -> Iterator[str]:
    for layer in program.graph.of_type("Parameter"):
        yield _line(program, layer)
    if program.groups:
        for group in program.groups:
            yield from _group_lines(program, group)
        return
    for layer in program.layers:
        if layer.type not in ("Parameter", "Constant") and not _is_constant(program, layer):
            fusion = program.fusions.get(layer.id)
            yield _line(program, layer) + (f"  # matches {fusion.pattern}" if fusion else "")


def _group_lines(program: Program, group: Group) -> Iterator[str]:
    first, *others = group.layers
    yield _line(program, first) + (f"  # matches {group.pattern}" if group.pattern else "")
    for layer in others:
        yield f"  + {_line(program, layer)}"


def _line(program: Program, layer: Layer) -> str:
    operation = layer.operation
    inputs = ", ".join(_input(program, port) for port in program.reads(layer))
    outputs = ", ".join(str(program.type(port)) for port in layer.output_ports)
    return f"{_quote(layer.name)} = {operation}({inputs}) : {outputs or 'nothing'}"


def _input(program: Program, port: Port) -> str:
    if port in program.packed:
        return f"quantized {program.type(port)}"
    if program.is_fixed(port):
        return f"const {program.type(port)}"
    layer = program.graph[port.layer]
    return _quote(layer.name) + (f":{port.number}" if len(layer.outputs) > 1 else "")


def _is_constant(program: Program, layer: Layer) -> bool:
    ports = layer.output_ports
    return bool(ports) and all(program.is_fixed(port) for port in ports)


def _quote(name: str) -> str:
    """Return a name in quotes, escaped and cut to fit one line."""
    return '"' + visible(cut(name).encode("unicode_escape").decode().replace('"', '\\"')) + '"'
