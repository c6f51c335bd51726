"""Whole models lowered for old releases: folded, renamed and refused layers, and the contents of files."""

from __future__ import annotations

import inspect
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness.nets import Net, body_of, write_chain
from lxml import etree

import ir_runtime as ir
from ir_runtime import opset1, opset8, opset9, opset11, opset13, opset14, opset15
from ir_runtime.ir.element import ElementType
from releases.ask import FOLDER

DIGITS = Path(__file__).parents[2] / "examples" / "digits"

RUN = """
import sys
import numpy as np
from openvino.inference_engine import IECore
core = IECore()
core.set_config({"ENFORCE_BF16": "NO"}, "CPU")
net = core.read_network(sys.argv[1], sys.argv[1][:-3] + "bin")
name = next(iter(net.input_info))
for result in core.load_network(net, "CPU").infer({name: np.load(sys.argv[2])}).values():
    np.save(sys.argv[3], result)
"""


def saved(model: ir.Model, folder: Path, release: str) -> ir.Model:
    path = folder / "saved.xml"
    ir.save_model(model, path, for_release=release)
    assert ir.validate(path, for_release=release).ok
    return ir.read_model(path)


def operations(model: ir.Model) -> list[str]:
    return [layer.operation for layer in model._graph.everywhere()]


def test_it_has_openvinos_signature_and_one_argument_more() -> None:
    parameters = inspect.signature(ir.save_model).parameters
    assert list(parameters) == ["model", "output_model", "compress_to_fp16", "for_release"]
    assert parameters["for_release"].kind is inspect.Parameter.KEYWORD_ONLY


def test_the_newest_release_gets_what_it_got_before(tmp_path: Path) -> None:
    model = ir.read_model(write_chain(tmp_path))
    ir.save_model(model, tmp_path / "one.xml")
    ir.save_model(model, tmp_path / "other.xml", for_release="2026.4")
    assert (tmp_path / "one.xml").read_bytes() == (tmp_path / "other.xml").read_bytes()


def test_a_network_for_2021_4(tmp_path: Path) -> None:
    model = ir.read_model(DIGITS / "digits.xml")
    images = np.load(DIGITS / "images.npy")[:2]
    model.reshape(images.shape)
    old = saved(model, tmp_path, "2021.4")
    assert 'version="10"' in (tmp_path / "saved.xml").read_text()
    assert "MaxPool-1" in operations(old)
    wanted = ir.compile_model(model, backend="reference")(images)[0]
    np.testing.assert_array_equal(ir.compile_model(old, backend="reference")(images)[0], wanted)


@pytest.mark.oracle
def test_a_network_in_2021_4(tmp_path: Path) -> None:
    python = FOLDER / "2021.4" / "bin" / "python"
    if not python.exists():
        pytest.skip("make releases installs OpenVINO 2021.4")
    model = ir.read_model(DIGITS / "digits.xml")
    images = np.load(DIGITS / "images.npy")[:2]
    model.reshape(images.shape)
    ir.save_model(model, tmp_path / "old.xml", for_release="2021.4")
    np.save(tmp_path / "x.npy", images)
    subprocess.run([python, "-c", RUN, "old.xml", "x.npy", "y.npy"], cwd=tmp_path, check=True)
    wanted = ir.compile_model(model, backend="reference")(images)[0]
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-5, atol=1e-4)


def test_dynamic_dims_stand_in_the_way_of_2021_4(tmp_path: Path) -> None:
    with pytest.raises(ir.ValidationError, match="does not read dynamic dims") as reason:
        ir.save_model(ir.read_model(DIGITS / "digits.xml"), tmp_path / "old.xml", for_release="2021.4")
    assert "reshape" in reason.value.diagnostics[0].hint
    assert not (tmp_path / "old.xml").exists()


def test_constants_of_new_types_are_decoded(tmp_path: Path) -> None:
    x = opset1.parameter([2, 4], np.float32, name="x")
    codes = np.arange(8, dtype=np.uint8).reshape(2, 4)
    weights = opset1.constant(codes, ElementType.u3, name="codes")
    scaled = opset1.multiply(opset1.convert(weights, "f32"), opset1.constant(np.float32(0.5)))
    model = ir.Model([opset1.add(x, scaled, name="y")], [x])
    old = saved(model, tmp_path, "2023.3")
    assert operations(old).count("Convert-1") == 0
    assert not any(node.output(0).element_type.label == "u3" for node in old.get_ops() if node.outputs())
    arrays = [np.ones((2, 4), np.float32)]
    np.testing.assert_array_equal(ir.compile_model(old)(arrays)[0], ir.compile_model(model)(arrays)[0])


def test_layers_of_constants_become_constants_unless_these_are_large(tmp_path: Path) -> None:
    def model(rows: int) -> ir.Model:
        numbers = (opset1.constant(number) for number in (rows, 3, 0))
        return ir.Model([opset9.eye(*numbers, output_type="f32", name="eye")], [])

    old = saved(model(2), tmp_path, "2022.1")
    assert operations(old) == ["Constant-1", "Result-1"]
    np.testing.assert_array_equal(ir.compile_model(old)([])[0], np.eye(2, 3))
    with pytest.raises(ir.ValidationError, match="does not read Eye-9"):
        ir.save_model(model(1_000_000), tmp_path / "large.xml", for_release="2022.1")


def test_a_tensor_of_a_new_type_is_named(tmp_path: Path) -> None:
    x = opset1.parameter([2], ElementType.f8e4m3, name="x")
    model = ir.Model([opset1.convert(x, "f32", name="y")], [x])
    with pytest.raises(ir.ValidationError, match="element type f8e4m3") as reason:
        ir.save_model(model, tmp_path / "old.xml", for_release="2023.3")
    assert "save it for 2024.0 or later" in reason.value.diagnostics[0].hint


def test_layers_that_name_later_operation_sets_name_their_own(tmp_path: Path) -> None:
    net = Net()
    net.result(net.op("Abs", net.parameter("x", "2", out="FP32 2"), out="FP32 2", version="opset17"))
    saved(ir.read_model(net.xml()), tmp_path, "2022.1")
    assert 'type="Abs" version="opset1"' in (tmp_path / "saved.xml").read_text()


def test_versions_are_replaced_one_after_another(tmp_path: Path) -> None:
    x = opset1.parameter([1, 1, 4, 4], np.float32, name="x")
    pooled = opset14.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2], "floor", name="pooled")
    model = ir.Model([pooled.output(0)], [x])
    old = saved(model, tmp_path, "2021.4")
    assert [name for name in operations(old) if name.startswith("MaxPool")] == ["MaxPool-1"]
    assert old.output().get_node().input_value(0).get_node().friendly_name == "pooled"


@pytest.mark.parametrize("constant", [False, True], ids=["both branches run", "one branch runs"])
def test_layers_in_bodies_are_replaced(tmp_path: Path, constant: bool) -> None:
    net, inner = Net(), Net()
    inner.result(inner.op("IsNaN", inner.parameter("y", "2", out="FP32 2"), name="odd", out="BOOL 2", version="opset10"))  # fmt: skip
    condition = (
        net.constant(True, "boolean") if constant else net.parameter("condition", "", "boolean", out="BOOL")
    )
    x = net.parameter("x", "2", out="FP32 2")
    ports = '<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/>'
    inside = "".join(
        f"<{side}_port_map>{ports}</{side}_port_map>{body_of(inner).replace('body>', f'{side}_body>')}"
        for side in ("then", "else")
    )
    net.result(net.layer("If", [condition, x], ["BOOL 2"], version="opset8", inside=inside)[0])
    model = ir.read_model(net.xml(), net.weights)
    old = saved(model, tmp_path, "2022.1")
    assert operations(old).count("NotEqual-1") == 2
    arrays = {"x": np.float32([1, np.nan])} | ({} if constant else {"condition": np.array(True)})
    np.testing.assert_array_equal(ir.compile_model(old)(arrays)[0], [False, True])


def test_names_of_tensors_stay(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "2", out="FP32 2")
    (y,) = net.layer("Identity", [x], ["FP32 2"], version="opset16", name="same", names="first,second")
    net.result(y)
    old = saved(ir.read_model(net.xml()), tmp_path, "2024.6")
    assert old.output().names == {"first", "second"}


def test_what_cannot_be_replaced_is_named_with_the_reason(tmp_path: Path) -> None:
    x = opset1.parameter([1, 1, 4, 4], np.float32, name="x")
    pooled = opset14.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2], "ceil_torch", name="pooled")
    u = opset1.parameter([1, 2], np.uint8, name="u")
    squeezed = opset15.squeeze(opset13.bitwise_not(u), name="squeezed")
    model = ir.Model([pooled.output(0), squeezed], [x, u])
    with pytest.raises(ir.ValidationError) as reason:
        ir.save_model(model, tmp_path / "old.xml", for_release="2021.4")
    assert {found.layer for found in reason.value.diagnostics} == {"pooled"}
    assert "ceil_torch" in str(reason.value)


def test_ports_of_what_takes_the_place_of_a_layer_have_ids_of_their_own(tmp_path: Path) -> None:
    """Interpolate-4 has one input more than Interpolate-11."""
    x = opset1.parameter([1, 1, 2, 2], np.float32, name="x")
    sizes, axes = opset1.constant([4, 4]), opset1.constant([2, 3])
    scaled = opset11.interpolate(x, sizes, "nearest", "sizes", [0], [0], axes=axes, name="y")
    saved(ir.Model([scaled], [x]), tmp_path, "2022.1")
    layer = etree.parse(tmp_path / "saved.xml").find(".//layer[@type='Interpolate']")
    assert layer is not None
    ids = [port.get("id") for port in layer.iter("port")]
    assert len(set(ids)) == len(ids) == 5


@pytest.mark.parametrize(("fixed", "selects"), [([0, 1], 0), ([0, -1], 1), (None, 1)])
def test_negative_indices_are_counted_from_the_front(
    tmp_path: Path, fixed: list[int] | None, selects: int
) -> None:
    """Gather-7 does not define negative indices."""
    x = opset1.parameter([3], np.float32, name="x")
    indices = opset1.parameter([2], np.int64, name="i") if fixed is None else opset1.constant(fixed)
    gathered = opset8.gather(x, indices, opset1.constant(0), name="y")
    old = saved(ir.Model([gathered], [x] if fixed else [x, indices]), tmp_path, "2021.4")
    assert operations(old).count("Select-1") == selects
    arrays = [np.float32([5, 6, 7]), np.int64(fixed or [-3, 2])][: 1 if fixed else 2]
    np.testing.assert_array_equal(ir.compile_model(old)(arrays)[0], np.float32([5, 6, 7])[fixed or [-3, 2]])


def test_outputs_that_lose_digits_in_version_10_are_refused(tmp_path: Path) -> None:
    x = opset1.parameter([2], np.float64, name="x")
    model = ir.Model([opset1.relu(x, name="y")], [x])
    with pytest.raises(ir.ValidationError, match="of f64 as f32, which loses digits"):
        ir.save_model(model, tmp_path / "old.xml", for_release="2021.4")
    ir.save_model(model, tmp_path / "old.xml", for_release="2022.1")


def test_compressed_weights_for_an_old_release(tmp_path: Path) -> None:
    path = write_chain(tmp_path)
    ir.save_model(ir.read_model(path), tmp_path / "small.xml", True, for_release="2022.1")
    assert "decompression" in (tmp_path / "small.xml").read_text()


def test_layers_of_a_reshaped_model(tmp_path: Path) -> None:
    x = opset1.parameter([-1, 3], np.float32, name="x")
    model = ir.Model([opset13.bitwise_not(opset1.convert(x, "boolean"), name="y")], [x])
    model.reshape([2, 3])
    old = saved(model, tmp_path, "2021.4")
    assert list(old.output().shape) == [2, 3]
