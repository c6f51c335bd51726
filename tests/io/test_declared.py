"""Declarations of ports that contradict inference have no effect: models run, with one warning."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from harness.nets import Net, body_of
from harness.oracle import plugin, read

import ir_runtime as ir
from ir_runtime.codes import Code

X = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)

NETS: dict[str, tuple[Callable[[], Net], Code]] = {}


def declares(code: Code) -> Callable[[Callable[[], Net]], Callable[[], Net]]:
    """Register a model with contradicted declarations, and the code of its first finding."""

    def register(make: Callable[[], Net]) -> Callable[[], Net]:
        NETS[make.__name__] = make, code
        return make

    return register


def activated(out: str = "FP32 2 3", takes: str = "FP32 2 3", x: str = "FP32 2 3") -> Net:
    """relu(x) for x[2,3], with given declarations of ports and a consumer."""
    net = Net()
    relu = net.op("ReLU", net.parameter("x", "2,3", out=x), out=out, inputs=[takes], name="relu")
    net.result(net.op("Abs", relu, out="FP32 2 3", name="abs"))
    return net


@declares(Code.DECLARED_SHAPE)
def dims_of_an_output() -> Net:
    return activated(out="FP32 2 4")


@declares(Code.DECLARED_TYPE)
def type_of_an_output() -> Net:
    return activated(out="I64 2 3")


@declares(Code.INPUT_PORT)
def dims_of_an_input() -> Net:
    return activated(takes="FP32 3 2")


@declares(Code.INPUT_PORT)
def type_of_an_input() -> Net:
    return activated(takes="FP16 2 3")


@declares(Code.DECLARED_TYPE)
def type_of_a_parameter() -> Net:
    """The attribute f32 is the type that callers pass."""
    return activated(x="FP16 2 3")


@declares(Code.DECLARED_SHAPE)
def what_a_reader_could_not_take() -> Net:
    """The declared shape of relu does not broadcast with [3], the inferred one does."""
    net = Net()
    relu = net.op("ReLU", net.parameter("x", "2,3", out="FP32 2 3"), out="FP32 2 4", name="relu")
    one = net.constant([1.0, 2.0, 3.0], "f32")
    net.result(net.op("Add", relu, one, inputs=["FP32 2 4", "FP32 3"], out="FP32 2 3"))
    return net


def looping(trips: str = "") -> Net:
    """A loop over x that concatenates relu(x) of each iteration; ``trips`` is a constant or an input."""
    net, inner = Net(), Net()
    part = inner.parameter("part", "2,3", out="FP32 2 3")
    relu = inner.op("ReLU", part, out="I64 1 7")
    inner.result(relu)
    on = inner.op("Const", element_type="boolean", shape="", offset=0, size=1, out="BOOL", name="on")
    inner.result(on, "goes_on")
    net.weights = b"\x01"
    count = net.parameter("trips", "", "i64", out="I64")
    start = net.op("Const", element_type="boolean", shape="", offset=0, size=1, out="BOOL", name="start")
    x = net.parameter("x", "2,3", out="FP32 2 3")
    maps = (
        '<port_map><input external_port_id="2" internal_layer_id="0"/>'
        '<output external_port_id="3" internal_layer_id="2" axis="0"/>'
        '<output external_port_id="-1" internal_layer_id="4" purpose="execution_condition"/></port_map>'
    )
    out = net.layer("Loop", [count, start, x], ["FP32 -1 3"], version="opset5", inside=maps + body_of(inner))
    net.result(out[0])
    return net


def quietly(net: Net) -> ir.Model:
    """Read a model without its warnings."""
    return ir.read_model(net.xml(), net.weights, strict=False)


@pytest.mark.parametrize("name", NETS)
def test_the_result_is_that_of_openvino(name: str) -> None:
    make, code = NETS[name]
    net = make()
    assert ir.validate(net.xml(), net.weights).errors[0].code == code
    with pytest.warns(UserWarning, match=code):
        model = ir.read_model(net.xml(), net.weights)
    other = read(net.xml(), net.weights)
    assert str(model.output().partial_shape) == str(other.output().get_partial_shape())
    assert model.output().element_type.label == other.output().get_element_type().to_string()
    for backend in ("reference", "numpy"):
        found = ir.compile_model(model, backend=backend)(X)[0]
        np.testing.assert_array_equal(found, plugin(other, [X])[0])


@pytest.mark.parametrize("name", NETS)
def test_strict_refuses(name: str) -> None:
    make, code = NETS[name]
    net = make()
    for read_model in (ir.read_model, ir.Core().read_model):
        with pytest.raises(ir.ValidationError) as caught:
            read_model(net.xml(), net.weights, strict=True)
        assert caught.value.code == code


def test_one_warning_at_the_line_of_the_caller() -> None:
    xml = activated(out="I64 2 4", takes="FP16 2 3").xml()
    calls = (ir.read_model, ir.compile_model, ir.Core().read_model, ir.Core().compile_model)
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
            call(xml)
        (warning,) = caught
        assert (warning.filename, warning.lineno) == (__file__, line)
        assert "IR305" in str(warning.message), "the first"
        assert str(warning.message).count("IR3") == 1


def test_the_rest_is_counted() -> None:
    net = activated()
    for number in range(3):
        abs = net.op("Abs", net.parameter(f"y{number}", "2", out="FP32 2"), out="FP32 3")
        net.result(net.op("Abs", abs, out="FP32 2"), f"r{number}")
    with pytest.warns(UserWarning, match="; 2 more declarations are contradicted;"):
        ir.read_model(net.xml())
    with pytest.warns(UserWarning, match=r"gives \[2,3\]; inferred types and shapes are used"):
        ir.read_model(activated(out="FP32 2 4").xml())


def test_what_was_read_is_not_warned_of_again() -> None:
    model = quietly(activated(out="FP32 2 4"))
    assert model.report.errors[0].code == Code.DECLARED_SHAPE
    np.testing.assert_array_equal(ir.compile_model(model)(X)[0], np.maximum(X, 0))


def test_what_cannot_be_computed_is_refused() -> None:
    """The consumer accepts the declared shape of relu, but not the inferred one."""
    net = Net()
    relu = net.op("ReLU", net.parameter("x", "2,3", out="FP32 2 3"), out="FP32 2 4", name="relu")
    one = net.constant([1.0, 2.0, 3.0, 4.0], "f32")
    net.result(net.op("Add", relu, one, inputs=["FP32 2 4", "FP32 4"], out="FP32 2 4", name="sum"))
    assert [e.code for e in ir.validate(net.xml(), net.weights).errors] == [Code.DECLARED_SHAPE]
    with pytest.raises(RuntimeError):
        read(net.xml(), net.weights)
    with pytest.raises(ir.ValidationError) as caught:
        ir.read_model(net.xml(), net.weights)
    assert [e.code for e in caught.value.diagnostics] == [Code.DECLARED_SHAPE, Code.CONTRADICTION]
    with pytest.raises(ir.ValidationError):
        ir.compile_model(quietly(net))


def test_bodies_and_loops_of_no_iteration() -> None:
    """The output of a loop without iterations has the inferred type of the parts, not the declared one."""
    net = looping()
    model = ir.read_model(net.xml(), net.weights)
    assert {found.code for found in model.report.warnings} >= {Code.DECLARED_SHAPE, Code.DECLARED_TYPE}
    compiled = ir.compile_model(model)
    np.testing.assert_array_equal(compiled([np.array(2), X])[0], np.maximum(np.concatenate([X, X]), 0))
    empty = compiled([np.array(0), X])[0]
    assert (empty.dtype, empty.shape) == (np.float32, (0, 3))


def test_parameters_of_bodies_take_what_they_are_given(tmp_path: Path) -> None:
    net, inner = Net(), Net()
    inner.result(inner.op("ReLU", inner.parameter("part", "5", "f16", out="FP16 5"), out="FP16 5"))
    maps = (
        '<port_map><input external_port_id="0" internal_layer_id="0"/>'
        '<output external_port_id="1" internal_layer_id="2"/></port_map>'
    )
    x = net.parameter("x", "2,3", out="FP32 2 3")
    net.result(net.layer("TensorIterator", [x], ["FP32 2 3"], inside=maps + body_of(inner))[0])
    model = quietly(net)
    assert model.report.errors[0].code == Code.INPUT_PORT
    np.testing.assert_array_equal(ir.compile_model(model)(X)[0], np.maximum(X, 0))
    ir.save_model(model, tmp_path / "saved.xml")
    assert list(ir.validate(tmp_path / "saved.xml")) == []


@pytest.mark.parametrize("make", [*(make for make, _ in NETS.values()), looping])
def test_what_is_saved_declares_what_was_inferred(tmp_path: Path, make: Callable[[], Net]) -> None:
    net = make()
    model = quietly(net)
    ir.save_model(model, tmp_path / "saved.xml")
    assert list(ir.validate(tmp_path / "saved.xml")) == []
    saved = ir.read_model(tmp_path / "saved.xml", strict=True)
    assert [str(o) for o in saved.outputs] == [str(o) for o in model.outputs]


def test_a_model_with_another_mistake_is_refused_for_both() -> None:
    net = activated(out="FP32 2 4")
    net.result(net.op("ReduceSum", net.parameter("y", "2"), net.constant([3]), name="sum"), "other")
    with pytest.raises(ir.ValidationError) as caught:
        ir.read_model(net.xml(), net.weights)
    assert [e.code for e in caught.value.diagnostics] == [Code.DECLARED_SHAPE, Code.CONTRADICTION]


def test_what_no_layer_computes_with_is_no_error() -> None:
    """OpenVINO runs such files; only ``strict`` refuses them."""
    net = Net()
    relu = net.op("ReLU", net.parameter("x", "2,3", out="FP32 2 3"), out="FP16 2 4", name="relu")
    net.layer("Result", [relu], inputs=["I64 5"])
    report = ir.validate(net.xml())
    assert report.ok
    assert {found.code for found in report.warnings} == {Code.DECLARED_TYPE, Code.DECLARED_SHAPE}
    np.testing.assert_array_equal(ir.compile_model(net.xml())(X)[0], plugin(read(net.xml()), [X])[0])
    with pytest.raises(ir.ValidationError):
        ir.read_model(net.xml(), strict=True)


def test_outputs_of_version_10_may_declare_f16() -> None:
    """Model Optimizer declared DetectionOutput so; no layer of the file reads its output."""
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2,3", out="FP32 2 3"), out="FP16 2 3", name="relu"))
    xml = net.xml().replace(b'version="11"', b'version="10"', 1)
    assert ir.validate(xml).ok
    np.testing.assert_array_equal(ir.compile_model(xml)(X)[0], np.maximum(X, 0))


def adding(out: str, *others: str, takes: str = "") -> Net:
    """x[3] times w[3,2], with a given declaration, followed by layers that add constants."""
    net = Net(version="10")
    x, w = net.parameter("x", "3", out="FP32 3"), net.constant(np.arange(6).reshape(3, 2), "f32", name="w")
    product = net.op("MatMul", x, w, out=out, inputs=["FP32 3", "FP32 3 2"], name="product")
    for number, shape in enumerate(others):
        ones = net.constant(np.ones(list(map(int, shape.split())), np.float32), "f32", name=f"ones{number}")
        dims = f"FP32 {shape}"
        sum = net.op("Add", product, ones, out=dims, inputs=[takes or out, dims], name=f"sum{number}")
        net.result(sum, f"result{number}")
    return net


def test_leading_axes_that_make_no_difference_are_no_error() -> None:
    """Old releases inferred an extra axis for vector-matrix products, and wrote it into their files."""
    net = adding("FP32 1 2", "1 2", "4 2")
    report = ir.validate(net.xml(), net.weights)
    assert [(found.code, found.severity) for found in report] == [(Code.DECLARED_SHAPE, ir.Severity.WARNING)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ir.read_model(net.xml(), net.weights)
    x, other = X[0], read(net.xml(), net.weights)
    for backend in ("reference", "numpy"):
        found = ir.compile_model(model, backend=backend)(x)
        for ours, theirs in zip(found.to_tuple(), plugin(other, [x]), strict=True):
            np.testing.assert_array_equal(ours, theirs, strict=True)
    with pytest.raises(ir.ValidationError):
        ir.read_model(net.xml(), net.weights, strict=True)


@pytest.mark.parametrize(
    ("out", "others"),
    [("FP32 1 2", ("1 2", "2")), ("FP32 2 1", ("1 2",)), ("FP32 4 2", ("4 2",)), ("I64 1 2", ("1 2",))],
    ids=["one reader depends on it", "an axis behind", "another length", "another type"],
)
def test_other_contradictions_that_layers_read_are_errors(out: str, others: tuple[str, ...]) -> None:
    net = adding(out, *others)
    assert not ir.validate(net.xml(), net.weights).ok


@pytest.mark.parametrize(("takes", "is_valid"), [("FP32 1 2", True), ("FP32 3 2", False)])
def test_inputs_may_declare_leading_axes_that_make_no_difference(takes: str, is_valid: bool) -> None:
    net = adding("FP32 2", "3 2", takes=takes)
    report = ir.validate(net.xml(), net.weights)
    assert [found.code for found in report] == [Code.INPUT_PORT]
    assert report.ok == is_valid
