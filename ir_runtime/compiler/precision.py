"""The passes ``widen`` and ``store-bf16``: the types in which floating-point layers compute and store results."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..backends import KernelTemplate
from ..ir.graph import Port
from .program import Group, Options, Program, needed_layers
from .widen import has_f16, widen_f16

__all__ = ["compute_f16_in_f32", "store_bf16"]


def compute_f16_in_f32(program: Program, options: Options) -> None:
    """Compute the model's f16 in f32, unless f16 is requested or the backend is the reference.

    Before: no pass has changed the program; bodies are widened with the layers that contain them.
    After: if anything was widened, ``graph``, ``types``, ``values``, ``layers`` and ``outputs`` are those of the widened
    model, and ``widened`` maps them to the original.
    """
    literal = not options.backends or options.precision.f16 == "f16"
    if literal or options.is_body or not has_f16(program.graph, program.types):
        return
    widened = widen_f16(program.graph, program.types, program.outputs, program.fold)
    program.graph, program.types, program.values = widened.graph, widened.types, dict(widened.types)
    program.outputs, program.widened = widened.outputs, widened
    program.layers = needed_layers(widened.graph, widened.outputs)


def store_bf16(program: Program, options: Options) -> None:
    """Let kernels store results in bf16 if all consumers would round them to bf16.

    Before: fusions are final; no kernel is prepared.
    After: the kernel of a group may return bf16 for an f32 result if the kernels of all consuming groups accept it.
    """
    if program.fold and options.precision.products == "bf16":
        program.groups = _choose_bf16(program.groups, set(program.outputs))


def _choose_bf16(groups: Sequence[Group], outputs: Collection[Port]) -> list[Group]:
    changed = list[Group]()
    readers: dict[Port, list[tuple[KernelTemplate, int]]] = {}
    for group in reversed(
        groups
    ):  # consumers first: whether they read bf16 may depend on whether they store it
        first, *others = group.writes or (None,)
        if (
            first is not None
            and first not in outputs
            and not any(port in outputs or port in readers for port in others)
        ):
            group = _store_bf16(group, readers.get(first, ()))
        for place, port in enumerate(group.reads):
            readers.setdefault(port, []).append((group.kernel, place))
        changed.append(group)
    return changed[::-1]


def _store_bf16(group: Group, readers: Collection[tuple[KernelTemplate, int]]) -> Group:
    """Return a group with its first result stored in bf16; unchanged if its kernel or a consumer does not support it."""
    if not readers or not all(kernel.reads_bf16(place) for kernel, place in readers):
        return group
    kernel = group.kernel.storing_bf16()
    return group if kernel is None else group.with_kernel(kernel)
