"""Plan building: number slots, add run-time checks to kernels, free slots after their last use, and sum up memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._util.forks import computing
from .._util.scoped import Scope
from ..analysis.error_context import Expected, describe_step
from ..backends import Backend, Compute, Kernel
from ..executor.guard import LengthCheck, add_guard, add_length_check
from ..executor.plan import ExecutionPlan
from ..executor.step import Declared, OutputContract, Step
from ..ir.element import ElementType
from ..ir.graph import Layer, Port
from ..ir.operation import is_external
from ..ir.pages import held
from ..ir.tensor import Array, TensorType, bytes_of, check_lengths, empty_results
from ..limits import current
from ..ops import elementwise
from .choose_kernel import needs_run, unwrap
from .memory import Peak, peak, reuse_slots, with_frees
from .program import Group, Options, Program

__all__ = ["PlanBuilder"]

# Results with more elements may be split among threads.
SMALL = 1 << 16


@dataclass(slots=True)
class PlanBuilder:
    """Builds the plan of a program whose kernels are packed.

    Args:
        program: the program.
        options: its options.
        slots: the initial contents of slots, one for each port used by steps.
        places: the slot of each port.
    """

    program: Program
    options: Options
    slots: list[Array | None] = field(default_factory=list)
    places: dict[Port, int] = field(default_factory=dict)

    def plan(self) -> ExecutionPlan:
        """Return the plan of a model or a body.

        Raises:
            LimitError: if a run needs more memory than allowed.
        """
        program, groups = self.program, self.program.groups
        inputs = tuple(self._slot(Port(layer.id, 0)) for layer in program.graph.of_type("Parameter"))
        steps = [self._step(group) for group in groups]
        outputs = tuple(map(self._copied_slot, program.outputs))
        if not self.options.is_body:  # callers get contiguous arrays
            steps = self._return_contiguous(steps)
        steps = with_frees(steps, outputs)
        return reuse_slots(
            steps,
            inputs,
            outputs,
            self.slots,
            around=_scopes(((group, self._types_of(group)) for group in groups), self.options),
            contracts=tuple(
                OutputContract.of(program.graph[port.layer], program.type(port)) for port in program.outputs
            ),
            peak=self._peak(steps).bytes,
            interpreted=not self.options.backends,
        )

    def inner_plan(
        self, groups: Sequence[Group], inputs: Sequence[Port], outputs: Sequence[Port]
    ) -> ExecutionPlan:
        """Return a plan that runs inside a step of another plan; that step checks the inputs and results."""
        reads = tuple(map(self._slot, inputs))
        steps = [self._step(group) for group in groups]
        writes = tuple(map(self._slot, outputs))
        return reuse_slots(with_frees(steps, writes), reads, writes, self.slots)

    def _return_contiguous(self, steps: list[Step]) -> list[Step]:
        """Let steps return model outputs in C order, if a backend reorders them faster than NumPy.

        Feature maps are computed channels last. Steps whose results other steps read are unchanged.
        """
        copies = [backend.contiguous for backend in self.options.backends if backend.contiguous]
        types = {self._slot(port): self.program.type(port) for port in self.program.outputs}
        maps = {
            slot
            for slot, type in types.items()
            if type.element is ElementType.f32 and type.shape.rank not in (0, 1, 2)
        }
        if not copies or not maps:
            return steps
        contiguous, own = copies[0](), maps - {slot for step in steps for slot in step.reads}
        return [
            replace(step, kernel=_make_contiguous(step.kernel, contiguous))
            if own.issuperset(step.writes)
            else step
            for step in steps
        ]

    def _peak(self, steps: Sequence[Step]) -> Peak:
        """Return the peak memory of a run, with dynamic lengths at their minimum.

        Raises:
            LimitError: if it exceeds the memory limit.
        """
        limits, graph = current(), self.program.graph
        sizes = [0] * len(self.slots)
        for port, slot in self.places.items():
            type = self.program.type(port)
            check_lengths(type, limits, graph[port.layer].where)
            sizes[slot] = bytes_of(type)
        written = {slot for step in steps for slot in step.writes}
        fixed = [
            port
            for port, slot in self.places.items()
            if slot not in written and self.program.occupies_memory(port)
        ]
        most = peak(steps, sum(sizes[self.places[port]] for port in fixed), sizes, self.program.body_peaks)
        limits.check("memory", most.bytes, most.step.layer.where if most.step else None)
        return most

    def _slot(self, port: Port) -> int:
        if port not in self.places:
            self.places[port] = len(self.slots)
            self.slots.append(self.program.initial_slot(port))
        return self.places[port]

    def _copied_slot(self, port: Port) -> int:
        """Return the slot of a port; if it has initial contents, these are first copied out of the mapped file."""
        slot = self._slot(port)
        if (array := self.slots[slot]) is not None:
            self.slots[slot] = held(array)
        return slot

    def _step(self, group: Group) -> Step:
        layer, *also = group.layers
        by_reference = layer.id in self.program.references
        shown = self._original_layers(group)
        alone = not also and (by_reference or needs_run(layer))
        reads = tuple(map(self._copied_slot if alone else self._slot, group.reads))
        writes = tuple(map(self._slot, group.writes))
        kernel = group.ready
        if kernel.checks_inputs:
            return Step(
                shown[0], kernel, reads, writes, also=shown[1:], pattern=group.pattern, kernel_name=kernel.name,
                declared=self._declared_types(group), types=tuple(self._types_of(group)),
            )  # fmt: skip
        elements = [self.program.values[port].element for port in group.reads]
        inference = describe_step(self.program.graph, group.layers, group.reads, elements)
        always_runs = any(
            la.op is None or is_external(unwrap(la.op)) or not la.op.pure for la in group.layers
        )
        if not needs_run(layer):
            inputs = tuple(map(self.program.type, group.reads))
            outputs = self._types_of(group)
            # A view needs no memory.
            if not (always_runs or kernel.view) and empty_results(outputs) is not None:
                kernel = _empty_kernel(outputs)
            if any(type.shape.is_dynamic for type in inputs) and not (
                alone and _refuses_lengths(layer, inputs)
            ):
                kernel = add_length_check(kernel, self._length_check(group, inference, inputs))
            bounded = all(la.op is not None and la.op.bounded for la in group.layers)
            kernel = add_guard(kernel, inference, inputs, outputs, bounded, always_runs)
        return Step(
            shown[0], kernel, reads, writes, also=shown[1:], expected=inference, pattern=group.pattern,
            kernel_name=group.ready.name, declared=self._declared_types(group), types=tuple(self._types_of(group)),
        )  # fmt: skip

    def _original_layers(self, group: Group) -> tuple[Layer, ...]:
        """Return the model's layers that a group computes; for an inserted Convert, the layer that it was inserted for."""
        program = self.program
        shown = [program.original(layer) for layer in group.layers if not program.is_inserted(layer)]
        return tuple(shown or [program.original(group.layers[-1])])

    def _declared_types(self, group: Group) -> Declared | None:
        """Return the declared element types of a group.

        Returns ``None`` if the group computes in these types, and is not hidden from observers as an inserted conversion.
        """
        program = self.program
        if program.widened is None:
            return None
        reads, writes = (tuple(map(program.declared, ports)) for ports in (group.reads, group.writes))
        is_hidden = not program.fold and all(map(program.is_inserted, group.layers))
        return Declared(reads, writes, is_hidden) if is_hidden or any(reads) or any(writes) else None

    def _length_check(self, group: Group, inference: Expected, inputs: tuple[TensorType, ...]) -> LengthCheck:
        """Return the check of the lengths for which the kernel of a group was chosen."""
        contents = tuple(map(self.program.contents, group.reads))
        results = tuple(self._types(layer) for layer in group.layers)
        return LengthCheck(inference, inputs, contents, results)

    def _types_of(self, group: Group) -> list[TensorType]:
        return list(map(self.program.type, group.writes))

    def _types(self, layer: Layer) -> tuple[TensorType, ...]:
        return tuple(map(self.program.type, layer.output_ports))


def _refuses_lengths(layer: Layer, inputs: Sequence[TensorType]) -> bool:
    """Return whether a layer's reference itself refuses all lengths that inference refuses."""
    return (
        layer.op is not None and layer.op.refuses_lengths() and all(t.shape.rank is not None for t in inputs)
    )


def _empty_kernel(types: Sequence[TensorType]) -> Kernel:
    """Return a kernel for results that are all empty."""

    def run(*arrays: Array) -> tuple[Array, ...]:
        results = empty_results(types)
        assert results is not None
        return results

    return Kernel(run, of_shapes=True)  # so that replays continue


def _make_contiguous(kernel: Kernel, contiguous: Callable[[Array], Array]) -> Kernel:
    """Return a kernel with contiguous outputs."""
    compute: Compute = kernel.run

    def run(*arrays: Array) -> Array | tuple[Array, ...]:
        results: Any = compute(*arrays)
        return tuple(map(contiguous, results)) if isinstance(results, tuple) else contiguous(results)

    return replace(kernel, run=run, view=False)


def _scopes(groups: Iterable[tuple[Group, Sequence[TensorType]]], options: Options) -> tuple[Scope, ...]:
    """Return the scopes to enter around a run. Scopes that no kernel needs are omitted, as each has a cost.

    Args:
        groups: the groups with the types of their results.
        options: the options of the compilation.
    """
    backends = options.backends
    needed = [scope for group, types in groups for scope in _scopes_of(group, types, backends)]
    flushes = options.precision.flush_denormals
    flushing = [backend.flushing for backend in backends if backend.flushing and flushes]
    return (computing, *flushing, *(backend.around for backend in backends if backend.around in needed))


def _scopes_of(group: Group, types: Sequence[TensorType], backends: Sequence[Backend]) -> Collection[Scope]:
    """Return the scopes that the kernel of a group may need: the scope of its replayer, none, or the scopes of all backends."""
    if (replay := group.ready.replay) is not None:
        return [replay.replayer.around]
    return [] if _needs_no_scope(group, types) else [backend.around for backend in backends]


def _needs_no_scope(group: Group, types: Sequence[TensorType]) -> bool:
    """Return whether a group is a view or small elementwise layers, whose kernels use neither threads nor BLAS."""
    if group.ready.view:
        return True
    maps = all(isinstance(layer.op, elementwise.Unary | elementwise.Binary) for layer in group.layers)
    return maps and all(type.shape.is_static and math.prod(type.shape.static) <= SMALL for type in types)
