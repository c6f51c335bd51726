"""Steps of a plan: each group of layers gets slots for what it reads and writes, and the checks that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..analysis.expected import Expected, expected
from ..backends import Kernel
from ..compiler.fuse import Group
from ..compiler.mixed_inputs import plain
from ..compiler.state import CompileState
from ..ir.element import ElementType
from ..ir.graph import Layer, Port
from ..ir.operation import is_external
from ..ir.pages import held
from ..ir.sizes import bytes_of, check_lengths, empty_results
from ..ir.tensor import Array, TensorType
from ..limits import current
from .guard import guarded
from .length_check import LengthCheck, checked
from .memory import Peak, peak, reuse_slots, with_frees
from .output_contract import OutputContract
from .plan import ExecutionPlan
from .returned import with_contiguous_results
from .scopes import scopes
from .select_kernel import KernelSelector, needs_run
from .step import Declared, Step

__all__ = ["StepBuilder"]


@dataclass(slots=True)
class StepBuilder:
    """Numbers slots: one for each port that some step reads or writes."""

    state: CompileState
    selector: KernelSelector
    slots: list[Array | None] = field(default_factory=list)
    places: dict[Port, int] = field(default_factory=dict)

    def plan(
        self, groups: Sequence[Group], inputs: Sequence[Port], outputs: Sequence[Port], returned: bool
    ) -> ExecutionPlan:
        """Return the plan that runs groups in order, for the inputs and outputs of a model or a body.

        Args:
            groups: the layers that each kernel computes.
            inputs: what a run is given.
            outputs: what it computes.
            returned: whether callers get the outputs, contiguous; else other layers read them.

        Raises:
            LimitError: if it needs too much memory.
        """
        given = tuple(map(self._slot, inputs))
        steps = [self._step(group) for group in groups]
        wanted = tuple(map(self._held, outputs))
        if returned:
            steps = self._returning(steps, outputs)
        steps = with_frees(steps, wanted)
        return reuse_slots(
            steps,
            given,
            wanted,
            self.slots,
            around=scopes(((group, self._types_of(group)) for group in groups), self.selector.backends),
            contracts=tuple(
                OutputContract.of(self.state.graph[p.layer], self.state.type(p)) for p in outputs
            ),
            peak=self._peak(steps).bytes,
        )

    def inner_plan(
        self, groups: Sequence[Group], inputs: Sequence[Port], outputs: Sequence[Port]
    ) -> ExecutionPlan:
        """Return a plan that is part of a step: the step's plan has its checks."""
        given = tuple(map(self._slot, inputs))
        steps = [self._step(group) for group in groups]
        wanted = tuple(map(self._slot, outputs))
        return reuse_slots(with_frees(steps, wanted), given, wanted, self.slots)

    def _returning(self, steps: list[Step], outputs: Sequence[Port]) -> list[Step]:
        """Return the steps; those of maps give contiguous results, where a backend reorders them faster than NumPy."""
        copies = [backend.contiguous for backend in self.selector.backends if backend.contiguous]
        types = {self._slot(port): self.state.type(port) for port in outputs}
        maps = [
            slot
            for slot, type in types.items()
            if type.element is ElementType.f32 and type.shape.rank not in (0, 1, 2)
        ]
        return with_contiguous_results(steps, maps, copies[0]()) if copies and maps else steps

    def _peak(self, steps: Sequence[Step]) -> Peak:
        """Return how much memory a run needs at least.

        Raises:
            LimitError: if that is too much.
        """
        limits, graph = current(), self.state.graph
        sizes = [0] * len(self.slots)
        for port, slot in self.places.items():
            type = self.state.type(port)
            check_lengths(type, limits, graph[port.layer].where)
            sizes[slot] = bytes_of(type)
        written = {slot for step in steps for slot in step.writes}
        fixed = [port for port, slot in self.places.items() if slot not in written and self.state.owned(port)]
        found = peak(steps, sum(sizes[self.places[port]] for port in fixed), sizes, self.selector.body_peaks)
        limits.check("memory", found.bytes, found.step.layer.where if found.step else None)
        return found

    def _slot(self, port: Port) -> int:
        if port not in self.places:
            self.places[port] = len(self.slots)
            self.slots.append(self.state.in_place(port))
        return self.places[port]

    def _held(self, port: Port) -> int:
        """Return the slot of what is read in every run, and so is copied out of the file."""
        slot = self._slot(port)
        if (array := self.slots[slot]) is not None:
            self.slots[slot] = held(array)
        return slot

    def _step(self, group: Group) -> Step:
        layer, *also = group.layers
        by_reference = layer.id in self.selector.references
        shown = self._shown(group)
        alone = not also and (by_reference or needs_run(layer))
        reads = tuple(map(self._held if alone else self._slot, group.reads))
        writes = tuple(map(self._slot, group.writes))
        kernel = group.ready
        if kernel.checks_inputs:
            return Step(
                shown[0], kernel, reads, writes, also=shown[1:], pattern=group.pattern, kernel_name=kernel.name,
                declared=self._declared(group), types=tuple(self._types_of(group)),
            )  # fmt: skip
        elements = [self.state.values[port].element for port in group.reads]
        known = expected(self.state.graph, group.layers, group.reads, elements)
        always_runs = any(la.op is None or is_external(plain(la.op)) or not la.op.pure for la in group.layers)
        if not needs_run(layer):
            inputs = tuple(map(self.state.type, group.reads))
            outputs = self._types_of(group)
            # A view takes no memory anyway.
            if not (always_runs or kernel.view) and empty_results(outputs) is not None:
                kernel = _without_elements(outputs)
            if any(type.shape.is_dynamic for type in inputs) and not (alone and _refuses(layer, inputs)):
                kernel = checked(kernel, self._lengths(group, known, inputs))
            bounded = all(la.op is not None and la.op.bounded for la in group.layers)
            kernel = guarded(kernel, known, inputs, outputs, bounded, always_runs)
        return Step(
            shown[0], kernel, reads, writes, also=shown[1:], expected=known, pattern=group.pattern,
            kernel_name=group.ready.name, declared=self._declared(group), types=tuple(self._types_of(group)),
        )  # fmt: skip

    def _shown(self, group: Group) -> tuple[Layer, ...]:
        """Return the layers of the model that a group computes; where it converts only, the one beside that."""
        state = self.state
        found = [state.original(layer) for layer in group.layers if not state.is_inserted(layer)]
        return tuple(found or [state.original(group.layers[-1])])

    def _declared(self, group: Group) -> Declared | None:
        """Return the declared types that observers see, if a group computes in others."""
        state = self.state
        if state.widened is None:
            return None
        reads, writes = (tuple(map(state.declared, ports)) for ports in (group.reads, group.writes))
        is_hidden = not state.fold and all(map(state.is_inserted, group.layers))
        return Declared(reads, writes, is_hidden) if is_hidden or any(reads) or any(writes) else None

    def _lengths(self, group: Group, known: Expected, inputs: tuple[TensorType, ...]) -> LengthCheck:
        """Return the check of the lengths that the kernel of a group relies on."""
        contents = tuple(map(self.state.contents, group.reads))
        made = tuple(self._types(layer) for layer in group.layers)
        return LengthCheck(known, inputs, contents, made)

    def _types_of(self, group: Group) -> list[TensorType]:
        return list(map(self.state.type, group.writes))

    def _types(self, layer: Layer) -> tuple[TensorType, ...]:
        return tuple(map(self.state.type, layer.output_ports))


def _refuses(layer: Layer, inputs: Sequence[TensorType]) -> bool:
    """Return whether the reference of a layer itself refuses the lengths that inference refuses."""
    return (
        layer.op is not None and layer.op.refuses_lengths() and all(t.shape.rank is not None for t in inputs)
    )


def _without_elements(types: Sequence[TensorType]) -> Kernel:
    """Return a kernel for results of which none has an element."""

    def run(*arrays: Array) -> tuple[Array, ...]:
        results = empty_results(types)
        assert results is not None
        return results

    return Kernel(run, of_shapes=True)  # so that a replay does not end here
