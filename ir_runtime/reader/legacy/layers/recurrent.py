"""Recurrent cells, and loops."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from ....ops import registry
from ..declaration import LegacyLayer, attr, layer
from ..site import Site, Tensor

_Function = Literal["relu", "sigmoid", "tanh"]


class Cell(LegacyLayer):
    """A cell whose ``<weights>`` hold those of the data and of the state side by side."""

    blobs = ("weights", "biases")
    operation: ClassVar[str]
    gates: ClassVar[int]
    hidden_size: int = attr(gt=0)
    activations: tuple[_Function, ...] = attr(())
    activations_alpha: tuple[float, ...] = attr(())
    activations_beta: tuple[float, ...] = attr(())
    clip: float = attr(0.0, ge=0)

    def settings(self) -> dict[str, Any]:
        """Return the attributes of the operation: activations that are not given have their defaults there."""
        found = {"hidden_size": self.hidden_size, "clip": self.clip}
        lists = ("activations", "activations_alpha", "activations_beta")
        return found | {name: value for name in lists if (value := vars(self)[name])}

    def biases(self) -> int:
        """Return the number of biases."""
        return self.gates * self.hidden_size

    def build(self, site: Site) -> tuple[Tensor, ...]:
        dims = site.ranked(2, 2)
        rows, columns = self.gates * self.hidden_size, dims[1] + self.hidden_size
        weights = site.blob("weights", (rows, columns))
        lengths = site.constant([dims[1], self.hidden_size])
        parts = site.ops("VariadicSplit-1", (weights, site.constant(1), lengths), 2)
        biases = site.blob("biases", (self.biases(),))
        outputs = len(site.inputs) - 1
        return site.ops(self.operation, (*site.inputs, *parts, biases), outputs, **self.settings())


@layer("LSTMCell")
class LSTMCell(Cell):
    """VariadicSplit of the weights, LSTMCell with the gates f, i, c, o."""

    operation, gates, inputs = "LSTMCell-4", 4, (3, 3)


@layer("GRUCell")
class GRUCell(Cell):
    """VariadicSplit of the weights, GRUCell."""

    operation, gates, inputs = "GRUCell-3", 3, (2, 2)
    linear_before_reset: bool = attr(False)

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"linear_before_reset": self.linear_before_reset}

    def biases(self) -> int:
        return super().biases() + (self.hidden_size if self.linear_before_reset else 0)


@layer("RNNCell")
class RNNCell(Cell):
    """VariadicSplit of the weights, RNNCell."""

    operation, gates, inputs = "RNNCell-1", 1, (2, 2)


@layer("TensorIterator")
class TensorIterator(LegacyLayer):
    """TensorIterator; Parameters and Results where the port map names inputs and outputs of layers of the body."""

    inputs = (1, None)

    def build(self, site: Site) -> tuple[Tensor, ...]:
        body = site.net.read_body(site.layer)
        op = registry.require("TensorIterator")(body=body)
        return site.add(op, site.inputs, len(site.layer.outputs))
