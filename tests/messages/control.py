"""Messages for invalid branches, loops and variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from harness.nets import End, Net

from ir_runtime.ir.tensor import Array

ROW = "FP32 1 3"


def graph(net: Net) -> str:
    """The layers and edges of a body."""
    text = net.xml().decode()
    return text[text.index("<layers>") : text.index("</net>")]


def passing(shape: str = "1,3", out: str = ROW) -> Net:
    """A body that returns its input: Parameter 0, Result 1."""
    net = Net()
    net.result(net.parameter("part", shape, out=out))
    return net


def iterator(
    inputs: str, outputs: str, body: Net, *shapes: str, back: str = "", out: Sequence[str] = ("FP32 -1 3",)
) -> Net:
    """A TensorIterator with Parameters of these shapes."""
    net = Net()
    sources = [net.parameter(f"x{i}", shape) for i, shape in enumerate(shapes)]
    maps = f"<port_map>{inputs}{outputs}</port_map><back_edges>{back}</back_edges>"
    ends = net.layer("TensorIterator", sources, out, name="rows", inside=f"{maps}<body>{graph(body)}</body>")
    for end in ends:
        net.result(end)
    return net


def cut(port: int, layer: int = 0, **how: int) -> str:
    """An entry of a port map; with an axis, it slices or concatenates."""
    said = "".join(f' {name}="{number}"' for name, number in how.items())
    return f'external_port_id="{port}" internal_layer_id="{layer}"{said}/>'


def parts(**how: int) -> Net:
    return iterator(f"<input {cut(0, axis=0, **how)}", f"<output {cut(1, 1, axis=0)}", passing(), "2,3")


def no_parts() -> Net:
    return parts(part_size=0)


def parts_that_do_not_move() -> Net:
    return parts(stride=0)


def parts_that_overlap() -> Net:
    return parts(part_size=2)


def parts_that_leave_a_row_over() -> Net:
    cuts = f"<input {cut(0, axis=0, part_size=2, stride=2)}", f"<output {cut(1, 1, axis=0, part_size=2)}"
    return iterator(*cuts, passing("2,3", "FP32 2 3"), "3,3")


def parts_beyond_the_end() -> Net:
    return parts(start=0, end=4)


def axis_that_there_is_not() -> Net:
    return iterator(f"<input {cut(0, axis=2)}", f"<output {cut(1, 1, axis=0)}", passing(), "2,3")


def different_numbers_of_parts() -> Net:
    body = Net()
    body.result(body.op("Add", body.parameter("a", "1,3"), body.parameter("b", "1,3")))
    inputs = f"<input {cut(0, 0, axis=0)}<input {cut(1, 1, axis=0)}"
    return iterator(inputs, f"<output {cut(2, 3, axis=0)}", body, "2,3", "5,3")


def parameter_that_receives_nothing() -> Net:
    body = Net()
    body.result(body.op("Add", body.parameter("a", "1,3"), body.parameter("b", "1,3")))
    return iterator(f"<input {cut(0, 0, axis=0)}", f"<output {cut(1, 3, axis=0)}", body, "2,3")


def output_that_the_body_does_not_give() -> Net:
    outputs = f"<output {cut(2, 1, axis=0)}"
    return iterator(f"<input {cut(0, axis=0)}", outputs, passing(), "2,3", out=["FP32 2 3"] * 2)


def packed_type_that_comes_round() -> Net:
    body = Net()
    body.result(body.op("Convert", body.parameter("a", "1,3"), destination_type="u4"))
    back = '<edge from-layer="2" to-layer="0"/>'
    return iterator(f"<input {cut(0)}", f"<output {cut(1, 2)}", body, "1,3", back=back, out=["U4 1 3"])


def parameter_of_a_packed_type() -> Net:
    body = Net()
    body.result(body.parameter("a", "1,3", "u4"))
    return iterator(f"<input {cut(0)}", f"<output {cut(1, 1)}", body, "1,3", out=["U4 1 3"])


def parts_beyond_the_end_when_run() -> tuple[Net, list[Array]]:
    net = iterator(f"<input {cut(0, axis=0, end=4)}", f"<output {cut(1, 1, axis=0)}", passing(), "?,3")
    return net, [np.zeros((2, 3), np.float32)]


def looping(
    trips: object,
    going: object,
    body: Callable[[Net, End], tuple[End, End]],
    shape: str = "1,3",
    outputs: str = f"<output {cut(3, 3)}",
    back: bool = True,
) -> Net:
    """A Loop on ``x`` whose body has Results 3, the loop state, and 4, the condition.

    Trip count and condition are constants, or shapes of Parameters.
    """
    net = Net()
    count = net.parameter("trips", trips, "i64") if isinstance(trips, str) else net.constant(trips)
    start = (
        net.parameter("going", going, "boolean")
        if isinstance(going, str)
        else net.constant(going, "boolean", name="going")
    )
    inner = Net(weights=net.weights)
    result, more = body(inner, inner.parameter("part", shape))
    assert len(inner.layers) == 3
    inner.result(result, "next")
    inner.result(more, "more")
    net.weights = inner.weights
    purpose = '<output external_port_id="-1" internal_layer_id="4" purpose="execution_condition"/>'
    edges = '<back_edges><edge from-layer="3" to-layer="0"/></back_edges>' if back else ""
    inside = f"<port_map><input {cut(2)}{outputs}{purpose}</port_map>{edges}<body>{graph(inner)}</body>"
    sources = [count, start, net.parameter("x", shape)]
    net.result(net.layer("Loop", sources, [""], version="opset5", name="loop", inside=inside)[0])
    return net


def relu(inner: Net, x: End) -> tuple[End, End]:
    return inner.op("ReLU", x), inner.constant(True, "boolean")


def doubled(inner: Net, x: End) -> tuple[End, End]:
    more = inner.constant(True, "boolean")
    return inner.op("Concat", x, x, axis=0), more


def two_conditions(inner: Net, x: End) -> tuple[End, End]:
    return inner.op("ReLU", x), inner.constant([True, False], "boolean")


def as_many_conditions(inner: Net, x: End) -> tuple[End, End]:
    limit = inner.constant(1, "f32")
    return x, inner.op("Less", x, limit)


def two_trip_counts() -> Net:
    return looping([1, 2], True, relu)


def two_first_conditions() -> Net:
    return looping(1, [True, True], relu)


def two_conditions_of_the_body() -> Net:
    return looping(2, True, two_conditions)


def no_condition_of_the_body() -> Net:
    net = looping(2, True, relu)
    purpose = '<output external_port_id="-1" internal_layer_id="4" purpose="execution_condition"/>'
    assert purpose in net.layers[3]
    net.layers[3] = net.layers[3].replace(purpose, "")
    return net


def output_that_nothing_is_tied_to() -> Net:
    return iterator(f"<input {cut(0, axis=0)}", "", passing(), "2,3")


def body_that_declares_other_inputs() -> Net:
    return iterator(f"<input {cut(0, axis=0)}", f"<output {cut(1, 1, axis=0)}", passing("2,3", ""), "2,3")


def two_conditions_of_the_body_when_run() -> tuple[Net, list[Array]]:
    return looping(2, True, as_many_conditions, "?"), [np.zeros(2, np.float32)]


def two_trip_counts_when_run() -> tuple[Net, list[Array]]:
    return looping("?", True, relu), [np.array([1, 2]), np.zeros((1, 3), np.float32)]


def no_iteration_for_the_last_part() -> tuple[Net, list[Array]]:
    return looping("", True, relu, back=False), [np.array(0), np.zeros((1, 3), np.float32)]


def no_iteration_for_the_shape_of_parts() -> tuple[Net, list[Array]]:
    outputs = f"<output {cut(3, 3, axis=0)}"
    return looping("", True, relu, outputs=outputs), [np.array(0), np.zeros((1, 3), np.float32)]


def parts_of_different_shapes() -> tuple[Net, list[Array]]:
    outputs = f"<output {cut(3, 3, axis=1)}"
    return looping(3, True, doubled, "?,3", outputs), [np.zeros((1, 3), np.float32)]


def branching(condition: str, then_output: str) -> Net:
    """An If that returns ``x`` in both branches."""
    net = Net()
    sources = [net.parameter("condition", condition, "boolean"), net.parameter("x", "1,3")]
    inside = (
        f"<then_port_map><input {cut(1)}{then_output}</then_port_map>"
        f"<else_port_map><input {cut(1)}<output {cut(2, 1)}</else_port_map>"
        f"<then_body>{graph(passing())}</then_body><else_body>{graph(passing())}</else_body>"
    )
    net.result(net.layer("If", sources, [""], version="opset8", name="branch", inside=inside)[0])
    return net


def two_conditions_of_a_branch() -> Net:
    return branching("2", f"<output {cut(2, 1)}")


def two_conditions_of_a_branch_when_run() -> tuple[Net, list[Array]]:
    net = branching("?", f"<output {cut(2, 1)}")
    return net, [np.array([True, False]), np.zeros((1, 3), np.float32)]


def branch_without_output() -> Net:
    return branching("", "")


def variable_without_value() -> tuple[Net, list[Array]]:
    net = Net()
    how = {"variable_id": "state", "variable_type": "f32", "variable_shape": "2..8"}
    net.result(net.op("ReadValue", out="FP32 -1", version="opset6", **how))
    return net, []


REFUSALS = [
    no_parts,
    parts_that_do_not_move,
    parts_that_overlap,
    parts_that_leave_a_row_over,
    parts_beyond_the_end,
    axis_that_there_is_not,
    different_numbers_of_parts,
    parameter_that_receives_nothing,
    output_that_the_body_does_not_give,
    packed_type_that_comes_round,
    parameter_of_a_packed_type,
    parts_beyond_the_end_when_run,
    two_trip_counts,
    two_first_conditions,
    two_conditions_of_the_body,
    no_condition_of_the_body,
    output_that_nothing_is_tied_to,
    body_that_declares_other_inputs,
    two_conditions_of_the_body_when_run,
    two_trip_counts_when_run,
    no_iteration_for_the_last_part,
    no_iteration_for_the_shape_of_parts,
    parts_of_different_shapes,
    two_conditions_of_a_branch,
    two_conditions_of_a_branch_when_run,
    branch_without_output,
    variable_without_value,
]
