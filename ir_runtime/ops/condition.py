"""Select, NonZero, Bucketize and If: operations that depend on conditions or on order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Literal

import numpy as np

from .._util.arrays import DType
from ..ir.dimension import Dimension, Interval
from ..ir.element import ElementType
from ..ir.formula import Count, log2, maximum
from ..ir.graph import Body
from ..ir.operation import Operands, size
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType, Value, objects
from ._bodies import T_OUTER, Visit, check_one, check_ties, feeds_of, only, outputs_of
from ._define.bounds import UNDECIDED, Number, choose
from ._define.operation import (
    MAX_PROPAGATED,
    NUMBERS,
    T_ANY,
    T_BOOLEAN,
    T_PLAIN,
    Element,
    Input,
    Op,
    Output,
    Propagated,
    T,
    attr,
    body_field,
    check_index_types,
    op,
)
from ._lengths import Rule, align, broadcast_shapes, check_vector
from .elementwise import BROADCAST, contents, propagate_elements

T_BOUNDARIES = Element("T_BOUNDARIES", NUMBERS, "any numeric type")


@op("Select-1")
class Select(Op):
    """Elements of ``then`` where ``condition`` is true, and of ``otherwise`` where it is false."""

    decisions = (
        "all three inputs broadcast with numpy, as in OpenVINO; the page has the condition broadcast alone",
    )

    bounded = True
    flops_per_element = 0

    condition = Input(T_BOOLEAN, "whether to take an element of then; broadcasts to the other inputs")
    then = Input(T_ANY, "elements to take where the condition is true")
    otherwise = Input(T_ANY, "elements to take where the condition is false")
    output = Output(T_ANY, "the selected elements")

    auto_broadcast: Rule = attr("numpy", doc=BROADCAST)

    def infer(self, condition: Value, then: Value, otherwise: Value) -> PartialShape:
        # With numpy, the page broadcasts only the condition; OpenVINO broadcasts all three inputs.
        rule = self.auto_broadcast
        both = broadcast_shapes(then.shape, otherwise.shape, rule, ("then", "otherwise"))
        return broadcast_shapes(both, condition.shape, rule, ("then with otherwise", "condition"))

    def refuses_lengths(self) -> bool:
        return self.auto_broadcast == "numpy"

    def evaluate(self, condition: Array, then: Array, otherwise: Array) -> Array:
        if self.auto_broadcast == "pdpd":
            condition, otherwise = align(condition, then.ndim), align(otherwise, then.ndim)
        return np.where(condition, then, otherwise)

    def propagate(self, *inputs: Value) -> Propagated:
        """Propagate the contents that the condition selects, even if the other contents are unknown."""
        if all(value.known() is not None for value in inputs):
            return super().propagate(*inputs)
        if self.auto_broadcast == "pdpd":
            return None
        condition, then, otherwise = inputs
        arrays = (
            _contents_or(UNDECIDED, condition),
            *(_contents_or(Interval(), v) for v in (then, otherwise)),
        )
        return propagate_elements(choose, then.element, *arrays)


@op("NonZero-3", spec="condition/nonzero-3")
class NonZero(Op):
    """Indices of the nonzero elements of ``data``, [rank, count]: a row per axis, a column per element."""

    decisions = (
        "NaN is not zero, as in OpenVINO; the page does not say",
        "a scalar has one row of indices, as a vector of one element, as in OpenVINO; by the page it had none",
    )

    flops_per_element = 0
    flops_per_input = {"data": 1}

    data = Input(T_PLAIN, "tensor to search")
    output = Output("output_type", "indices in row-major order")

    output_type: ElementType = attr(ElementType.i64, doc="type of the indices: i64 or i32")

    def verify(self) -> None:
        check_index_types(output_type=self.output_type)

    def infer(self, data: Value) -> PartialShape:
        if (contents := data.known()) is not None:
            return PartialShape(self.evaluate(contents).shape)
        if data.shape.rank is None:
            return PartialShape.dynamic(2)
        if data.shape.rank == 0:
            return PartialShape("..1,..1")
        return PartialShape([data.shape.rank, Dimension.between(0, data.count.max)])

    def refuses_lengths(self) -> bool:
        return True  # inference refuses no lengths

    def evaluate(self, data: Array) -> Array:
        if data.ndim == 0:  # a nonzero scalar has one row of indices, as in OpenVINO
            return np.zeros((1, 1) if data else (0, 0), self.output_type.dtype)
        positions = np.flatnonzero(
            data
        )  # dividing flat positions is several times faster than `numpy.nonzero`
        indices = np.empty((data.ndim, positions.size), self.output_type.dtype)
        for axis in range(data.ndim - 1, 0, -1):
            outer = positions // data.shape[axis]
            indices[axis] = positions - outer * data.shape[axis]
            positions = outer
        indices[0] = positions
        return indices


@op("Bucketize-3")
class Bucketize(Op):
    """The index of the bucket that contains each element of ``data``: the number of bounds in ``buckets`` below it.

    If bounds do not ascend, the result is that of a binary search, as in OpenVINO.
    """

    decisions = (
        "bounds are neither below nor above NaN, as in OpenVINO: its bucket is the first with a right bound, and the last without; the page does not say",
        "where bounds do not ascend the result is that of a search by halves, as in OpenVINO; the page asks for ascending ones",
    )

    bounded = True

    data = Input(T, "elements to sort into buckets")
    buckets = Input(T_BOUNDARIES, "the bounds between buckets, 1-D and ascending")
    output = Output("output_type", "the index of the bucket of each element")

    output_type: ElementType = attr(ElementType.i64, doc="type of the result: i64 or i32")
    with_right_bound: bool = attr(
        True, doc="whether a bound belongs to the bucket below it, instead of above"
    )

    def verify(self) -> None:
        check_index_types(output_type=self.output_type)

    def infer(self, data: Value, buckets: Value) -> PartialShape:
        check_vector(buckets, "buckets")
        return data.shape

    def audit(self, *inputs: Value) -> Iterator[str]:
        """Yield a warning if bounds do not ascend."""
        bounds = inputs[1].known()
        if bounds is not None and (drops := np.flatnonzero(bounds[1:] < bounds[:-1])).size:
            i = int(drops[0])
            yield f"buckets must be in ascending order, but element {i + 1} is {bounds[i + 1]}, after {bounds[i]}"

    def evaluate(self, data: Array, buckets: Array) -> Array:
        common = np.result_type(_ordinary(data.dtype), _ordinary(buckets.dtype))
        numbers, bounds = data.astype(common), buckets.astype(common)
        if not _ascend(bounds):
            return _search(numbers, bounds, self.with_right_bound).astype(self.output_type.dtype)
        side: Literal["left", "right"] = "left" if self.with_right_bound else "right"
        positions = np.searchsorted(bounds, numbers, side)
        if self.with_right_bound:  # comparisons with NaN are false: no bound is below or above it
            positions = np.where(np.isnan(data), 0, positions)
        return np.asarray(positions).astype(self.output_type.dtype)

    def flops(self, operands: Operands) -> Count:
        """Return the number of comparisons of a binary search for each element."""
        return operands.result * log2(size(operands.inputs[1]))


def _ascend(bounds: Array) -> bool:
    """Return whether the bounds are in ascending order, without NaN."""
    return bool((bounds[:1] == bounds[:1]).all() and (bounds[:-1] <= bounds[1:]).all())


def _search(numbers: Array, bounds: Array, is_right: bool) -> Array:
    """Search unsorted bounds by bisection; results of `numpy.searchsorted` would also depend on previous elements."""
    first, rest = np.zeros(numbers.shape, np.int64), np.full(numbers.shape, bounds.size)
    while rest.any():
        half = rest // 2
        bound = bounds[np.minimum(first + half, bounds.size - 1)]
        is_counted = (bound < numbers if is_right else ~(numbers < bound)) & (rest > 0)
        first = np.where(is_counted, first + half + 1, first)
        rest = np.where(is_counted, rest - half - 1, half)
    return first


def _ordinary(dtype: DType) -> DType:
    return dtype if dtype.kind in "iuf" else np.dtype(np.float32)


def _contents_or(number: Number, value: Value) -> Array | None:
    """Return the contents of an integer tensor, or an array of ``number`` if only its shape is known."""
    if (
        value.data is not None
        or value.shape.is_dynamic
        or value.count.min > MAX_PROPAGATED
        or not value.element.integral
    ):
        return contents(value)
    return objects([number] * value.count.min, value.shape.static)


@op("If-8")
class If(Op):
    """Run ``then_body`` if ``condition`` is true, or else ``else_body``."""

    condition = Input(T_BOOLEAN, "one boolean")
    values = Input(T_OUTER, "the inputs of the bodies", variadic=True)
    results = Output(T_OUTER, "the results of the body that ran", variadic=True)

    pure = False  # it depends on its inputs only, but its outputs may be far larger

    then_body: Body = body_field(doc="the graph that runs if the condition is true")
    else_body: Body = body_field(doc="the graph that runs if the condition is false")

    def infer(self, condition: Value, *values: Value, visit: Visit) -> tuple[TensorType, ...]:
        check_one(condition, "condition")
        selected = condition.known()
        bodies = self.bodies() if selected is None else (self._select_body(selected),)
        # All candidates are visited before an error in one is raised, so that each is recorded as visited.
        visited = [(body, self._infer_body(body, (condition, *values), visit)) for body in bodies]
        candidates = [[v.type for v in outputs_of(body, results, self._count())] for body, results in visited]
        return tuple(reduce(TensorType.join, types) for types in zip(*candidates, strict=True))

    def evaluate(self, condition: Array, *values: Array, visit: Visit) -> tuple[Array, ...]:
        body = self._select_body(condition)
        results = visit(body, feeds_of(body, (condition, *values)))
        return tuple(outputs_of(body, results, self._count()))

    def _infer_body(self, body: Body, every: tuple[Value, ...], visit: Visit) -> Mapping[int, Value]:
        check_ties(body)
        return visit(body, feeds_of(body, every))

    def _select_body(self, condition: Array) -> Body:
        return self.then_body if only(condition, "condition") else self.else_body

    def _count(self) -> int:
        return max((o.port for body in self.bodies() for o in body.outputs), default=-1) + 1

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of the more expensive branch."""
        return maximum(operands.bodies)
