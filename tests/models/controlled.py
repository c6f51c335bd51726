"""Networks with branches, loops and variables, built by OpenVINO."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as op

from ir_runtime.ir.tensor import Array

Inputs = list[Array]
Case = tuple[Callable[[], ov.Model], list[Inputs]]
CASES: dict[str, Case] = {}

f32 = np.float32


def case(*inputs: Sequence[Any]) -> Callable[[Callable[[], ov.Model]], Callable[[], ov.Model]]:
    """Register a network with its inputs."""

    def register(build: Callable[[], ov.Model]) -> Callable[[], ov.Model]:
        CASES[build.__name__] = (build, [[np.asarray(x) for x in each] for each in inputs])
        return build

    return register


def data(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(f32)


def floats(*shape: int, name: str = "x") -> Any:
    return op.parameter(list(shape), f32, name=name)


def branch(
    condition: Any, then: ov.Model, otherwise: ov.Model, inputs: Sequence[tuple[Any, Any, Any]]
) -> Any:
    node = op.if_op(condition)
    node.set_then_body(then)
    node.set_else_body(otherwise)
    for source, one, other in inputs:
        node.set_input(source.output(0), one, other)
    outputs = zip(then.results, otherwise.results, strict=True)
    return [node.set_output(one, other) for one, other in outputs]


@case([np.array(True), data(2, 3), data(2, 3)], [np.array(False), data(2, 3), data(2, 3)])
def if_with_other_inputs_in_each_branch() -> ov.Model:
    c, x, y = op.parameter([], bool, name="c"), floats(2, 3), floats(2, 3, name="y")
    a, b, d = floats(2, 3, name="a"), floats(2, 3, name="b"), floats(2, 3, name="d")
    then = ov.Model([op.add(a, b), op.multiply(a, b)], [a, b])
    otherwise = ov.Model([op.negative(d), op.abs(d)], [d])
    return ov.Model(branch(c, then, otherwise, [(x, a, d), (y, b, None)]), [c, x, y])


@case([np.array([True]), data(4, 3)], [np.array([False]), data(4, 3)])
def if_with_other_shapes_from_each_branch() -> ov.Model:
    c, x = op.parameter([1], bool, name="c"), floats(-1, 3)
    a, b = floats(-1, 3, name="a"), floats(-1, 3, name="b")
    then = ov.Model([op.reduce_sum(a, op.constant([0]), True)], [a])
    return ov.Model(branch(c, then, ov.Model([op.relu(b)], [b]), [(x, a, b)]), [c, x])


@case(*([np.array(i), np.array(j), data(3)] for i in (True, False) for j in (True, False)))
def if_in_if() -> ov.Model:
    c, e, x = op.parameter([], bool, name="c"), op.parameter([], bool, name="e"), floats(3)
    inner_c, a = op.parameter([], bool, name="inner"), floats(3, name="a")
    p, q, d = floats(3, name="p"), floats(3, name="q"), floats(3, name="d")
    inner = branch(inner_c, ov.Model([op.exp(p)], [p]), ov.Model([op.sin(q)], [q]), [(a, p, q)])
    then = ov.Model(inner, [inner_c, a])
    return ov.Model(branch(c, then, ov.Model([op.cos(d)], [d]), [(e, inner_c, None), (x, a, d)]), [c, e, x])


@case([data(2, 3)])
def if_that_is_decided() -> ov.Model:
    x, a, b = floats(2, 3), floats(2, 3, name="a"), floats(2, 3, name="b")
    taken = branch(op.constant(False), ov.Model([op.exp(a)], [a]), ov.Model([op.abs(b)], [b]), [(x, a, b)])
    return ov.Model(taken, [x])


@case([np.array(True), data(3), np.array([2, 0, 1])], [np.array(False), data(3), np.array([0, 0, 0])])
def if_that_picks() -> ov.Model:
    c, x, k = op.parameter([], bool, name="c"), floats(-1), op.parameter([-1], np.int64, name="k")
    a, b, i = floats(-1, name="a"), floats(-1, name="b"), op.parameter([-1], np.int64, name="i")
    then = ov.Model([op.gather_elements(a, i, 0)], [a, i])
    return ov.Model(branch(c, then, ov.Model([op.relu(b)], [b]), [(x, a, b), (k, i, None)]), [c, x, k])


def loop_of(trips: Any, start: Any, body: ov.Model, ports: tuple[int, int]) -> Any:
    node = op.loop(trips, start)
    node.set_function(body)
    node.set_special_body_ports(list(ports))
    return node


@case(
    [np.array(4), data(4, 3), data(1, 3)],
    [np.array(2), data(4, 3), data(1, 3)],
    [np.array(1), data(4, 3), data(1, 3)],
)
def loop_over_slices() -> ov.Model:
    n, x, s = op.parameter([], np.int64, name="n"), floats(4, 3), floats(1, 3, name="s")
    part, total, i = (
        floats(1, 3, name="part"),
        floats(1, 3, name="total"),
        op.parameter([1], np.int64, name="i"),
    )
    new = op.add(op.add(total, part), op.convert(i, "f32"))
    node = loop_of(n, op.constant(True), ov.Model([new, op.constant(True)], [part, total, i]), (2, 1))
    node.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 0)
    node.set_merged_input(total, s.output(0), new.output(0))
    outputs = [
        node.get_iter_value(new.output(0), -1),
        node.get_concatenated_slices(new.output(0), 0, 1, 1, -1, 0),
    ]
    return ov.Model(outputs, [n, x, s])


@case([np.array(0), np.array(True), data(2, 3)], [np.array(3), np.array(False), data(2, 3)])
def loop_that_never_runs() -> ov.Model:
    """The outputs are the initial values."""
    n, c, x = op.parameter([], np.int64, name="n"), op.parameter([], bool, name="c"), floats(2, 3)
    a = floats(2, 3, name="a")
    new = op.exp(a)
    node = loop_of(n, c, ov.Model([new, op.constant(True)], [a]), (-1, 1))
    node.set_merged_input(a, x.output(0), new.output(0))
    return ov.Model([node.get_iter_value(new.output(0), -1)], [n, c, x])


@case([f32([1.0])], [f32([60.0])])
def loop_while() -> ov.Model:
    """Double until 100; the number of iterations depends on the data."""
    x, a = floats(1), floats(1, name="a")
    new = op.multiply(a, op.constant(f32([2])))
    going = op.less(new, op.constant(f32([100])))
    node = loop_of(op.constant(-1), op.constant(True), ov.Model([new, going], [a]), (-1, 1))
    node.set_merged_input(a, x.output(0), new.output(0))
    outputs = [
        node.get_iter_value(new.output(0), -1),
        node.get_concatenated_slices(new.output(0), 0, 1, 1, -1, 0),
    ]
    return ov.Model(outputs, [x])


@case([np.array(3), data(1, 2)])
def loop_that_grows() -> ov.Model:
    n, x, a = op.parameter([], np.int64, name="n"), floats(1, 2), floats(-1, 2, name="a")
    first = op.slice(a, op.constant([0]), op.constant([1]), op.constant([1]), op.constant([0]))
    new = op.concat([a, op.multiply(first, op.constant(f32(2)))], 0)
    node = loop_of(n, op.constant(True), ov.Model([new, op.constant(True)], [a]), (-1, 1))
    node.set_merged_input(a, x.output(0), new.output(0))
    return ov.Model([node.get_iter_value(new.output(0), -1)], [n, x])


@case([np.array(3), data(1, 2)], [np.array(4), data(2, 2)])
def loop_whose_values_outgrow_the_input() -> ov.Model:
    """The loop state has the length of the input only at first."""
    n, x, a = op.parameter([], np.int64, name="n"), floats(-1, 2), floats(-1, 2, name="a")
    before, new = op.relu(a), op.concat([a, a], 0)
    node = loop_of(n, op.constant(True), ov.Model([new, before, op.constant(True)], [a]), (-1, 2))
    node.set_merged_input(a, x.output(0), new.output(0))
    last = node.get_iter_value(before.output(0), -1)
    rows = op.gather(op.shape_of(x), op.constant([0]), op.constant(0))
    return ov.Model([op.reshape(last, op.concat([rows, op.constant([-1])], 0), False)], [n, x])


@case([data(3, 4), data(3, 1)])
def loop_in_loop() -> ov.Model:
    x, s = floats(3, 4), floats(3, 1, name="s")
    row, start = floats(3, 1, name="row"), floats(3, 1, name="start")
    inner_a = floats(3, 1, name="inner_a")
    inner_new = op.tanh(op.add(inner_a, op.constant(f32(0.5))))
    inner = loop_of(
        op.constant(2), op.constant(True), ov.Model([inner_new, op.constant(True)], [inner_a]), (-1, 1)
    )
    inner.set_merged_input(inner_a, start.output(0), inner_new.output(0))
    new = op.add(inner.get_iter_value(inner_new.output(0), -1), row)
    node = loop_of(
        op.constant(4), op.constant(True), ov.Model([new, op.constant(True)], [row, start]), (-1, 1)
    )
    node.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 1)
    node.set_merged_input(start, s.output(0), new.output(0))
    outputs = [
        node.get_iter_value(new.output(0), -1),
        node.get_concatenated_slices(new.output(0), 0, 1, 1, -1, 1),
    ]
    return ov.Model(outputs, [x, s])


@case([data(2, 3)])
def loop_that_swaps() -> ov.Model:
    """Two loop states are exchanged, so neither may be overwritten before the other is read."""
    x = floats(2, 3)
    a, b = floats(2, 3, name="a"), floats(2, 3, name="b")
    left, right = op.abs(b), op.negative(a)
    node = loop_of(
        op.constant(3), op.constant(True), ov.Model([left, right, op.constant(True)], [a, b]), (-1, 2)
    )
    node.set_merged_input(a, x.output(0), left.output(0))
    node.set_merged_input(b, op.exp(x).output(0), right.output(0))
    return ov.Model([node.get_iter_value(left.output(0), -1), node.get_iter_value(right.output(0), -1)], [x])


def iterator(start: int, end: int, stride: int, part: int, axis: int, shape: Sequence[int]) -> ov.Model:
    """Sum slices of an input, scaled by an invariant input."""
    x, s, w = floats(*shape), floats(*_part(shape, part, axis), name="s"), floats(1, name="w")
    taken, total = (floats(*_part(shape, part, axis), name=n) for n in ("taken", "total"))
    weight = floats(1, name="weight")
    new = op.multiply(op.add(total, taken), weight)
    node = op.tensor_iterator()
    node.set_body(ov.Model([new], [taken, total, weight]))
    node.set_sliced_input(taken, x.output(0), start, stride, part, end, axis)
    node.set_merged_input(total, s.output(0), new.output(0))
    node.set_invariant_input(weight, w.output(0))
    joined = node.get_concatenated_slices(new.output(0), start, stride, part, end, axis)
    return ov.Model([node.get_iter_value(new.output(0), -1), joined], [x, s, w])


def _part(shape: Sequence[int], part: int, axis: int) -> list[int]:
    return [part if i == axis else n for i, n in enumerate(shape)]


@case([data(4, 3), data(1, 3), data(1)])
def iterator_forward() -> ov.Model:
    return iterator(0, -1, 1, 1, 0, (4, 3))


@case([data(4, 3), data(1, 3), data(1)])
def iterator_backward() -> ov.Model:
    return iterator(-1, 0, -1, 1, 0, (4, 3))


@case([data(2, 6), data(2, 2), data(1)])
def iterator_in_pairs() -> ov.Model:
    return iterator(0, -1, 2, 2, 1, (2, 6))


@case([data(2, 6), data(2, 2), data(1)])
def iterator_in_pairs_backward() -> ov.Model:
    return iterator(-1, 0, -2, 2, 1, (2, 6))


@case([data(5, 3), data(1, 3), data(1)], [data(2, 3), data(1, 3), data(1)])
def iterator_of_any_length() -> ov.Model:
    return iterator(0, -1, 1, 1, 0, (-1, 3))


@case([data(4, 3), data(1, 3)])
def iterator_that_joins_parts_of_open_length() -> ov.Model:
    """The length of a slice is given by ``part_size`` alone."""
    x, s = floats(4, 3), floats(-1, 3, name="s")
    taken, total = floats(1, 3, name="taken"), floats(-1, 3, name="total")
    new = op.add(total, taken)
    node = op.tensor_iterator()
    node.set_body(ov.Model([new], [taken, total]))
    node.set_sliced_input(taken, x.output(0), 0, 1, 1, -1, 0)
    node.set_merged_input(total, s.output(0), new.output(0))
    return ov.Model([node.get_concatenated_slices(new.output(0), 0, 1, 1, -1, 0)], [x, s])


@case([np.array([7])], [np.array([-3])])
def loop_that_rounds_what_comes_round() -> ov.Model:
    """An i64 Parameter receives an f32 value, rounded to the nearest integer: 3.5 and 4.5 become 4."""
    x, i = op.parameter([1], np.int64, name="x"), op.parameter([1], np.int64, name="i")
    new = op.multiply(op.convert(op.add(i, op.constant([0], np.int64)), "f32"), op.constant([0.5], f32))
    node = loop_of(op.constant(3), op.constant(True), ov.Model([new, op.constant(True)], [i]), (-1, 1))
    node.set_merged_input(i, x.output(0), new.output(0))
    joined = node.get_concatenated_slices(new.output(0), 0, 1, 1, -1, 0)
    return ov.Model([node.get_iter_value(new.output(0), -1), joined], [x])


@case([np.array([200], np.uint8)], [np.array([3], np.uint8)])
def loop_that_saturates_what_comes_round() -> ov.Model:
    x, i = op.parameter([1], np.uint8, name="x"), op.parameter([1], np.uint8, name="i")
    new = op.multiply(op.convert(op.add(i, op.constant([0], np.uint8)), "i32"), op.constant([3], np.int32))
    node = loop_of(op.constant(3), op.constant(True), ov.Model([new, op.constant(True)], [i]), (-1, 1))
    node.set_merged_input(i, x.output(0), new.output(0))
    return ov.Model([node.get_iter_value(new.output(0), -1)], [x])


@case(*([np.array([v], f32), np.array(n)] for v in (2.75, -2.5, 3.5) for n in (0, 1, 3)))
def loop_of_floats_that_gives_integers() -> ov.Model:
    """Without iterations, the output is the initial value in the element type of the back edge."""
    x, i, trips = floats(1), floats(1, name="i"), op.parameter([], np.int64, name="trips")
    new = op.convert(op.add(i, op.constant([1], f32)), "i64")
    node = loop_of(trips, op.constant(True), ov.Model([new, op.constant(True)], [i]), (-1, 1))
    node.set_merged_input(i, x.output(0), new.output(0))
    return ov.Model([node.get_iter_value(new.output(0), -1)], [x, trips])


@case([data(3, 1), np.array([5]), np.array([[3], [-4], [5]]), np.array([2.5], f32)])
def iterator_whose_parameters_convert() -> ov.Model:
    """Each Parameter keeps its declared element type and converts the value from the port map."""
    x, start = floats(3, 1), op.parameter([1], np.int64, name="start")
    steps, scale = op.parameter([3, 1], np.int64, name="steps"), floats(1, name="scale")
    part, total, step = floats(1, 1, name="part"), floats(1, name="total"), floats(1, 1, name="step")
    factor = op.parameter([1], np.int64, name="factor")
    sum = op.reshape(op.add(part, op.multiply(step, op.constant([[0.5]], f32))), [1], False)
    new = op.add(sum, op.multiply(total, op.convert(op.add(factor, op.constant([0], np.int64)), "f32")))
    node = op.tensor_iterator()
    node.set_body(ov.Model([new], [part, total, step, factor]))
    node.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 0)
    node.set_sliced_input(step, steps.output(0), 0, 1, 1, -1, 0)
    node.set_merged_input(total, start.output(0), new.output(0))
    node.set_invariant_input(factor, scale.output(0))
    return ov.Model([node.get_iter_value(new.output(0), -1)], [x, start, steps, scale])
