"""Variables: state that an inference request keeps between runs, as in OpenVINO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from harness.nets import Net
from harness.oracle import PLUGIN, core, read

import ir_runtime
from ir_runtime.backends import available
from ir_runtime.ir.element import ElementType
from models.stateful import cache, input_before, old_versions, previous, total

INPUTS = {
    total: [np.full((1, 3), i, np.float32) for i in range(4)],
    cache: [np.full((n, 2), n, np.float32) for n in (3, 1, 1, 2)],
    previous: [np.full(2, i - 1, np.float32) for i in range(4)],
    old_versions: [np.full((1, 3), i + 1, np.float32) for i in range(4)],
}


@pytest.fixture
def save(tmp_path: Path) -> Any:
    def write(build: Any) -> Path:
        path = tmp_path / "model.xml"
        ov.serialize(build(), path)
        return path

    return write


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("build", INPUTS, ids=lambda build: build.__name__)
def test_agrees_with_openvino_run_by_run(build: Any, backend: str, save: Any) -> None:
    path = save(build)
    model = ir_runtime.read_model(path)
    assert list(model.report) == []
    ours = ir_runtime.compile_model(model, backend=backend).create_infer_request()
    theirs = core().compile_model(path, "CPU", PLUGIN).create_infer_request()
    for x in INPUTS[build]:
        wanted = theirs.infer([x])
        for i, found in enumerate(ours.infer([x]).to_tuple()):
            np.testing.assert_allclose(found, wanted[i], rtol=1e-6)
        (mine,), (other,) = ours.query_state(), theirs.query_state()
        assert mine.name == other.name
        np.testing.assert_allclose(mine.state.data, other.state.data, rtol=1e-6)


def test_each_request_has_its_own(save: Any) -> None:
    compiled = ir_runtime.compile_model(save(total))
    one, two = compiled.create_infer_request(), compiled.create_infer_request()
    x = np.ones((1, 3), np.float32)
    assert [one.infer([x])[0][0, 0] for _ in range(3)] == [11, 12, 13]
    assert two.infer([x])[0][0, 0] == 11


def test_calls_of_the_compiled_model_share_one(save: Any) -> None:
    path, x = save(total), np.ones((1, 3), np.float32)
    ours, theirs = ir_runtime.compile_model(path), core().compile_model(path, "CPU", PLUGIN)
    for _ in range(3):
        np.testing.assert_array_equal(ours([x])[0], theirs([x])[0])
    ours.reset_state()
    theirs.reset_state()
    np.testing.assert_array_equal(ours([x])[0], theirs([x])[0])


def test_reset_and_set(save: Any) -> None:
    request = ir_runtime.compile_model(save(total)).create_infer_request()
    x = np.ones((1, 3), np.float32)
    request.infer([x])
    request.reset_state()
    assert request.infer([x])[0][0, 0] == 11
    (held,) = request.query_state()
    held.state = ir_runtime.Tensor(np.full((1, 3), 100, np.float32))
    assert request.infer([x])[0][0, 0] == 101
    held.reset()
    assert request.infer([x])[0][0, 0] == 11
    with pytest.raises(ir_runtime.InputError, match=r"variable 'total' must be f32\[1,3\], got f32\[2\]"):
        held.state = np.zeros(2, np.float32)


def test_a_run_that_fails_changes_nothing(save: Any) -> None:
    class Stop:
        def before(self, step: ir_runtime.Step, inputs: Any) -> None:
            pass

        def after(self, step: ir_runtime.Step, outputs: Any, seconds: float) -> None:
            if step.layer.type == "Assign":
                raise KeyboardInterrupt

    request = ir_runtime.compile_model(save(total)).create_infer_request()
    x = np.ones((1, 3), np.float32)
    request.infer([x])
    with pytest.raises(KeyboardInterrupt):
        request.infer([x], observers=[Stop()])
    assert request.infer([x])[0][0, 0] == 12


def test_what_the_caller_does_to_its_arrays_stays_outside(save: Any) -> None:
    request = ir_runtime.compile_model(save(input_before)).create_infer_request()
    x = np.array([1, 2], np.float32)
    request.infer([x], share_inputs=True)
    x[:] = 7
    found = request.infer([x], share_inputs=True)[0]
    np.testing.assert_array_equal(found, [1, 2])
    found[:] = 9
    assert request.query_state()[0].state.data.tolist() == [7, 7]


def test_a_variable_without_initial_value_starts_with_zeros() -> None:
    text = """<net name="m" version="11"><layers>
    <layer id="0" name="r" type="ReadValue" version="opset6">
    <data variable_id="v" variable_type="f32" variable_shape="2"/>
    <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
    <layer id="1" name="out" type="Result" version="opset1">
    <input><port id="0" precision="FP32"><dim>2</dim></port></input></layer></layers>
    <edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"""
    assert ir_runtime.compile_model(text.encode())()[0].tolist() == [0, 0]
    of_any_rank = text.replace('variable_shape="2"', 'variable_shape="..."').replace("<dim>2</dim>", "")
    with pytest.raises(ir_runtime.ExecutionError, match="'v' is read before it has a value"):
        ir_runtime.compile_model(of_any_rank.encode())()


def test_reshapes_as_openvino_does(save: Any) -> None:
    """The shape of a variable follows that of the input, and the model runs."""
    path = save(previous)
    ours, theirs = ir_runtime.read_model(path), core().read_model(path)
    ours.reshape([5], {"previous": [5]})
    theirs.reshape([5], {"previous": ov.PartialShape([5])})
    assert str(ours.output().partial_shape) == "[5]"
    one = ir_runtime.compile_model(ours).create_infer_request()
    other = core().compile_model(theirs, "CPU", PLUGIN).create_infer_request()
    for x in (np.arange(5, dtype=np.float32), np.ones(5, np.float32)):
        np.testing.assert_array_equal(one.infer([x])[0], other.infer([x])[0])


def test_refuses_a_reshape_that_a_variable_does_not_follow(save: Any) -> None:
    for build, shape, what in (
        (total, [2, 3], r"assigns f32\[2,3\] to variable 'total', which is read as f32\[1,3\]"),
        (previous, [-1], r"initial_value has shape \[\?\], but attribute 'variable_shape' is \[2\]"),
        (old_versions, [2, 3], r"assigns f32\[2,3\] to variable 'total', which is read as f32\[1,3\]"),
    ):
        path = save(build)
        with pytest.raises(RuntimeError):
            core().read_model(path).reshape(shape)
        model = ir_runtime.read_model(path)
        with pytest.raises(ir_runtime.ValidationError, match=what):
            model.reshape(shape)
        assert str(model.input().partial_shape) == str(ir_runtime.read_model(path).input().partial_shape)


def test_which_variables_can_be_reshaped(save: Any) -> None:
    with pytest.raises(ir_runtime.InputError, match=r"unknown variable 'totl'.*\n.*did you mean 'total'"):
        ir_runtime.read_model(save(total)).reshape([1, 3], {"totl": [1, 3]})
    with pytest.raises(ir_runtime.InputError, match=r"'total' is read by .* shape of its initial value"):
        ir_runtime.read_model(save(old_versions)).reshape([1, 3], {"total": [1, 3]})


def test_a_variable_of_a_shape_that_does_not_allow_what_is_assigned(save: Any) -> None:
    path = save(total)
    wrong = path.read_text().replace('variable_shape="1,3"', 'variable_shape="?,2"')
    report = ir_runtime.validate(wrong.encode(), weights=path.with_suffix(".bin"))
    assert report.errors[0].message.startswith("initial_value has shape [1,3]")


def unstarted(shape: str, axis: int | None, element: str = "f32") -> Net:
    """A variable without an initial value: the input, concatenated to its contents if there is an axis."""
    said = {"f32": "FP32", "f16": "FP16", "boolean": "BOOL"}[element]
    out = " ".join([said, *(n if n.isdecimal() else "-1" for n in shape.split(","))])
    net = Net()
    x = net.parameter("x", shape, element, out=out)
    how = {"variable_id": "v", "variable_type": element, "variable_shape": shape}
    held = net.op("ReadValue", version="opset6", out=out, name="held", **how)
    if axis is not None:
        new = net.op("Concat", held, x, axis=axis, out=out, name="grown")
    elif element == "boolean":
        new = net.op("LogicalOr", x, x, out=out, name="same")
    else:  # the input itself is what OpenVINO's plugin does not survive
        new = net.op("ReLU", x, out=out, name="same")
    net.op("Assign", new, version="opset6", variable_id="v", out=out, name="next")
    net.result(held, "before")
    if axis is not None:
        net.result(new, "after")
    return net


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize(
    ("shape", "axis", "lengths", "element"),
    [
        ("1,?", 1, [(1, 2), (1, 1), (1, 3)], "f32"),
        ("?,3", 0, [(2, 3), (1, 3), (1, 3)], "f32"),
        ("..9", None, [(4,), (2,), (0,)], "f32"),
        ("2", None, [(2,), (2,), (2,)], "f32"),
        ("?", None, [(2,), (3,), (1,)], "boolean"),
    ],
)
def test_without_an_initial_value_open_lengths_are_0_at_first(
    shape: str, axis: int | None, lengths: list[tuple[int, ...]], element: str, backend: str
) -> None:
    net = unstarted(shape, axis, element)
    dtype = ElementType.parse(element).dtype
    ours = ir_runtime.compile_model(net.xml(), backend=backend).create_infer_request()
    theirs = core().compile_model(read(net.xml()), "CPU", PLUGIN).create_infer_request()
    (mine,), (other,) = ours.query_state(), theirs.query_state()
    assert tuple(mine.state.shape) == tuple(other.state.shape)
    for number, length in enumerate([*lengths, lengths[0]]):
        if number == len(lengths):
            ours.reset_state()
            theirs.reset_state()
        x = np.full(length, number + 1).astype(dtype)
        wanted = theirs.infer([x])
        for i, found in enumerate(ours.infer([x]).to_tuple()):
            assert (found.dtype, found.shape) == (wanted[i].dtype, wanted[i].shape)
            np.testing.assert_array_equal(found, wanted[i])


def test_a_length_that_is_never_0_needs_an_initial_value() -> None:
    """OpenVINO starts it at length 0, which contradicts the shape of the variable."""
    compiled = ir_runtime.compile_model(unstarted("2..5", None).xml())
    with pytest.raises(ir_runtime.ExecutionError, match="'v' is read before it has a value"):
        compiled([np.zeros(2, np.float32)])
