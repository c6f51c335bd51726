"""Rank layers by the accuracy lost when each is computed in a lower precision, to choose which to keep in f32."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from typing import TypeAlias

import numpy as np

from .._util.escaping import quoted
from .._util.markup import Shown
from .._util.records import Record
from ..codes import Code
from ..errors import InputError
from ..ir.blocks import blocks
from ..ir.graph import Layer
from ..ir.tensor import Array
from ..openvino.model import Model
from .caching import entry_for, load_or_compute
from .decisions import BodyDecisions, decides, pin_decisions
from .progress import STOPS, attach_partial, report_progress, stage
from .reference import Change, Reference, chain_changes
from .schemes import BITS, PER_CHANNEL, PRECISIONS, STORED, Scheme, StoredModel, scheme_of
from .spilling import Kept, keep_copy, tensors, within_budget
from .tensors import is_float

__all__ = ["Budget", "LayerCost", "Measured", "Metric", "budget", "choose", "difference"]

Metric: TypeAlias = "Callable[[list[dict[str, Array]]], float]"
"""Takes the outputs by name, one mapping per set of inputs; returns a number, larger is better."""

FIRST = 0.05
"""Share of the time estimated for the exact runs."""
FURTHER = 3
"""Runs besides one per layer: all layers in the lower precision, and two with some kept."""
DEFAULT = "bf16"
"""Precision for models that are not quantized, unless told otherwise."""


@dataclass(frozen=True)
class LayerCost:
    """The relative error of the outputs if only this layer is computed in the lower precision.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2, 2], np.float32, name="x")
    >>> weights = opset1.constant(np.array([[1, 2], [3, 4.1]], np.float32))
    >>> model = ov.Model([opset1.matmul(x, weights, False, False, name="product")], [x])
    >>> inputs = [np.array([[0.3, 1], [2, 0.7]], np.float32)]
    >>> [(cost.layer, cost.record()["operation"]) for cost in debug.budget(model, inputs).layers]
    [('product', 'MatMul-1')]

    Args:
        layer: the name of the layer.
        operation: the operation of the layer.
        error: the relative error.
        metric: the value of the caller's metric in that run; ``None`` without a metric.
    """

    layer: str
    operation: str
    error: float
    metric: float | None = None

    @property
    def figures(self) -> str:
        """The error as text, with the metric if there is one."""
        return f"{self.error:.1e}" + ("" if self.metric is None else f"  {self.metric:.6g}")

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {"layer": self.layer, "operation": self.operation, "error": self.error, "metric": self.metric}


@dataclass(frozen=True)
class Measured:
    """Values of the caller's metric.

    >>> from ir_runtime import debug
    >>> debug.Measured(exact=0.9, total=0.7, remaining=0.8).record()
    {'exact': 0.9, 'total': 0.7, 'remaining': 0.8}

    Args:
        exact: for the model in floating point.
        total: with all layers in the lower precision.
        remaining: with all layers except the kept ones in the lower precision.
    """

    exact: float
    total: float
    remaining: float

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {"exact": self.exact, "total": self.total, "remaining": self.remaining}


@dataclass(frozen=True)
class Budget(Shown):
    """The accuracy lost in a lower precision, per layer and in total.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2, 2], np.float32, name="x")
    >>> weights = opset1.constant(np.array([[1, 2], [3, 4.1]], np.float32))
    >>> model = ov.Model([opset1.matmul(x, weights, False, False, name="product")], [x])
    >>> inputs = [np.array([[0.3, 1], [2, 0.7]], np.float32)]
    >>> found = debug.budget(model, inputs, "int4", keep=1)
    >>> found.kept, found.predicted < 1, len(found.summary) > 0, found.record()["ignored_scope"]
    (('product',), True, True, "nncf.IgnoredScope(names=['product'])")

    Args:
        to: the precision.
        layers: the cost of each layer, largest first.
        total: the error with all layers in the lower precision.
        kept: the names of the layers to keep in floating point.
        remaining: the error with all layers except the kept ones in the lower precision.
        partial: whether the run was interrupted: some layers are missing, and ``total`` and ``remaining`` may be NaN.
        group_size: the number of weights per scale, if specified.
        metric: the values of the caller's metric; ``None`` without a metric.
    """

    to: str
    layers: tuple[LayerCost, ...]
    total: float
    kept: tuple[str, ...]
    remaining: float
    partial: bool = False
    group_size: int | None = None
    metric: Measured | None = None

    @property
    def predicted(self) -> float:
        """The predicted total error: the root of the sum of squared layer costs."""
        return float(np.sqrt(sum(layer.error**2 for layer in self.layers)))

    @property
    def ignored_scope(self) -> str:
        """The kept layers as Python code for NNCF's ``ignored_scope`` argument."""
        return f"nncf.IgnoredScope(names={list(self.kept)!r})"

    @property
    def place(self) -> str:
        """The precision and group size as text: ``in int4, groups of 64``."""
        if self.to == STORED:
            return "as stored"
        if self.group_size is None:
            return f"in {self.to}"
        return f"in {self.to}, " + (
            "by channel" if self.group_size == PER_CHANNEL else f"groups of {self.group_size}"
        )

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "schema": 1, "partial": self.partial, "to": self.to, "group_size": self.group_size, "total": self.total,
            "predicted": self.predicted, "kept": list(self.kept), "ignored_scope": self.ignored_scope,
            "remaining": self.remaining, "metric": None if self.metric is None else self.metric.record(),
            "layers": [layer.record() for layer in self.layers],
        }  # fmt: skip

    @property
    def summary(self) -> str:
        """Describe the total error, and the gain of keeping some layers in f32."""
        if self.partial:
            return "PARTIAL: it was interrupted; the costs of the other layers are unknown"
        if not self.layers:
            return self._nothing
        exact = "floating point" if self.to == STORED else "f32"
        lines = [f"all {self.place}: error {self.total:.1e} (the layers predict {self.predicted:.1e})"]
        if self.metric is not None:
            lines[0] += f", metric {self.metric.total:.6g} ({self.metric.exact:.6g} in {exact})"
        if self.kept:
            names = ", ".join(map(quoted, self.kept))
            lines.append(f"with {names} in {exact}: error {self.remaining:.1e}")
            if self.metric is not None:
                lines[1] += f", metric {self.metric.remaining:.6g}"
            lines.append(self.ignored_scope)
        return "\n".join(lines)

    @property
    def _nothing(self) -> str:
        if self.to == STORED:
            return "no layer is quantized"
        weights = " with constant weights" if self.to in BITS else ""
        return f"no layer multiplies matrices{weights}: {self.to} costs nothing"

    def __str__(self) -> str:
        lines = [f"{cost.figures}  {quoted(cost.layer)} ({cost.operation})" for cost in self.layers]
        return "\n".join([self.summary, *lines] if self.partial else [*lines, self.summary])


def budget(
    model: Model,
    inputs: object,
    to: str | None = None,
    keep: int = 3,
    *,
    group_size: int | None = None,
    metric: Metric | None = None,
    original: Model | None = None,
) -> Budget:
    """Measure the output error of computing each layer alone in a lower precision.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2, 2], np.float32, name="x")
    >>> weights = opset1.constant(np.array([[1, 2], [3, 4.1]], np.float32))
    >>> model = ov.Model([opset1.matmul(x, weights, False, False, name="product")], [x])
    >>> inputs = [np.array([[0.3, 1], [2, 0.7]], np.float32)]
    >>> costs = debug.budget(model, inputs, "bf16", keep=1)
    >>> costs.remaining < costs.total
    True

    The measured layers are those that multiply matrices, such as MatMul and Convolution, or with ``w8a8`` or ``stored``,
    those that are quantized.

    Args:
        model: the model; it is not changed.
        inputs: as for a compiled model; a list or an iterator of mappings gives several sets of inputs.
        to: the lower precision. ``bf16`` and ``f16`` round inputs, weights and results. ``int8`` and ``int4`` quantize constant
            weights, with a scale and a zero point per channel in int8, and per 128 weights of a channel in int4. ``w8a8``
            quantizes weights and activations like NNCF's ``quantize``. ``stored`` is the quantization that a quantized model
            has. By default ``stored`` for a quantized model, else ``bf16``.
        keep: the number of layers to keep in f32.
        group_size: the number of weights per scale in int8 and int4; -1 for one scale per channel.
        metric: a function that rates outputs, higher is better; layers are then ordered by it.
        original: the model before quantization, which has the original weights. Without it, they are estimated from the
            stored ones.

    Raises:
        InputError: if an input is not as expected, the precision is unknown or has no groups, the metric is not a finite
            number, or the original does not match the model.
    """
    _check(to, group_size)
    with within_budget(model.limits):
        stored = StoredModel(model, original) if to in (None, STORED) else None
        if to is None:
            to = STORED if stored is not None and stored.is_quantized else DEFAULT
        if original is not None and to != STORED:
            raise InputError(
                f"an original is for quantized models, and {to} is asked for",
                code=Code.BAD_REQUEST,
                hint=f"expected {STORED} as the precision, of a model with FakeQuantize or weights of few bits",
            )
        work = _Budgeting(model, inputs, to, group_size, metric, stored if to == STORED else None)
        return work.budget(keep)


def _check(to: str | None, group_size: int | None) -> None:
    if to is not None and to not in (*PRECISIONS, STORED):
        expected = f"expected {', '.join(PRECISIONS)} or {STORED}"
        raise InputError(f"unknown precision {to!r}", code=Code.NO_SUCH_NAME, hint=expected)
    if group_size is None:
        return
    if to not in BITS:
        raise InputError(
            f"{to or 'the default precision'} has no groups of weights",
            code=Code.BAD_REQUEST,
            hint=f"a group size goes with {' or '.join(BITS)}",
        )
    if group_size < 1 and group_size != PER_CHANNEL:
        raise InputError(
            f"{group_size} weights cannot share a scale",
            code=Code.BAD_REQUEST,
            hint=f"expected 1 or more, or {PER_CHANNEL} for all of a channel",
        )


@dataclass(frozen=True)
class _Outcome:
    """The effect on the outputs of computing some layers in the lower precision.

    Args:
        error: the largest relative error of an output.
        effect: a sketch of the normalized output differences (see `difference`).
        metric: the value of the caller's metric.
    """

    error: float
    effect: Array
    metric: float | None


class _Set:
    """A set of inputs, with the outputs and decisions of the exact run.

    Args:
        feeds: an array for each input.
        inside: records the decisions inside bodies.
    """

    def __init__(self, feeds: list[Array], inside: BodyDecisions) -> None:
        self.feeds, self.inside = feeds, inside
        self.decisions = tensors()
        self.outputs: Sequence[Array] = ()


class _Budgeting:
    def __init__(
        self,
        model: Model,
        inputs: object,
        to: str,
        group_size: int | None = None,
        metric: Metric | None = None,
        stored: StoredModel | None = None,
    ) -> None:
        # Uses the kernels of numpy: the reference implementation of convolution is seven times slower.
        reference = Reference(model if stored is None else stored.model, backend="numpy")
        self._reference, self._to, self._group_size, self._metric = reference, to, group_size, metric
        self._scheme: Scheme = (
            scheme_of(to, reference.graph, reference.types, group_size)
            if stored is None
            else stored.scheme(reference.graph)
        )
        self.layers = self._scheme.layers
        self._done = 0
        self._sets = [
            _Set(reference.feeds(inputs_set), BodyDecisions(reference.graph, reference.types))
            for inputs_set in _split_sets(inputs)
        ]
        for inputs_set in self._sets:
            reference.check_memory(inputs_set.feeds)
        feeds = [feed for inputs_set in self._sets for feed in inputs_set.feeds]
        kind = f"budget {to} {group_size} {len(self._sets)}"
        runs_in = model if stored is None else stored.model  # which has the weights of the original
        self._entry = entry_for(kind, runs_in, feeds, "reference") if metric is None else None
        with stage(0, FIRST):
            for number, inputs_set in enumerate(self._sets):
                with stage(number / len(self._sets), (number + 1) / len(self._sets)):
                    self._run_exactly(inputs_set)
        self._sizes = [self._size(index) for index in range(len(reference.outputs))]
        self.exact = self._apply_metric([inputs_set.outputs for inputs_set in self._sets])
        """The caller's metric of the exact outputs."""

    def _run_exactly(self, inputs_set: _Set) -> None:
        batches = {len(feed) for feed in inputs_set.feeds if feed.ndim}
        batch = batches.pop() if len(batches) == 1 else 1
        graph, types = self._reference.graph, self._reference.types
        exact = self._scheme.change(())

        def note(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            outputs = exact(layer, inputs, outputs)
            self._scheme.calibrate(layer, inputs, batch)
            if self._metric is None and not self._is_quantizer(layer) and decides(graph, types, layer):
                for port, array in zip(layer.output_ports, outputs, strict=False):
                    keep_copy(inputs_set.decisions, port, array)
            return outputs

        record = inputs_set.inside.record if self._metric is None else None
        inputs_set.outputs = Kept(self._reference.run(inputs_set.feeds, note, record))

    def _is_quantizer(self, layer: Layer) -> bool:
        """Return whether a layer is a quantizer, whose decisions are part of the measured error."""
        return self._to == STORED and layer.type == "FakeQuantize"

    def _size(self, index: int) -> float | None:
        """Return the RMS of an output over all input sets; ``None`` if it is not floating point."""
        if not is_float(self._reference.types, self._reference.outputs[index]._port):
            return None
        arrays = [inputs_set.outputs[index] for inputs_set in self._sets]
        count = sum(array.size for array in arrays)
        squares = sum(float(np.square(array, dtype=np.float64).sum()) for array in arrays)
        return float(np.sqrt(squares / count)) if count else 0.0

    def budget(self, keep: int) -> Budget:
        """Measure the layer costs, and choose the layers to keep.

        Args:
            keep: the number of layers to keep.
        """
        costs: dict[int, LayerCost] = {}
        effects: dict[int, Array] = {}
        try:
            for layer in self.layers:
                alone = self.outcome({layer.id})
                costs[layer.id] = LayerCost(layer.name, layer.operation, alone.error, alone.metric)
                effects[layer.id] = alone.effect
            total = self.outcome({*costs})
            ordered = sorted(costs, key=lambda id: _rank(costs[id]))
            kept, remaining = self._choose_kept(
                [id for id in ordered if costs[id].error], effects, keep, total
            )
            report_progress(1)  # fewer sets may have been tried than were expected
        except STOPS as reason:
            ranked = tuple(sorted(costs.values(), key=_rank))
            partial = Budget(self._to, ranked, np.nan, (), np.nan, True, self._group_size)
            raise attach_partial(reason, lambda: partial) from None
        metric = None
        if self.exact is not None and total.metric is not None and remaining.metric is not None:
            metric = Measured(self.exact, total.metric, remaining.metric)
        return Budget(
            self._to,
            tuple(costs[id] for id in ordered),
            total.error,
            tuple(costs[id].layer for id in ordered if id in kept),
            remaining.error,
            group_size=self._group_size,
            metric=metric,
        )

    def _choose_kept(
        self, ordered: Sequence[int], effects: Mapping[int, Array], keep: int, total: _Outcome
    ) -> tuple[Collection[int], _Outcome]:
        """Choose which layers to keep: those with the largest costs, or those that leave the smallest sum of effects.

        Both choices are run, and the better one is returned with its outcome; without layers to keep, ``total`` is the outcome.

        Args:
            ordered: the ids of the layers that may be kept, the largest cost first.
            effects: the effect of each layer alone, by id.
            keep: the number of layers to keep.
            total: the outcome with all layers in the lower precision.
        """
        if not ordered or not keep:
            return (), total
        together = [ordered[place] for place in choose([effects[id] for id in ordered], keep)]
        sets = {frozenset(kept) for kept in (ordered[:keep], together)}
        tried = [(kept, self.outcome({*effects} - kept)) for kept in sorted(sets, key=sorted)]
        return min(tried, key=lambda each: (-(each[1].metric or 0.0), each[1].error))

    def outcome(self, layers: Collection[int]) -> _Outcome:
        """Return the effect of computing the given layers in the lower precision, from the cache if possible.

        Args:
            layers: the ids of the layers.
        """
        done, self._done, total = self._done, self._done + 1, len(self.layers) + FURTHER
        ids = sorted(layers)
        key = str(ids[0]) if len(ids) == 1 else blake2b(repr(ids).encode(), digest_size=8).hexdigest()
        with stage(FIRST + (1 - FIRST) * done / total, FIRST + (1 - FIRST) * (done + 1) / total):
            (error, metric), (effect,) = load_or_compute(self._entry, key, lambda: self._compute(layers))
        return _Outcome(float(error), effect, metric)

    def _compute(self, layers: Collection[int]) -> tuple[list[float | None], list[Array]]:
        change = self._scheme.change(layers)
        outputs_by_set = [self._run(inputs_set, change) for inputs_set in self._sets]
        errors, effects = [0.0], [np.zeros(0)]
        for index, size in enumerate(self._sizes):
            if size is None:
                continue
            differences = [
                difference(outputs[index], inputs_set.outputs[index])
                for outputs, inputs_set in zip(outputs_by_set, self._sets, strict=True)
            ]
            count = sum(inputs_set.outputs[index].size for inputs_set in self._sets)
            if squares := sum(inputs_set for inputs_set, _ in differences):
                errors.append(np.sqrt(squares / count) / size if size else np.inf)
            effects += [effect / ((size or 1) * count**0.5) for _, effect in differences if count]
        return [float(max(errors)), self._apply_metric(outputs_by_set)], [np.concatenate(effects)]

    def _run(self, inputs_set: _Set, change: Change) -> Sequence[Array]:
        if self._metric is not None:  # decisions may differ, as the metric may depend on them
            return Kept(self._reference.run(inputs_set.feeds, change))
        decided = chain_changes(change, pin_decisions(inputs_set.decisions))
        return Kept(self._reference.run(inputs_set.feeds, decided, inputs_set.inside.replay()))

    def _apply_metric(self, outputs: Sequence[Sequence[Array]]) -> float | None:
        """Apply the caller's metric to the outputs of all input sets; ``None`` without a metric.

        Raises:
            InputError: if the result is not a finite number.
        """
        if self._metric is None:
            return None
        names = [port.label for port in self._reference.outputs]
        rating: object = self._metric([dict(zip(names, arrays, strict=True)) for arrays in outputs])
        try:
            number = float(rating)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = np.nan
        if not np.isfinite(number):
            raise InputError(
                f"the metric of the outputs is {rating!r}",
                code=Code.BAD_REQUEST,
                hint="it takes a list with a mapping of names to arrays for each set of inputs, and returns a number",
            )
        return number


def _rank(cost: LayerCost) -> tuple[float, float]:
    """Return the sort key of a layer cost: the metric, if there is one, then the error."""
    return (0.0 if cost.metric is None else cost.metric), -cost.error


def _split_sets(inputs: object) -> list[object]:
    """Split the caller's inputs into input sets.

    Raises:
        InputError: if there are no sets.
    """
    if isinstance(inputs, Iterator):
        inputs = [*inputs]
        if not inputs:
            raise InputError(
                "expected a set of inputs, got none",
                code=Code.BAD_REQUEST,
                hint="an iterator yields a mapping of names to arrays for each set",
            )
        return inputs
    several = (
        isinstance(inputs, list | tuple) and inputs and all(isinstance(entry, Mapping) for entry in inputs)
    )
    return list(inputs) if several else [inputs]  # type: ignore[call-overload]


NUMBERS = 4096
"""Size of the sketch of a large output."""
_SEED = 0


def difference(found: Array, exact: Array) -> tuple[float, Array]:
    """Return the sum of squared differences of two arrays, and a count sketch of the differences with up to `NUMBERS` elements.

    The sketch multiplies differences by random signs, the same for all arrays of a size, and folds them. Inner products of
    sketches estimate inner products of differences. NaN in both arrays counts as equal.

    Args:
        found: an array.
        exact: the exact array; if its shape differs, the sum is infinite.
    """
    if found.shape != exact.shape:
        return np.inf, np.zeros(min(exact.size, NUMBERS))
    squares, random = 0.0, np.random.default_rng(_SEED)
    sums = np.zeros(min(exact.size, NUMBERS))
    for ours, theirs in blocks(found, exact):
        with np.errstate(invalid="ignore"):
            off = ours.astype(np.float64) - theirs.astype(np.float64)
        off[(ours == theirs) | (np.isnan(ours) & np.isnan(theirs))] = 0
        squares += float(np.square(off).sum()) if np.isfinite(off).all() else np.inf
        off[~np.isfinite(off)] = 0
        if exact.size > NUMBERS:
            off *= random.choice([-1.0, 1.0], off.size)
            off = np.pad(off, (0, -off.size % NUMBERS)).reshape(-1, NUMBERS).sum(0)
        sums += off
    return squares, sums


def choose(effects: Sequence[Array], count: int) -> list[int]:
    """Choose effects to remove such that the norm of the sum of the remaining effects is small; return their indices.

    Greedy selection, followed by exchanges as long as they improve it.

    Args:
        effects: the effect of each layer on the outputs.
        count: the maximum number of effects to remove.
    """
    stacked = np.stack(effects)
    products, removed = stacked @ stacked.T, list[int]()

    def size(without: Sequence[int]) -> float:
        rest = [place for place in range(len(effects)) if place not in without]
        return float(products[np.ix_(rest, rest)].sum())

    while len(removed) < min(count, len(effects)):
        remaining = [place for place in range(len(effects)) if place not in removed]
        removed.append(min(remaining, key=lambda place: size([*removed, place])))
    best, improved = size(removed), True
    while improved:
        improved = False
        for index, other in product(range(len(removed)), range(len(effects))):
            changed = [*removed[:index], other, *removed[index + 1 :]]
            if other not in removed and (changed_size := size(changed)) < best * (1 - 1e-9):
                removed, best, improved = changed, changed_size, True
    return removed
