"""The correct outputs of a model, and their sensitivity to rounding of its inputs.

Outputs are computed in f64 and rounded once to their declared types. A sound implementation is backward stable: it computes the
exact outputs for inputs perturbed by about a rounding. So the model also runs on perturbed inputs, and the largest change of
an output is the unit in which errors of cancelling sums are measured. In graphs, the tensors between layers are perturbed
as well, by the errors of the layers.
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
    """The worst error of sound executions.

    ``ulp`` is the part in units in the last place, and ``changes`` the part in multiples of `Truth.changes`.
    """

    ulp: float = 0.0
    changes: float = 0.0


class Unstable(Exception):  # noqa: N818 - an answer
    """Rounding decides an output, so that only its type and shape are determined.

    Args:
        reason: what rounding decides.
        outputs: the outputs of one sound implementation.
        types: the types of the outputs.
    """

    def __init__(self, reason: str, outputs: Sequence[Array], types: Sequence[ElementType]) -> None:
        super().__init__(reason)
        self.outputs, self.types = outputs, types


@dataclass(frozen=True)
class Truth:
    """The correct outputs of a model.

    Args:
        outputs: the outputs, in their declared types.
        types: the declared types.
        precision: the coarsest floating-point type of inputs and outputs, one of `UNITS`; empty if there is none.
        changes: for each output, the largest change of an element if inputs are perturbed by a rounding of this type, or all
            tensors by the errors of layers.
        infinite: the outputs with infinity in place of the largest finite value of a type, if they differ. Both are correct
            for reductions of no elements and for overflows, which the specification leaves open.
        operations: the operations of the layers that ran, with their versions.
        declared: the outputs of an implementation that computes in the declared types.
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
        """The source of the outputs: ``f64``, or ``exact`` without floating-point types."""
        return "f64" if self.precision else "exact"


def truth_of(
    model: Model,
    feeds: Sequence[Array],
    seed: int = 0,
    bound: Callable[[str, str], Bound] | None = None,
) -> Truth:
    """Compute the correct outputs of a model.

    Args:
        model: the model.
        feeds: an array for each input.
        seed: the seed of the random perturbations.
        bound: returns the bound of an operation for a type, to include the errors of layers; if ``None``, only inputs are
            perturbed, by a rounding.

    Raises:
        Unstable: if f64 and the declared types give different shapes, or outputs that are not floating-point and differ.
    """
    with np.errstate(all="ignore"):
        reference = Reference(model)
        declared = reference.run(feeds)
        types = [
            _declared_type(port.element_type, array)
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


def _declared_type(element: ElementType, array: Array) -> ElementType:
    return ElementType.from_dtype(array.dtype) if element is ElementType.dynamic else element


def _precision(feeds: Sequence[Array], types: Sequence[ElementType]) -> str:
    """Return the coarsest floating-point type of inputs and outputs, or an empty string."""
    labels = {element.label for element in types}
    labels |= {ElementType.from_dtype(feed.dtype).label for feed in feeds if feed.dtype != object}
    return max(labels & UNITS.keys(), key=UNITS.__getitem__, default="")


def _move_and_run(
    wide: Reference, feeds: Sequence[Array], unit: float, seed: int, bounds: Mapping[str, Bound] | None
) -> Iterator[Sequence[Array]]:
    """Yield the outputs of several runs with random perturbations.

    Without bounds, inputs are perturbed by a rounding. With bounds, every tensor is perturbed by the worst ``changes`` of all
    layers, and the output of a layer also by its own error and a rounding.

    Args:
        wide: the reference in f64.
        feeds: an array for each input.
        unit: the unit roundoff of the precision.
        seed: the seed of the perturbations.
        bounds: the bound of each operation, or ``None``.
    """
    rng = np.random.default_rng(seed)
    if bounds is None:
        for _ in range(_RUNS):
            yield wide.run([_move(feed, unit, rng) for feed in feeds])
        return
    # The maximum over all layers, as bodies are graphs of their own.
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
    """Yield each output in f64 rounded to its declared type, in two versions.

    Where only one of the rounded output and the output computed in the declared type is finite, the first version has the
    latter, and the second the former.

    Args:
        exact: the outputs in f64.
        declared: the outputs computed in the declared types.
        types: the declared types.

    Raises:
        Unstable: if rounding decides an output.
    """
    for wide, narrow, element in zip(exact, declared, types, strict=True):
        if wide.shape != narrow.shape:
            raise Unstable("rounding decides a shape", declared, types)
        if not element.real and not np.array_equal(wide, narrow):
            raise Unstable("rounding decides an output", declared, types)
        if not element.real:
            yield narrow, narrow
            continue
        rounded = np.asarray(wide.astype(element.dtype))
        # The maximum of no elements is the lowest value of a type, which depends on the type.
        of_type = np.isfinite(narrow) != np.isfinite(rounded)
        yield (np.where(of_type, narrow, rounded), rounded) if of_type.any() else (rounded, rounded)


def _largest_change(exact: Array, others: Sequence[Array]) -> float:
    """Return the largest change of an element that is finite in both results."""
    same_shape = [other.astype(np.float64) for other in others if other.shape == exact.shape]
    changes = [np.abs(other - exact.astype(np.float64)) for other in same_shape]
    return max((float(change[np.isfinite(change)].max(initial=0.0)) for change in changes), default=0.0)
