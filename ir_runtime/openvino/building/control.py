"""The nodes that run bodies: If, Loop and TensorIterator. As OpenVINO's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ...codes import Code
from ...errors import InputError
from ...ir.port_map import Cut
from ..editing import Editing
from ..nodes import Node, Output
from .bodies import BodyNode, InputDescription, cut_of, named_cut, place_of, result_of
from .descriptions import (
    BodyOutputDescription,
    ConcatOutputDescription,
    InvariantInputDescription,
    MergedInputDescription,
    SliceInputDescription,
)

__all__ = ["If", "Loop", "TensorIterator"]


class If(BodyNode, type="If"):
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

    names: ClassVar[tuple[str, ...]] = ("then_body", "else_body")
    opset = 8

    def __init__(self, execution_condition: Node | Output | None = None) -> None:
        self._start("If", [] if execution_condition is None else [execution_condition])

    def set_then_body(self, body: Editing) -> None:
        """Give the node the body that runs where the condition holds."""
        self._set("then_body", body)

    def set_else_body(self, body: Editing) -> None:
        """Give the node the body that runs where the condition does not hold."""
        self._set("else_body", body)

    def get_then_body(self) -> Any:
        """Return the body that runs if the condition holds."""
        return self._get("then_body")

    def get_else_body(self) -> Any:
        """Return the body that runs if the condition does not hold."""
        return self._get("else_body")

    def set_input(self, value: Output, then_parameter: Node | None, else_parameter: Node | None) -> None:
        """Feed the tensor ``value`` to ``then_parameter`` and ``else_parameter``; ``None`` for a body that does not read it.

        Raises:
            InputError: if a Parameter is not one of the body.
        """
        index = self._read(value)
        for name, parameter in zip(self.names, (then_parameter, else_parameter), strict=True):
            if parameter is not None:
                place = place_of(self._get(name).parameters, parameter, "Parameter")
                self._branches[name].inputs.append(InvariantInputDescription(index, place))
        self._infer_if_complete()

    def set_output(self, then_result: Node, else_result: Node) -> Output:
        """Add an output, which is ``then_result`` or ``else_result``, as the condition holds or not.

        Raises:
            InputError: if a Result is not one of the body.
        """
        index = len(self.layer.outputs)
        both = zip(self.names, (then_result, else_result), strict=True)
        places = {name: result_of(self._get(name), result) for name, result in both}
        return self._give({name: BodyOutputDescription(at, index) for name, at in places.items()}, index)


class _Repeated(BodyNode):
    """A loop."""

    def set_sliced_input(
        self, parameter: Node, value: Output, start: int, stride: int, part_size: int, end: int, axis: int
    ) -> None:
        """Feed a Parameter of the body one part of a tensor in each iteration."""
        cut = {"start": start, "stride": stride, "part_size": part_size, "end": end, "axis": axis}
        self._feed(SliceInputDescription(self._read(value), self._parameter(parameter), **cut))

    def set_merged_input(self, body_parameter: Node, initial_value: Output, successive_value: Output) -> None:
        """Feed ``body_parameter`` the tensor ``initial_value`` at first, then the ``successive_value`` of the iteration before.

        Raises:
            InputError: if the Parameter or the Result is not one of the body.
        """
        result = result_of(self._get("body"), successive_value)
        self._feed(MergedInputDescription(self._read(initial_value), self._parameter(body_parameter), result))

    def set_invariant_input(self, body_parameter: Node, value: Output) -> None:
        """Feed ``body_parameter`` the tensor ``value`` in each iteration."""
        self._feed(InvariantInputDescription(self._read(value), self._parameter(body_parameter)))

    def _parameter(self, parameter: Node) -> int:
        return place_of(self._get("body").parameters, parameter, "Parameter")

    def _feed(self, entry: InputDescription) -> None:
        self._branches["body"].inputs.append(entry)
        self._infer_if_complete()

    def get_num_iterations(self) -> int:
        """Return the number of iterations, -1 where it is not known before the model runs."""
        counts = [
            self._count(e) for e in self.get_input_descriptions() if isinstance(e, SliceInputDescription)
        ]
        return max(counts, default=-1)

    def _count(self, entry: SliceInputDescription) -> int:
        cut, shape = cut_of(entry), self.input_value(entry.input_index)._type.shape
        known = cut is not None and shape.rank is not None and shape[entry.axis].is_static
        return cut.count(shape[entry.axis].get_length()) if known and cut is not None else -1

    def get_iter_value(self, body_value: Output, iteration: int = -1) -> Output:
        """Have an output that is what a Result of the body gives in the last iteration.

        Raises:
            InputError: for another iteration, or if the Result is not one of the body.
        """
        index = len(self.layer.outputs)
        if iteration != -1:
            raise InputError("only the last iteration, -1, can be an output", code=Code.BAD_REQUEST)
        place = result_of(self._get("body"), body_value)
        return self._give({"body": BodyOutputDescription(place, index)}, index)

    def get_concatenated_slices(
        self, value: Output, start: int, stride: int, part_size: int, end: int, axis: int
    ) -> Output:
        """Add an output that joins the ``value`` of all iterations along ``axis``, each in the place that the rest says.

        Raises:
            InputError: if the Result is not one of the body.
        """
        index, cut = len(self.layer.outputs), Cut(axis, start, end, stride, part_size)
        place = result_of(self._get("body"), value)
        return self._give({"body": ConcatOutputDescription(place, index, **named_cut(cut))}, index)


class Loop(_Repeated, type="Loop"):
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

    opset = 5

    def __init__(
        self, trip_count: Node | Output | None = None, execution_condition: Node | Output | None = None
    ) -> None:
        self._start("Loop", [end for end in (trip_count, execution_condition) if end is not None])

    def get_num_iterations(self) -> int:
        """Return the number of iterations, -1 where it is not known before the model runs."""
        trips = self._sources[0]
        most = None if trips is None else trips._node._value(trips._index).ints()
        goes_on = self._condition()
        return most[0] if most and goes_on else super().get_num_iterations()

    def _condition(self) -> bool:
        """Return whether the body's condition is always true."""
        result = self.get_function().results[self._special[1]] if self._special[1] >= 0 else None
        known = None if result is None else result._value(0).known()
        return known is not None and bool(known.all())

    def set_special_body_ports(self, special_body_ports: Sequence[int]) -> None:
        """Say which Parameter gets the number of the iteration, -1 for none, and which Result is the condition."""
        self._edit()
        self._special = tuple(special_body_ports)
        self._infer_if_complete()

    def get_special_body_ports(self) -> list[int]:
        """Which Parameter gets the number of the iteration, and which Result is the condition."""
        return list(self._special) if self._branches else [-1, -1]


class TensorIterator(_Repeated, type="TensorIterator"):
    """Runs its body for each part of its inputs. As OpenVINO's ``tensor_iterator``.

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
        self._start("TensorIterator", [])

    def set_body(self, body: Editing) -> None:
        """Give the node its body."""
        self._set("body", body)

    def get_body(self) -> Any:
        """Return the body."""
        return self._get("body")
