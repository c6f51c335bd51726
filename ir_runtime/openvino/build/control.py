"""The node classes `If`, `Loop` and `TensorIterator`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...codes import Code
from ...errors import InputError
from ...ir.port_map import Cut
from ..model import Model
from ..node import Node, Output
from .bodies import HasBodies, cut_of
from .descriptions import (
    BodyOutputDescription,
    ConcatOutputDescription,
    InvariantInputDescription,
    MergedInputDescription,
    SliceInputDescription,
)

__all__ = ["If", "Loop", "TensorIterator"]


class If(HasBodies, Node, type="If"):
    """Runs one of two bodies. As OpenVINO's ``if_op``.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import op, opset1
    >>> def branch(function):
    ...     x = opset1.parameter([2], np.float32, name="x")
    ...     return ov.Model([opset1.result(function(x))], [x])
    >>> positive, negative = branch(opset1.relu), branch(opset1.negative)
    >>> condition, x = opset1.parameter([], bool, name="condition"), opset1.parameter([2], np.float32, name="x")
    >>> node = op.if_op(condition.output(0))
    >>> node.set_then_body(positive)
    >>> node.set_else_body(negative)
    >>> node.set_input(x.output(0), positive.parameters[0], negative.parameters[0])
    >>> y = node.set_output(positive.results[0], negative.results[0])
    >>> ov.compile_model(ov.Model([y], [condition, x]))([np.array(False), np.float32([1, 2])])[0]
    array([-1., -2.], dtype=float32)
    >>> node.get_then_body() is node.get_function(0), node.get_else_body() is negative
    (True, True)
    >>> node.get_input_descriptions(0), node.get_output_descriptions(1)
    ([InvariantInputDescription(input_index=1, body_parameter_index=0)], [BodyOutputDescription(body_value_index=0, output_index=0, iteration=-1)])
    """

    _shown_class = "if_op"
    _body_names = ("then_body", "else_body")
    _opset = 8

    def __init__(self, execution_condition: Node | Output | None = None) -> None:
        self._bodies.build("If", [] if execution_condition is None else [execution_condition])

    def set_then_body(self, body: Model) -> None:
        """Set the body that runs if the condition holds."""
        self._bodies.set("then_body", body)

    def set_else_body(self, body: Model) -> None:
        """Set the body that runs if the condition does not hold."""
        self._bodies.set("else_body", body)

    def get_then_body(self) -> Any:
        """Return the body that runs if the condition holds."""
        return self._bodies.get("then_body")

    def get_else_body(self) -> Any:
        """Return the body that runs if the condition does not hold."""
        return self._bodies.get("else_body")

    def set_input(self, value: Output, then_parameter: Node | None, else_parameter: Node | None) -> None:
        """Feed ``value`` to a Parameter of each body, given as None for a body that does not read it.

        Raises:
            InputError: if a Parameter is not in the body.
        """
        bodies = self._bodies
        index = bodies.add_input(value)
        for name, parameter in zip(self._body_names, (then_parameter, else_parameter), strict=True):
            if parameter is not None:
                place = bodies.parameter_index(name, parameter)
                bodies.branches[name].inputs.append(InvariantInputDescription(index, place))
        bodies.infer_if_complete()

    def set_output(self, then_result: Node, else_result: Node) -> Output:
        """Add an output, which is ``then_result`` if the condition holds, and ``else_result`` otherwise.

        Raises:
            InputError: if a Result is not in the body.
        """
        bodies = self._bodies
        results = zip(self._body_names, (then_result, else_result), strict=True)
        places = {name: bodies.result_index(name, result) for name, result in results}
        index = bodies.next_output
        return bodies.add_output({name: BodyOutputDescription(at, index) for name, at in places.items()})


class _RepeatsBody(HasBodies):
    """Mixin with the methods common to Loop and TensorIterator."""

    def set_sliced_input(
        self, parameter: Node, value: Output, start: int, stride: int, part_size: int, end: int, axis: int
    ) -> None:
        """Feed a Parameter of the body with one slice of a tensor in each iteration.

        Args:
            parameter: the Parameter.
            value: the tensor.
            start: the position of the first element to read, negative if counted from the end.
            stride: the distance in elements between consecutive slices; negative to start with the last slice.
            part_size: the number of elements of a slice along ``axis``.
            end: the position of the last element to read (inclusive), negative if counted from the end.
            axis: the axis to slice.

        Raises:
            InputError: if the Parameter is not in the body.
        """
        cut = {"start": start, "stride": stride, "part_size": part_size, "end": end, "axis": axis}
        bodies = self._bodies
        index = bodies.add_input(value)
        bodies.feed("body", SliceInputDescription(index, bodies.parameter_index("body", parameter), **cut))

    def set_merged_input(self, body_parameter: Node, initial_value: Output, successive_value: Output) -> None:
        """Feed ``body_parameter`` with ``initial_value`` first, then with ``successive_value`` of the previous iteration.

        Raises:
            InputError: if the Parameter or the Result is not in the body.
        """
        bodies = self._bodies
        result = bodies.result_index("body", successive_value)
        index = bodies.add_input(initial_value)
        place = bodies.parameter_index("body", body_parameter)
        bodies.feed("body", MergedInputDescription(index, place, result))

    def set_invariant_input(self, body_parameter: Node, value: Output) -> None:
        """Feed ``body_parameter`` with the same tensor in each iteration.

        Raises:
            InputError: if the Parameter is not in the body.
        """
        bodies = self._bodies
        index = bodies.add_input(value)
        bodies.feed("body", InvariantInputDescription(index, bodies.parameter_index("body", body_parameter)))

    def get_num_iterations(self) -> int:
        """Return the largest number of slices of an input, or -1 if no input is sliced along an axis of known length."""
        counts = [
            self._count_slices(entry)
            for entry in self.get_input_descriptions()
            if isinstance(entry, SliceInputDescription)
        ]
        return max(counts, default=-1)

    def _count_slices(self, entry: SliceInputDescription) -> int:
        cut, shape = cut_of(entry), self._bodies.node.input_value(entry.input_index)._type.shape
        if cut is None or shape.rank is None or shape[entry.axis].is_dynamic:
            return -1
        return cut.count(shape[entry.axis].get_length())

    def get_iter_value(self, body_value: Output, iteration: int = -1) -> Output:
        """Add an output, the value of a Result of the body after the last iteration.

        Raises:
            InputError: if ``iteration`` is not -1, or the Result is not in the body.
        """
        if iteration != -1:
            raise InputError("only the last iteration, -1, can be an output", code=Code.BAD_REQUEST)
        bodies = self._bodies
        place = bodies.result_index("body", body_value)
        return bodies.add_output({"body": BodyOutputDescription(place, bodies.next_output)})

    def get_concatenated_slices(
        self, value: Output, start: int, stride: int, part_size: int, end: int, axis: int
    ) -> Output:
        """Add an output that concatenates ``value`` over all iterations along ``axis``.

        Args:
            value: a Result of the body, or its operand.
            start: the position of the first slice in the output, negative if counted from the end.
            stride: the distance in elements between consecutive slices; negative to put the first slice last.
            part_size: the number of elements of a slice along ``axis``.
            end: the position of the last element in the output (inclusive), negative if counted from the end.
            axis: the axis along which slices are concatenated.

        Raises:
            InputError: if the Result is not in the body.
        """
        bodies, cut = self._bodies, Cut(axis, start, end, stride, part_size)
        place = bodies.result_index("body", value)
        return bodies.add_output(
            {"body": ConcatOutputDescription(place, bodies.next_output, **cut._asdict())}
        )


class Loop(_RepeatsBody, Node, type="Loop"):
    """Runs its body while a condition holds. As OpenVINO's ``loop``.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import op, opset1
    >>> x, step = opset1.parameter([1], np.float32, name="x"), opset1.parameter([1], np.float32, name="step")
    >>> total = opset1.result(opset1.add(x, step))
    >>> goes_on = opset1.result(opset1.constant(np.array(True)))
    >>> body = ov.Model([goes_on, total], [x, step])
    >>> node = op.loop(opset1.constant(np.int64(3)).output(0), opset1.constant(np.array(True)).output(0))
    >>> node.set_function(body)
    >>> node.set_special_body_ports([-1, 0])
    >>> start = opset1.parameter([1], np.float32, name="start")
    >>> node.set_merged_input(x, start.output(0), total.output(0))
    >>> node.set_invariant_input(step, opset1.constant(np.float32([2])).output(0))
    >>> last = node.get_iter_value(total.output(0))
    >>> every = node.get_concatenated_slices(total.output(0), 0, 1, 1, -1, 0)
    >>> node.get_num_iterations(), node.get_special_body_ports()
    (3, [-1, 0])
    >>> ov.compile_model(ov.Model([last, every], [start]))(np.float32([1])).to_tuple()
    (array([7.], dtype=float32), array([3., 5., 7.], dtype=float32))
    """

    _shown_class = "loop"
    _opset = 5

    def __init__(
        self, trip_count: Node | Output | None = None, execution_condition: Node | Output | None = None
    ) -> None:
        self._bodies.build("Loop", [end for end in (trip_count, execution_condition) if end is not None])

    def get_num_iterations(self) -> int:
        """Return the number of iterations, or -1 if it is not known before a run."""
        trip_count = self._sources[0]
        limit = None if trip_count is None else trip_count._node._value(trip_count._index).ints()
        return limit[0] if limit and self._is_endless() else super().get_num_iterations()

    def _is_endless(self) -> bool:
        """Return whether the body's condition is the constant true."""
        index = self._bodies.special[1]
        condition = self.get_function().results[index]._value(0).known() if index >= 0 else None
        return condition is not None and bool(condition.all())

    def set_special_body_ports(self, special_body_ports: Sequence[int]) -> None:
        """Set the indices of the iteration-number Parameter (-1 for none) and of the condition Result."""
        self._bodies.replace_special(special_body_ports)

    def get_special_body_ports(self) -> list[int]:
        """Return the indices of the iteration-number Parameter and of the condition Result, -1 for none."""
        return list(self._bodies.special) if self._bodies.branches else [-1, -1]


class TensorIterator(_RepeatsBody, Node, type="TensorIterator"):
    """Runs its body for each slice of its inputs. As OpenVINO's ``tensor_iterator``.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import op, opset1
    >>> row = opset1.parameter([1, 3], np.float32, name="row")
    >>> double = opset1.result(opset1.add(row, row))
    >>> node = op.tensor_iterator()
    >>> node.set_body(ov.Model([double], [row]))
    >>> x = opset1.parameter([2, 3], np.float32, name="x")
    >>> node.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 0)
    >>> y = node.get_concatenated_slices(double.output(0), 0, 1, 1, -1, 0)
    >>> node.get_num_iterations(), node.get_body().get_output_size(), y.shape
    (2, 1, <Shape: [2,3]>)
    >>> more = opset1.parameter([3], np.float32, name="more")
    >>> node.set_body(ov.Model([double], [row, more]))
    >>> node.set_invariant_input(more, opset1.constant(np.float32([1, 2, 3])).output(0))
    >>> len(node.get_input_descriptions())
    2
    """

    _shown_class = "tensor_iterator"

    def __init__(self) -> None:
        self._bodies.build("TensorIterator", [])

    def set_body(self, body: Model) -> None:
        """Set the body."""
        self._bodies.set("body", body)

    def get_body(self) -> Any:
        """Return the body."""
        return self._bodies.get("body")
