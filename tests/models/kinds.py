"""Small networks of the kinds that people bring beside classifiers and transformers, with random weights.

Each is as wide and deep as it takes to show what such a network spends its time on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset15 as op

from ir_runtime.ir.tensor import Array

__all__ = ["KINDS", "inputs_of"]

KINDS: dict[str, Callable[[], ov.Model]] = {}
"""What builds the network of each kind."""


class _Weights:
    """Random constants, the same in every process."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def __call__(self, *shape: int, gain: float = 1.0) -> Any:
        fan_in = max(int(np.prod(shape[1:])), 1)
        scale = np.float32(gain / np.sqrt(fan_in))
        return op.constant(self._random.standard_normal(shape).astype(np.float32) * scale)

    def indices(self, count: int, below: int) -> Array:
        return self._random.integers(0, below, count)


def kind(build: Callable[[_Weights], tuple[Any, Sequence[Any]]]) -> Callable[..., Any]:
    """Register a function that returns the result and the parameters."""

    def model() -> ov.Model:
        result, parameters = build(_Weights())
        return ov.Model([op.result(result)], list(parameters), build.__name__)

    KINDS[build.__name__] = model
    return build


def inputs_of(model: ov.Model) -> list[Array]:
    """Return random numbers for f32 inputs, and indices below the ``rows`` that an input is named after."""
    random, arrays = np.random.default_rng(0), []
    for port in model.inputs:
        shape, dtype = tuple(port.shape), port.element_type.to_dtype()
        if dtype.kind == "f":
            arrays.append(random.standard_normal(shape).astype(dtype))
        else:
            rows = int(port.any_name.rpartition("below_")[2])
            arrays.append(np.asarray(random.integers(0, rows, shape), dtype))
    return arrays


def _index_input(name: str, rows: int, *shape: int) -> Any:
    parameter = op.parameter(list(shape), np.int64, f"{name}_below_{rows}")
    parameter.output(0).set_names({f"{name}_below_{rows}"})
    return parameter


def _dense(w: _Weights, x: Any, inputs: int, outputs: int, activation: Callable[[Any], Any] | None) -> Any:
    y = op.add(op.matmul(x, w(outputs, inputs), False, True), w(1, outputs))
    return y if activation is None else activation(y)


def _conv(
    w: _Weights,
    x: Any,
    inputs: int,
    outputs: int,
    kernel: Sequence[int],
    *,
    stride: int = 1,
    pads: int = 0,
    causal: bool = False,
    dilation: int = 1,
    activation: Callable[[Any], Any] | None = op.relu,
) -> Any:
    axes = len(kernel)
    before, after = [pads] * axes, [0 if causal else pads] * axes
    filters = w(outputs, inputs, *kernel)
    y = op.convolution(x, filters, [stride] * axes, before, after, [dilation] * axes)
    y = op.add(y, w(1, outputs, *[1] * axes))
    return y if activation is None else activation(y)


@kind
def embedding_bags(w: _Weights) -> tuple[Any, Sequence[Any]]:
    """A recommender: the sums of bags of eight tables, and dense features, through a perceptron."""
    bags, parameters, features = 16, [], []
    for table in range(8):
        indices = _index_input(f"table_{table}", 1000, bags * 6)
        offsets = op.constant(np.arange(bags, dtype=np.int64) * 6)
        parameters.append(indices)
        features.append(op.embedding_bag_offsets_sum(w(1000, 32, gain=5), indices, offsets))
    dense = op.parameter([bags, 13], np.float32, "dense")
    features.append(_dense(w, dense, 13, 32, op.relu))
    x = _dense(w, op.concat(features, 1), 9 * 32, 128, op.relu)
    return op.sigmoid(_dense(w, _dense(w, x, 128, 64, op.relu), 64, 1, None)), [*parameters, dense]


@kind
def graph_network(w: _Weights) -> tuple[Any, Sequence[Any]]:
    """Message passing as exported from PyTorch Geometric: gathered rows are added up by ScatterElementsUpdate."""
    nodes, edges, width = 64, 256, 32
    x = op.parameter([nodes, width], np.float32, "x")
    source, target = (_index_input(name, nodes, edges) for name in ("source", "target"))
    y = x
    for _ in range(3):
        messages = _dense(w, op.gather(y, source, op.constant(0)), width, width, op.relu)
        column = op.unsqueeze(target, op.constant([1]))
        places = op.broadcast(column, op.constant([edges, width]), broadcast_spec="BIDIRECTIONAL")
        zeros = op.broadcast(op.constant(np.float32(0)), op.constant([nodes, width]))
        summed = op.scatter_elements_update(zeros, places, messages, op.constant(0), "sum")
        joined = op.concat([y, summed], 1)
        y = _dense(w, joined, 2 * width, width, op.relu)
    return op.reduce_mean(y, op.constant([0])), [x, source, target]


def _reflected(x: Any, pads: int) -> Any:
    both = op.constant([0, 0, pads, pads])
    return op.pad(x, both, both, "reflect")


def _instance_norm(w: _Weights, x: Any, channels: int) -> Any:
    y = op.mvn(x, op.constant([2, 3]), True, 1e-5, "INSIDE_SQRT")
    return op.add(op.multiply(y, w(1, channels, 1, 1)), w(1, channels, 1, 1))


@kind
def style_transfer(w: _Weights) -> tuple[Any, Sequence[Any]]:
    """Reflection pads, convolutions and instance normalization; nearest upsampling; 9x9 to three channels."""
    image = op.parameter([1, 3, 128, 128], np.float32, "image")

    def block(x: Any, inputs: int, outputs: int, kernel: int, stride: int = 1, last: bool = True) -> Any:
        y = _conv(
            w, _reflected(x, kernel // 2), inputs, outputs, [kernel] * 2, stride=stride, activation=None
        )
        y = _instance_norm(w, y, outputs)
        return op.relu(y) if last else y

    x = block(block(block(image, 3, 32, 9), 32, 64, 3, 2), 64, 128, 3, 2)
    for _ in range(2):
        x = op.add(x, block(block(x, 128, 128, 3), 128, 128, 3, last=False))
    for inputs, outputs in ((128, 64), (64, 32)):
        x = op.interpolate(
            x, op.constant(np.array([2, 2], np.float32)), "nearest", "scales", axes=op.constant([2, 3]),
            coordinate_transformation_mode="asymmetric", nearest_mode="floor",
        )  # fmt: skip
        x = block(x, inputs, outputs, 3)
    return _conv(w, _reflected(x, 4), 32, 3, [9, 9], activation=None), [image]


@kind
def atrous_pyramid(w: _Weights) -> tuple[Any, Sequence[Any]]:
    """The head of DeepLab: convolutions with dilations that reach far beyond a small map, and global pooling."""
    x = op.parameter([1, 160, 28, 28], np.float32, "features")
    parts = [_conv(w, x, 160, 128, [1, 1])]
    parts += [_conv(w, x, 160, 128, [3, 3], pads=rate, dilation=rate) for rate in (12, 24, 36)]
    pooled = _conv(w, op.reduce_mean(x, op.constant([2, 3]), True), 160, 128, [1, 1])
    parts.append(op.broadcast(pooled, op.constant([1, 128, 28, 28]), broadcast_spec="BIDIRECTIONAL"))
    y = _conv(w, op.concat(parts, 1), 5 * 128, 128, [1, 1])
    y = _conv(w, y, 128, 21, [1, 1], activation=None)
    y = op.interpolate(
        y, op.constant(np.array([112, 112])), "linear", "sizes", axes=op.constant([2, 3]),
        coordinate_transformation_mode="half_pixel",
    )  # fmt: skip
    return y, [x]


@kind
def unet_3d(w: _Weights) -> tuple[Any, Sequence[Any]]:
    """Volumes, with few channels where they are large."""
    volume = op.parameter([1, 1, 32, 32, 32], np.float32, "volume")

    def twice(x: Any, inputs: int, outputs: int) -> Any:
        y = _conv(w, x, inputs, outputs, [3] * 3, pads=1)
        return _conv(w, y, outputs, outputs, [3] * 3, pads=1)

    def halved(x: Any) -> Any:
        return op.max_pool(x, [2] * 3, [1] * 3, [0] * 3, [0] * 3, [2] * 3).output(0)

    first = twice(volume, 1, 16)
    second = twice(halved(first), 16, 32)
    third = twice(halved(second), 32, 64)
    up = op.convolution_backprop_data(third, w(64, 32, 2, 2, 2), [2] * 3, None, [0] * 3, [0] * 3, [1] * 3)
    second = twice(op.concat([second, up], 1), 64, 32)
    up = op.convolution_backprop_data(second, w(32, 16, 2, 2, 2), [2] * 3, None, [0] * 3, [0] * 3, [1] * 3)
    first = twice(op.concat([first, up], 1), 32, 16)
    return _conv(w, first, 16, 3, [1] * 3, activation=None), [volume]


@kind
def wavenet(w: _Weights) -> tuple[Any, Sequence[Any]]:
    """Dilated causal convolutions, each gated by halves of its result."""
    width, length = 64, 2048
    audio = op.parameter([1, 1, length], np.float32, "audio")
    x, skipped = _conv(w, audio, 1, width, [1], activation=None), None
    for layer in range(8):
        dilation = 2**layer
        y = _conv(w, x, width, 2 * width, [2], pads=dilation, causal=True, dilation=dilation, activation=None)
        halves = op.split(y, op.constant(1), 2)
        y = op.multiply(op.tanh(halves.output(0)), op.sigmoid(halves.output(1)))
        skip = _conv(w, y, width, width, [1], activation=None)
        x = op.add(x, _conv(w, y, width, width, [1], activation=None))
        skipped = skip if skipped is None else op.add(skipped, skip)
    y = _conv(w, op.relu(skipped), width, width, [1])
    return _conv(w, y, width, 256, [1], activation=None), [audio]


@kind
def espcn(w: _Weights) -> tuple[Any, Sequence[Any]]:
    """Super-resolution: channels become pixels."""
    image = op.parameter([1, 1, 160, 160], np.float32, "image")
    x = _conv(w, image, 1, 64, [5, 5], pads=2, activation=op.tanh)
    x = _conv(w, x, 64, 32, [3, 3], pads=1, activation=op.tanh)
    return op.depth_to_space(_conv(w, x, 32, 9, [3, 3], pads=1, activation=None), "depth_first", 3), [image]


@kind
def tabular(w: _Weights) -> tuple[Any, Sequence[Any]]:
    """A perceptron of three layers: mostly the fixed cost of a call."""
    x = op.parameter([1, 32], np.float32, "row")
    y = _dense(w, _dense(w, x, 32, 64, op.relu), 64, 64, op.relu)
    return op.softmax(_dense(w, y, 64, 4, None), 1), [x]
