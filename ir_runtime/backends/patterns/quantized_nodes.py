"""The nodes of a quantized subgraph, and the quantizers of their levels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from ...ir.graph import Layer, Port
from ...ir.tensor import Array
from ...ops.convolution.forward import ForwardConvolution
from ...ops.pooling.windowed import MaxPool1, MaxPool8, MaxPool14
from ..common.fake_quantize import QuantizeParameter

__all__ = ["MaxPool", "Node", "Pooled", "Product", "Quantizer", "Source", "Subgraph", "Weights"]

Weights = TypeVar("Weights")
"""The constant filters of a convolution, as a backend multiplies them."""

MaxPool: TypeAlias = MaxPool1 | MaxPool8 | MaxPool14


@dataclass(frozen=True)
class Quantizer:
    """A FakeQuantize with one number for each limit: ``value = scale * (level - zero)``.

    Args:
        parameters: each `QuantizeParameter`.
        scale: what a level of the result is worth.
        zero: the level that stands for zero.
    """

    parameters: Array
    scale: float
    zero: int

    @property
    def steps(self) -> int:
        """The highest level."""
        return int(self.parameters[QuantizeParameter.STEPS])

    @property
    def low(self) -> float:
        """The value of the lowest level."""
        return float(self.parameters[QuantizeParameter.LOW])

    @property
    def step(self) -> float:
        """The difference between two neighbouring levels of the data."""
        return float(self.parameters[QuantizeParameter.WIDTH]) / self.steps

    def levels(self, x: Array) -> Array:
        """Return the levels of f32 numbers, as integers in f32."""
        bottom, top, low, width, steps, *_ = self.parameters
        found = x.clip(bottom, top)
        found -= low
        found /= width
        found *= steps
        np.rint(found, out=found)
        return found

    def level_of(self, bound: float) -> int:
        """Return the level of a number, which may be infinite."""
        return int(self.levels(np.array([bound], np.float32))[0])


@dataclass(eq=False)
class Source:
    """Values from outside the subgraph, and their quantizer."""

    port: Port
    shape: tuple[int, ...]
    quantizer: Quantizer
    layers: list[Layer] = field(default_factory=list)

    @property
    def reads(self) -> tuple[()]:
        """The nodes that it reads: none."""
        return ()


@dataclass(eq=False)
class Product(Generic[Weights]):
    """A convolution of levels, its scale, bias and bounds, a residual, and the quantizer of the result.

    Args:
        op: the operation.
        data: its data.
        weights: its constant filters.
        factor: multiplies each channel.
        shift: is added to each channel, after that.
        bounds: of the result, before it is quantized.
        first: quantizes it.
        shape: of the result.
        other: levels that are added to the result, if there are any.
        sum_bounds: bounds of the sum.
        last: quantizes the sum.
        layers: those that it computes, in order.
    """

    op: ForwardConvolution
    data: Node[Weights]
    weights: Weights
    factor: Array
    shift: Array
    bounds: tuple[float, float]
    first: Quantizer
    shape: tuple[int, ...]
    other: Node[Weights] | None = None
    sum_bounds: tuple[float, float] = (-np.inf, np.inf)
    last: Quantizer | None = None
    layers: list[Layer] = field(default_factory=list)

    @property
    def quantizer(self) -> Quantizer:
        """The quantizer of the levels of the result."""
        return self.last or self.first

    @property
    def reads(self) -> tuple[Node[Weights], ...]:
        """The nodes that it reads, its data first."""
        return (self.data,) if self.other is None else (self.data, self.other)


@dataclass(eq=False)
class Pooled(Generic[Weights]):
    """The largest levels under windows."""

    op: MaxPool
    data: Node[Weights]
    shape: tuple[int, ...]
    layers: list[Layer] = field(default_factory=list)

    @property
    def quantizer(self) -> Quantizer:
        """The quantizer of the levels of the result."""
        return self.data.quantizer

    @property
    def reads(self) -> tuple[Node[Weights], ...]:
        """The node that it reads."""
        return (self.data,)


Node: TypeAlias = Source | Product[Weights] | Pooled[Weights]


@dataclass(frozen=True)
class Subgraph(Generic[Weights]):
    """A quantized subgraph: its result, nodes and layers in topological order."""

    result: Node[Weights]
    nodes: tuple[Node[Weights], ...]
    layers: tuple[Layer, ...]
