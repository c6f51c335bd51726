"""Legacy recurrent cells, sequences, and loops."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from .....codes import Code
from .....ops import registry
from ..declaration import LegacyLayer, attr, layer
from ..site import Site, Tensor

_Function = Literal["relu", "sigmoid", "tanh"]


class Cell(LegacyLayer):
    """A recurrent cell, whose ``<weights>`` hold the weights of the data and of the state side by side."""

    blobs = ("weights", "biases")
    operation: ClassVar[str]
    gates: ClassVar[int]
    hidden_size: int = attr(gt=0)
    activations: tuple[_Function, ...] = attr(())
    activations_alpha: tuple[float, ...] = attr(())
    activations_beta: tuple[float, ...] = attr(())
    clip: float = attr(0.0, ge=0)

    def settings(self) -> dict[str, Any]:
        """Return the attributes of the operation; absent activations are omitted, as the operation has defaults."""
        settings = {"hidden_size": self.hidden_size, "clip": self.clip}
        lists = ("activations", "activations_alpha", "activations_beta")
        return settings | {name: value for name in lists if (value := vars(self)[name])}

    def biases(self) -> int:
        """Return the number of biases."""
        return self.gates * self.hidden_size

    def numbers(self, site: Site, width: int) -> tuple[Tensor, ...]:
        """Return the weights of the data, which has ``width`` features, the recurrent weights, and the biases."""
        rows, columns = self.gates * self.hidden_size, width + self.hidden_size
        weights = site.blob("weights", (rows, columns))
        lengths = site.constant([width, self.hidden_size])
        parts = site.ops("VariadicSplit-1", (weights, site.constant(1), lengths), 2)
        return (*parts, site.blob("biases", (self.biases(),)))

    def build(self, site: Site) -> tuple[Tensor, ...]:
        numbers = self.numbers(site, site.ranked(2, 2)[1])
        outputs = len(site.inputs) - 1
        return site.ops(self.operation, (*site.inputs, *numbers), outputs, **self.settings())


@layer("LSTMCell")
class LSTMCell(Cell):
    """Upgraded to VariadicSplit of the weights, and LSTMCell with the gates f, i, c, o."""

    operation, gates, inputs = "LSTMCell-4", 4, (3, 3)


class GRU(Cell):
    """A GRU, as a cell or over a sequence; with ``linear_before_reset``, it has additional biases."""

    gates, inputs = 3, (2, 2)
    linear_before_reset: bool = attr(False)

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"linear_before_reset": self.linear_before_reset}

    def biases(self) -> int:
        return super().biases() + (self.hidden_size if self.linear_before_reset else 0)


@layer("GRUCell")
class GRUCell(GRU):
    """Upgraded to VariadicSplit of the weights, and GRUCell."""

    operation = "GRUCell-3"


@layer("RNNCell")
class RNNCell(Cell):
    """Upgraded to VariadicSplit of the weights, and RNNCell."""

    operation, gates, inputs = "RNNCell-1", 1, (2, 2)


class Sequence(Cell):
    """A cell that runs over a sequence, along axis 1 of ``data[batch, time, features]``, or with the first two axes swapped."""

    axis: int = attr(1, ge=0, le=1)
    direction: Literal["Forward", "Backward", "Bidirectional"] = attr(doc="the direction of time")

    def build(self, site: Site) -> tuple[Tensor, ...]:
        if self.direction == "Bidirectional":
            site.refuse(
                "the meaning of 'direction' Bidirectional is uncertain: runtimes of that time refused the states",
                Code.BAD_ATTRIBUTE,
            )
        numbers = self.numbers(site, site.ranked(3, 3)[2])
        data, *states = site.inputs
        if self.axis == 0:
            data = self._swap_batch(site, data)
        lengths = site.op("Broadcast-1", site.scalar(site.lengths(data, (1,))), site.lengths(data, (0,)))
        direction = {"Forward": "forward", "Backward": "reverse"}[self.direction]
        y, *last = site.ops(
            self.operation,
            (
                data,
                *(site.op("Unsqueeze-1", state, site.constant([1])) for state in states),
                lengths,
                *(site.op("Unsqueeze-1", tensor, site.constant([0])) for tensor in numbers),
            ),
            len(site.inputs),
            direction=direction,
            **self.settings(),
        )
        y, *last = (site.op("Squeeze-1", tensor, site.constant([1])) for tensor in (y, *last))
        return (self._swap_batch(site, y) if self.axis == 0 else y, *last)

    def _swap_batch(self, site: Site, tensor: Tensor) -> Tensor:
        return site.op("Transpose-1", tensor, site.constant([1, 0, 2]))


@layer("LSTMSequence")
class LSTMSequence(Sequence):
    """Upgraded to VariadicSplit of the weights, Unsqueeze, LSTMSequence with the gates f, i, c, o, and Squeeze."""

    operation, gates, inputs = "LSTMSequence-5", 4, (3, 3)


@layer("GRUSequence")
class GRUSequence(GRU, Sequence):
    """Upgraded to VariadicSplit of the weights, Unsqueeze, GRUSequence, and Squeeze."""

    operation = "GRUSequence-5"


@layer("RNNSequence")
class RNNSequence(Sequence):
    """Upgraded to VariadicSplit of the weights, Unsqueeze, RNNSequence, and Squeeze."""

    operation, gates, inputs = "RNNSequence-5", 1, (2, 2)


@layer("TensorIterator")
class TensorIterator(LegacyLayer):
    """Upgraded to TensorIterator, with a Parameter or Result for each body port in the port map."""

    inputs = (1, None)

    def build(self, site: Site) -> tuple[Tensor, ...]:
        body = site.net.read_body(site.layer)
        op = registry.require("TensorIterator")(body=body)
        return site.add(op, site.inputs, len(site.layer.outputs))
