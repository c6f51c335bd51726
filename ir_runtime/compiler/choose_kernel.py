"""Kernel selection: the first backend that has a kernel for a layer, else the reference; and weight packing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from .._util import deadline
from ..analysis.infer import Inferred, infer
from ..backends import Kernel, KernelTemplate, choose
from ..backends.core.replay import call_after, compute_before
from ..codes import Code
from ..diagnostics import Diagnostics
from ..errors import UnsupportedError
from ..executor.context import VARIABLES, advance
from ..executor.plan import ExecutionPlan
from ..executor.step import OutputContract
from ..executor.subgraphs import Visitor, check_contracts, normalize_booleans
from ..ir.array import Packed
from ..ir.element import ElementType
from ..ir.graph import Body, Graph, Layer, Port
from ..ir.operation import Operation, is_external
from ..ir.pages import held
from ..ir.tensor import Array, TensorType, Value
from ..ops import Op
from ..ops.infrastructure import Constant
from .program import Group, Options, Program, needed_layers
from .quantized_weights import unpack

__all__ = ["choose_kernel", "hide_mixed_inputs", "lone_group", "needs_run", "pack", "select", "unwrap"]


def choose_kernel(program: Program, options: Options, layer: Layer, used: Collection[Port]) -> KernelTemplate:
    """Return the kernel of a layer: chosen by a pass, else of the first backend that has one, else the reference.

    Args:
        program: the program.
        options: its options.
        layer: the layer.
        used: the ports that are read by layers or are outputs.

    Raises:
        UnsupportedError: if no kernel exists.
    """
    assert layer.op is not None
    deadline.check(layer.where)
    if needs_run(layer):
        around = program.variables.get(layer.id, partial(_note_access, layer.op))
        return around(_reference_in_run(program, options, layer, layer.op))
    if layer.id in program.kernels:
        return program.kernels[layer.id]
    reads = program.reads(layer)
    inputs = [program.visible_value(port) for port in reads]
    if any(value.quantized is not None for value in inputs):
        if (kernel := _choose_quantized(options, layer.op, inputs)) is not None:
            return kernel
        unpack(program, (port for port in reads if port in program.packed))
        inputs = [program.visible_value(port) for port in reads]
    unread = [i for i, port in enumerate(layer.output_ports) if program.fold and port not in used]
    kernel = choose(layer.op, inputs, options.backends, unread)
    program.release(reads)
    if kernel is None:
        return _reference(program, layer, unwrap(layer.op), inputs)
    return _continue_sequence(program, layer, kernel)


def lone_group(program: Program, options: Options, layer: Layer, used: Collection[Port]) -> Group:
    """Return a group of one layer, whose kernel is chosen immediately."""
    kernel = choose_kernel(program, options, layer, used)
    return Group.of(program.graph, layer, lambda: kernel)


def _reference(program: Program, layer: Layer, op: Operation, inputs: Sequence[Value]) -> Kernel:
    """Return the reference kernel of an operation, its `evaluate`.

    Raises:
        UnsupportedError: if it has no reference.
    """
    if isinstance(op, Constant) and isinstance(op.value, Packed):  # every run unpacks it
        op = op.replace(value=replace(op.value, raw=held(op.value.raw)))
    evaluate = op.evaluator([value.element for value in inputs])
    program.references.add(layer.id)
    if getattr(evaluate, "__func__", None) is Op.evaluate:
        raise UnsupportedError(
            f"{op.versioned_name()} can be checked, but not run",
            code=Code.UNKNOWN_OPERATION,
            where=layer.where,
            hint="its class has no evaluate, and no backend has a kernel for it",
        )
    kernel = _continue_sequence(program, layer, Kernel(evaluate)).prepare()
    if not is_external(op):
        return kernel
    types = _types(program, layer)
    if any(type.element in (ElementType.boolean, ElementType.dynamic) for type in types):
        kernel = replace(kernel, run=normalize_booleans(kernel.run))
    return replace(kernel, run=check_contracts(kernel.run, layer, types))


def _choose_quantized(options: Options, op: Operation, inputs: Sequence[Value]) -> KernelTemplate | None:
    """Return the first kernel of a backend that reads quantized weights in stored form, or ``None`` if no backend has one."""
    offers = (backend.kernel_packed(op, inputs) for backend in options.backends)
    return next((kernel for kernel in offers if kernel is not None), None)


def _reference_in_run(program: Program, options: Options, layer: Layer, op: Operation) -> Kernel:
    """Return the reference kernel of an operation with bodies or variables."""
    context: dict[str, Any] = {"variables": VARIABLES} if op.needs("variables") else {}
    if op.needs("visit"):
        types = {body.name: _infer_body(program, layer, body) for body in layer.bodies()}
        plans = {
            body.name: _compile_body(program, options, layer, body, types[body.name])
            for body in layer.bodies()
        }
        program.body_peaks[layer.id] = max((plan.peak for plan in plans.values()), default=0)
        context["visit"] = Visitor(plans, {b.name: _contracts(b, types[b.name]) for b in layer.bodies()})
    return Kernel(check_contracts(partial(op.evaluate, **context), layer, _types(program, layer)))


def _infer_body(program: Program, layer: Layer, body: Body) -> Inferred:
    types = program.types.bodies.get((layer.id, body.name))
    # A branch that is never taken was not inferred.
    return infer(body.graph, Diagnostics()) if types is None else types


def _continue_sequence(program: Program, layer: Layer, kernel: KernelTemplate) -> KernelTemplate:
    """Return a kernel that continues the random sequence of its operation; the same kernel for operations without one."""
    op = program.original(layer).op  # all plans of a model share its sequence
    if op is None or not op.needs("advance"):
        return kernel
    ready = kernel.prepare()
    return replace(ready, run=partial(ready.run, advance=partial(advance, op)))


def _types(program: Program, layer: Layer) -> list[TensorType]:
    return list(map(program.type, layer.output_ports))


def _compile_body(
    program: Program, options: Options, layer: Layer, body: Body, types: Inferred
) -> ExecutionPlan:
    """Compile a body of a layer."""
    assert options.compile_graph is not None
    outputs = list(body.results.values())
    inner = Program(
        body.graph, dict(types), needed_layers(body.graph, outputs), outputs, program.fold, types,
        program.widened_body(layer, body),
    )  # fmt: skip
    return options.compile_graph(inner, replace(options, is_body=True))


def _note_access(op: Operation, kernel: Kernel) -> Kernel:
    """Return a kernel whose access to a variable is recorded, so that replays repeat it.

    The kernel of an operation with bodies is returned unchanged.
    """
    if op.needs("visit"):
        return kernel
    compute, again = kernel.whole, partial(op.evaluate, variables=VARIABLES)

    def read(*arrays: Array) -> Any:
        return compute_before(compute(*arrays), again, *arrays)

    def assign(array: Array) -> Any:
        result = compute(array)
        call_after(again, array)
        return result

    return Kernel(assign if op.has_side_effects else read, has_host_calls=True)


def needs_run(layer: Layer) -> bool:
    """Return whether a layer depends on more than its inputs: bodies or variables."""
    return layer.op is not None and (layer.op.needs("visit") or layer.op.needs("variables"))


def _contracts(body: Body, types: Inferred) -> dict[int, OutputContract]:
    """Return the required type of each Parameter of a body, by layer id."""
    return {id: OutputContract.of(body.graph[id], types[Port(id, 0)].type) for id in body.parameters}


class MixedInputs:
    """Wraps the operation of a layer with mixed inputs, so that backends do not recognize its class.

    Kernels of backends assume one element type for all inputs with the same type variable. Attributes are looked up in
    the operation.
    """

    def __init__(self, op: Operation) -> None:
        self.plain = op

    def __getattr__(self, name: str) -> Any:
        if name == "plain":  # not set yet while an instance is copied
            raise AttributeError(name)
        return getattr(self.plain, name)


def hide_mixed_inputs(program: Program, options: Options) -> None:
    """Leave layers with mixed floating-point inputs to the reference, which computes in the widest type.

    Before: element types are final.
    After: the operation of each such layer is a `MixedInputs`, for which no backend has a kernel or a pattern.
    """
    if not options.backends:
        return
    mixed = {
        layer.id: replace(layer, op=cast("Operation", MixedInputs(op)))
        for layer in program.layers
        if (op := layer.op) is not None
        and op.has_mixed_inputs
        and op.is_mixed([program.values[port].element for port in program.reads(layer)])
    }
    if mixed:
        graph = program.graph
        layers = [mixed.get(layer.id, layer) for layer in graph.layers.values()]
        program.graph = Graph(layers, graph.edges, graph.severed)
        program.layers = [program.graph[layer.id] for layer in program.layers]


def unwrap(op: Operation) -> Operation:
    """Return an operation without its `MixedInputs` wrapper, if any."""
    return op.plain if isinstance(op, MixedInputs) else op


def select(program: Program, options: Options) -> None:
    """Group the layers of patterns; other kernels are chosen lazily.

    Before: ``layers`` are the layers to run, and ``fusions`` has the fusion that each of them ends, if any.
    After: ``groups`` has a group that ends with each layer, in order.
    """
    fusions = program.fusions
    read = set(program.outputs)
    for layer in program.layers:
        fusion = fusions.get(layer.id)
        read.update(program.reads(layer) if fusion is None else fusion.reads)
    program.groups = [_group(program, options, layer, read) for layer in program.layers]


def _group(program: Program, options: Options, layer: Layer, read: Collection[Port]) -> Group:
    if (fusion := program.fusions.get(layer.id)) is not None:
        return Group(fusion.layers, lambda: fusion.kernel, fusion.reads, fusion.pattern)
    if not program.packed.keys().isdisjoint(program.reads(layer)):
        # Choose now: later layers also see the weights unpacked for this one.
        return lone_group(program, options, layer, read)
    return Group.of(program.graph, layer, partial(choose_kernel, program, options, layer, read))


def pack(program: Program, options: Options) -> None:
    """Let kernels pack their weights, now that the fusions are final.

    Before: ``groups`` are final.
    After: the kernel of every group is a prepared `Kernel`, and its template is dropped.
    """
    program.groups = [_pack_group(program, group) for group in program.groups]


def _pack_group(program: Program, group: Group) -> Group:
    prepared = group.with_kernel(group.ready)
    program.release(group.reads)
    return prepared
