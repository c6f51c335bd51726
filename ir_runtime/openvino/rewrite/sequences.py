"""Replace recurrent sequences by loops over their cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..build.control import TensorIterator
from ..build.ends import Constant, Parameter, Result
from ..model import Model
from ..node import Node, Output
from .passes import ModelPass

__all__ = ["ConvertSequenceToTensorIterator"]

# The cell of each sequence, the opset of its version, and the number of its states.
_CELLS = {
    "LSTMSequence": ("LSTMCell", 4, 2),
    "GRUSequence": ("GRUCell", 3, 1),
    "RNNSequence": ("RNNCell", 1, 1),
}
_BATCH, _TIME = 0, 1


class ConvertSequenceToTensorIterator(ModelPass):
    """Replaces unidirectional LSTMSequence, GRUSequence and RNNSequence by a TensorIterator over the cell."""

    def run_on_model(self, model: Model) -> bool:
        """Replace the sequences."""
        sequences = [node for node in model.get_ordered_ops() if _can_convert(node)]
        for node in sequences:
            _Conversion(node).replace()
        return bool(sequences)


def _can_convert(node: Node) -> bool:
    op = node.layer.op
    if op is None or node.type not in _CELLS or op.since < 5:
        return False
    has_time = node.input_value(0)._type.shape.rank == 3
    return has_time and node.get_attributes()["direction"] != "bidirectional"


class _Conversion:
    """A sequence, its replacement loop, and the parts of the loop's body."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.cell, self.opset, states = _CELLS[node.type]
        values = node.input_values()
        self.data, self.lengths = values[0], values[1 + states]
        self.first = [_squeeze(value, 1) for value in values[1 : 1 + states]]
        self.weights = [_squeeze(value, 0) for value in values[2 + states :]]
        self.attributes = node.get_attributes()
        self.is_reverse = self.attributes.pop("direction") == "reverse"
        self.is_masked = not _is_whole(self.data, self.lengths)
        self.states = [Parameter(state.element_type, state.partial_shape) for state in self.first]
        self.invariant: list[tuple[Parameter, Output]] = []

    def replace(self) -> None:
        """Build the loop, and connect the sequence's consumers to it."""
        name, flips = self.node.friendly_name, self.is_reverse and self.is_masked
        data = _reverse(self.data, self.lengths) if flips else self.data
        loop, (every, *last) = self._loop(data)
        loop.set_friendly_name(f"{name}/tensor_iterator" if flips else name)
        values = [_reverse(every, self.lengths) if flips else every, *last]
        for number, (former, value) in enumerate(zip(self.node.outputs(), values, strict=True)):
            unsqueezed = Node.create("Unsqueeze", 1, [value, np.array([1], np.int64)])
            unsqueezed.set_friendly_name(f"{name}.{number}")
            former.replace(unsqueezed.output(0))

    def _loop(self, data: Output) -> tuple[TensorIterator, list[Output]]:
        """Return the loop and its outputs: all steps, and the final states."""
        shape = data.partial_shape
        shape[_TIME] = 1
        step = Parameter(data.element_type, shape)
        inputs = [_squeeze(step.output(0), _TIME), *self.states, *map(self._inside, self.weights)]
        states = Node.create(self.cell, self.opset, inputs, self.attributes).outputs()
        given, first = states[0], self.first
        if self.is_masked:
            given, states, first = self._mask_ended(states)
        results = [Result.with_names(state) for state in states]
        every = Result.with_names(Node.create("Unsqueeze", 1, [given, np.array([_TIME], np.int64)]))
        parameters = [step, *self.states, *(parameter for parameter, _ in self.invariant)]
        loop = TensorIterator()
        loop.set_body(Model([every, *results], parameters, "body"))
        start, stride, end = (-1, -1, 0) if self.is_reverse and not self.is_masked else (0, 1, -1)
        loop.set_sliced_input(step, data, start, stride, 1, end, _TIME)
        for parameter, value, result in zip(self.states, first, results, strict=True):
            loop.set_merged_input(parameter, value, result.output(0))
        for parameter, value in self.invariant:
            loop.set_invariant_input(parameter, value)
        outputs = [loop.get_concatenated_slices(every.output(0), start, stride, 1, end, _TIME)]
        outputs += [loop.get_iter_value(result.output(0)) for result in results[: len(self.first)]]
        return loop, outputs

    def _inside(self, value: Output) -> Node:
        """Return a tensor for use in the body: constants are copied, others are fed to each iteration."""
        if isinstance(value.node, Constant):
            return value.node
        parameter = Parameter(value.element_type, value.partial_shape)
        self.invariant.append((parameter, value))
        return parameter

    def _mask_ended(self, states: Sequence[Output]) -> tuple[Output, list[Output], list[Output]]:
        """Keep the states of ended sequences, whose outputs are zero; count the steps in another state."""
        lengths = self._inside(self.lengths)
        one = Constant(self.lengths.element_type, [1], [1])
        count = Parameter(one.element_type, [1])
        runs = Node.create(
            "Unsqueeze", 1, [Node.create("LessEqual", 1, [count, lengths]), np.array([1], np.int64)]
        )
        kept = [
            Node.create("Select", 1, [runs, *pair]).output(0)
            for pair in zip(states, self.states, strict=True)
        ]
        zero = Constant(states[0].element_type, [], [0])
        self.states.append(count)
        given = Node.create("Select", 1, [runs, states[0], zero]).output(0)
        return given, [*kept, Node.create("Add", 1, [count, one]).output(0)], [*self.first, one.output(0)]


def _squeeze(value: Output, axis: int) -> Output:
    """Remove an axis of length 1; fold it for a constant."""
    if isinstance(value.node, Constant):
        array = value.node.elements.squeeze(axis)
        return Constant(value.element_type, array.shape, array).output(0)
    return Node.create("Squeeze", 1, [value, np.array([axis], np.int64)]).output(0)


def _reverse(data: Output, lengths: Output) -> Output:
    axes = {"batch_axis": _BATCH, "seq_axis": _TIME}
    return Node.create("ReverseSequence", 1, [data, lengths], axes).output(0)


def _is_whole(data: Output, lengths: Output) -> bool:
    """Return whether all sequences of the batch are known to have full length."""
    time = data._type.shape[_TIME]
    values = lengths.node._value(lengths.index).known()
    return time.is_static and values is not None and bool((values == time.get_length()).all())
