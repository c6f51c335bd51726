"""Whole files of IR versions 2 to 7: mean values, statistics, names, outputs, lines, and reshaping."""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from harness.legacy import LegacyNet, loop, ramp

import ir_runtime as ir
from ir_runtime.io.reader.legacy.site import Building


def means(channels: str, head: str = "", precision: str = "") -> LegacyNet:
    """A model that subtracts mean values from x[1, 2, 1, 2]."""
    net = LegacyNet(precision=precision or "FP32")
    net.layer("Power", [net.input("x", 1, 2, 1, 2)], (1, 2, 1, 2), name="y", power=1, scale=2, shift=0)
    net.more = f"<pre-process{head}>{channels}</pre-process>\n"
    return net


def test_means_of_channels_are_subtracted() -> None:
    net = means('<channel id="1"><mean value="3"/></channel>', ' reference-layer-name="x"')
    model = ir.read_model(net.xml())
    assert model.input().any_name == "x"
    found = ir.compile_model(model)(ramp(1, 2, 1, 2))["y"]
    np.testing.assert_array_equal(found, [[[[0, 2]], [[-2, 0]]]])


def test_a_mean_image_is_subtracted() -> None:
    net = means(
        '<channel id="0"><mean offset="0" size="4"/></channel><channel id="1"><mean value="1"/></channel>',
        ' mean-precision="FP16"',
    )
    model = ir.read_model(net.xml(), np.float16([0.5, 1]).tobytes())
    found = ir.compile_model(model)(ramp(1, 2, 1, 2))["y"]
    np.testing.assert_array_equal(found, [[[[-1, 0]], [[2, 4]]]])


def test_means_are_those_of_the_first_image() -> None:
    net = LegacyNet()
    net.layer("ReLU", [net.input("row", 1, 2)], (1, 2), name="row_out")
    net.layer("ReLU", [net.input("image", 1, 1, 1, 1)], (1, 1, 1, 1), name="image_out")
    net.more = '<pre-process mean-precision="FP32"><channel><mean value="1"/></channel></pre-process>\n'
    found = ir.compile_model(ir.read_model(net.xml()))([np.float32([[1, 2]]), np.float32([[[[3]]]])])
    np.testing.assert_array_equal(found["row_out"], [[1, 2]])
    np.testing.assert_array_equal(found["image_out"], [[[[2]]]])


def test_means_that_say_nothing_change_nothing() -> None:
    net = means("")
    found = ir.compile_model(ir.read_model(net.xml()))(ramp(1, 2, 1, 2))["y"]
    np.testing.assert_array_equal(found, 2 * ramp(1, 2, 1, 2))


def test_a_scale_of_1_says_nothing() -> None:
    net = means('<channel id="0"><mean value="1"/><scale value="1.0"/></channel>')
    assert [str(found.code) for found in ir.validate(net.xml())] == ["IR010"]


def test_a_scale_is_left_out_with_a_note() -> None:
    net = means('<channel id="0"><mean value="1"/><scale value="2"/></channel>')
    model = ir.read_model(net.xml())
    assert [found.message for found in model.report][1:] == [
        "<scale> of <pre-process> is ignored, as runtimes of that time did not read it"
    ]
    found = ir.compile_model(model)(ramp(1, 2, 1, 2))["y"]
    np.testing.assert_array_equal(found, 2 * (ramp(1, 2, 1, 2) - np.float32([[[[1]], [[0]]]])))


def test_steps_of_single_axes_that_were_not_read() -> None:
    net = LegacyNet()
    sources = [net.input("map", 1, 1, 1, 1), net.input("image", 1, 1, 4, 4)]
    how = {"min_size": 2, "step": 0, "offset": 0.5, "variance": "0.1,0.1,0.2,0.2", "img_size": 0}
    net.layer("PriorBox", sources, (1, 2, 4), name="boxes", step_h=8.0, step_w="0.0", **how)
    model = ir.read_model(net.xml())
    assert [(str(found.code), found.message) for found in model.report][1:] == [
        ("IR203", "PriorBox of IR version 5 has no attribute 'step_h'; it is ignored")
    ]
    found = ir.compile_model(model)([ramp(1, 1, 1, 1), ramp(1, 1, 4, 4)])["boxes"]
    np.testing.assert_allclose(found[0, 0], [0.25, 0.25, 0.75, 0.75])


def test_attributes_of_version_2_stand_in_elements_of_other_names() -> None:
    net = LegacyNet(version=2)
    crop = '<crop axis="2" offset="1" dim="1"/><crop axis="3" offset="0" dim="2"/>'
    net.layer("Crop", [net.input("x", 1, 1, 3, 3)], (1, 1, 1, 2), name="y", inside=f"<data>{crop}</data>")
    found = ir.compile_model(ir.read_model(net.xml()))(ramp(1, 1, 3, 3))["y"]
    np.testing.assert_array_equal(found, [[[[3, 4]]]])


def test_names_that_the_file_has_are_not_taken_twice() -> None:
    net = LegacyNet()
    x = net.layer("ReLU", [net.input("x", 1, 2)], (1, 2), name="fc/weights")
    net.layer("FullyConnected", [x], (1, 1), name="fc", out__size=1, blobs={"weights": [[1.0, 2.0]]})
    model = ir.read_model(net.xml(), net.weights)
    names = [node.friendly_name for node in model.get_ops()]
    assert len(set(names)) == len(names)
    assert {"fc/weights", "fc/weights_2"} <= set(names)
    assert model.output().any_name == "fc"


def test_outputs_that_nothing_reads_are_those_of_the_model() -> None:
    net = LegacyNet()
    first = net.layer("Split", [net.input("x", 1, 4)], (1, 2), (1, 2), name="halves", axis=1)
    net.layer("ReLU", [first], (1, 2), name="y")
    model = ir.read_model(net.xml())
    assert [port.any_name for port in model.outputs] == ["halves.1", "y"]


def test_a_layer_that_changes_nothing_keeps_its_name() -> None:
    net = LegacyNet()
    net.layer("Eltwise", [net.input("x", 2)], (2,), name="same", operation="sum")
    model = ir.read_model(net.xml())
    assert model.output().any_name == "same"
    np.testing.assert_array_equal(ir.compile_model(model)(np.float32([1, 2]))["same"], [1, 2])


def test_integers_and_booleans_leave_a_model_as_old_programs_expect() -> None:
    net = LegacyNet(version=7)
    net.layer("Shape", [net.input("x", 1, 2)], (2,), name="lengths", out="I64")
    model = ir.read_model(net.xml())
    assert model.output().element_type.label == "i32"


def test_without_weights_that_is_said_once() -> None:
    net = LegacyNet()
    x = net.input("x", 1, 2)
    for _ in range(3):
        x = net.layer("FullyConnected", [x], (1, 2), out__size=2, blobs={"weights": np.ones((2, 2))})
    assert [str(found.code) for found in ir.validate(net.xml()).errors] == ["IR004"]


def test_a_cycle_is_found() -> None:
    net = LegacyNet()
    net.layer("ReLU", (), (1,), name="a", unfed=[(1,)])
    net.layer("ReLU", (), (1,), name="b", unfed=[(1,)])
    for here, there in ((0, 1), (1, 0)):
        net.edges.append(f'<edge from-layer="{here}" from-port="1" to-layer="{there}" to-port="0"/>')
    assert [str(found.code) for found in ir.validate(net.xml()).errors] == ["IR103"]


def test_a_broken_layer_leaves_the_others_to_be_checked() -> None:
    net = LegacyNet()
    x = net.layer("Zyxwv", [net.input("x", 1, 2)], (1, 2), name="unknown")
    net.layer("FullyConnected", [x], (1, 3), name="fc", out__size=2, blobs={"weights": np.ones((2, 2))})
    report = ir.validate(net.xml(), weights=net.weights)
    assert [(str(found.code), found.layer) for found in report.errors] == [
        ("IR201", "unknown"),
        ("IR303", "fc"),
    ]


def test_dims_that_an_input_declares_are_checked() -> None:
    net = LegacyNet()
    net.layer("ReLU", [net.input("x", 1, 2)], (1, 3), name="y")
    text = (
        net.xml()
        .decode()
        .replace('<input><port id="0"><dim>1</dim><dim>2<', '<input><port id="0"><dim>1</dim><dim>3<')
    )
    (found,) = ir.validate(text.encode()).errors
    assert (str(found.code), found.layer, found.line) == ("IR305", "y", 5)
    assert "input port 0 declares" in found.message


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6, 7])
def test_every_version_says_that_it_was_upgraded(version: int) -> None:
    net = LegacyNet(version=version)
    net.layer("ReLU", [net.input("x", 1)], (1,), name="y")
    (note,) = ir.validate(net.xml())
    assert str(note).endswith(f"note[IR010]: IR version {version}, upgraded")
    assert f"IR version {version}, upgraded" in ir.read_model(net.xml()).report().html


def test_a_model_can_be_reshaped_where_the_file_says_how() -> None:
    net = LegacyNet()
    x, other = net.input("x", 1, 2, 4, 4), net.input("other", 1, 2, 2, 2)
    crop = net.layer("Crop", [x, other], (1, 2, 2, 2), axis="2,3", offset="0,0")
    flat = net.layer("Reshape", [crop], (1, 8), dim="0,-1")
    net.layer("FullyConnected", [flat], (1, 1), out__size=1, blobs={"weights": np.ones((1, 8))}, name="fc")
    net.layer("Reshape", [crop, net.const([0, -1], "I32")], (1, 8), name="rows")
    net.layer(
        "PriorBox", [crop, x], (1, 2, 16), name="boxes", min_size=2, offset=0.5, variance="0.1,0.1,0.2,0.2"
    )
    model = ir.read_model(net.xml(), net.weights)
    model.reshape({"x": [3, 2, 8, 8], "other": [3, 2, 2, 2]})
    assert [list(port.shape) for port in model.outputs] == [[3, 1], [3, 8], [1, 2, 16]]
    model.reshape({"x": [1, 2, 8, 8], "other": [1, 2, 2, 2]})
    boxes = ir.compile_model(model)([ramp(1, 2, 8, 8), ramp(1, 2, 2, 2)])["boxes"]
    np.testing.assert_allclose(boxes[0, 0, :4], [1 / 8, 1 / 8, 3 / 8, 3 / 8])


def test_half_precision_is_kept_in_the_upgraded_file(tmp_path: Path) -> None:
    net = LegacyNet(precision="FP16")
    x = net.input("x", 1, 64)
    net.layer("FullyConnected", [x], (1, 64), out__size=64, blobs={"weights": np.ones((64, 64))}, name="fc")
    ir.save_model(ir.read_model(net.xml(), net.weights), tmp_path / "new.xml")
    assert (tmp_path / "new.bin").stat().st_size == len(net.weights)


def test_a_loop_survives_being_saved(tmp_path: Path) -> None:
    net = loop()
    model = ir.read_model(net.xml(), net.weights)
    ir.save_model(model, tmp_path / "new.xml")
    again = ir.read_model(tmp_path / "new.xml")
    assert list(again.report) == []
    inputs = [ramp(1, 3, 2), np.float32([[1, 2]])]
    for one, other in zip(
        ir.compile_model(model)(inputs).to_tuple(), ir.compile_model(again)(inputs).to_tuple(), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_a_loop_without_a_name_is_one_finding() -> None:
    text = loop().xml().decode().replace(' name="loop"', "")
    assert [str(found.code) for found in ir.validate(text.encode()).errors] == ["IR007"]


def test_of_two_layers_with_one_id_the_first_counts() -> None:
    net = LegacyNet()
    x = net.input("x", 1, 2)
    net.layer("FullyConnected", [x], (1, 1), name="fc", out__size=1, blobs={"weights": [[1.0, 2.0]]})
    net.layers.append(net.layers[1].replace("FullyConnected", "ReLU").replace('name="fc"', 'name="other"'))
    assert [str(found.code) for found in ir.validate(net.xml(), weights=net.weights).errors] == ["IR101"]


def test_layers_of_a_net_of_mixed_precision_have_their_own() -> None:
    net = LegacyNet(version=7, precision="FP16", head=' precision="MIXED"')
    net.layer("ReLU", [net.input("x", 1)], (1,), name="y")
    net.layers = [text.replace(' precision="FP16"', "") for text in net.layers]
    model = ir.read_model(net.xml())
    assert model.input().element_type.label == "f32"


def test_files_of_today_do_not_load_the_upgrade() -> None:
    code = (
        'import sys, ir_runtime as ir; ir.validate(b\'<net name="n" version="11"><layers/><edges/></net>\');'
        "assert not [name for name in sys.modules if 'reader.legacy' in name]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_many_layers_of_one_name_take_no_longer_each() -> None:
    """Searching unused names from the first one on would be quadratic."""
    building = Building(ids=count(), names={"a/b"}, constants=None, read_body=None)  # type: ignore[arg-type]
    assert [building.new_name("a/b") for _ in range(50_000)][-1] == "a/b_50001"


def test_a_port_map_of_many_ports_is_read() -> None:
    net = LegacyNet()
    ports = [(1,)] * 2000
    body = LegacyNet()
    body.layer("Concat", (), (2000,), name="all", unfed=ports, axis=0)
    entries = "".join(
        f'<input external_port_id="{port}" internal_layer_id="0" internal_port_id="{port}"/>'
        for port in range(2000)
    )
    output = '<output external_port_id="2000" internal_layer_id="0" internal_port_id="2000"/>'
    inside = f"<port_map>{entries}{output}</port_map><body>{body.graph()}</body>"
    x = net.input("x", 1)
    net.layer("TensorIterator", [x] * 2000, (2000,), name="y", inside=inside)
    model = ir.read_model(net.xml())
    np.testing.assert_array_equal(ir.compile_model(model)(np.float32([3]))["y"], np.full(2000, 3))


def test_a_layer_may_have_more_outputs_than_a_shape_has_dims() -> None:
    net = LegacyNet()
    net.layer("Split", [net.input("x", 1, 101)], *[(1, 1)] * 99, (1, 2), name="parts", axis=1)
    assert len(ir.read_model(net.xml()).outputs) == 100


def test_a_list_of_more_dims_than_the_output_declares_does_not_count() -> None:
    net = LegacyNet()
    net.layer("Reshape", [net.input("x", 2)], (1, 2), dim=",".join(["1"] * 10_000))
    assert ir.read_model(net.xml()).output().shape == [1, 2]
