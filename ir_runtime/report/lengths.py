"""The lengths at which a report evaluates formulas of dynamic lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..analysis.constraints.constraint import Dim
from ..analysis.constraints.symbols import label
from ..analysis.shapes import Shapes
from ..ir.formula import Count
from .source import Measures, Source

__all__ = ["Lengths", "lengths_of"]


class Lengths(NamedTuple):
    """A number for each dynamic length, by name, and the source of the numbers."""

    values: Mapping[str, int]
    origin: str

    def at(self, count: Count | None) -> int | None:
        """Return the value of a count; ``None`` if it also depends on numbers known only at run time."""
        if count is None or isinstance(count, int):
            return count
        return count.at(self.values) if count.symbols <= self.values.keys() else None

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={length}" for name, length in self.values.items())
        return f"{shown} ({self.origin})" if shown else ""


def lengths_of(source: Source, shapes: Shapes, measures: Measures) -> Lengths:
    """Return the lengths of the inputs that ran; else lengths that satisfy the constraints; else the smallest ones."""
    names = {(each.input, each.axis): each.name for each in shapes.inputs}
    ran = dict(reversed(measures.tensors))  # the inputs come first, and may have the name of an output
    accepted = source.constraints.accepted[:1] if source.constraints else ()
    fitting = accepted[0].lengths if accepted else {}
    numbers: dict[str, int] = {}
    for layer, type in source.types.items():
        name = label(source.graph[layer])
        for axis, dim in enumerate(type.shape if type.shape.rank is not None else ()):
            if (name, axis) not in names:
                continue
            smallest = fitting.get(Dim(layer, axis), max(dim.min, 1))
            numbers[names[name, axis]] = ran[name].shape[axis] if name in ran else smallest
    return Lengths(
        numbers, "as in the run" if ran else "which the model accepts" if fitting else "the smallest"
    )
