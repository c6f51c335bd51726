"""Building blocks of these networks, and their registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset15 as op

from ir_runtime.ir.tensor import Array

__all__ = [
    "KINDS",
    "Built",
    "Weights",
    "conv",
    "dense",
    "index_input",
    "inputs_of",
    "kind",
    "layer_norm",
    "register",
]

KINDS: dict[str, Callable[..., ov.Model]] = {}
"""What builds the network of each kind, for a batch of 1 unless told another."""

Built = tuple[Any, Sequence[Any]]
"""The result, or a list of them, and the parameters."""


class Weights:
    """Reproducible random constants."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def __call__(self, *shape: int, gain: float = 1.0) -> Any:
        return op.constant(self.array(*shape, gain=gain))

    def array(self, *shape: int, gain: float = 1.0) -> Array:
        """Draw weights [outputs, inputs...] that preserve the magnitude of activations."""
        fan_in = max(int(np.prod(shape[1:])), 1)
        scale = np.float32(gain / np.sqrt(fan_in))
        return self._random.standard_normal(shape).astype(np.float32) * scale


def kind(build: Callable[[Weights, int], Built]) -> Callable[[Weights, int], Built]:
    """Register a function of the weights and the batch size."""
    register(build.__name__, build)
    return build


def register(name: str, build: Callable[[Weights, int], Built]) -> None:
    """Register a builder under a name."""

    def model(batch: int = 1) -> ov.Model:
        results, parameters = build(Weights(), batch)
        for parameter in parameters:
            parameter.output(0).set_names({parameter.friendly_name})
        listed = results if isinstance(results, list) else [results]
        return ov.Model([op.result(each) for each in listed], list(parameters), name)

    KINDS[name] = model


def inputs_of(model: ov.Model) -> dict[str, Array]:
    """Return random values for f32 inputs, and indices below the ``rows`` in an input's name."""
    random, arrays = np.random.default_rng(0), {}
    for port in model.inputs:
        shape, dtype = tuple(port.shape), port.element_type.to_dtype()
        if dtype.kind == "f":
            arrays[port.any_name] = random.standard_normal(shape).astype(dtype)
        else:
            rows = int(port.any_name.rpartition("below_")[2])
            arrays[port.any_name] = np.asarray(random.integers(0, rows, shape), dtype)
    return arrays


def index_input(name: str, rows: int, *shape: int) -> Any:
    """Return an i64 input of indices; its name contains their upper bound."""
    return op.parameter(list(shape), np.int64, name=f"{name}_below_{rows}")


def dense(w: Weights, x: Any, inputs: int, outputs: int, activation: Callable[[Any], Any] | None) -> Any:
    """Return a dense layer with a bias over the last of two axes."""
    y = op.add(op.matmul(x, w(outputs, inputs), False, True), w(1, outputs))
    return y if activation is None else activation(y)


def conv(
    w: Weights,
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
    """Return a convolution with a bias over any number of spatial axes."""
    axes = len(kernel)
    before, after = [pads] * axes, [0 if causal else pads] * axes
    filters = w(outputs, inputs, *kernel)
    y = op.convolution(x, filters, [stride] * axes, before, after, [dilation] * axes)
    y = op.add(y, w(1, outputs, *[1] * axes))
    return y if activation is None else activation(y)


def layer_norm(w: Weights, x: Any, width: int) -> Any:
    """Return a normalization over the last of three axes, with scale and shift."""
    y = op.mvn(x, op.constant([-1]), True, 1e-5, "INSIDE_SQRT")
    return op.add(op.multiply(y, w(1, 1, width)), w(1, 1, width))
