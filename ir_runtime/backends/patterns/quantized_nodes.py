"""The nodes of a quantized subgraph: what they compute, and the quantizer of the levels of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ...ir.graph import Layer, Port
from ...ir.tensor import Array
from ...ops.convolution.forward import ForwardConvolution
from ...ops.pooling.windowed import MaxPool1, MaxPool8, MaxPool14
from ..common.fake_quantize import QuantizeParameter

__all__ = ["MaxPool", "Node", "Pooled", "Product", "Quantizer", "Source", "Subgraph"]

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
    def low(self) -> float:
        """The value of the lowest level."""
        return float(self.parameters[QuantizeParameter.LOW])

    @property
    def step(self) -> float:
        """The difference between two neighbouring levels of the data."""
        _, _, _, width, steps, *_ = map(float, self.parameters)
        return width / steps

    def level_of(self, bound: float) -> int:
        """Return the level of a number, which may be infinite."""
        bottom, top, low, width, steps, *_ = self.parameters
        return int(np.rint((np.float32(bound).clip(bottom, top) - low) / width * steps))


@dataclass(eq=False)
class Source:
    """Numbers from outside the subgraph, and how they are quantized."""

    port: Port
    shape: tuple[int, ...]
    quantizer: Quantizer
    layers: list[Layer] = field(default_factory=list)


@dataclass(eq=False)
class Product:
    """A convolution of levels, its scale, bias and bounds, a residual, and the quantizer of the result.

    Twelve fields, one for each layer that one kernel computes, and where its data come from.

    Args:
        op: the operation.
        data: its data.
        filters: the port of its constant filters.
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
    data: Node
    filters: Port
    factor: Array
    shift: Array
    bounds: tuple[float, float]
    first: Quantizer
    shape: tuple[int, ...]
    other: Node | None = None
    sum_bounds: tuple[float, float] = (-np.inf, np.inf)
    last: Quantizer | None = None
    layers: list[Layer] = field(default_factory=list)

    @property
    def quantizer(self) -> Quantizer:
        """The quantizer of the levels of the result."""
        return self.last or self.first


@dataclass(eq=False)
class Pooled:
    """The largest levels under windows."""

    op: MaxPool
    data: Node
    shape: tuple[int, ...]
    layers: list[Layer] = field(default_factory=list)

    @property
    def quantizer(self) -> Quantizer:
        """The quantizer of the levels of the result."""
        return self.data.quantizer


Node: TypeAlias = Source | Product | Pooled


@dataclass(frozen=True)
class Subgraph:
    """A quantized subgraph: what computes its result, its nodes and layers, each behind those that it reads."""

    result: Node
    nodes: tuple[Node, ...]
    layers: tuple[Layer, ...]
