"""Five small networks trained on the handwritten digits of `examples/digits`, in NumPy, and saved as IR.

A multilayer perceptron, a residual CNN, a depthwise CNN, a transformer and an LSTM. The data are the hundred images of the
example: the first seventy, shifted by up to a pixel and with noise, for training, the others for testing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import ir_runtime as ir
from ir_runtime import opset13 as op

__all__ = ["NETWORKS", "held_out", "trained"]

Array = np.ndarray[Any, Any]
Weights = dict[str, Array]

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
TRAINED_ON = 70
BATCH, RATE = 64, 3e-3


class Tape:
    """An array for reverse-mode differentiation, with the function that propagates its gradient to its operands."""

    def __init__(
        self,
        value: Array,
        parents: Sequence[Tape] = (),
        back: Callable[[Array], Iterable[Array]] | None = None,
    ) -> None:
        self.value, self.parents, self.back = value, parents, back
        self.gradient = np.zeros_like(value)

    def backward(self) -> None:
        """Compute the gradients of all operands of this scalar."""
        order, seen = list[Tape](), set[int]()

        def visit(node: Tape) -> None:
            if id(node) not in seen:
                seen.add(id(node))
                for parent in node.parents:
                    visit(parent)
                order.append(node)

        visit(self)
        self.gradient = np.ones_like(self.value)
        for node in reversed(order):
            if node.back is not None:
                for parent, gradient in zip(node.parents, node.back(node.gradient), strict=True):
                    parent.gradient += _unbroadcast(gradient, parent.value.shape)

    def __add__(self, other: Tape) -> Tape:
        return Tape(self.value + other.value, (self, other), lambda g: (g, g))

    def __mul__(self, other: Tape) -> Tape:
        return Tape(self.value * other.value, (self, other), lambda g: (g * other.value, g * self.value))

    def __matmul__(self, other: Tape) -> Tape:
        def back(g: Array) -> tuple[Array, Array]:
            return g @ np.swapaxes(other.value, -1, -2), np.swapaxes(self.value, -1, -2) @ g

        return Tape(self.value @ other.value, (self, other), back)

    def __getitem__(self, key: Any) -> Tape:
        def back(g: Array) -> tuple[Array]:
            whole = np.zeros_like(self.value)
            whole[key] = g
            return (whole,)

        return Tape(self.value[key], (self,), back)

    def reshape(self, *shape: int) -> Tape:
        return Tape(self.value.reshape(shape), (self,), lambda g: (g.reshape(self.value.shape),))

    def transpose(self) -> Tape:
        return Tape(np.swapaxes(self.value, -1, -2), (self,), lambda g: (np.swapaxes(g, -1, -2),))

    def pad(self) -> Tape:
        """Add a border of zeros around images [N, H, W, C]."""
        width = ((0, 0), (1, 1), (1, 1), (0, 0))
        return Tape(np.pad(self.value, width), (self,), lambda g: (g[:, 1:-1, 1:-1],))

    def mean(self, *axes: int) -> Tape:
        count = np.prod([self.value.shape[axis] for axis in axes])

        def back(g: Array) -> tuple[Array]:
            return (np.broadcast_to(np.expand_dims(g, axes) / count, self.value.shape),)

        return Tape(self.value.mean(axes), (self,), back)

    def pointwise(self, value: Array, slope: Array) -> Tape:
        return Tape(value, (self,), lambda g: (g * slope,))

    def relu(self) -> Tape:
        return self.pointwise(np.maximum(self.value, 0), self.value > 0)

    def sigmoid(self) -> Tape:
        y = 1 / (1 + np.exp(-self.value))
        return self.pointwise(y, y * (1 - y))

    def tanh(self) -> Tape:
        y = np.tanh(self.value)
        return self.pointwise(y, 1 - y * y)

    def softmax(self) -> Tape:
        e = np.exp(self.value - self.value.max(-1, keepdims=True))
        y = e / e.sum(-1, keepdims=True)
        return Tape(y, (self,), lambda g: (y * (g - (g * y).sum(-1, keepdims=True)),))

    def normalized(self) -> Tape:
        """Normalize the last axis to mean 0 and deviation 1."""
        centred = self.value - self.value.mean(-1, keepdims=True)
        scale = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        y = centred * scale

        def back(g: Array) -> tuple[Array]:
            return (scale * (g - g.mean(-1, keepdims=True) - y * (g * y).mean(-1, keepdims=True)),)

        return Tape(y, (self,), back)

    def loss(self, labels: Array) -> Tape:
        """Return the cross entropy of scores."""
        shifted = self.value - self.value.max(-1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
        rows = np.arange(len(labels))

        def back(g: Array) -> tuple[Array]:
            slope = np.exp(logs)
            slope[rows, labels] -= 1
            return (g * slope / len(labels),)

        return Tape(np.asarray(-logs[rows, labels].mean()), (self,), back)


def _unbroadcast(gradient: Array, shape: tuple[int, ...]) -> Array:
    while gradient.ndim > len(shape):
        gradient = gradient.sum(0)
    for axis, length in enumerate(shape):
        if length == 1:
            gradient = gradient.sum(axis, keepdims=True)
    return gradient


Net = Callable[[Tape, Mapping[str, Tape]], Tape]
Draw = Callable[..., Array]


def _pictures() -> tuple[Array, Array]:
    images = np.load(DIGITS / "images.npy").astype(np.float64)
    return images, np.load(DIGITS / "labels.npy")


def held_out() -> tuple[Array, Array]:
    """Return the test images [30, 1, 8, 8] and their labels."""
    images, labels = _pictures()
    return images[TRAINED_ON:].astype(np.float32), labels[TRAINED_ON:]


def calibrating() -> Array:
    """Return the unmodified training images [70, 1, 8, 8]."""
    return _pictures()[0][:TRAINED_ON].astype(np.float32)


def _batches(random: np.random.Generator, steps: int) -> Iterable[tuple[Array, Array]]:
    images, labels = _pictures()
    for _ in range(steps):
        chosen = random.integers(0, TRAINED_ON, BATCH)
        moved = [np.roll(images[i], random.integers(-1, 2, 2), (1, 2)) for i in chosen]
        yield np.stack(moved) + random.normal(0, 0.1, (BATCH, 1, 8, 8)), labels[chosen]


def _train(net: Net, weights: Weights, steps: int) -> Weights:
    """Minimize the cross entropy with Adam."""
    random = np.random.default_rng(1)
    means = {name: np.zeros_like(w) for name, w in weights.items()}
    squares = {name: np.zeros_like(w) for name, w in weights.items()}
    for step, (images, labels) in enumerate(_batches(random, steps), 1):
        tapes = {name: Tape(w) for name, w in weights.items()}
        net(Tape(images), tapes).loss(labels).backward()
        for name, tape in tapes.items():
            means[name] = 0.9 * means[name] + 0.1 * tape.gradient
            squares[name] = 0.99 * squares[name] + 0.01 * tape.gradient**2
            mean, square = means[name] / (1 - 0.9**step), squares[name] / (1 - 0.99**step)
            rate = RATE * min(1, 2 * (1 - step / (steps + 1)))
            weights[name] = weights[name] - rate * mean / (np.sqrt(square) + 1e-8)
    return weights


def _drawn(**shapes: tuple[int, ...]) -> Weights:
    """Draw weights such that products have magnitude 1; biases are small."""
    random = np.random.default_rng(0)
    return {
        name: random.standard_normal(shape) * (0.1 if len(shape) == 1 else (2 / np.prod(shape[:-1])) ** 0.5)
        for name, shape in shapes.items()
    }


def _f32(array: Array) -> Any:
    return op.constant(np.ascontiguousarray(array, np.float32))


def _dense(x: Any, weights: Weights, name: str) -> Any:
    product = op.matmul(x, _f32(weights[name].T), False, True, name=name)
    return op.add(product, _f32(weights[f"{name}_bias"][None]), name=f"{name}/bias")


def _image() -> Any:
    return op.parameter([-1, 1, 8, 8], np.float32, name="image")


def _shaped(x: Any, *shape: int) -> Any:
    return op.reshape(x, op.constant(np.int64(shape)), True)


def _named(scores: Any, image: Any, name: str) -> ir.Model:
    scores.output(0).get_tensor().set_names({"scores"})
    image.output(0).get_tensor().set_names({"image"})
    return ir.Model([op.result(scores)], [image], name)


# A perceptron of six layers.
_WIDTHS = (64, 64, 48, 32, 32, 24, 10)


def _mlp_weights() -> Weights:
    shapes: dict[str, tuple[int, ...]] = {}
    for index, (rows, columns) in enumerate(pairwise(_WIDTHS)):
        shapes |= {f"dense{index}": (rows, columns), f"dense{index}_bias": (columns,)}
    return _drawn(**shapes)


def _mlp(x: Tape, w: Mapping[str, Tape]) -> Tape:
    y = x.reshape(len(x.value), 64)
    for index in range(len(_WIDTHS) - 1):
        y = y @ w[f"dense{index}"] + w[f"dense{index}_bias"]
        y = y.relu() if index < len(_WIDTHS) - 2 else y
    return y


def _mlp_model(w: Weights) -> ir.Model:
    image = _image()
    y = _shaped(image, 0, 64)
    for index in range(len(_WIDTHS) - 1):
        y = _dense(y, w, f"dense{index}")
        y = op.relu(y) if index < len(_WIDTHS) - 2 else y
    return _named(y, image, "mlp")


# Convolutions of 3x3, taps first: [3, 3, inputs, outputs], or [3, 3, channels] of a depthwise one.
def _taps(x: Tape, w: Tape, stride: int = 1) -> Iterable[tuple[Tape, Tape]]:
    padded, size = x.pad(), x.value.shape[1]
    for i in range(3):
        for j in range(3):
            yield padded[:, i : i + size : stride, j : j + size : stride], w[i, j]


def _sum(parts: Iterable[Tape]) -> Tape:
    first, *others = parts
    for other in others:
        first = first + other
    return first


def _conv(x: Tape, w: Mapping[str, Tape], name: str, stride: int = 1) -> Tape:
    return _sum(tap @ kernel for tap, kernel in _taps(x, w[name], stride)) + w[f"{name}_bias"]


def _depthwise(x: Tape, w: Mapping[str, Tape], name: str) -> Tape:
    return _sum(tap * kernel for tap, kernel in _taps(x, w[name])) + w[f"{name}_bias"]


def _biased(product: Any, w: Weights, name: str) -> Any:
    return op.add(product, _f32(w[f"{name}_bias"].reshape(1, -1, 1, 1)), name=f"{name}/bias")


def _conv_layer(x: Any, w: Weights, name: str, stride: int = 1) -> Any:
    kernel = w[name] if w[name].ndim == 4 else w[name][None, None]
    pad = [kernel.shape[0] // 2] * 2
    filters = _f32(kernel.transpose(3, 2, 0, 1))
    return _biased(op.convolution(x, filters, [stride] * 2, pad, pad, [1, 1], name=name), w, name)


def _depthwise_layer(x: Any, w: Weights, name: str) -> Any:
    filters = _f32(w[name].transpose(2, 0, 1)[:, None, None])
    return _biased(op.group_convolution(x, filters, [1, 1], [1, 1], [1, 1], [1, 1], name=name), w, name)


_CNN = (
    ("stem", 1, 12, 1),
    ("down", 12, 16, 2),
    ("left", 16, 16, 1),
    ("right", 16, 16, 1),
    ("last", 16, 24, 1),
)


def _cnn_weights() -> Weights:
    shapes: dict[str, tuple[int, ...]] = {"vote": (24, 10), "vote_bias": (10,)}
    for name, inputs, outputs, _ in _CNN:
        shapes |= {name: (3, 3, inputs, outputs), f"{name}_bias": (outputs,)}
    return _drawn(**shapes)


def _cnn(x: Tape, w: Mapping[str, Tape]) -> Tape:
    y = x.reshape(len(x.value), 8, 8, 1)
    y = _conv(_conv(y, w, "stem").relu(), w, "down", 2).relu()
    y = (y + _conv(_conv(y, w, "left").relu(), w, "right")).relu()
    return _conv(y, w, "last").relu().mean(1, 2) @ w["vote"] + w["vote_bias"]


def _cnn_model(w: Weights) -> ir.Model:
    image = _image()
    y = op.relu(_conv_layer(op.relu(_conv_layer(image, w, "stem")), w, "down", 2))
    inner = _conv_layer(op.relu(_conv_layer(y, w, "left")), w, "right")
    y = op.relu(_conv_layer(op.relu(op.add(y, inner, name="residual")), w, "last"))
    mean = op.reduce_mean(y, op.constant(np.int64([2, 3])), False, name="average")
    return _named(_dense(mean, w, "vote"), image, "cnn")


_DEPTHWISE = ((12, 16), (16, 24), (24, 32))


def _depthwise_weights() -> Weights:
    shapes: dict[str, tuple[int, ...]] = {
        "vote": (32, 10),
        "vote_bias": (10,),
        "stem": (3, 3, 1, 12),
        "stem_bias": (12,),
    }
    for index, (inputs, outputs) in enumerate(_DEPTHWISE):
        shapes |= {f"depth{index}": (3, 3, inputs), f"depth{index}_bias": (inputs,)}
        shapes |= {f"point{index}": (inputs, outputs), f"point{index}_bias": (outputs,)}
    weights = _drawn(**shapes)
    for index in range(len(_DEPTHWISE)):
        weights[f"depth{index}"] = (
            np.random.default_rng(index).standard_normal(weights[f"depth{index}"].shape) / 2
        )
    return weights


def _depthwise_cnn(x: Tape, w: Mapping[str, Tape]) -> Tape:
    y = _conv(x.reshape(len(x.value), 8, 8, 1), w, "stem").relu()
    for index in range(len(_DEPTHWISE)):
        y = _depthwise(y, w, f"depth{index}").relu()
        y = (y @ w[f"point{index}"] + w[f"point{index}_bias"]).relu()
    return y.mean(1, 2) @ w["vote"] + w["vote_bias"]


def _depthwise_model(w: Weights) -> ir.Model:
    image = _image()
    y = op.relu(_conv_layer(image, w, "stem"))
    for index in range(len(_DEPTHWISE)):
        y = op.relu(_depthwise_layer(y, w, f"depth{index}"))
        y = op.relu(_conv_layer(y, w, f"point{index}"))
    mean = op.reduce_mean(y, op.constant(np.int64([2, 3])), False, name="average")
    return _named(_dense(mean, w, "vote"), image, "depthwise")


# Two blocks of attention over the rows of a picture.
_WIDTH, _BLOCKS = 24, 2


def _transformer_weights() -> Weights:
    shapes: dict[str, tuple[int, ...]] = {
        "embed": (8, _WIDTH),
        "embed_bias": (_WIDTH,),
        "vote": (_WIDTH, 10),
        "vote_bias": (10,),
    }
    for block in range(_BLOCKS):
        for name in ("query", "key", "value", "mix"):
            shapes |= {f"{name}{block}": (_WIDTH, _WIDTH), f"{name}{block}_bias": (_WIDTH,)}
        shapes |= {f"wide{block}": (_WIDTH, 2 * _WIDTH), f"wide{block}_bias": (2 * _WIDTH,)}
        shapes |= {f"narrow{block}": (2 * _WIDTH, _WIDTH), f"narrow{block}_bias": (_WIDTH,)}
    weights = _drawn(**shapes)
    weights["place"] = np.random.default_rng(5).standard_normal((8, _WIDTH)) * 0.3
    return weights


def _transformer(x: Tape, w: Mapping[str, Tape]) -> Tape:
    def dense(y: Tape, name: str) -> Tape:
        return y @ w[name] + w[f"{name}_bias"]

    y = dense(x.reshape(len(x.value), 8, 8), "embed") + w["place"]
    for block in range(_BLOCKS):
        n = y.normalized()
        query, key, value = (dense(n, f"{name}{block}") for name in ("query", "key", "value"))
        scores = query @ key.transpose() * Tape(np.asarray(_WIDTH**-0.5))
        y = y + dense(scores.softmax() @ value, f"mix{block}")
        y = y + dense(dense(y.normalized(), f"wide{block}").relu(), f"narrow{block}")
    return dense(y.mean(1), "vote")


def _transformer_model(w: Weights) -> ir.Model:
    def normalized(y: Any) -> Any:
        return op.mvn(y, op.constant(np.int64([-1])), True, 1e-5, "inside_sqrt")

    def dense(y: Any, name: str) -> Any:
        product = op.matmul(y, _f32(w[name].T), False, True, name=name)
        return op.add(product, _f32(w[f"{name}_bias"].reshape(1, 1, -1)), name=f"{name}/bias")

    image = _image()
    y = op.add(dense(_shaped(image, 0, 8, 8), "embed"), _f32(w["place"][None]), name="placed")
    for block in range(_BLOCKS):
        n = normalized(y)
        query, key, value = (dense(n, f"{name}{block}") for name in ("query", "key", "value"))
        scores = op.matmul(query, key, False, True, name=f"scores{block}")
        scores = op.softmax(op.multiply(scores, _f32(np.asarray(_WIDTH**-0.5))), -1)
        mixed = op.matmul(scores, value, False, False, name=f"attention{block}")
        y = op.add(y, dense(mixed, f"mix{block}"), name=f"mixed{block}")
        wide = op.relu(dense(normalized(y), f"wide{block}"))
        y = op.add(y, dense(wide, f"narrow{block}"), name=f"narrowed{block}")
    mean = op.reduce_mean(y, op.constant(np.int64([1])), False, name="average")
    return _named(_dense(mean, w, "vote"), image, "transformer")


# LSTMs over the rows of a picture; the gates are in the order of OpenVINO: f, i, c, o.
_CELLS = ((8, 24), (24, 24), (24, 16))


def _lstm_weights() -> Weights:
    shapes: dict[str, tuple[int, ...]] = {
        "hidden": (16, 16),
        "hidden_bias": (16,),
        "vote": (16, 10),
        "vote_bias": (10,),
    }
    for index, (inputs, size) in enumerate(_CELLS):
        shapes |= {f"lstm{index}": (inputs, 4 * size), f"lstm{index}_state": (size, 4 * size)}
        shapes |= {f"lstm{index}_bias": (4 * size,)}
    return {name: array * (0.7 if "lstm" in name else 1) for name, array in _drawn(**shapes).items()}


def _lstm(x: Tape, w: Mapping[str, Tape]) -> Tape:
    rows = x.reshape(len(x.value), 8, 8)
    steps = [rows[:, time] for time in range(8)]
    for index, (_, size) in enumerate(_CELLS):
        state = cell = Tape(np.zeros((len(x.value), size)))
        for time, row in enumerate(steps):
            gates = row @ w[f"lstm{index}"] + state @ w[f"lstm{index}_state"] + w[f"lstm{index}_bias"]
            forget, take, new, out = (gates[:, place * size : (place + 1) * size] for place in range(4))
            cell = forget.sigmoid() * cell + take.sigmoid() * new.tanh()
            state = out.sigmoid() * cell.tanh()
            steps[time] = state
    y = (steps[-1] @ w["hidden"] + w["hidden_bias"]).relu()
    return y @ w["vote"] + w["vote_bias"]


def _lstm_model(w: Weights) -> ir.Model:
    image = _image()
    y = _shaped(image, 0, 8, 8)
    batch = op.gather(op.shape_of(image), op.constant(np.int64([0])), op.constant(np.int64(0)))
    lengths = op.broadcast(op.constant(np.int64(8)), batch)
    for index, (_, size) in enumerate(_CELLS):
        shape = op.concat([batch, op.constant(np.int64([1, size]))], 0)
        zeros = op.broadcast(_f32(np.asarray(0.0)), shape)
        matrices = (_f32(w[f"lstm{index}{part}"].T[None]) for part in ("", "_state"))
        bias = _f32(w[f"lstm{index}_bias"][None])
        found = op.lstm_sequence(
            y, zeros, zeros, lengths, *matrices, bias, size, "forward", name=f"lstm{index}"
        )
        y = op.squeeze(found.output(0), op.constant(np.int64([1])))
    last = op.gather(y, op.constant(np.int64(-1)), op.constant(np.int64(1)))
    y = op.relu(_dense(last, w, "hidden"))
    return _named(_dense(y, w, "vote"), image, "lstm")


NETWORKS: dict[str, tuple[Callable[[], Weights], Net, Callable[[Weights], ir.Model], int]] = {
    "mlp": (_mlp_weights, _mlp, _mlp_model, 600),
    "cnn": (_cnn_weights, _cnn, _cnn_model, 400),
    "depthwise": (_depthwise_weights, _depthwise_cnn, _depthwise_model, 500),
    "transformer": (_transformer_weights, _transformer, _transformer_model, 500),
    "lstm": (_lstm_weights, _lstm, _lstm_model, 500),
}
"""The first weights, the function that is trained, the function that makes a model of the weights, and the steps."""


def trained(name: str, steps: int | None = None) -> ir.Model:
    """Train a network.

    Args:
        name: its name in `NETWORKS`.
        steps: the number of batches.
    """
    draw, net, build, most = NETWORKS[name]
    return build(_train(net, draw(), most if steps is None else steps))
