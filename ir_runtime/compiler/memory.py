"""Memory planning without an arena: when slots are freed and reused, and the peak memory of a run.

Results are allocated and freed one by one. Freed memory is cached by the allocator, and for large results by
`backends.common.kept_memory`, so an arena would save nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..analysis.infer import Inferred, infer
from ..backends import Kernel
from ..diagnostics import Diagnostics
from ..executor.plan import ExecutionPlan
from ..executor.step import Step
from ..ir.graph import Body, Graph, Layer, Port
from ..ir.tensor import Array, bytes_of
from .program import Program, needed_layers

__all__ = ["Peak", "least_memory", "peak", "reuse_slots", "with_frees"]


class Peak(NamedTuple):
    """The peak memory in bytes, and the step that reaches it, if any."""

    bytes: int
    step: Step | None = None


def peak(
    steps: Iterable[Step], always: int, sizes: Sequence[int], inside: Mapping[int, int] | None = None
) -> Peak:
    """Return the peak memory of a run, from the sizes of the slots that steps write and free.

    Args:
        steps: the steps in order, each with the slots that it frees.
        always: the bytes in use throughout: inputs, and constants that are not mapped from the file.
        sizes: the minimum size of each slot in bytes.
        inside: the peak memory of a layer's bodies in bytes, by layer id.
    """
    used = always
    most = Peak(always)
    for step in steps:
        used += sum(sizes[slot] for slot in step.writes)
        now = used + (inside or {}).get(step.layer.id, 0)
        if now > most.bytes:
            most = Peak(now, step)
        used -= sum(sizes[slot] for slot in step.frees)
    return most


def with_frees(steps: Sequence[Step], outputs: Sequence[int]) -> list[Step]:
    """Return steps that free each slot after its last use, except constants, inputs and outputs."""
    retained = set(outputs)
    written = {slot for step in steps for slot in step.writes}
    read_later: set[int] = set()
    freed = []
    for step in reversed(steps):
        touched = set(step.reads) | set(step.writes)
        frees = tuple(
            sorted(s for s in touched if s in written and s not in retained and s not in read_later)
        )
        read_later |= touched
        freed.append(replace(step, frees=frees))
    return freed[::-1]


@dataclass(slots=True)
class _SlotAllocator:
    """Renumbers slots so that arrays which are never live at the same time share one.

    Args:
        shared: the slots that may share a number; every other slot has its own.
    """

    shared: frozenset[int]
    of: dict[int, int] = field(default_factory=dict)
    """The new number of each slot."""
    free: list[int] = field(default_factory=list)
    """Free numbers. The last was freed most recently, so its array is still in the processor's cache."""
    count: int = 0

    def renumber(self, step: Step) -> Step:
        """Return a step with new slot numbers; its results may reuse slots that it frees."""
        unread = {slot for slot in step.writes if slot in step.frees}
        reads = tuple(map(self.place, step.reads))
        ending = [slot for slot in step.frees if slot in self.shared]
        self.free += [self.of[slot] for slot in ending if slot not in unread]
        for slot in sorted(step.writes, key=unread.__contains__):
            self.place(slot)
        self.free += [self.of[slot] for slot in ending if slot in unread]
        overwritten = {self.of[slot] for slot in step.writes if slot not in unread}
        frees = tuple(sorted({self.of[slot] for slot in step.frees} - overwritten))
        return replace(step, reads=reads, writes=tuple(map(self.place, step.writes)), frees=frees)

    def place(self, slot: int) -> int:
        """Return the new number of a slot, which is assigned on the first call: a free one if the slot may share it."""
        if slot not in self.of:
            if slot in self.shared and self.free:
                self.of[slot] = self.free.pop()
            else:
                self.of[slot], self.count = self.count, self.count + 1
        return self.of[slot]


def reuse_slots(
    steps: Sequence[Step],
    inputs: Iterable[int],
    outputs: Iterable[int],
    slots: Sequence[Array | None],
    **more: Any,
) -> ExecutionPlan:
    """Return the plan of steps whose results share slots when their lifetimes do not overlap.

    Runs of long models then touch few slots, and equal steps share instructions.

    Args:
        steps: the steps in order.
        inputs: the slots of the inputs.
        outputs: the slots of the outputs.
        slots: the initial contents of slots: constants, ``None`` elsewhere.
        more: further arguments of `ExecutionPlan`.
    """
    written = frozenset(slot for step in steps for slot in step.writes if slots[slot] is None)
    allocator = _SlotAllocator(written)
    input_slots = tuple(map(allocator.place, inputs))
    renumber = tuple(map(allocator.renumber, steps))
    output_slots = tuple(map(allocator.place, outputs))
    arrays: list[Array | None] = [None] * allocator.count
    for slot, place in allocator.of.items():
        arrays[place] = slots[slot] if slot not in written else None
    return ExecutionPlan(renumber, input_slots, output_slots, tuple(arrays), **more)


_NOTHING = Kernel(tuple)
"""A placeholder for the kernels of steps that do not run."""


def least_memory(graph: Graph, types: Inferred, outputs: Sequence[Port], patched: bool = False) -> Peak:
    """Return the peak memory of a run without fusion, and the step that reaches it.

    Args:
        graph: the layers.
        types: the inferred values; unknown lengths count as their minimum.
        outputs: the ports to compute.
        patched: whether to count the results of the running layer twice, as a patch may copy them.
    """
    program = Program(graph, types, (), outputs)
    slots: dict[Port, int] = {}

    def slots_of(ports: Sequence[Port]) -> tuple[int, ...]:
        return tuple(slots.setdefault(port, len(slots)) for port in ports)

    slots_of([Port(layer.id, 0) for layer in graph.of_type("Parameter")])
    steps = [
        Step(layer, _NOTHING, slots_of(graph.reads(layer)), slots_of(layer.output_ports))
        for layer in needed_layers(graph, outputs)
        if _runs(program, layer)
    ]
    steps = with_frees(steps, slots_of(outputs))
    written = {slot for step in steps for slot in step.writes}
    fixed = [port for port, slot in slots.items() if slot not in written and program.occupies_memory(port)]
    sizes = [bytes_of(program.type(port)) for port in slots]
    inside = {
        step.layer.id: _body_memory(step.layer, types, patched) for step in steps if step.layer.bodies()
    }
    if patched:
        copies = {step.layer.id: sum(sizes[slot] for slot in step.writes) for step in steps}
        inside = {id: max(inside.get(id, 0), size) for id, size in copies.items()}
    return peak(steps, sum(sizes[slots[port]] for port in fixed), sizes, inside)


def _runs(program: Program, layer: Layer) -> bool:
    """Return whether each run computes a layer; this includes Constants that are unpacked in each run."""
    if layer.type == "Constant":
        return not program.is_fixed(Port(layer.id, 0))
    return layer.type != "Parameter"


def _body_memory(layer: Layer, types: Inferred, patched: bool) -> int:
    return max(
        least_memory(body.graph, _infer_body(layer, body, types), list(body.results.values()), patched).bytes
        for body in layer.bodies()
    )


def _infer_body(layer: Layer, body: Body, types: Inferred) -> Inferred:
    """Return the inferred values of a body; a branch that is never taken is inferred from its declared inputs."""
    inferred = types.bodies.get((layer.id, body.name))
    return infer(body.graph, Diagnostics()) if inferred is None else inferred
