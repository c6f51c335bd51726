"""Kernel selection: the first backend that has a kernel for a layer; else the reference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from .._util import deadline
from ..analysis.infer import Inferred, infer
from ..backends import Backend, Kernel, KernelTemplate, choose
from ..backends.core.host_calls import called_after, made_before
from ..codes import Code
from ..compiler.mixed_inputs import plain
from ..compiler.program import Program
from ..compiler.widen import Widened
from ..diagnostics import Diagnostics
from ..errors import UnsupportedError
from ..ir.array import Packed
from ..ir.element import ElementType
from ..ir.graph import Body, Layer, Port
from ..ir.operation import Operation, is_external
from ..ir.pages import held
from ..ir.tensor import Array, TensorType, Value
from ..ops import Op
from ..ops.infrastructure.ends import Constant
from .context import VARIABLES, advance
from .output_contract import OutputContract
from .plan import ExecutionPlan
from .subgraphs import Visitor, contract_checked, with_booleans

__all__ = ["KernelSelector", "needs_run"]


@dataclass(slots=True)
class KernelSelector:
    """Chooses kernels, one layer at a time.

    Args:
        program: the program to compile.
        bodies: the inferred types of the bodies of layers, by layer id and name.
        backends: in the order of preference.
        compile_body: returns the plan of a body from its inferred types, and what was widened to give it.
    """

    program: Program
    bodies: Mapping[tuple[int, str], Inferred]
    backends: Sequence[Backend]
    compile_body: Callable[[Body, Inferred, Widened | None], ExecutionPlan]
    body_peaks: dict[int, int] = field(default_factory=dict)
    """Bytes that the bodies of a layer need, by its id."""
    references: set[int] = field(default_factory=set)
    """The layers that the reference computes, by id."""

    def kernel(self, layer: Layer, read: Collection[Port]) -> KernelTemplate:
        """Return the kernel of a layer, of which some outputs are read.

        Raises:
            UnsupportedError: if there is none.
        """
        assert layer.op is not None
        deadline.check(layer.where)
        if needs_run(layer):
            around = self.program.variables.get(layer.id, partial(_noted, layer.op))
            return around(self._with_run(layer, layer.op))
        if layer.id in self.program.kernels:
            return self.program.kernels[layer.id]
        state, reads = self.program.state, self.program.reads(layer)
        inputs = [state.visible_value(port) for port in reads]
        if any(value.quantized is not None for value in inputs):
            if (kernel := self._quantized(layer.op, inputs)) is not None:
                return kernel
            state.unpack(port for port in reads if port in state.packed)
            inputs = [state.visible_value(port) for port in reads]
        unread = [i for i, port in enumerate(layer.output_ports) if state.fold and port not in read]
        kernel = choose(layer.op, inputs, self.backends, unread)
        state.release(reads)
        if kernel is None:
            return self._reference(layer, plain(layer.op), inputs)
        return self._advancing(layer, kernel)

    def _reference(self, layer: Layer, op: Operation, inputs: Sequence[Value]) -> Kernel:
        """Return the reference of an operation, its `evaluate`.

        Raises:
            UnsupportedError: if it has none.
        """
        if isinstance(op, Constant) and isinstance(op.value, Packed):  # unpacked in every run
            op = op.replace(value=replace(op.value, raw=held(op.value.raw)))
        evaluate = op.evaluator([value.element for value in inputs])
        self.references.add(layer.id)
        if getattr(evaluate, "__func__", None) is Op.evaluate:
            raise UnsupportedError(
                f"{op.versioned_name()} can be checked, but not run",
                code=Code.UNKNOWN_OPERATION,
                where=layer.where,
                hint="its class has no evaluate, and no backend has a kernel for it",
            )
        kernel = self._advancing(layer, Kernel(evaluate)).prepare()
        if not is_external(op):
            return kernel
        types = self._types(layer)
        if any(type.element in (ElementType.boolean, ElementType.dynamic) for type in types):
            kernel = replace(kernel, run=with_booleans(kernel.run))
        return replace(kernel, run=contract_checked(kernel.run, layer, types))

    def _quantized(self, op: Operation, inputs: Sequence[Value]) -> KernelTemplate | None:
        """Return a kernel that multiplies weights as they are stored."""
        offers = (backend.kernel_packed(op, inputs) for backend in self.backends)
        return next((kernel for kernel in offers if kernel is not None), None)

    def _with_run(self, layer: Layer, op: Operation) -> Kernel:
        """Return the reference of an operation that has bodies or variables."""
        context: dict[str, Any] = {"variables": VARIABLES} if op.needs("variables") else {}
        if op.needs("visit"):
            types = {body.name: self._inferred(layer, body) for body in layer.bodies()}
            state, compiled = self.program.state, self.compile_body
            plans = {b.name: compiled(b, types[b.name], state.body(layer, b)) for b in layer.bodies()}
            self.body_peaks[layer.id] = max((plan.peak for plan in plans.values()), default=0)
            context["visit"] = Visitor(plans, {b.name: _contracts(b, types[b.name]) for b in layer.bodies()})
        return Kernel(contract_checked(partial(op.evaluate, **context), layer, self._types(layer)))

    def _inferred(self, layer: Layer, body: Body) -> Inferred:
        types = self.bodies.get((layer.id, body.name))
        # A branch that is never taken was not inferred.
        return infer(body.graph, Diagnostics()) if types is None else types

    def _advancing(self, layer: Layer, kernel: KernelTemplate) -> KernelTemplate:
        """Return a kernel that continues the sequence of an operation of random numbers, which it takes as a keyword."""
        op = self.program.state.original(layer).op  # all plans of a model continue the same one
        if op is None or not op.needs("advance"):
            return kernel
        ready = kernel.prepare()
        return replace(ready, run=partial(ready.run, advance=partial(advance, op)))

    def _types(self, layer: Layer) -> list[TensorType]:
        return list(map(self.program.state.type, layer.output_ports))


def _noted(op: Operation, kernel: Kernel) -> Kernel:
    """Return a kernel that notes how it reads or assigns a variable, for replays; they need no check of equal shapes."""
    if op.needs("visit"):
        return kernel
    compute, again = kernel.whole, partial(op.evaluate, variables=VARIABLES)

    def read(*arrays: Array) -> Any:
        return made_before(compute(*arrays), again, *arrays)

    def assign(array: Array) -> Any:
        found = compute(array)
        called_after(again, array)
        return found

    return Kernel(assign if op.has_side_effects else read, has_host_calls=True)


def needs_run(layer: Layer) -> bool:
    """Return whether a layer needs more than its inputs: bodies or variables."""
    return layer.op is not None and (layer.op.needs("visit") or layer.op.needs("variables"))


def _contracts(body: Body, types: Inferred) -> dict[int, OutputContract]:
    """Return what each Parameter of a body must be given, by layer id."""
    return {id: OutputContract.of(body.graph[id], types[Port(id, 0)].type) for id in body.parameters}
