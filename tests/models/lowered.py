"""Models with some layers in a lower precision, on which predictions of `debug.budget` can be checked.

They are written without `ir_runtime.debug`, in NNCF's form: FakeQuantize before a layer, and rounded weights.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np

import ir_runtime as ir
from ir_runtime import opset13 as op

__all__ = ["Lowering", "best_to_keep", "relative_error"]

Array = np.ndarray[Any, Any]
MOST = 10
"""Of how many layers all sets are tried."""
_SUMMED = {"Convolution": (1, 2, 3), "GroupConvolution": (2, 3, 4), "LSTMSequence": (2,)}
_WEIGHTS = {"Convolution": (1,), "GroupConvolution": (1,), "MatMul": (0, 1), "LSTMSequence": (4, 5)}
_DATA = {
    "Convolution": (0,), "GroupConvolution": (0,), "MatMul": (0, 1), "LSTMSequence": (0,), "Add": (0, 1), "MVN": (0,), "ReduceMean": (0,)
}  # fmt: skip


def relative_error(found: Array, exact: Array) -> float:
    """Return the RMS of the differences relative to the RMS of the exact values."""
    return float(np.sqrt(np.square(found - exact).mean() / np.square(exact).mean()))


def _run(model: ir.Model, images: Array) -> Array:
    return np.array(ir.compile_model(model, backend="numpy")(images)[0])


def _name(node: Any) -> str:
    return str(node.get_friendly_name())


class Lowering:
    """A lower precision for a model.

    Args:
        model: the model.
        to: `int8`, `int4` or `w8a8`.
        images: samples for the ranges of activations and for the errors.
    """

    def __init__(self, model: ir.Model, to: str, images: Array) -> None:
        self._model, self._to, self._images = model, to, images
        self._limits = dict(self._ranges()) if to == "w8a8" else {}
        self.layers = [_name(node) for node in model.get_ordered_ops() if self._is_lowered(node)]
        """The names of the layers that have a lower precision."""
        self.measure_on(images)

    def measure_on(self, images: Array) -> None:
        """Measure errors on other samples; the ranges of activations stay."""
        self._images, self._exact = images, _run(self._model, images)

    def error(self, lowered: Collection[str]) -> float:
        """Return the relative error of the outputs with some layers in the lower precision."""
        return relative_error(_run(self.model(lowered), self._images), self._exact)

    def model(self, lowered: Collection[str]) -> ir.Model:
        """Return a copy of the model with some layers in the lower precision."""
        model, halved = self._model.clone(), False
        for node in model.get_ordered_ops():
            if _name(node) not in lowered:
                continue
            first = node.get_type_name() == "Convolution" and not halved
            halved |= first
            for index in _WEIGHTS.get(node.get_type_name(), ()):
                source = node.input_value(index)
                if source.get_node().get_type_name() == "Constant":
                    array = self._rounded(node, index, source.get_node().data, first)
                    node.input(index).replace_source_output(op.constant(array).output(0))
            for index in _DATA[node.get_type_name()] if self._to == "w8a8" else ():
                if (limits := self._limits.get((_name(node), index))) is not None:
                    low, high = (op.constant(np.asarray(limit, np.float32)) for limit in limits)
                    quantized = op.fake_quantize(node.input_value(index), low, high, low, high, 256)
                    node.input(index).replace_source_output(quantized.output(0))
        return model

    def _is_lowered(self, node: Any) -> bool:
        if self._to == "w8a8":
            return any((_name(node), index) in self._limits for index in range(3))
        inputs = _WEIGHTS.get(node.get_type_name(), ())
        return any(node.input_value(i).get_node().get_type_name() == "Constant" for i in inputs)

    def _ranges(self) -> Iterator[tuple[tuple[str, int], tuple[Array, Array]]]:
        """Yield symmetric limits for the inputs of layers: means over samples, or per-channel maxima."""
        watched, places = self._model.clone(), dict[tuple[str, int], int]()
        added, depthwise = dict[tuple[str, int], int](), set[str]()
        for node in watched.get_ordered_ops():
            sources = [node.input_value(i) for i in _DATA.get(node.get_type_name(), ())]
            constant = [source.get_node().get_type_name() == "Constant" for source in sources]
            if node.get_type_name() == "GroupConvolution":
                depthwise.add(_name(node))
            for index, source in enumerate(sources):
                if not constant[index] and not (node.get_type_name() == "Add" and any(constant)):
                    tensor = _name(source.get_node()), source.get_index()
                    if tensor not in added:
                        added[tensor] = len(watched.outputs)
                        watched.add_outputs([source])
                    places[_name(node), index] = added[tensor]
        results = ir.compile_model(watched, backend="numpy")(self._images)
        for (name, index), place in places.items():
            array, by_channel = np.array(results[place]), name in depthwise
            flat = array.reshape(len(array), array.shape[1] if by_channel else 1, -1)
            largest = np.abs(flat).max(2)
            high = largest.max(0).reshape(1, -1, 1, 1) if by_channel else largest.mean()
            high = np.maximum(high, 0.01 * np.max(high))
            yield (name, index), (-high * 128 / 127 if (array < 0).any() else 0 * high, high)

    def _rounded(self, node: Any, index: int, weights: Array, first: bool) -> Array:
        kind = node.get_type_name()
        axes = _SUMMED.get(kind, (weights.ndim - 1,))  # a MatMul of these networks has its weights transposed
        if self._to == "w8a8":
            high = np.abs(weights).max(axes, keepdims=True)
            step = np.maximum(high, 0.01 * high.max()) / (63.5 if kind == "Convolution" and first else 127)
            return np.asarray(np.rint(weights / step) * step, np.float32)
        levels = 255 if self._to == "int8" else 15
        rows = weights.reshape(int(np.prod(weights.shape[: axes[0]])), -1)
        width = rows.shape[1] if self._to == "int8" else 128
        parts = []
        for start in range(0, rows.shape[1], width):
            part = rows[:, start : start + width]
            low, high = np.minimum(part.min(1, keepdims=True), 0), np.maximum(part.max(1, keepdims=True), 0)
            step = (high - low) / levels
            zero = np.rint(-low / step)
            parts.append((np.clip(np.rint(part / step) + zero, 0, levels) - zero) * step)
        return np.asarray(np.concatenate(parts, 1).reshape(weights.shape), np.float32)


def best_to_keep(lowering: Lowering, count: int) -> tuple[str, ...]:
    """Return the best set of layers to keep, by exhaustive search.

    With more than `MOST` layers, only the `MOST` most important ones are considered, by the effect of keeping or quantizing each
    alone.
    """
    layers = lowering.layers
    if len(layers) > MOST:
        gains = {name: -lowering.error({*layers} - {name}) for name in layers}
        costs = {name: lowering.error({name}) for name in layers}
        by_both = (name for pair in zip(_falling(gains), _falling(costs), strict=True) for name in pair)
        layers = list(dict.fromkeys(by_both))[:MOST]
    return min(combinations(layers, count), key=lambda kept: lowering.error({*lowering.layers} - {*kept}))


def _falling(numbers: Mapping[str, float]) -> list[str]:
    return sorted(numbers, key=lambda name: -numbers[name])
