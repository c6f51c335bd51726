"""Decisions: layers with discontinuous results.

In f64, a comparison, a Convert to integers or a TopK decides some elements differently than in f32, and subsequent
results differ. So all compared runs take the decisions of the judged side; the decisions themselves are judged by
whether rounding can explain them.

A side's decisions inside bodies (Loop, If, TensorIterator) cannot be observed. All runs then take the decisions of the
reference in the side's precision, or alternatives that rounding leaves open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._util.records import Json
from ..analysis.infer import Inferred
from ..ir.blocks import blocks, by_blocks
from ..ir.evaluation import evaluate_layer
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Array
from .precision import ROUNDING
from .reference import Change
from .results import DecisionResult
from .spilling import Kept
from .tensors import is_float
from .verdict import LOCAL, error_of

__all__ = [
    "Alternative",
    "BodyDecisions",
    "Choices",
    "Judged",
    "decides",
    "find_decision_dependents",
    "is_elementwise",
    "judge_decision",
    "keeps_numbers",
    "pin_decisions",
    "apply_decisions",
    "open_decisions",
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
"""Operations that select: all outputs, including numbers, depend on the selection."""

_EXACT = ("ShapeOf",)

_RANGE = "Range"

_ELEMENTWISE = frozenset(
    {
        "Ceiling", "Convert", "Equal", "FakeQuantize", "Floor", "Greater", "GreaterEqual", "Less", "LessEqual",
        "NotEqual", "Round", "Sign",
    }
)  # fmt: skip
"""Operations that decide elementwise, and are monotone in each input."""


def decides(graph: Graph, types: Inferred, layer: Layer) -> bool:
    """Return whether the results of a layer are discontinuous in its inputs.

    Args:
        graph: the graph of the layer.
        types: the inferred values of the graph.
        layer: the layer.
    """
    if layer.op is None or layer.type in _EXACT or layer.bodies():
        return False
    if layer.type == _RANGE:  # its length is discontinuous
        return any(is_float(types, port) and not _is_constant(graph, port) for port in graph.reads(layer))
    if not any(is_float(types, port) for port in graph.reads(layer)):
        return _is_random(layer)
    discrete = any(not is_float(types, port) for port in layer.output_ports)
    return discrete or layer.type in _STEPS or _is_selection(layer) or _is_random(layer)


def find_decision_dependents(graph: Graph, types: Inferred) -> set[int]:
    """Return the ids of deciding layers, and of layers whose integer results depend on decisions.

    Args:
        graph: the layers.
        types: the inferred values.
    """
    following: set[int] = set()
    for layer in graph:
        reads_decided = any(
            port.layer in following and not is_float(types, port) for port in graph.reads(layer)
        )
        if decides(graph, types, layer) or (reads_decided and layer.type not in _EXACT):
            following.add(layer.id)
    return following


def _is_constant(graph: Graph, port: Port) -> bool:
    return graph[port.layer].type == "Constant"


def _is_selection(layer: Layer) -> bool:
    """Return whether a layer selects elements, so that the shapes of its outputs depend on decisions."""
    return layer.type in _SELECTIONS


def keeps_numbers(layer: Layer) -> bool:
    """Return whether only the integer outputs of a deciding layer are discontinuous, as for MaxPool and TopK."""
    return not (layer.type in (*_STEPS, _RANGE) or _is_selection(layer) or _is_random(layer))


def _is_random(layer: Layer) -> bool:
    return layer.type in ("Multinomial", "RandomUniform")


def pin_decisions(decisions: Mapping[Port, Array]) -> Change:
    """Return a `Change` that replaces the outputs of deciding layers by known decisions.

    Args:
        decisions: the known outputs of deciding layers.
    """

    def change(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        replacements = [decisions.get(port) for port in layer.output_ports[: len(outputs)]]
        return (
            apply_decisions(layer, inputs, outputs, replacements)
            if any(x is not None for x in replacements)
            else outputs
        )

    return change


def apply_decisions(
    layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...], decided: Sequence[Array | None]
) -> tuple[Array, ...]:
    """Return the outputs of a layer under the decisions of another run.

    Args:
        layer: the layer.
        inputs: its inputs.
        outputs: its outputs.
        decided: its outputs in the other run; ``None`` for unknown ones.
    """
    if layer.type == "FakeQuantize" and decided[0] is not None:
        return (_take_level(layer, inputs, outputs[0], decided[0]),)
    if layer.type in ("FloorMod", "Mod") and decided[0] is not None:
        return (_take_turns(outputs[0], decided[0], _align(layer, inputs[1], outputs[0].ndim)),)
    if layer.type == "TopK" and len(decided) > 1 and decided[1] is not None:
        axis = vars(layer.op)["axis"]
        return (
            np.take_along_axis(inputs[0], decided[1].astype(np.int64), axis),
            decided[1].astype(outputs[1].dtype),
        )
    if layer.type == _RANGE and decided[0] is not None:
        return (_take_length(inputs, outputs[0], decided[0].size),)
    whole = not keeps_numbers(layer)
    return tuple(
        output
        if known_output is None or (not whole and output.dtype.kind == "f")
        else known_output.astype(output.dtype, copy=False)
        for output, known_output in zip(outputs, decided, strict=True)
    )


def _take_level(layer: Layer, inputs: Sequence[Array], output: Array, decided: Array) -> Array:
    """Return the output of a FakeQuantize with the quantization levels chosen by another run."""
    limits = [np.broadcast_to(limit, output.shape) for limit in _limits(layer, inputs)]
    steps = vars(layer.op)["levels"] - 1

    def at_level(taken: Array, low: Array, high: Array) -> Array:
        level = np.rint((taken.astype(np.float64) - low) / (high - low) * steps)
        return np.asarray(np.where(high == low, low, level / steps * (high - low) + low))

    def take(ours: Array, theirs: Array, low: Array, high: Array) -> Array:
        level = at_level(theirs, low, high)
        return np.where(at_level(ours, low, high) == level, ours, level.astype(ours.dtype))

    with np.errstate(all="ignore"):
        return by_blocks(take, output.dtype, output, np.broadcast_to(decided, output.shape), *limits)


def _take_length(inputs: Sequence[Array], output: Array, length: int) -> Array:
    """Return the output of a Range with the length of another run."""
    if output.size == length:
        return output
    start, _, step = (array.reshape(()) for array in inputs)
    return np.asarray((start + np.arange(length) * step).astype(output.dtype))


def _take_turns(output: Array, decided: Array, period: Array) -> Array:
    """Shift a remainder by whole periods to the one nearest to that of another run."""

    def take(ours: Array, theirs: Array, period: Array) -> Array:
        period = period.astype(np.float64)
        turns = np.rint((theirs.astype(np.float64) - ours) / period)
        return np.asarray((ours + np.where(np.isfinite(turns), turns * period, 0)).astype(ours.dtype))

    others = (np.broadcast_to(array, output.shape) for array in (decided, period))
    with np.errstate(all="ignore"):
        return by_blocks(take, output.dtype, output, *others)


def _limits(layer: Layer, inputs: Sequence[Array]) -> tuple[Array, Array]:
    """Return the output limits of a FakeQuantize, reshaped to broadcast to its input."""
    low, high = (_align(layer, limit, inputs[0].ndim).astype(np.float64) for limit in inputs[3:5])
    return low, high


def _align(layer: Layer, array: Array, rank: int) -> Array:
    """Reshape an operand such that NumPy broadcasts it as the layer's broadcasting rule demands.

    Extra leading axes of length 1, which limits of a FakeQuantize may have, are removed.
    """
    if vars(layer.op).get("auto_broadcast") == "pdpd":  # aligned to the first axes
        return array.reshape((*array.shape, *[1] * rank)[:rank])
    return array.reshape(array.shape[max(array.ndim - rank, 0) :])


class Judged(NamedTuple):
    """The differences between a side's decisions in a layer and those in f64.

    Args:
        differ: the number of elements decided differently.
        unexplained: the number of these not explained by rounding; ``None`` if unknown.
        levels: the largest difference in levels of a FakeQuantize.
    """

    differ: int
    unexplained: int | None
    levels: float | None = None


def judge_decision(
    layer: Layer, inputs: Sequence[Array], taken: Array, output: Array, rounding: float
) -> Judged:
    """Judge the decisions of a layer against f64, elementwise if possible.

    Conversions, roundings, comparisons and FakeQuantize are monotone in each input, so a decision is explained if
    it lies between the decisions for the smallest and the largest inputs within rounding.

    Args:
        layer: the layer.
        inputs: its inputs, in f64.
        taken: its first output, from the side.
        output: its first output in f64.
        rounding: the error of inputs, relative to the element or to the RMS of the tensor, whichever is larger.
    """
    if layer.type == _RANGE and taken.ndim == 1 and _may_be_length(layer, inputs, taken.size, rounding):
        differ = abs(taken.size - output.size)
        same = _take_length(inputs, output, taken.size)
        wrong = int(
            np.count_nonzero(np.abs(taken.astype(np.float64) - same) > rounding * max(_rms(same), 1e-300))
        )
        return Judged(differ + wrong, wrong)
    if taken.shape != output.shape:
        differ = max(taken.size, output.size)
        return Judged(differ, differ)
    differ, size = 0, _rms(output)
    for operands, (ours, exact) in _parts(layer, inputs, taken, output):
        differ += int(np.count_nonzero(_jumps(layer, operands, ours, exact, rounding, size)))
    if not is_elementwise(layer):
        return Judged(differ, None if differ else 0)
    unexplained, levels = 0, 0.0
    if differ:
        sizes = [_rms(array) for array in inputs]
        sizes_within = _sizes_within_rounding(layer, inputs, taken, rounding, sizes)
        for operands, (ours, exact) in _parts(layer, inputs, taken, output):
            off = _jumps(layer, operands, ours, exact, rounding, size)
            wrong = (off != 0) & ~_mask_unspecified(layer, operands[0], ours)
            within = _within_rounding(layer, operands, rounding, sizes)
            ends = [
                (moved, rms)
                for moved, rms in zip(within, sizes_within, strict=True)
                if moved.shape == ours.shape
            ]
            for moved, rms in ends:
                wrong &= _jumps(layer, operands, ours, moved, rounding, rms) != 0
            if ends:  # it is monotone, so results in between are within rounding, too
                least, most = (
                    reduce(choose, [moved for moved, _ in ends]) for choose in (np.minimum, np.maximum)
                )
                wrong &= ~((ours >= least) & (ours <= most))
            unexplained += int(np.count_nonzero(wrong))
            levels = max(levels, float(off[wrong].max(initial=0)))
    return Judged(differ, unexplained, levels if layer.type == "FakeQuantize" and unexplained else None)


def _may_be_length(layer: Layer, inputs: Sequence[Array], length: int, rounding: float) -> bool:
    """Return whether a Range has this length for some inputs within rounding."""
    start, stop, step = (float(array) for array in inputs)
    size = rounding * max(abs(start), abs(stop))
    ends = (stop - size, stop, stop + size)
    steps = (step * (1 - rounding), step, step * (1 + rounding))
    lengths = [
        evaluate_layer(layer, [np.asarray(number) for number in (start, end, by)])[0].size
        for end in ends
        for by in steps
    ]
    return min(lengths) <= length <= max(lengths)


def open_decisions(
    layer: Layer, inputs: Sequence[Array], taken: Array, rounding: float, most: int
) -> tuple[int, list[tuple[int, Array]]]:
    """Return the number of elements whose decisions rounding leaves open, and the first ones with alternative values.

    Args:
        layer: an elementwise deciding layer.
        inputs: its inputs, in f64.
        taken: its first output, from the side.
        rounding: the error of inputs, relative to the element or to the RMS of the tensor, whichever is larger.
        most: the maximum number of elements to return.
    """
    sizes = [_rms(array) for array in inputs]
    sizes_within = _sizes_within_rounding(layer, inputs, taken, rounding, sizes)
    count, start, first = 0, 0, list[tuple[int, Array]]()
    for operands, (ours,) in _parts(layer, inputs, taken):
        is_open, values = np.zeros(ours.shape, bool), ours.copy()
        for moved, rms in zip(_within_rounding(layer, operands, rounding, sizes), sizes_within, strict=True):
            fresh = (_jumps(layer, operands, ours, moved, rounding, rms) != 0) & ~is_open
            values[fresh] = moved[fresh]
            is_open |= fresh
        count += int(np.count_nonzero(is_open))
        values = values.reshape(-1)
        for place in np.flatnonzero(is_open)[: max(most - len(first), 0)].tolist():
            first.append((start + place, np.asarray(values[place])))
        start += ours.size
    return count, first


def _parts(
    layer: Layer, inputs: Sequence[Array], *arrays: Array
) -> Iterator[tuple[Sequence[Array], tuple[Array, ...]]]:
    """Yield corresponding blocks of the layer's inputs, broadcast if necessary, and of arrays of its output shape.

    The inputs are omitted unless the layer decides elementwise.
    """
    if not is_elementwise(layer):
        for parts in blocks(*arrays):
            yield (), parts
        return
    shape = arrays[0].shape
    wide = [np.broadcast_to(_align(layer, array, len(shape)), shape) for array in inputs]
    for parts in blocks(*arrays, *wide):
        yield parts[len(arrays) :], parts[: len(arrays)]


def _jumps(
    layer: Layer, inputs: Sequence[Array], taken: Array, output: Array, rounding: float, size: float
) -> Array:
    """Return how many steps each element differs by: quantization levels for FakeQuantize, otherwise 0 or 1.

    Args:
        layer: the layer.
        inputs: its inputs, in f64.
        taken: its first output, from the side.
        output: its first output in f64.
        rounding: the tolerance for equal decisions, relative to the tensor.
        size: the RMS of the tensor.
    """
    if output.dtype.kind != "f":
        return np.asarray(taken != output.astype(taken.dtype))
    with np.errstate(all="ignore"):
        off = np.abs(taken.astype(np.float64) - output)
        if layer.type == "FakeQuantize":
            low, high = _limits(layer, inputs)
            step = np.abs(high - low) / (vars(layer.op)["levels"] - 1)
            return np.asarray(np.where(off <= rounding * np.abs(output), 0, np.rint(off / step)))
        same = (off <= rounding * size) | (taken == output) | (np.isnan(taken) & np.isnan(output))
        return np.asarray(~same)


def is_elementwise(layer: Layer) -> bool:
    """Return whether a layer decides each element separately, so that `judge_decision` can explain its decisions."""
    return layer.type in _ELEMENTWISE


def _within_rounding(
    layer: Layer, inputs: Sequence[Array], rounding: float, sizes: Sequence[float]
) -> Iterator[Array]:
    """Yield the decisions of a layer for its inputs, and for the smallest and largest inputs within rounding.

    Args:
        layer: an elementwise deciding layer.
        inputs: its inputs, in f64.
        rounding: the error of inputs, relative to the element or to the RMS of the tensor, whichever is larger.
        sizes: the RMS of each input.
    """
    first = 1 if layer.type == "FakeQuantize" else len(inputs)  # its limits are exact
    below, above = (
        [
            *(_shift(x, sign * rounding, size) for x, size in zip(inputs[:first], sizes, strict=False)),
            *inputs[first:],
        ]
        for sign in (-1, 1)
    )
    crossed = [[above[0], *below[1:]], [below[0], *above[1:]]] if len(inputs) == 2 else []
    for moved in ([*inputs], below, above, *crossed):
        yield evaluate_layer(layer, moved)[0]


def _sizes_within_rounding(
    layer: Layer, inputs: Sequence[Array], taken: Array, rounding: float, sizes: Sequence[float]
) -> list[float]:
    """Return the RMS of each result of `_within_rounding`; zeros if the layer's judgement does not need them."""
    totals: list[_Squares] = []
    for operands, _ in _parts(layer, inputs, taken):
        for place, decided in enumerate(_within_rounding(layer, operands, rounding, sizes)):
            if place == len(totals):
                totals.append(_Squares())
            totals[place].add(decided)
        if layer.type == "FakeQuantize" or decided.dtype.kind != "f":
            return [0.0] * len(totals)
    return [total.rms for total in totals]


def _mask_unspecified(layer: Layer, x: Array, taken: Array) -> Array:
    """Return a mask of elements converted to integers out of range, whose results are unspecified."""
    if layer.type != "Convert" or taken.dtype.kind not in "iu":
        return np.zeros(taken.shape, bool)
    return np.asarray(~(np.abs(x) < 2.0 ** (8 * taken.dtype.itemsize - 1)))


def _shift(x: Array, relative: float, size: float) -> Array:
    """Shift values by an error relative to the element or the RMS of the tensor, as a small value may be a sum of large ones."""
    return x + np.maximum(np.abs(x), size) * relative if x.dtype.kind == "f" else x


@dataclass
class _Squares:
    """Accumulates the RMS of finite values."""

    total: float = 0.0
    count: int = 0

    def add(self, numbers: Array) -> None:
        finite = numbers[np.isfinite(numbers)]
        self.total += float(np.square(finite).sum())
        self.count += finite.size

    @property
    def rms(self) -> float:
        return float((self.total / self.count) ** 0.5) if self.count else 0.0


def _rms(array: Array) -> float:
    """Return the RMS of the finite elements of a tensor; 0 unless it is floating point."""
    squares = _Squares()
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            for (block,) in blocks(array):
                squares.add(block)
    return squares.rms


ALTERNATIVES = 64
"""The most alternatives: trying one takes as long as the comparison."""

_Key: TypeAlias = "tuple[int, int | None, str]"
_Arrays: TypeAlias = tuple[Array, ...]
Choices: TypeAlias = Mapping[int, Mapping[int, Array]]
"""Alternative values, by number of the decision in a run and by flat index of the element."""


class Alternative(NamedTuple):
    """An alternative decision of a layer in a body, which inputs within rounding would lead to.

    Args:
        number: the number of the decision in a run.
        element: the flat index of the element decided differently.
        value: the alternative value of the element.
        outer: the name of the outermost layer whose bodies contain the layer.
    """

    number: int
    element: int
    value: Array
    outer: str


class _Decision(NamedTuple):
    key: _Key
    inputs: Sequence[Array]
    outputs: Sequence[Array]


class _Place(NamedTuple):
    """A deciding layer in a body, with the outermost layer whose bodies contain it."""

    outer: str
    name: str
    operation: str


class BodyDecisions:
    """Records and replays the decisions inside bodies, in execution order.

    Args:
        graph: the graph of the model, in its own types.
        types: the inferred values.
        choices: alternative decisions to take.
    """

    def __init__(self, graph: Graph, types: Inferred, choices: Choices | None = None) -> None:
        self._find_deciding = dict(_find_deciding(graph, types))
        self._choices = choices or {}
        self._taken: list[_Decision] = []

    def record(self, layer: Layer, inputs: Sequence[Array], outputs: _Arrays) -> _Arrays:
        """Record the decision of a layer in a body, and return it with the chosen alternatives applied."""
        if self._find_deciding and (key := _key(layer)) in self._find_deciding:
            if choices := self._choices.get(len(self._taken)):
                changed = np.array(outputs[0])
                changed.flat[[*choices]] = [*choices.values()]
                outputs = (changed, *outputs[1:])
            read = inputs if is_elementwise(layer) else ()
            self._taken.append(_Decision(key, Kept(read, copies=True), Kept(outputs, copies=True)))
        return outputs

    def replay(self, judge: _BodyJudge | None = None) -> _Replay:
        """Return a `Change` for layers in bodies that replays the recorded decisions.

        Args:
            judge: receives each decision during an f64 run.
        """
        return _Replay(self._find_deciding, self._taken, judge)

    def saved(self) -> tuple[Json, list[Array]]:
        """Return the recorded decisions as a record and arrays."""
        keys: list[Json] = [[list(taken.key), len(taken.inputs), len(taken.outputs)] for taken in self._taken]
        return keys, [array for taken in self._taken for array in (*taken.inputs, *taken.outputs)]

    def restore(self, keys: Any, arrays: Iterator[Array]) -> None:
        """Restore recorded decisions."""
        for (id, line, name), inputs, outputs in keys:
            inputs_read, written = (Kept(islice(arrays, count)) for count in (inputs, outputs))
            self._taken.append(_Decision((id, line, name), inputs_read, written))

    def judge(self, precision: str) -> _BodyJudge:
        """Return a judge of the recorded decisions, for a replay in f64."""
        return _BodyJudge(self._find_deciding, precision)


class _Replay:
    def __init__(
        self, deciding: Mapping[_Key, _Place], decisions: Sequence[_Decision], judge: _BodyJudge | None
    ) -> None:
        self._find_deciding, self._waiting, self._judge = deciding, enumerate(decisions), judge

    def __call__(self, layer: Layer, inputs: Sequence[Array], outputs: _Arrays) -> _Arrays:
        if not self._find_deciding or (key := _key(layer)) not in self._find_deciding:
            return outputs
        number, decision = next(self._waiting, (0, None))
        if decision is None or decision.key != key:
            return outputs
        same = [array.shape for array in decision.outputs] == [array.shape for array in outputs]
        if same and self._judge is not None:
            self._judge.record(number, decision, layer, inputs, outputs)
        return (
            apply_decisions(layer, inputs, outputs, decision.outputs)
            if same or _is_selection(layer)
            else outputs
        )


class _BodyJudge:
    """Counts the decisions inside bodies that differ in f64, and those left open by rounding.

    Args:
        deciding: the deciding layers.
        precision: the precision of the side.
    """

    def __init__(self, deciding: Mapping[_Key, _Place], precision: str) -> None:
        self._find_deciding, self._unit = deciding, ROUNDING[precision]
        self._results: dict[_Key, DecisionResult] = {}
        self.alternatives: list[Alternative] = []
        """The alternatives found so far."""

    @property
    def decisions(self) -> list[DecisionResult]:
        """The results for the deciding layers in bodies."""
        return list(self._results.values())

    def record(
        self, number: int, decision: _Decision, layer: Layer, inputs: Sequence[Array], outputs: _Arrays
    ) -> None:
        """Judge one decision.

        Args:
            number: the number of the decision in a run.
            decision: the recorded decision with its inputs.
            layer: the deciding layer.
            inputs: the inputs of the layer in f64.
            outputs: the outputs of the layer in f64.
        """
        rounding = LOCAL * max(self._unit, *map(_relative_error, decision.inputs, inputs), 0.0)
        differ = judge_decision(layer, inputs, decision.outputs[0], outputs[0], rounding).differ
        count = 0
        if is_elementwise(layer):
            most = ALTERNATIVES - len(self.alternatives)
            count, first = open_decisions(layer, inputs, decision.outputs[0], rounding, most)
            outer = self._find_deciding[decision.key].outer
            self.alternatives += [Alternative(number, element, value, outer) for element, value in first]
        outer, name, operation = self._find_deciding[decision.key]
        before = self._results.get(decision.key, DecisionResult(name, operation, 0, 0, 0, layers=(outer,)))
        judged = before.unexplained is not None and (is_elementwise(layer) or not differ)
        self._results[decision.key] = DecisionResult(
            name=name,
            operation=operation,
            differ=before.differ + differ,
            unexplained=0 if judged else None,  # these are decisions of the reference
            of=before.of + decision.outputs[0].size,
            layers=(outer,),
            undecided=before.undecided + count,
        )


def _relative_error(read: Array, exact: Array) -> float:
    """Return the relative error of a decision's recorded input, accumulated over the body; 0 if not finite."""
    relative = error_of(read, exact).relative if exact.dtype.kind == "f" else 0.0
    return relative if np.isfinite(relative) else 0.0


def _key(layer: Layer) -> _Key:
    return layer.id, layer.where.line, layer.name


def _find_deciding(graph: Graph, types: Inferred, outer: str = "") -> Iterator[tuple[_Key, _Place]]:
    for layer in graph:
        for body in layer.bodies():
            if (body_types := types.bodies.get((layer.id, body.name))) is None:
                continue
            for inner in body.graph:
                if decides(body.graph, body_types, inner):
                    yield _key(inner), _Place(outer or layer.name, inner.name, inner.operation)
            yield from _find_deciding(body.graph, body_types, outer or layer.name)
