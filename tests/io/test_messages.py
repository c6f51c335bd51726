"""Findings of invalid models (code, line, layer, message, hint), compared with snapshots."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from harness.nets import End, Net
from harness.oracle import read
from harness.snapshots import same_as_before

import ir_runtime as ir
from ir_runtime.codes import Code

MISTAKES: dict[str, tuple[Callable[[], Net], tuple[Code, ...]]] = {}


def mistake(*codes: Code) -> Callable[[Callable[[], Net]], Callable[[], Net]]:
    """Register a model with a mistake, and the codes of its findings."""

    def register(make: Callable[[], Net]) -> Callable[[], Net]:
        MISTAKES[make.__name__] = make, codes
        return make

    return register


def summing() -> Net:
    """A valid model: x[2,3] summed over axis 1. Lines: 4 x, 5 axes, 6 sum, 7 result; edges from 10."""
    net = Net()
    x = net.parameter("x", "2,3", out="FP32 2 3")
    net.result(net.op("ReduceSum", x, net.constant([1], name="axes"), out="FP32 2", name="sum"))
    return net


def changed(layer: int, old: str, new: str) -> Net:
    net = summing()
    assert old in net.layers[layer]
    net.layers[layer] = net.layers[layer].replace(old, new)
    return net


def rewired(edge: int, *ends: int) -> Net:
    net = summing()
    net.edges[edge] = ends  # type: ignore[assignment]
    return net


@mistake(Code.DUPLICATE_ID)
def duplicate_layer_id() -> Net:
    net = summing()
    net.layers.append(net.layers[0].replace('name="x"', 'name="again"'))
    return net


@mistake(Code.DUPLICATE_ID, Code.CONNECTED_TWICE)
def duplicate_port_id() -> Net:
    net = changed(2, '<port id="1">', '<port id="0">')
    net.edges[1] = (1, 0, 2, 0)
    return net


@mistake(Code.DANGLING_EDGE)
def edge_from_no_layer() -> Net:
    return rewired(0, 9, 0, 2, 0)


@mistake(Code.DANGLING_EDGE)
def edge_to_no_layer() -> Net:
    return rewired(0, 0, 0, 9, 0)


@mistake(Code.DANGLING_EDGE)
def edge_from_no_port() -> Net:
    return rewired(0, 0, 5, 2, 0)


@mistake(Code.DANGLING_EDGE)
def edge_to_no_port() -> Net:
    return rewired(0, 0, 0, 2, 5)


@mistake(Code.DANGLING_EDGE)
def edge_from_a_result() -> Net:
    return rewired(0, 3, 0, 2, 0)


@mistake(Code.CONNECTED_TWICE)
def connected_twice() -> Net:
    net = summing()
    net.edges.append((1, 0, 2, 1))
    return net


@mistake(Code.UNCONNECTED)
def unconnected() -> Net:
    net = summing()
    del net.edges[1]
    return net


@mistake(Code.CYCLE)
def cycle() -> Net:
    net = Net()
    x = net.parameter("x", "2")
    first = net.op("Add", x, End(2, 1), out="FP32 2", name="first")
    net.result(net.op("ReLU", first, out="FP32 2", name="second"))
    return net


@mistake(Code.CYCLE)
def cycle_of_one() -> Net:
    net = Net()
    net.op("Add", net.parameter("x", "2"), End(1, 2), out="FP32 2", name="alone")
    return net


@mistake(Code.UNKNOWN_OPERATION)
def unknown_operation() -> Net:
    return changed(2, 'type="ReduceSum"', 'type="ReduceSums"')


@mistake(Code.UNKNOWN_OPERATION)
def unknown_operation_near_nothing() -> Net:
    return changed(2, 'type="ReduceSum"', 'type="Zzzzzzzz"')


@mistake(Code.UNKNOWN_OPERATION)
def operation_of_a_later_opset() -> Net:
    return changed(2, 'type="ReduceSum"', 'type="ReduceL2"')


@mistake(Code.UNKNOWN_ATTRIBUTE)
def unknown_attribute() -> Net:
    return changed(2, "<input>", '<data keep_dim="true"/><input>')


@mistake(Code.BAD_ATTRIBUTE)
def missing_attribute() -> Net:
    return changed(0, 'element_type="f32" ', "")


@mistake(Code.BAD_ATTRIBUTE)
def invalid_attribute() -> Net:
    return changed(2, "<input>", '<data keep_dims="maybe"/><input>')


@mistake(Code.BAD_ATTRIBUTE)
def invalid_choice() -> Net:
    net = Net()
    x = net.parameter("x", "1,1,3,3")
    f = net.constant([[[[1]]]], "f32", name="f")
    one, none = "1,1", "0,0"
    net.result(
        net.op(
            "Convolution", x, f, strides=one, dilations=one, pads_begin=none, pads_end=none, auto_pad="SAME"
        )
    )
    return net


@mistake(Code.PORT_COUNT)
def too_few_inputs() -> Net:
    net = Net()
    net.result(net.op("ReduceSum", net.parameter("x", "2,3"), name="sum"))
    return net


@mistake(Code.PORT_COUNT)
def too_many_inputs() -> Net:
    net = Net()
    x = net.parameter("x", "2")
    net.result(net.op("ReLU", x, x, name="relu"))
    return net


@mistake(Code.UNREAD)
def no_outputs() -> Net:
    """OpenVINO uses the outputs of the operation."""
    net = Net()
    net.layer("ReLU", [net.parameter("x", "2")], name="relu")
    return net


@mistake(Code.PORT_COUNT)
def too_many_outputs() -> Net:
    net = Net()
    net.result(net.layer("ReLU", [net.parameter("x", "2")], ["FP32 2", "FP32 2"], name="relu")[0])
    return net


@mistake(Code.CONTRADICTION)
def contradiction() -> Net:
    net = Net()
    x, y = net.parameter("x", "2,3"), net.parameter("y", "2,4")
    net.result(net.op("Add", x, y, name="sum"))
    return net


@mistake(Code.LENGTH)
def length_beyond_64_bits() -> Net:
    net = Net()
    x = net.parameter("x", "1,?,8589934592,1")
    net.result(net.op("DepthToSpace", x, name="spread", block_size=1 << 31, mode="blocks_first"))
    return net


@mistake(Code.ELEMENT_TYPE)
def mixed_element_types() -> Net:
    net = Net()
    x, y = net.parameter("x", "2", "f32"), net.parameter("y", "2", "f16")
    net.result(net.op("Add", x, y, name="sum"))
    return net


@mistake(Code.ELEMENT_TYPE)
def wrong_element_type() -> Net:
    net = Net()
    net.result(net.op("ReduceSum", net.parameter("x", "2"), net.constant([0], "f32"), name="sum"))
    return net


@mistake(Code.DECLARED_SHAPE)
def wrong_declared_dims() -> Net:
    return read_by_a_layer("FP32 3")


@mistake(Code.DECLARED_TYPE)
def wrong_declared_precision() -> Net:
    return read_by_a_layer("FP16 2")


def read_by_a_layer(out: str) -> Net:
    """x[2,3] summed over axis 1, with a consumer."""
    net = Net()
    sum = net.op("ReduceSum", net.parameter("x", "2,3"), net.constant([1], name="axes"), out=out, name="sum")
    net.result(net.op("ReLU", sum, out="FP32 2", name="relu"))
    return net


@mistake(Code.DECLARED_TYPE, Code.DECLARED_SHAPE)
def declared_where_no_layer_computes_with_it() -> Net:
    """OpenVINO runs it; only ``strict`` refuses it."""
    return read_by_a_result("FP16 3", "FP16 3")


@mistake(Code.INPUT_PORT)
def declared_by_a_result() -> Net:
    return read_by_a_result("FP32 2", "I64 2")


def read_by_a_result(out: str, takes: str) -> Net:
    """x[2,3] summed over axis 1."""
    net = Net()
    axes = net.constant([1], name="axes")
    sum = net.op("ReduceSum", net.parameter("x", "2,3"), axes, out=out, name="sum")
    net.layer("Result", [sum], inputs=[takes], name="result")
    return net


@mistake(Code.DECLARED_SHAPE)
def parameter_with_two_shapes() -> Net:
    return changed(0, "<dim>3</dim>", "<dim>4</dim>")


@mistake(Code.BAD_ELEMENT)
def dims_that_are_no_numbers() -> Net:
    return changed(2, "<dim>2</dim>", "<dim>two</dim>")


@mistake(Code.BAD_ELEMENT)
def unknown_precision() -> Net:
    return changed(2, 'precision="FP32"', 'precision="F32"')


@mistake(Code.WEIGHTS_RANGE)
def size_contradicts_shape() -> Net:
    return changed(1, 'size="8"', 'size="4"')


@mistake(Code.WEIGHTS_RANGE)
def offset_beyond_the_end() -> Net:
    return changed(1, 'offset="0"', 'offset="4"')


@mistake(Code.WEIGHTS_MISSING)
def no_weights() -> Net:
    net = summing()
    net.weights = b""
    return net


@mistake(Code.WEIGHTS_RANGE)
def constant_that_is_no_text() -> Net:
    return changed(1, 'element_type="i64"', 'element_type="string"')


@mistake(Code.BAD_ELEMENT)
def layer_without_id() -> Net:
    return changed(2, ' id="2"', "")


@mistake(Code.BAD_ELEMENT)
def layer_with_a_name_for_an_id() -> Net:
    return changed(2, ' id="2"', ' id="two"')


@mistake(Code.BAD_ELEMENT)
def layer_without_type() -> Net:
    return changed(2, ' type="ReduceSum"', "")


@mistake(Code.BAD_ELEMENT)
def layer_without_version() -> Net:
    return changed(2, ' version="opset1"', "")


@mistake(Code.BAD_ELEMENT)
def port_without_id() -> Net:
    return changed(2, '<port id="1">', "<port>")


@mistake(Code.LIMIT)
def dims_beyond_the_limits() -> Net:
    return changed(2, "<dim>2</dim>", "<dim>1000000000000</dim>")


@mistake(Code.LIMIT)
def parameter_beyond_the_limits() -> Net:
    net = Net()
    net.result(net.parameter("x", "1000000,1000000"))
    return net


@mistake(Code.LIMIT)
def rank_beyond_the_limits() -> Net:
    return changed(0, "<dim>2</dim>", "<dim>1</dim>" * 100)


@mistake(Code.IR_VERSION)
def old_version() -> Net:
    return Net(version="1")


@mistake(Code.BAD_ELEMENT)
def version_that_is_no_number() -> Net:
    return Net(version="eleven")


@mistake(Code.FORBIDDEN_XML)
def document_type() -> Net:
    return Net(name='"><!DOCTYPE net')


@mistake(Code.BAD_XML)
def not_well_formed() -> Net:
    return changed(2, "</layer>", "")


@mistake(Code.UNKNOWN_OPERATION, Code.BAD_ATTRIBUTE, Code.UNKNOWN_ATTRIBUTE, Code.DECLARED_SHAPE)
def several_at_once() -> Net:
    """One run reports all errors; none hides another."""
    net = Net()
    x = net.parameter("x", "2,3", out="FP32 2 3")
    a = net.op("Mystery", x, out="FP32 2 3", name="a")
    b = net.op("ReduceSum", a, net.constant([1]), out="FP32 2", name="b", keep_dims="?")
    c = net.op("ReLU", b, out="FP32 2", name="c", slope="1")
    net.result(net.op("ReLU", c, out="FP32 5", name="d"))
    return net


@mistake(Code.INPUT_PORT)
def input_port_with_other_dims() -> Net:
    net = summing()
    net.layers[2] = net.layers[2].replace(
        '<port id="0">', '<port id="0" precision="FP32"><dim>2</dim><dim>4</dim>'
    )
    return net


@mistake(Code.DECLARED_SHAPE)
def attribute_that_readers_do_not_expect() -> Net:
    net = Net()
    x = net.parameter("x", "2,4", out="FP32 2 3")
    net.result(net.op("ReLU", x, inputs=["FP32 2 3"], out="FP32 2 3"))
    return net


@mistake(Code.DUPLICATE_NAME, Code.DUPLICATE_NAME)
def two_of_the_same_name() -> Net:
    net = Net()
    x = net.op("ReLU", net.parameter("x", "2"), name="a", names="t")
    net.result(net.op("ReLU", x, name="a", names="t"))
    return net


@mistake(Code.UNKNOWN_OPERATION)
def opset_that_there_is_not() -> Net:
    return changed(2, 'version="opset1"', 'version="opset99"')


@mistake(Code.UNKNOWN_OPERATION)
def opset_of_another_place() -> Net:
    return changed(2, 'version="opset1"', 'version="../../etc"')


@mistake(Code.UNKNOWN_OPERATION)
def opset_that_no_longer_has_it() -> Net:
    net = Net()
    x = net.parameter("x", "2", "boolean")
    net.result(net.op("Xor", x, x, version="opset3"))
    return net


@mistake(Code.UNKNOWN_OPERATION)
def constant_by_its_full_name() -> Net:
    return changed(1, 'type="Const"', 'type="Constant"')


@mistake(Code.BAD_ELEMENT)
def means_that_are_subtracted() -> Net:
    """OpenVINO still applies the mean values that models of 2020 declare outside their layers."""
    net = summing()
    means = '<pre-process>\n<channel id="0"><mean value="1"/></channel>\n</pre-process>'
    net.rt_info = f"</rt_info>\n{means}\n<rt_info>"
    return net


@mistake(Code.BAD_ELEMENT)
def layer_without_a_name() -> Net:
    return changed(2, ' name="sum"', "")


@mistake(Code.BAD_ATTRIBUTE, Code.BAD_ATTRIBUTE)
def constant_without_shape_and_type() -> Net:
    return changed(1, ' element_type="i64" shape="1"', "")


@mistake(Code.UNREAD)
def layer_that_nobody_reads() -> Net:
    net = summing()
    net.op("ReLU", End(0, 0), name="idle", out="FP32 2 3")
    return net


@mistake(Code.VARIABLE)
def variable_without_assign() -> Net:
    net = Net()
    x = net.parameter("x", "2")
    net.result(net.op("ReadValue", x, version="opset3", variable_id="v", name="state"))
    return net


@mistake(Code.VARIABLE)
def variable_without_read_value() -> Net:
    net = Net()
    net.op("Assign", net.parameter("x", "2"), version="opset3", variable_id="v", name="state")
    return net


@mistake(Code.VARIABLE, Code.UNREAD)
def variable_whose_read_value_nobody_needs() -> Net:
    net = Net()
    x = net.parameter("x", "2")
    net.op("Assign", x, version="opset3", variable_id="v", name="next")
    net.op("ReadValue", x, version="opset3", variable_id="v", name="state")
    net.result(net.op("ReLU", x))
    return net


@mistake(Code.VARIABLE)
def variable_assigned_twice() -> Net:
    net = Net()
    x = net.parameter("x", "2")
    net.result(net.op("ReadValue", x, version="opset3", variable_id="v", name="state"))
    net.op("Assign", x, version="opset3", variable_id="v", name="first")
    net.op("Assign", x, version="opset3", variable_id="v", name="second")
    return net


def two_constants() -> Net:
    net = Net()
    a, b = (net.constant(np.arange(8) + i, name=f"c{i}") for i in range(2))
    net.result(net.op("Add", a, b, out="I64 8", name="sum"))
    return net


@mistake(Code.SHARED_BYTES)
def constants_that_overlap() -> Net:
    net = two_constants()
    net.layers[1] = net.layers[1].replace('offset="64"', 'offset="32"')
    return net


@mistake(Code.DECLARED_SHAPE)
def leading_axis_that_makes_no_difference() -> Net:
    net = Net()
    x, w = net.parameter("x", "3", out="FP32 3"), net.constant(np.ones((3, 2)), "f32", name="w")
    product = net.op("MatMul", x, w, out="FP32 1 2", name="product")
    net.result(net.op("Add", product, net.constant(np.ones((4, 2)), "f32"), out="FP32 4 2", name="sum"))
    return net


@mistake(Code.UNKNOWN_OPERATION)
def unknown_operation_that_no_output_needs() -> Net:
    net = summing()
    net.op("Foo", End(0, 0), out="FP32 2 3", name="dead")
    return net


@mistake(Code.ORPHAN_BYTES)
def bytes_of_no_constant() -> Net:
    net = two_constants()
    net.weights += bytes(100)
    return net


@mistake(Code.DANGLING_EDGE)
def id_that_no_edge_names() -> Net:
    net = Net()
    x = net.parameter("x", "2")
    net.result(net.op("ReLU", x, name="relu"))
    net.layers[1] = net.layers[1].replace('id="1" name="relu"', 'id="7" name="relu"')
    return net


@mistake(Code.BAD_ELEMENT)
def edge_without_port() -> Net:
    net = summing()
    net.edges[0] = (0, 0, 2, "x")  # type: ignore[assignment]
    return net


@pytest.mark.parametrize("name", sorted(MISTAKES))
def test_message(name: str) -> None:
    make, codes = MISTAKES[name]
    net = make()
    found = list(ir.validate(net.xml(), net.weights or None))
    same_as_before(f"messages/{name}", "\n".join(str(d).replace("<bytes>", "m.xml") for d in found))
    assert tuple(d.code for d in found) == codes


def test_the_valid_net_is_valid() -> None:
    assert list(ir.validate(summing().xml(), summing().weights)) == []


@pytest.mark.parametrize("name", sorted(MISTAKES))
def test_reading_raises_what_is_found(name: str) -> None:
    net = MISTAKES[name][0]()
    errors = ir.validate(net.xml(), net.weights or None).errors
    if not errors:
        assert ir.read_model(net.xml(), net.weights).report.ok
        return
    with pytest.raises(ir.IRError) as caught:
        ir.read_model(net.xml(), net.weights or None, strict=True)
    assert caught.value.code == errors[0].code
    assert str(errors[0]) in str(caught.value)
    if isinstance(caught.value, ir.ValidationError):
        assert [str(found) for found in caught.value.diagnostics] == [str(found) for found in errors]


def test_every_code_of_files_and_graphs_has_a_message() -> None:
    elsewhere = {Code.ANY, Code.INVALID, Code.UNREADABLE, Code.GUESSED_VERSION, Code.PORT_VALUE}
    elsewhere |= {Code.UPGRADED}  # which is no mistake
    elsewhere |= {
        Code.DEAD_BRANCH,
        Code.SUSPICIOUS_VALUES,
        Code.UNSATISFIABLE,
    }  # which take more than a few lines
    seen = {code for _, codes in MISTAKES.values() for code in codes}
    assert {c for c in Code if not c.startswith(("IR4", "IR6"))} - elsewhere == seen


def test_an_overlap_is_an_error_where_a_layer_is_refused_for_it() -> None:
    """OpenVINO reads overlapping constants, but refuses axes that overlap another number."""
    net = summing()
    net.layers[1] = net.layers[1].replace('offset="0"', 'offset="4"')
    others = [net.constant([1, 2], name=f"other{i}") for i in range(2)]
    net.result(net.op("Add", *others, out="I64 2", name="add"), "more")
    report = ir.validate(net.xml(), net.weights)
    assert [(found.code, found.layer) for found in report.errors] == [(Code.SHARED_BYTES, "axes")]
    with pytest.raises(RuntimeError):
        read(net.xml(), net.weights)
    overlapping = constants_that_overlap()
    assert ir.validate(overlapping.xml(), overlapping.weights).ok
    read(overlapping.xml(), overlapping.weights)
