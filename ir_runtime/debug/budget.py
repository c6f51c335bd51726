"""Rank layers by the accuracy that a lower precision costs, to choose those to keep in f32."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .._util.escaping import quoted
from .._util.markup import Shown
from .._util.records import Record
from ..codes import Code
from ..errors import InputError
from ..ir.evaluation import evaluate_layer
from ..ir.graph import Layer
from ..ir.tensor import Array
from ..openvino.model import Model
from .caching import entry_for, remembered
from .decisions import decides, pinned
from .inside import InsideDecisions
from .precision import rounding_to
from .progress import Interrupted, stage
from .reference import Change, Reference, chained
from .spilling import Kept, keep_copy, tensors, within_budget
from .stored_weights import STORED_AS
from .tensors import computed_layers, end_of_node, is_float
from .terms import PRODUCTS
from .verdict import error_of

__all__ = ["Budget", "LayerCost", "budget"]

FIRST = 0.05
"""Which part of the time the run is taken to need that all errors are relative to."""


@dataclass(frozen=True)
class LayerCost:
    """The relative error at the outputs if this layer alone is computed in the lower precision.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2, 2], np.float32, name="x")
    >>> weights = opset1.constant(np.array([[1, 2], [3, 4.1]], np.float32))
    >>> model = ov.Model([opset1.matmul(x, weights, False, False, name="product")], [x])
    >>> inputs = [np.array([[0.3, 1], [2, 0.7]], np.float32)]
    >>> [(cost.layer, cost.record()["operation"]) for cost in debug.budget(model, inputs).layers]
    [('product', 'MatMul-1')]
    """

    layer: str
    operation: str
    error: float

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {"layer": self.layer, "operation": self.operation, "error": self.error}


@dataclass(frozen=True)
class Budget(Shown):
    """The cost of a lower precision.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2, 2], np.float32, name="x")
    >>> weights = opset1.constant(np.array([[1, 2], [3, 4.1]], np.float32))
    >>> model = ov.Model([opset1.matmul(x, weights, False, False, name="product")], [x])
    >>> inputs = [np.array([[0.3, 1], [2, 0.7]], np.float32)]
    >>> found = debug.budget(model, inputs, "int4", keep=1)
    >>> found.kept, found.predicted < 1, len(found.summary) > 0, sorted(found.record())[:2]
    (('product',), True, True, ['kept', 'layers'])

    Args:
        to: the precision.
        layers: the cost of each layer, the largest first.
        total: the error if all are in the lower precision.
        kept: the layers to keep in f32.
        remaining: the error if all but these are in the lower precision.
        partial: whether it was interrupted: only some layers are listed, and the errors of several are not known (NaN).
    """

    to: str
    layers: tuple[LayerCost, ...]
    total: float
    kept: tuple[str, ...]
    remaining: float
    partial: bool = False

    @property
    def predicted(self) -> float:
        """The predicted total: the root of the sum of squared layer costs."""
        return float(np.sqrt(sum(layer.error**2 for layer in self.layers)))

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "schema": 1, "partial": self.partial, "to": self.to, "total": self.total, "predicted": self.predicted, "kept": list(self.kept),
            "remaining": self.remaining, "layers": [layer.record() for layer in self.layers],
        }  # fmt: skip

    @property
    def summary(self) -> str:
        """Describe the total cost, and the gain of keeping some layers in f32."""
        if self.partial:
            return "PARTIAL: it was interrupted; the costs of the other layers are unknown"
        if not self.layers:
            weights = " with constant weights" if self.to in STORED_AS else ""
            return f"no layer multiplies matrices{weights}: {self.to} costs nothing"
        lines = [f"all in {self.to}: error {self.total:.1e} (the layers predict {self.predicted:.1e})"]
        if self.kept:
            names = ", ".join(map(quoted, self.kept))
            lines.append(f"with {names} in f32: error {self.remaining:.1e}")
        return "\n".join(lines)

    def __str__(self) -> str:
        lines = [f"{cost.error:.1e}  {quoted(cost.layer)} ({cost.operation})" for cost in self.layers]
        return "\n".join([self.summary, *lines] if self.partial else [*lines, self.summary])


def budget(model: Model, inputs: object, to: str = "bf16", keep: int = 3) -> Budget:
    """Measure the output error of computing each matrix product alone in a lower precision.

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

    Args:
        model: the model; it is not changed.
        inputs: as for a compiled model.
        to: ``bf16`` or ``f16``, in which inputs, weights and results are rounded; ``int8`` or ``int4``, in which
            constant weights are: int8 symmetric for each row, int4 with a scale and a zero point for 128 of a row.
        keep: how many of the layers that cost most to keep in f32.

    Raises:
        InputError: if an input is not as expected, or the precision is unknown.
    """
    if to not in STORED_AS and to not in ("bf16", "f16"):
        expected = "expected bf16, f16, int8 or int4"
        raise InputError(f"unknown precision {to!r}", code=Code.NO_SUCH_NAME, hint=expected)
    with within_budget(model.limits):
        return _budgeted(_Budgeting(model, inputs, to), to, keep)


def _budgeted(work: _Budgeting, to: str, keep: int) -> Budget:
    costs: dict[str, LayerCost] = {}
    try:
        for layer in work.layers:
            costs[layer.name] = LayerCost(layer.name, layer.operation, work.error({layer.id}))
        ordered = _ordered(costs)
        kept = tuple(cost.layer for cost in ordered[:keep] if cost.error)
        total = work.error({layer.id for layer in work.layers})
        remaining = work.error({layer.id for layer in work.layers if layer.name not in kept})
    except KeyboardInterrupt:
        raise Interrupted(Budget(to, _ordered(costs), np.nan, (), np.nan, partial=True)) from None
    return Budget(to, ordered, total, kept, remaining)


def _ordered(costs: Mapping[str, LayerCost]) -> tuple[LayerCost, ...]:
    return tuple(sorted(costs.values(), key=lambda cost: -cost.error))


class _Budgeting:
    def __init__(self, model: Model, inputs: object, to: str) -> None:
        # With the kernels of numpy: the definition of a convolution is seven times as slow.
        self._reference, self._to = Reference(model, backend="numpy"), to
        self._feeds, self._done = self._reference.feeds(inputs), 0
        self._reference.check_memory(self._feeds)
        self._entry = entry_for(f"budget {to}", model, self._feeds, "reference")
        graph = self._reference.graph
        computing = computed_layers(graph)
        changing = {layer.id for layer in (*computing, *graph.of_type("Parameter"))}
        self._constants = {
            layer.id: [source.layer not in changing for source in graph.reads(layer)] for layer in computing
        }
        self.layers = [
            layer
            for layer in computing
            if layer.type in PRODUCTS and (to not in STORED_AS or any(self._constants[layer.id]))
        ]
        self._ends = {layer.id: end_of_node(graph, layer, changing) for layer in self.layers}
        self._decisions, self._inside = tensors(), InsideDecisions(graph, self._reference.types)
        with stage(0, FIRST):
            self._plain = Kept(self._reference.run(self._feeds, self._note, self._inside.record))

    def _note(self, layer: Layer, _: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if decides(self._reference.graph, self._reference.types, layer):
            for port, array in zip(layer.output_ports, outputs, strict=False):
                keep_copy(self._decisions, port, array)
        return outputs

    def error(self, layers: Collection[int]) -> float:
        """Return a change that rounds the inputs of layers and the outputs of their nodes."""
        done, self._done, total = self._done, self._done + 1, len(self.layers) + 2
        key = "-".join(map(str, sorted(layers))) if len(layers) == 1 else f"{self._to}-{len(layers)}"
        with stage(FIRST + (1 - FIRST) * done / total, FIRST + (1 - FIRST) * (done + 1) / total):
            found, _ = remembered(self._entry, key, lambda: (self._computed(layers), []))
        return float(found)

    def _computed(self, layers: Collection[int]) -> float:
        change = self._stored if self._to in STORED_AS else self._rounded
        decided = chained(change(layers), pinned(self._decisions))
        results = self._reference.run(self._feeds, decided, self._inside.replay())
        errors = [
            error_of(found, wanted).relative
            for port, found, wanted in zip(self._reference.outputs, results, self._plain, strict=True)
            if is_float(self._reference.types, port._port)
        ]
        return max(errors, default=0.0)

    def _rounded(self, layers: Collection[int]) -> Change:
        """Return a change that rounds the inputs of layers and the outputs of their nodes."""
        ends, rounded = {self._ends[layer] for layer in layers}, rounding_to(self._to)

        def change(layer: Layer, given: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            if layer.id in layers:
                outputs = _moved(layer, given, [rounded(array) for array in given], outputs)
            return tuple(
                rounded(array) if port in ends else array
                for port, array in zip(layer.output_ports, outputs, strict=False)
            )

        return change

    def _stored(self, layers: Collection[int]) -> Change:
        """Return a change that recomputes layers with quantized weights."""

        def change(layer: Layer, given: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            if layer.id not in layers or layer.op is None:
                return outputs
            fixed = self._constants[layer.id]
            arrays = [
                STORED_AS[self._to](layer, array) if known and array.ndim > 1 else array
                for array, known in zip(given, fixed, strict=True)
            ]
            return _moved(layer, given, arrays, outputs)

        return change


def _moved(
    layer: Layer, given: Sequence[Array], changed: Sequence[Array], outputs: tuple[Array, ...]
) -> tuple[Array, ...]:
    """Shift outputs by the effect of changed inputs on the definition of a layer.

    The kernel that computed the outputs is not run again, as it may have prepacked constant inputs.
    """
    with np.errstate(all="ignore"):
        return tuple(
            np.where(after == before, output, output + (after - before))
            for before, after, output in zip(
                evaluate_layer(layer, given), evaluate_layer(layer, changed), outputs, strict=True
            )
        )
