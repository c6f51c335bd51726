"""The infrastructure of a model: parameters, constants, results, variables and loops."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from .._util import deadline
from ..codes import Code
from ..errors import ExecutionError, InferenceError
from ..ir.array import Packed
from ..ir.dimension import Dimension
from ..ir.element import ElementType
from ..ir.formula import Count
from ..ir.graph import Body
from ..ir.operation import Operands
from ..ir.port_map import BackEdge, BodyOutput, Cut
from ..ir.quantized_cache import Held, QuantizedCache
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType, Value
from ..limits import Limits, Trips, current, current_trips
from ._bodies import (
    T_OUTER,
    Visit,
    check_one,
    check_ties,
    common_parts,
    feeds_of,
    infer_iterations,
    iterated,
    only,
    out_of_range,
)
from ._define.operation import (
    MAX_PROPAGATED,
    SIGNED,
    T_ANY,
    T_BOOLEAN,
    Element,
    Input,
    Op,
    Output,
    attr,
    blob_field,
    body_field,
    op,
)
from ._lengths import normalize_axis
from .conversion import convert_rounded

# Parameters, constants and results.


@op("Parameter-1")
class Parameter(Op):
    """An input of the model."""

    flops_per_element = 0

    output = Output("element_type", "the argument of the caller")

    element_type: ElementType = attr(doc="element type of the input")
    shape: PartialShape = attr(doc="shape of the input; -1 or ? for any length, 1..8 for a bounded one")

    pure = False

    def infer(self) -> PartialShape:
        return self.shape

    def evaluate(self) -> Array:
        raise RuntimeError("a Parameter has the value that the caller gives; it is never computed")


@op("Constant-1", aliases=("Const",))
class Constant(Op):
    """A tensor stored in the model."""

    flops_per_element = 0

    output = Output("element_type", "the tensor")

    element_type: ElementType = attr(doc="element type of the tensor")
    shape: PartialShape = attr(doc="shape of the tensor")
    offset: int = attr(ge=0, doc="first byte in the .bin")
    size: int = attr(ge=0, doc="number of bytes in the .bin")
    value: Any = blob_field(doc="the array, packed for sub-byte types; a view of the .bin")

    def infer(self) -> PartialShape:
        return self.shape

    def evaluate(self) -> Array:
        return self.value.unpack() if isinstance(self.value, Packed) else self.value

    def infer_values(self, *inputs: Value, **context: Any) -> tuple[Value, ...]:
        """Return the type, and the contents unless they are packed and large."""
        large = isinstance(self.value, Packed) and self.value.size > MAX_PROPAGATED
        return (Value(TensorType(self.element_type, self.shape), None if large else self.evaluate()),)


@op("Result-1")
class Result(Op):
    """An output of the model."""

    bounded = True
    flops_per_element = 0

    input = Input(T_ANY, "the tensor to return to the caller")
    output = Output(T_ANY, "the same tensor")

    symbolic = True

    def infer(self, input: Value) -> PartialShape:
        return input.shape

    def evaluate(self, input: Array) -> Array:
        return input


# Variables, which keep tensors between runs: ReadValue and Assign.

Variables: TypeAlias = MutableMapping[str, Held]
"""The values of a request's variables by id, without those that are not set."""


class _Stateful(Op):
    pure = False

    flops_per_element = 0

    variable_id: str = attr(doc="the name of the variable")


class _ReadValueBase(_Stateful):
    output = Output(T_ANY, "the value of the variable")

    def _read_value(self, variables: Variables, first: Array | None) -> Array:
        if (current := variables.get(self.variable_id)) is not None:
            return current.unpacked() if isinstance(current, QuantizedCache) else current
        if first is not None:
            return first
        type = self.declared
        if type is None or type.shape.rank is None or any(d.is_dynamic and d.min for d in type.shape):
            raise ExecutionError(
                f"variable {self.variable_id!r} is read before it has a value",
                hint="set it before the run, or give the ReadValue layer an input to start from",
                clause="a variable without initial value has a static shape, or is assigned before it is read",
            )
        return np.zeros([d.min for d in type.shape], type.element.dtype)

    @property
    def declared(self) -> TensorType | None:
        """The type of the variable that the layer declares, or ``None``."""
        return None


@op("ReadValue-3")
class ReadValue3(_ReadValueBase):
    """The value of a variable, or ``initial_value`` if the variable is not set."""

    initial_value = Input(T_ANY, "the initial value of the variable")

    def infer(self, initial_value: Value) -> PartialShape:
        return initial_value.shape

    def evaluate(self, initial_value: Array, *, variables: Variables) -> Array:
        return self._read_value(variables, initial_value)


@op("ReadValue-6")
class ReadValue(_ReadValueBase):
    """The value of a variable, or ``initial_value`` or zeros if the variable is not set.

    Without an initial value, dynamic lengths of ``variable_shape`` are initially 0, as in OpenVINO.
    """

    initial_value = Input(T_ANY, "the initial value of the variable; zeros if absent", optional=True)

    variable_type: ElementType = attr(ElementType.dynamic, doc="the element type of the variable")
    variable_shape: PartialShape = attr(PartialShape.dynamic(), doc="the shape of the variable")

    def infer(self, initial_value: Value | None = None) -> TensorType:
        if initial_value is None:
            return self.declared
        if not initial_value.shape.refines(self.variable_shape):
            raise InferenceError(
                f"initial_value has shape {initial_value.shape}, but attribute 'variable_shape' is {self.variable_shape}",
                hint="variable_shape must allow every shape that initial_value can have",
                clause="initial_value fits attribute 'variable_shape'",
            )
        return initial_value.type if self.variable_type is ElementType.dynamic else self.declared

    @property
    def declared(self) -> TensorType:
        """The type that the attributes declare."""
        return TensorType(self.variable_type, self.variable_shape)

    def evaluate(self, initial_value: Array | None = None, *, variables: Variables) -> Array:
        return self._read_value(variables, initial_value)


class _AssignBase(_Stateful):
    new_value = Input(T_ANY, "the new value of the variable")
    output = Output(T_ANY, "the same tensor")

    has_side_effects = True

    def infer(self, new_value: Value) -> PartialShape:
        return new_value.shape

    def evaluate(self, new_value: Array, *, variables: Variables) -> Array:
        variables[self.variable_id] = new_value
        return new_value


@op("Assign-3")
class Assign3(_AssignBase):
    """Assign ``new_value`` to a variable, for the next run to read."""


@op("Assign-6")
class Assign(_AssignBase):
    """Assign ``new_value`` to a variable, for the next run to read."""


# Execution of loop bodies: slicing of inputs, and concatenation of outputs.


@dataclass(slots=True)
class Iterations:
    """The state of a running loop: its inputs, the latest results, and the slices of concatenated outputs.

    A Parameter keeps its element type, and values of back edges are converted to it. The specification does not say;
    OpenVINO's reference keeps the type of the value, and fails in binary operations; its CPU plugin converts to the
    nearest number.
    """

    body: Body
    every: Sequence[Array]
    visit: Visit
    elements: Mapping[int, ElementType] = field(default_factory=dict)
    """Element types of Parameters that convert their values; other Parameters keep the type of their first value."""
    feeds: dict[int, Array] = field(default_factory=dict)
    results: Mapping[int, Array] = field(default_factory=dict)
    parts: dict[BodyOutput, list[Array]] = field(default_factory=dict)
    done: int = 0
    limits: Limits = field(default_factory=current)
    trips: Trips = field(default_factory=current_trips)
    nbytes: int = 0
    """The total size of ``parts`` in bytes."""

    def __post_init__(self) -> None:
        feeds = feeds_of(self.body, self.every)
        self.feeds = {parameter: self._as_declared(parameter, x) for parameter, x in feeds.items()}
        self.parts = {o: [] for o in self.body.outputs if o.cut}

    def run_once(self) -> None:
        """Run one iteration, and feed its results to the next one through the back edges."""
        deadline.check()
        self.trips.add(self.limits)
        for entry in self.body.inputs:
            if entry.cut:
                part = _part(entry.port, self.every[entry.port], entry.cut, self.done)
                self.feeds[entry.parameter] = self._as_declared(entry.parameter, part)
        if self.body.iteration is not None:
            self.feeds[self.body.iteration] = self._number(self.body.iteration)
        self.results = self.visit(self.body, self.feeds)
        for output, parts in self.parts.items():
            parts.append(self.results[output.result])
            self.nbytes += parts[-1].nbytes
        self.limits.check("memory", self.nbytes)
        self.feeds |= {edge.parameter: self._back(edge) for edge in self.body.back_edges}
        self.done += 1

    def _as_declared(self, parameter: int, x: Array) -> Array:
        element = self.elements.get(parameter)
        return x if element is None else convert_rounded(x, element)

    def _back(self, edge: BackEdge) -> Array:
        """Return the value of a back edge, converted to the element type of its Parameter."""
        result, before = self.results[edge.result], self.feeds.get(edge.parameter)
        if before is None or result.dtype == before.dtype:
            return result
        return convert_rounded(result, ElementType.from_dtype(before.dtype))

    def _number(self, parameter: int) -> Array:
        op = self.body.parameters[parameter].op
        type = vars(op)["element_type"].dtype if op else np.dtype(np.int64)
        rank = vars(op)["shape"].rank if op else 0
        return np.full((1,) * (rank or 0), self.done, type)

    def outputs(self, empty: Mapping[int, TensorType]) -> tuple[Array, ...]:
        """Return the outputs of the layer after the last iteration.

        Args:
            empty: the types of Results by id, for the outputs of a loop without iterations.
        """
        outputs = {o.port: self._output(o, empty) for o in self.body.outputs}
        return tuple(outputs[port] for port in sorted(outputs))

    def _output(self, output: BodyOutput, empty: Mapping[int, TensorType]) -> Array:
        if output.cut:
            return _concatenate(self.parts[output], output.cut, empty.get(output.result))
        if output.result in self.results:
            return self.results[output.result]
        for edge in self.body.back_edges:
            if edge.result == output.result and edge.parameter in self.feeds:
                return _as_result(self.feeds[edge.parameter], empty.get(output.result))
        raise ExecutionError(
            f"the loop ran no iteration, so output {output.port}, counted from 0, has no value: it is what the last "
            f"iteration gives",
            clause="an output without axis has a value only if the loop runs at least once",
        )


def _as_result(first: Array, type: TensorType | None) -> Array:
    """Convert the initial value of a loop without iterations to the element type of the Result, if known."""
    if type is None or type.element is ElementType.dynamic:
        return first
    return convert_rounded(first, type.element)


def _part(port: int, x: Array, cut: Cut, iteration: int) -> Array:
    axis = normalize_axis(cut.axis, x.ndim)
    where = cut.part(x.shape[axis], iteration)
    if where.start < 0 or where.stop > x.shape[axis]:
        raise ExecutionError(
            out_of_range(port, axis, x.shape[axis], where, iteration),
            clause="the parts of a sliced input are inside it",
        )
    return x[(slice(None),) * axis + (where,)]


def _concatenate(parts: Sequence[Array], cut: Cut, type: TensorType | None) -> Array:
    if not parts:
        if type is None or type.shape.rank is None:
            raise ExecutionError(
                "the loop ran no iteration, and the body does not declare a shape for the parts that an output joins",
                clause="the body declares the shape of joined parts if the loop may run no iteration",
            )
        shape = [d.min for d in type.shape]
        shape[normalize_axis(cut.axis, len(shape))] = 0
        return np.empty(shape, type.element.dtype)
    axis = normalize_axis(cut.axis, parts[0].ndim)
    frames = {PartialShape(part.shape).replace({axis: -1}) for part in parts}
    if len(frames) > 1:
        shapes = " and ".join(sorted(map(str, frames))[:2])
        raise ExecutionError(
            f"iterations give parts of shapes {shapes}, which cannot be joined along axis {axis}",
            clause="concatenated parts have equal lengths, except along the axis",
        )
    return np.concatenate(parts[::-1] if cut.stride < 0 else parts, axis=axis)


# The loops TensorIterator and Loop.

T_TRIPS = Element("T_TRIPS", SIGNED[:2], "i64 or i32")

_NO_CONDITION = (
    "the port map has no <output> with purpose='execution_condition', which says whether to continue"
)
_GOING = "the execution condition that the body gives"


class _LoopBase(Op):
    """Base of TensorIterator and Loop."""

    pure = False  # the outputs depend on the inputs only, but may be far larger

    body: Body = body_field(doc="the graph that runs in each iteration, and the map of its ports")

    @property
    def _outputs(self) -> int:
        return max((o.port for o in self.body.outputs), default=-1) + 1

    def _result_types(self) -> dict[int, TensorType]:
        """Return the declared types of Results by id, for loops without iterations."""
        graph = self.body.graph
        ports = self.body.results.items()
        declared = {r: graph[p.layer].outputs[p.number].type for r, p in ports}
        return {r: t for r, t in declared.items() if t is not None}


@op("TensorIterator-1")
class TensorIterator(_LoopBase):
    """Run the body once for each slice of the sliced inputs, in order."""

    values = Input(T_OUTER, "inputs of the body: whole, sliced, or initial values", variadic=True)
    results = Output(
        T_OUTER,
        "results of the body: of the last iteration, or of all iterations concatenated",
        variadic=True,
    )

    def infer(self, *values: Value, visit: Visit) -> tuple[TensorType, ...]:
        check_ties(self.body)
        parts = common_parts(self.body, [value.shape for value in values])
        results = infer_iterations(self.body, values, visit, self._elements())
        return iterated(self.body, results, parts, self._outputs)

    def evaluate(self, *values: Array, visit: Visit) -> tuple[Array, ...]:
        parts = common_parts(self.body, [PartialShape(value.shape) for value in values])
        iterations = Iterations(self.body, values, visit, self._elements())
        for _ in range(parts.get_length()):
            iterations.run_once()
        return iterations.outputs(self._result_types())

    def _elements(self) -> dict[int, ElementType]:
        """Return the declared element types of Parameters by id; values are converted to them, as in OpenVINO."""
        ops = {number: layer.op for number, layer in self.body.parameters.items()}
        declared = {number: vars(op)["element_type"] for number, op in ops.items() if op is not None}
        return {number: element for number, element in declared.items() if element.is_static()}

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of the body, times the number of slices."""
        return operands.bodies[0] * self._parts(operands)

    def _parts(self, operands: Operands) -> Count:
        """Return the number of slices of a sliced input."""
        counts = [
            entry.cut.count_of(operands.inputs[entry.port][entry.cut.axis])
            for entry in self.body.inputs
            if entry.cut
        ]
        static = [count for count in counts if count is not None]
        return static[0] if static else operands.unknown("parts") if counts else 1


@op("Loop-5")
class Loop(_LoopBase):
    """Run the body while its condition is true, at most ``trip_count`` times."""

    trip_count = Input(T_TRIPS, "maximum number of iterations, one number; negative means unlimited")
    condition = Input(T_BOOLEAN, "whether to run the first iteration, one boolean")
    values = Input(T_OUTER, "inputs of the body: whole, sliced, or initial values", variadic=True)
    results = Output(
        T_OUTER,
        "results of the body: of the last iteration, or of all iterations concatenated",
        variadic=True,
    )

    def infer(
        self, trip_count: Value, condition: Value, *values: Value, visit: Visit
    ) -> tuple[TensorType, ...]:
        check_ties(self.body)
        if self.body.condition is None:
            raise InferenceError(
                _NO_CONDITION,
                code=Code.PORT_COUNT,
                clause="the port map has an <output> with the purpose execution_condition",
            )
        check_one(trip_count, "trip_count")
        check_one(condition, "condition")
        results = infer_iterations(self.body, (trip_count, condition, *values), visit, {})
        check_one(results[self.body.condition], _GOING)
        trips = self._trips(trip_count, condition, results)
        return iterated(self.body, results, trips, self._outputs)

    def _trips(self, trip_count: Value, condition: Value, results: Mapping[int, Value]) -> Dimension:
        """Return the number of iterations, which may be dynamic."""
        most = trip_count.ints()
        start = condition.known()
        if start is not None and not start.item():
            return Dimension(0)
        if most is None or most[0] < 0:
            return Dimension()
        assert self.body.condition is not None
        going = results[self.body.condition].known()
        always = going is not None and bool(going.item()) and start is not None
        return Dimension(most[0]) if always else Dimension(0, most[0])

    def evaluate(
        self, trip_count: Array, condition: Array, *values: Array, visit: Visit
    ) -> tuple[Array, ...]:
        most, going = int(only(trip_count, "trip_count")), bool(only(condition, "condition"))
        iterations = Iterations(self.body, (trip_count, condition, *values), visit)
        while going and (most < 0 or iterations.done < most):
            iterations.run_once()
            assert self.body.condition is not None
            going = bool(only(iterations.results[self.body.condition], _GOING))
        return iterations.outputs(self._result_types())

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of the body, times the maximum number of iterations."""
        most = operands.content(0)
        trips = operands.unknown("trips") if most is None or int(most.flat[0]) < 0 else int(most.flat[0])
        return operands.bodies[0] * trips
