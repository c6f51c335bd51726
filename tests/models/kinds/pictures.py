"""Networks on images and volumes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from openvino import opset15 as op

from models.kinds.registry import Built, Weights, conv, dense, kind


def _reflected(x: Any, pads: int) -> Any:
    both = op.constant([0, 0, pads, pads])
    return op.pad(x, both, both, "reflect")


def _instance_norm(w: Weights, x: Any, channels: int) -> Any:
    y = op.mvn(x, op.constant([2, 3]), True, 1e-5, "INSIDE_SQRT")
    return op.add(op.multiply(y, w(1, channels, 1, 1)), w(1, channels, 1, 1))


@kind
def style_transfer(w: Weights, batch: int) -> Built:
    """Reflection padding, convolutions, instance normalization, nearest upsampling, and a 9x9 convolution to three channels."""
    image = op.parameter([batch, 3, 128, 128], np.float32, name="image")

    def block(x: Any, inputs: int, outputs: int, kernel: int, stride: int = 1, last: bool = True) -> Any:
        y = conv(w, _reflected(x, kernel // 2), inputs, outputs, [kernel] * 2, stride=stride, activation=None)
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
    return conv(w, _reflected(x, 4), 32, 3, [9, 9], activation=None), [image]


@kind
def atrous_pyramid(w: Weights, batch: int) -> Built:
    """The head of DeepLab: convolutions dilated far beyond a small map, and global pooling."""
    x = op.parameter([batch, 160, 28, 28], np.float32, name="features")
    parts = [conv(w, x, 160, 128, [1, 1])]
    parts += [conv(w, x, 160, 128, [3, 3], pads=rate, dilation=rate) for rate in (12, 24, 36)]
    pooled = conv(w, op.reduce_mean(x, op.constant([2, 3]), True), 160, 128, [1, 1])
    parts.append(op.broadcast(pooled, op.constant([batch, 128, 28, 28]), broadcast_spec="BIDIRECTIONAL"))
    y = conv(w, op.concat(parts, 1), 5 * 128, 128, [1, 1])
    y = conv(w, y, 128, 21, [1, 1], activation=None)
    y = op.interpolate(
        y, op.constant(np.array([112, 112])), "linear", "sizes", axes=op.constant([2, 3]),
        coordinate_transformation_mode="half_pixel",
    )  # fmt: skip
    return y, [x]


@kind
def volumes(w: Weights, batch: int) -> Built:
    """A 3-D U-Net with few channels at high resolution."""
    volume = op.parameter([batch, 1, 32, 32, 32], np.float32, name="volume")

    def twice(x: Any, inputs: int, outputs: int) -> Any:
        y = conv(w, x, inputs, outputs, [3] * 3, pads=1)
        return conv(w, y, outputs, outputs, [3] * 3, pads=1)

    def halved(x: Any) -> Any:
        return op.max_pool(x, [2] * 3, [1] * 3, [0] * 3, [0] * 3, [2] * 3).output(0)

    first = twice(volume, 1, 16)
    second = twice(halved(first), 16, 32)
    third = twice(halved(second), 32, 64)
    up = op.convolution_backprop_data(third, w(64, 32, 2, 2, 2), [2] * 3, None, [0] * 3, [0] * 3, [1] * 3)
    second = twice(op.concat([second, up], 1), 64, 32)
    up = op.convolution_backprop_data(second, w(32, 16, 2, 2, 2), [2] * 3, None, [0] * 3, [0] * 3, [1] * 3)
    first = twice(op.concat([first, up], 1), 32, 16)
    return conv(w, first, 16, 3, [1] * 3, activation=None), [volume]


@kind
def espcn(w: Weights, batch: int) -> Built:
    """Super-resolution with DepthToSpace."""
    image = op.parameter([batch, 1, 160, 160], np.float32, name="image")
    x = conv(w, image, 1, 64, [5, 5], pads=2, activation=op.tanh)
    x = conv(w, x, 64, 32, [3, 3], pads=1, activation=op.tanh)
    return op.depth_to_space(conv(w, x, 32, 9, [3, 3], pads=1, activation=None), "depth_first", 3), [image]


@kind
def autoencoder(w: Weights, batch: int) -> Built:
    """An image encoded to 64 values and decoded by transposed convolutions."""
    image = op.parameter([batch, 1, 64, 64], np.float32, name="image")
    x, sizes = image, [1, 16, 32, 64]
    for inputs, outputs in pairwise(sizes):
        x = conv(w, x, inputs, outputs, [4, 4], stride=2, pads=1)
    code = dense(w, op.reshape(x, op.constant([batch, 64 * 8 * 8]), False), 64 * 8 * 8, 64, None)
    x = op.reshape(dense(w, code, 64, 64 * 8 * 8, op.relu), op.constant([batch, 64, 8, 8]), False)
    for inputs, outputs in pairwise(reversed(sizes)):
        x = op.convolution_backprop_data(x, w(inputs, outputs, 4, 4), [2, 2], None, [1, 1], [1, 1], [1, 1])
        x = op.add(x, w(1, outputs, 1, 1))
        x = op.relu(x) if outputs > 1 else op.sigmoid(x)
    return [x, code], [image]
