"""Twelve kinds of mistakes that engineers make when porting a model, injected into a run of NumPy kernels."""

# ruff: noqa: B023 - loops end where functions that bind their variables are returned

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.debug.reference import Recorder, Reference, chain_changes
from ir_runtime.debug.tensors import computed_layers, is_float
from ir_runtime.ir.evaluation import evaluate_layer
from ir_runtime.ir.graph import Layer, Port

Arrays = tuple[np.ndarray, ...]
Wrong = Callable[[Layer, Sequence[np.ndarray], Arrays], Arrays]
"""Takes a layer, its inputs and its outputs; returns what the port computes."""


@dataclass(frozen=True)
class Mistake:
    """A mistake in one layer.

    Args:
        kind: its kind.
        layer: the layer.
        what: a description.
        wrong: computes the wrong result.
        names: the kinds that `ir_runtime.debug` may report.
    """

    kind: str
    layer: Layer
    what: str
    wrong: Wrong
    names: frozenset[str]


@dataclass
class Ported:
    """A side with a mistake in one layer, of which only some tensors can be observed.

    Args:
        mistake: the mistake.
        every: one of so many tensors can be observed.
    """

    mistake: Mistake | None
    every: int = 1

    def observe(self, model: Any, reference: Any, feeds: Any, ports: Any) -> debug.Observation:
        """Run the model."""
        graph = reference.graph
        recorder = Recorder(
            [port for place, port in enumerate(ports) if place % self.every == self.every - 1]
        )

        def change(layer: Layer, inputs: Sequence[np.ndarray], outputs: Arrays) -> Arrays:
            if self.mistake is None or layer.id != self.mistake.layer.id:
                return outputs
            return self.mistake.wrong(graph[layer.id], inputs, outputs)

        outputs = Reference(model, backend="numpy").run(feeds, chain_changes(change, recorder))
        return debug.Observation("port", outputs, recorder.tensors)


class Network:
    """A model with the results of its layers on some inputs.

    Args:
        model: the model.
        inputs: an array for each input.
        seed: of the random choices.
    """

    def __init__(self, model: ir.Model, inputs: object, seed: int = 0) -> None:
        self.model, self.rng = model, random.Random(seed)
        reference = Reference(model, backend="numpy")
        self.graph, feeds = reference.graph, reference.feeds(inputs)
        self.layers = computed_layers(self.graph)
        self._computed = {layer.id for layer in self.layers}
        self.seen: dict[int, tuple[list[np.ndarray], Arrays]] = {}
        self.values: dict[Port, np.ndarray] = {}

        def note(layer: Layer, arrays: Sequence[np.ndarray], outputs: Arrays) -> Arrays:
            self.seen[layer.id] = [np.array(a) for a in arrays], tuple(np.array(a) for a in outputs)
            self.values |= zip(layer.output_ports, self.seen[layer.id][1], strict=False)
            return outputs

        reference.run(feeds, note)
        self.floats = [layer for layer in self.layers if is_float(reference.types, Port(layer.id, 0))]

    def of(self, *types: str) -> Iterator[tuple[Layer, list[np.ndarray], np.ndarray]]:
        """Return layers with numeric results, of some types or of all, in random order, with inputs and output."""
        layers = [layer for layer in self.floats if not types or layer.type in types]
        for layer in self.rng.sample(layers, len(layers)):
            inputs, outputs = self.seen[layer.id]
            if outputs[0].size > 1 and np.ptp(outputs[0]) > 0:
                yield layer, inputs, outputs[0]

    def constants(self, layer: Layer) -> list[int]:
        """Return the constant inputs of a layer."""
        return [
            index
            for index, port in enumerate(self.graph.reads(layer))
            if port.layer not in self._computed and self.graph[port.layer].type != "Parameter"
        ]


Made = tuple[Layer, str, Wrong] | None


def _on_output(change: Callable[[np.ndarray], np.ndarray]) -> Wrong:
    return lambda layer, inputs, outputs: (
        np.ascontiguousarray(change(outputs[0]).astype(outputs[0].dtype)),
        *outputs[1:],
    )


def _on_inputs(change: Callable[[list[np.ndarray]], list[np.ndarray]]) -> Wrong:
    return lambda layer, inputs, outputs: evaluate_layer(layer, change(list(inputs)))


def _transposed(net: Network) -> Made:
    for layer, inputs, _ in net.of("MatMul"):
        if 1 in net.constants(layer) and inputs[1].ndim == 2 and inputs[1].shape[0] == inputs[1].shape[1]:
            return layer, "weights transposed", _on_inputs(lambda a: [a[0], np.ascontiguousarray(a[1].T)])
    for layer, _, output in net.of():
        if output.ndim >= 2 and output.shape[-1] == output.shape[-2] > 1:
            return layer, "result transposed", _on_output(lambda a: np.swapaxes(a, -1, -2))
    return None


def _layout(net: Network) -> Made:
    for layer, inputs, _ in net.of("Convolution"):
        if inputs[1].ndim == 4 and inputs[1].shape[1] > 1 and inputs[1].shape[2] > 1:
            return (
                layer,
                "weights as OHWI",
                _on_inputs(
                    lambda a: [a[0], np.ascontiguousarray(a[1].transpose(0, 2, 3, 1)).reshape(a[1].shape)]
                ),
            )
    for layer, _, output in net.of():
        if output.ndim == 4 and output.shape[1] > 1 and output.shape[2] > 1:
            return (
                layer,
                "result in NHWC",
                _on_output(lambda a: np.ascontiguousarray(a.transpose(0, 2, 3, 1)).reshape(a.shape)),
            )
    return None


def _bias(net: Network) -> Made:
    for layer, inputs, output in net.of("Add"):
        for index in net.constants(layer):
            if (
                len(inputs) == 2
                and inputs[index].size > 1
                and inputs[1 - index].shape == output.shape
                and inputs[index].any()
            ):
                return layer, "no bias", lambda _, a, o, i=index: (np.array(a[1 - i]),)
    for layer, _, output in net.of("Convolution", "MatMul"):
        if output.ndim > 2:
            axis = 1 if layer.type == "Convolution" else output.ndim - 1
            shape = [1] * output.ndim
            shape[axis] = output.shape[axis]
            bias = np.random.default_rng(0).normal(0, output.std(), shape)
            return layer, "a bias too much", _on_output(lambda a: a + bias)
    return None


def _factor(net: Network) -> Made:
    for layer, _, _ in net.of("Convolution", "GroupConvolution", "MatMul", "Multiply"):
        factor = net.rng.choice((0.5, 2.0, 0.125, 1 / 255, 1.702))
        return layer, f"times {factor:.3g}", _on_output(lambda a: a * np.float32(factor))
    return None


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


_INSTEAD: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "ReLU": ("SiLU", lambda x: x * _sigmoid(x)),
    "Gelu": ("the tanh formula", lambda x: 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))),
    "Swish": ("hard swish", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "HSwish": ("SiLU", lambda x: x * _sigmoid(x)),
    "HSigmoid": ("sigmoid", _sigmoid),
    "Sigmoid": ("hard sigmoid", lambda x: np.clip(x + 3, 0, 6) / 6),
    "Tanh": ("sigmoid", _sigmoid),
    "Clamp": ("ReLU", lambda x: np.maximum(x, 0)),
    "Elu": ("ReLU", lambda x: np.maximum(x, 0)),
}  # fmt: skip


def _activation(net: Network) -> Made:
    for layer, _, _ in net.of(*_INSTEAD):
        name, function = _INSTEAD[layer.type]
        return layer, name, lambda _, a, o, f=function: (f(a[0]).astype(a[0].dtype),)
    for layer, _, _ in net.of("Convolution", "MatMul", "Add"):
        return layer, "followed by ReLU", _on_output(lambda a: np.maximum(a, 0))
    return None


def _epsilon(net: Network) -> Made:
    for layer, inputs, _ in net.of("MVN", "GroupNormalization", "NormalizeL2", "Add", "Maximum", "RMS"):
        for name in ("eps", "epsilon"):
            if (old := vars(layer.op).get(name)) is not None:
                new = 1e-3 if old < 1e-4 else 1e-5
                return (
                    layer,
                    f"epsilon {new}",
                    lambda la, a, o, n=name, v=new: evaluate_layer(
                        replace(la, op=la.op.replace(**{n: v})), a
                    ),
                )
        for index in net.constants(layer):
            value = inputs[index].reshape(-1)[:1]
            if inputs[index].size == 1 and 0 < value[0] <= 1e-3:
                new = 1e-3 if value[0] < 1e-4 else 1e-5
                return (
                    layer,
                    f"epsilon {new}",
                    _on_inputs(
                        lambda a, i=index, v=new: [
                            np.full_like(x, v) if j == i else x for j, x in enumerate(a)
                        ]
                    ),
                )
    return None


def _gates(net: Network) -> Made:
    for layer, _, _ in net.of("LSTMCell", "LSTMSequence", "GRUCell", "GRUSequence"):
        size = vars(layer.op)["hidden_size"]
        order = (1, 0, 2, 3) if layer.type.startswith("LSTM") else (1, 0, 2)
        if layer.type.startswith("LSTM") and net.rng.random() < 0.5:
            order = (1, 0, 3, 2)
        first = {"LSTMCell": 3, "LSTMSequence": 4, "GRUCell": 2, "GRUSequence": 3}[layer.type]

        def exchange(arrays: list[np.ndarray]) -> list[np.ndarray]:
            for index in range(first, len(arrays)):
                axis = arrays[index].ndim - (1 if index == first + 2 else 2)
                rows = [g * size + r for g in order for r in range(size)]
                rows += range(len(rows), arrays[index].shape[axis])
                arrays[index] = np.take(arrays[index], rows, axis)
            return arrays

        return layer, f"gates in the order {order}", _on_inputs(exchange)
    return None


def _late(net: Network) -> Made:
    for layer, _, output in net.of():
        axes = [axis for axis in range(output.ndim) if output.shape[axis] > 2]
        if axes:
            axis = net.rng.choice(axes)

            def shift(array: np.ndarray, axis: int = axis) -> np.ndarray:
                moved = np.zeros_like(array)
                to: list[Any] = [slice(None)] * array.ndim
                source = list(to)
                to[axis], source[axis] = slice(1, None), slice(None, -1)
                moved[tuple(to)] = array[tuple(source)]
                return moved

            return layer, f"one late along axis {axis}", _on_output(shift)
    return None


def _clipped(net: Network) -> Made:
    for layer, _, output in net.of("Convolution", "MatMul", "Add", "Multiply", "ReLU"):
        most = 0.5 * float(np.abs(output).max())
        if (np.abs(output) > most).sum() > 2:
            return layer, f"clipped at {most:.3g}", _on_output(lambda a: np.clip(a, -most, most))
    return None


def _resize(net: Network) -> Made:
    for layer, inputs, output in net.of("Interpolate"):
        old = vars(layer.op)
        if inputs[0].shape == output.shape:
            continue
        choices = [
            m
            for m in ("asymmetric", "align_corners", "half_pixel")
            if m != old["coordinate_transformation_mode"]
        ]
        changes = {"coordinate_transformation_mode": net.rng.choice(choices)}
        if old["mode"] == "nearest":
            changes = net.rng.choice([changes, {"nearest_mode": "ceil"}])
        return (
            layer,
            str(changes),
            lambda la, a, o: evaluate_layer(replace(la, op=la.op.replace(**changes)), a),
        )
    return None


def _zero(net: Network) -> Made:
    for layer, _, _ in net.of():
        return layer, "all zero", _on_output(np.zeros_like)
    return None


def _other(net: Network) -> Made:
    places = {layer.id: place for place, layer in enumerate(net.layers)}
    for layer, inputs, _ in net.of():
        for index, source in enumerate(net.graph.reads(layer)):
            if source.layer not in places:
                continue
            others = [
                port
                for port, array in net.values.items()
                if port != source
                and places.get(port.layer, len(places)) < places[layer.id]
                and port.layer in places
                and array.shape == inputs[index].shape
                and array.dtype == inputs[index].dtype == np.float32
                and not np.array_equal(array, inputs[index])
            ]
            if others:
                port = net.rng.choice(others)
                value = net.values[port]
                return (
                    layer,
                    f"reads {net.graph[port.layer].name!r}",
                    _on_inputs(lambda a, i=index: [value if j == i else x for j, x in enumerate(a)]),
                )
    return None


KINDS: dict[str, tuple[Callable[[Network], Made], frozenset[str]]] = {
    "transposed": (_transposed, frozenset({"permuted", "attribute"})),
    "layout": (_layout, frozenset({"permuted"})),
    "bias": (_bias, frozenset({"bias", "constant", "left out"})),
    "factor": (_factor, frozenset({"factor"})),
    "activation": (_activation, frozenset({"activation", "attribute", "operation"})),
    "epsilon": (_epsilon, frozenset({"epsilon"})),
    "gates": (_gates, frozenset({"gates"})),
    "one late": (_late, frozenset({"shift"})),
    "clipped": (_clipped, frozenset({"clipped"})),
    "resize": (_resize, frozenset({"resize"})),
    "all zero": (_zero, frozenset({"all zero"})),
    "another input": (_other, frozenset({"another input"})),
}


def mistakes(model: ir.Model, inputs: object, seed: int = 0) -> Iterator[Mistake]:
    """Yield a mistake of each applicable kind that changes the result of its layer."""
    net = Network(model, inputs, seed)
    for kind, (make, names) in KINDS.items():
        if (made := make(net)) is not None:
            layer, what, wrong = made
            arrays, outputs = net.seen[layer.id]
            if not np.array_equal(wrong(layer, arrays, tuple(np.array(o) for o in outputs))[0], outputs[0]):
                yield Mistake(kind, layer, what, wrong, names)
