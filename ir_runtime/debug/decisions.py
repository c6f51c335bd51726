"""Decisions: layers whose results jump where their inputs change a little.

A comparison, a Convert to integers or a TopK in f64 decides some elements otherwise than in f32, and what follows is
then another computation. So runs that are compared take the same decisions, those of the side that is judged; the
decisions themselves are judged by whether rounding can explain them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..analysis.infer import Inferred
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Array
from .reference import Change, computed
from .tensors import is_float

__all__ = [
    "decides",
    "explained_decisions",
    "following_decisions",
    "is_elementwise",
    "is_selection",
    "jumps",
    "pinned",
    "taken",
    "within_rounding",
]

_STEPS = frozenset({"Ceiling", "FakeQuantize", "Floor", "FloorMod", "Mod", "Round", "Sign"})
"""Operations on numbers whose results jump."""

_SELECTIONS = frozenset(
    {
        "CTCGreedyDecoder", "DetectionOutput", "ExperimentalDetectronDetectionOutput",
        "ExperimentalDetectronGenerateProposalsSingleImage", "ExperimentalDetectronTopKROIs", "GenerateProposals",
        "MatrixNms", "MulticlassNms", "NMSRotated", "NonMaxSuppression", "NonZero", "Proposal", "Unique",
    }
)  # fmt: skip
"""Operations that select: all their outputs, also numbers, depend on what they select."""

_EXACT = ("ShapeOf",)

_ELEMENTWISE = frozenset(
    {
        "Ceiling", "Convert", "Equal", "FakeQuantize", "Floor", "Greater", "GreaterEqual", "Less", "LessEqual",
        "NotEqual", "Round", "Sign",
    }
)  # fmt: skip
"""Operations that decide each element by those of their inputs, and are monotone in each."""


def decides(graph: Graph, types: Inferred, layer: Layer) -> bool:
    """Return whether the results of a layer jump.

    Args:
        graph: the graph of the layer.
        types: what was inferred about the graph.
        layer: the layer.
    """
    if layer.op is None or layer.type in _EXACT or layer.bodies():
        return False
    if not any(is_float(types, port) for port in graph.reads(layer)):
        return _is_random(layer)
    discrete = any(not is_float(types, port) for port in layer.output_ports)
    return discrete or layer.type in _STEPS or is_selection(layer) or _is_random(layer)


def following_decisions(graph: Graph, types: Inferred) -> set[int]:
    """Return the ids of the layers that decide, and of those whose integers follow from what these decide.

    Args:
        graph: the layers.
        types: what was inferred about them.
    """
    found: set[int] = set()
    for layer in graph:
        read = any(port.layer in found and not is_float(types, port) for port in graph.reads(layer))
        if decides(graph, types, layer) or (read and layer.type not in _EXACT):
            found.add(layer.id)
    return found


def is_selection(layer: Layer) -> bool:
    """Return whether a layer selects, so that also the shapes of its outputs may depend on what it decides."""
    return layer.type in _SELECTIONS


def _is_random(layer: Layer) -> bool:
    return layer.type in ("Multinomial", "RandomUniform")


def pinned(decisions: Mapping[Port, Array]) -> Change:
    """Return a change that replaces decisions by others.

    Args:
        decisions: the outputs of layers that decide, as far as they are known.
    """

    def change(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        found = [decisions.get(port) for port in layer.output_ports[: len(outputs)]]
        return taken(layer, inputs, outputs, found) if any(x is not None for x in found) else outputs

    return change


def taken(
    layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...], decided: Sequence[Array | None]
) -> tuple[Array, ...]:
    """Return the outputs of a layer as they are if it decides in another way.

    Args:
        layer: the layer.
        inputs: its inputs.
        outputs: what it computes from them.
        decided: its outputs in another run; ``None`` for those that are not known.
    """
    if layer.type == "FakeQuantize" and decided[0] is not None:
        own, level = (_at_level(layer, inputs, array) for array in (outputs[0], decided[0]))
        return (np.where(own == level, outputs[0], level.astype(outputs[0].dtype)),)
    if layer.type in ("FloorMod", "Mod") and decided[0] is not None:
        period = inputs[1].astype(np.float64)
        with np.errstate(all="ignore"):
            turns = np.rint((decided[0].astype(np.float64) - outputs[0]) / period)
            return ((outputs[0] + np.where(np.isfinite(turns), turns * period, 0)).astype(outputs[0].dtype),)
    if layer.type == "TopK" and len(decided) > 1 and decided[1] is not None:
        axis = vars(layer.op)["axis"]
        return (
            np.take_along_axis(inputs[0], decided[1].astype(np.int64), axis),
            decided[1].astype(outputs[1].dtype),
        )
    whole = layer.type in _STEPS or is_selection(layer) or _is_random(layer)
    return tuple(
        output if found is None or (not whole and output.dtype.kind == "f") else found.astype(output.dtype)
        for output, found in zip(outputs, decided, strict=True)
    )


def _at_level(layer: Layer, inputs: Sequence[Array], taken: Array) -> Array:
    """Return the level of a FakeQuantize that is nearest to a result, between the output limits."""
    low, high = _limits(inputs)
    steps = vars(layer.op)["levels"] - 1
    with np.errstate(all="ignore"):
        level = np.rint((taken.astype(np.float64) - low) / (high - low) * steps)
        return np.asarray(np.where(high == low, low, level / steps * (high - low) + low))


def _limits(inputs: Sequence[Array]) -> tuple[Array, Array]:
    """Return the output limits of a FakeQuantize, with as many axes as its input at most."""
    rank = inputs[0].ndim
    low, high = (
        limit.reshape(limit.shape[max(limit.ndim - rank, 0) :]).astype(np.float64) for limit in inputs[3:5]
    )
    return low, high


def jumps(layer: Layer, inputs: Sequence[Array], taken: Array, output: Array, rounding: float) -> Array:
    """Return by how many steps each element is decided otherwise: of a FakeQuantize in levels, else 0 or 1.

    Args:
        layer: the layer.
        inputs: its inputs, in f64.
        taken: its first output, as decided.
        output: its first output, as f64 decides from these inputs.
        rounding: how far elements that are decided alike may be apart, relative to the tensor.
    """
    if output.dtype.kind != "f":
        return np.asarray(taken != output.astype(taken.dtype), np.float64)
    with np.errstate(all="ignore"):
        off = np.abs(taken.astype(np.float64) - output)
        if layer.type == "FakeQuantize":
            low, high = _limits(inputs)
            step = np.abs(high - low) / (vars(layer.op)["levels"] - 1)
            return np.asarray(np.where(off <= rounding * np.abs(output), 0, np.rint(off / step)))
        same = (off <= rounding * _rms(output)) | (taken == output) | (np.isnan(taken) & np.isnan(output))
        return np.asarray(~same, np.float64)


def is_elementwise(layer: Layer) -> bool:
    """Return whether a layer decides each element by those of its inputs, so that `explained_decisions` holds."""
    return layer.type in _ELEMENTWISE


def explained_decisions(layer: Layer, inputs: Sequence[Array], taken: Array, rounding: float) -> Array:
    """Return for each element whether it is decided so for some inputs within rounding of these.

    Holds for operations that decide element by element and are monotone in each input: conversions, roundings,
    comparisons and FakeQuantize.

    Args:
        layer: the layer.
        inputs: its inputs, in f64.
        taken: its first output, as decided.
        rounding: how far an input may be off, relative to itself or to the rms of its tensor.
    """
    fits = _unspecified(layer, inputs[0], taken)
    for found in within_rounding(layer, inputs, rounding):
        if found.shape == taken.shape:
            fits |= jumps(layer, inputs, taken, found, rounding) == 0
    return fits


def within_rounding(layer: Layer, inputs: Sequence[Array], rounding: float) -> Iterator[Array]:
    """Yield what a layer decides for its inputs, and for the largest and the smallest within rounding of these.

    Args:
        layer: a layer that decides element by element.
        inputs: its inputs, in f64.
        rounding: how far an input may be off, relative to itself or to the rms of its tensor.
    """
    first = 1 if layer.type == "FakeQuantize" else len(inputs)  # its limits are exact
    below, above = (
        [*(_moved(x, sign * rounding) for x in inputs[:first]), *inputs[first:]] for sign in (-1, 1)
    )
    crossed = [[above[0], *below[1:]], [below[0], *above[1:]]] if len(inputs) == 2 else []
    for moved in ([*inputs], below, above, *crossed):
        yield computed(layer, moved)[0]


def _unspecified(layer: Layer, x: Array, taken: Array) -> Array:
    """Where a number is converted to integers that do not reach so far: languages leave the result open."""
    if layer.type != "Convert" or taken.dtype.kind not in "iu":
        return np.zeros(taken.shape, bool)
    return np.asarray(~(np.abs(x) < 2.0 ** (8 * taken.dtype.itemsize - 1)))


def _moved(x: Array, relative: float) -> Array:
    """Numbers off by rounding: where a sum of large numbers is small, it is off by as much as the others."""
    return x + np.maximum(np.abs(x), _rms(x)) * relative if x.dtype.kind == "f" else x


def _rms(x: Array) -> float:
    finite = x[np.isfinite(x)]
    return float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0
