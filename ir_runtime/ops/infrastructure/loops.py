"""Loops, which repeat a body: Loop and TensorIterator."""

from __future__ import annotations

from collections.abc import Mapping

from ...codes import Code
from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.formula import Count
from ...ir.graph import Body
from ...ir.operands import Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, TensorType, Value
from .._bodies import (
    T_OUTER,
    Visit,
    check_one,
    check_ties,
    common_parts,
    infer_iterations,
    iterated,
    only,
)
from .._define.operation import SIGNED, T_BOOLEAN, Element, Input, Op, Output, body_field, op
from .._iterations import Iterations

__all__ = ["Loop", "TensorIterator"]

T_TRIPS = Element("T_TRIPS", SIGNED[:2], "i64 or i32")

_NO_CONDITION = (
    "the port map has no <output> with purpose='execution_condition', which says whether to continue"
)
_GOING = "the execution condition that the body gives"


class _LoopBase(Op):
    """Base of both loops."""

    pure = False  # depends on its inputs only, but may be far larger

    body: Body = body_field(doc="the graph that runs in each iteration, and how it is tied to the ports")

    @property
    def _outputs(self) -> int:
        return max((o.port for o in self.body.outputs), default=-1) + 1

    def _result_types(self) -> dict[int, TensorType]:
        """Return the declared types of Results, for outputs without iterations."""
        graph = self.body.graph
        ports = self.body.results.items()
        declared = {r: graph[p.layer].outputs[p.number].type for r, p in ports}
        return {r: t for r, t in declared.items() if t is not None}


@op("TensorIterator-1")
class TensorIterator(_LoopBase):
    """Run the body once for each slice of the sliced inputs, in order."""

    values = Input(T_OUTER, "what the body reads: whole, in parts, or at first", variadic=True)
    results = Output(T_OUTER, "what the body gives: at last, or of all iterations joined", variadic=True)

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
        """Return the declared element types of Parameters: the body keeps them, as in OpenVINO."""
        ops = {number: layer.op for number, layer in self.body.parameters.items()}
        declared = {number: vars(op)["element_type"] for number, op in ops.items() if op is not None}
        return {number: element for number, element in declared.items() if element.is_static()}

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of the body, once for each slice."""
        return operands.bodies[0] * self._parts(operands)

    def _parts(self, operands: Operands) -> Count:
        """Return the number of slices of a sliced input."""
        counts = [
            entry.cut.count_of(operands.inputs[entry.port][entry.cut.axis])
            for entry in self.body.inputs
            if entry.cut
        ]
        found = [count for count in counts if count is not None]
        return found[0] if found else operands.unknown("parts") if counts else 1


@op("Loop-5")
class Loop(_LoopBase):
    """Run the body while its condition holds, and at most ``trip_count`` times."""

    trip_count = Input(T_TRIPS, "the most iterations, one number; a negative one means any number")
    condition = Input(T_BOOLEAN, "whether to run the first iteration, one boolean")
    values = Input(T_OUTER, "what the body reads: whole, in parts, or at first", variadic=True)
    results = Output(T_OUTER, "what the body gives: at last, or of all iterations joined", variadic=True)

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
        """Return the number of iterations, or bounds of it."""
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
        """Return the FLOPs of the body for the most iterations."""
        most = operands.content(0)
        trips = operands.unknown("trips") if most is None or int(most.flat[0]) < 0 else int(most.flat[0])
        return operands.bodies[0] * trips
