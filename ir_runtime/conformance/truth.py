"""The right outputs of a model, and the effect that a rounding of its inputs has on them.

Numbers are computed in f64 and rounded once to the type that the model declares. A sound implementation computes what
f64 would give for inputs that are off by a rounding or so (backward stability): the model is run on inputs that are
moved by their rounding, and the largest change of an output is the unit in which errors of cancelling sums are counted.
In a graph of several layers, the tensors between them are moved as well, by the errors of the layers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ..debug.reference import Reference
from ..ir.element import ElementType
from ..ir.graph import Layer
from ..ir.tensor import Array
from ..openvino.model import Model

__all__ = ["Bound", "Truth", "Unstable", "truth_of"]

UNITS = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
"""The unit roundoff of each type that operations compute in, the finest first."""
_RUNS = 6


class Bound(NamedTuple):
    """The worst errors of sound executions: in units in the last place, and in changes of the output by a rounding."""

    ulp: float = 0.0
    changes: float = 0.0


class Unstable(Exception):  # noqa: N818 - an answer
    """Rounding decides an output: the case has no single right answer, only types and shapes.

    Args:
        reason: what rounding decides.
        outputs: outputs as one sound implementation computes them.
        types: their types.
    """

    def __init__(self, reason: str, outputs: Sequence[Array], types: Sequence[ElementType]) -> None:
        super().__init__(reason)
        self.outputs, self.types = outputs, types


@dataclass(frozen=True)
class Truth:
    """The right outputs of a model.

    Args:
        outputs: in the declared types.
        types: the declared types.
        precision: the coarsest type of the real numbers: the name of one in `UNITS`; empty without real numbers.
        changes: the largest change of an element of each output if inputs are moved by a rounding of this type, or all
            tensors by the errors of layers.
        infinite: the outputs with infinity in place of the limits of a type, if these differ; either is right where
            nothing is reduced, or a number is too large, as pages do not say which.
        operations: of the layers that ran, with their versions.
        declared: the outputs as one sound implementation computes them, in the declared types.
    """

    outputs: list[Array]
    types: list[ElementType]
    precision: str
    changes: list[float]
    infinite: list[Array] | None = None
    operations: Collection[str] = ()
    declared: Sequence[Array] = ()

    @property
    def source(self) -> Literal["exact", "f64"]:
        """``f64`` or ``exact``."""
        return "f64" if self.precision else "exact"


def truth_of(
    model: Model,
    feeds: Sequence[Array],
    seed: int = 0,
    bound: Callable[[str, str], Bound] | None = None,
) -> Truth:
    """Compute the right outputs of a model.

    Args:
        model: the model.
        feeds: an array for each input.
        seed: for the directions in which tensors are moved.
        bound: the bound of an operation with its version for a type, to count the errors of layers; else, inputs alone
            are moved, by one rounding.

    Raises:
        Unstable: if f64 and the declared types differ in an output that is no real number, or in a shape.
    """
    with np.errstate(all="ignore"):
        reference = Reference(model)
        declared = reference.run(feeds)
        types = [
            _declared(port.element_type, array)
            for port, array in zip(reference.outputs, declared, strict=True)
        ]
        precision = _precision(feeds, types)
        if not precision:
            return Truth(list(declared), types, "", [0.0] * len(types))
        wide = Reference(model, wide=True)
        operations: set[str] = set()

        def note(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            operations.add(layer.operation)
            return outputs

        exact = [np.array(array) for array in wide.run(feeds, note, note)]
        outputs, infinite = map(list, zip(*_round(exact, declared, types), strict=True))
        differ = any(a is not b for a, b in zip(outputs, infinite, strict=True))
        bounds = {name: bound(name, precision) for name in operations} if bound else None
        moved = list(_move_and_run(wide, feeds, UNITS[precision], seed, bounds))
        changes = [
            _largest_change(exact[index], [run[index] for run in moved]) if element.real else 0.0
            for index, element in enumerate(types)
        ]
    return Truth(outputs, types, precision, changes, infinite if differ else None, operations, declared)


def _declared(element: ElementType, array: Array) -> ElementType:
    return ElementType.from_dtype(array.dtype) if element is ElementType.dynamic else element


def _precision(feeds: Sequence[Array], types: Sequence[ElementType]) -> str:
    """Return the coarsest type among the real numbers of a model."""
    labels = {element.label for element in types}
    labels |= {ElementType.from_dtype(feed.dtype).label for feed in feeds if feed.dtype != object}
    return max(labels & UNITS.keys(), key=UNITS.__getitem__, default="")


def _move_and_run(
    wide: Reference, feeds: Sequence[Array], unit: float, seed: int, bounds: Mapping[str, Bound] | None
) -> Iterator[Sequence[Array]]:
    """Yield the outputs for tensors that are moved in several directions.

    Without bounds, inputs are moved by a rounding. With bounds, each tensor is moved by the roundings of inputs that explain
    the worst error of the layers that read it, and the output of a layer by its own error and a rounding.
    """
    rng = np.random.default_rng(seed)
    if bounds is None:
        for _ in range(_RUNS):
            yield wide.run([_move(feed, unit, rng) for feed in feeds])
        return
    # The largest of all layers, as bodies are graphs of their own.
    read = max((bound.changes for bound in bounds.values()), default=0.0)

    def change(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if layer.type in ("Parameter", "Result"):
            return outputs
        own = 0.0 if layer.type == "Constant" else 1 + 2 * bounds[layer.operation].ulp
        return tuple(_move(output, unit * (read + own), rng) for output in outputs)

    for _ in range(_RUNS):
        yield wide.run([_move(feed, unit * read, rng) for feed in feeds], change, change)


def _move(feed: Array, unit: float, rng: np.random.Generator) -> Array:
    if feed.dtype == object or ElementType.from_dtype(feed.dtype).label not in UNITS:
        return feed
    wide = feed.astype(np.float64)
    return np.asarray(wide * (1 + unit * rng.uniform(-1, 1, wide.shape)))


def _round(
    exact: Sequence[Array], declared: Sequence[Array], types: Sequence[ElementType]
) -> Iterator[tuple[Array, Array]]:
    """Yield the outputs in their declared types, and with infinity for limits; rounding must not decide any."""
    for wide, narrow, element in zip(exact, declared, types, strict=True):
        if wide.shape != narrow.shape:
            raise Unstable("rounding decides a shape", declared, types)
        if not element.real and not np.array_equal(wide, narrow):
            raise Unstable("rounding decides an output", declared, types)
        if not element.real:
            yield narrow, narrow
            continue
        rounded = np.asarray(wide.astype(element.dtype))
        # The lowest number of a type, which the maximum of nothing is, depends on the type.
        of_type = np.isfinite(narrow) != np.isfinite(rounded)
        yield (np.where(of_type, narrow, rounded), rounded) if of_type.any() else (rounded, rounded)


def _largest_change(exact: Array, others: Sequence[Array]) -> float:
    """Return the largest change of an element that is finite before and after."""
    same_shape = [other.astype(np.float64) for other in others if other.shape == exact.shape]
    changes = [np.abs(other - exact.astype(np.float64)) for other in same_shape]
    return max((float(change[np.isfinite(change)].max(initial=0.0)) for change in changes), default=0.0)
