"""Export and import of compiled models; models read from strings."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.openvino.blob import _HEAD

DIGITS = Path(__file__).parents[2] / "examples/digits"
IMAGES = np.load(DIGITS / "images.npy")[:3]
PACKAGES: dict[str, Any] = {"openvino": openvino, "ir_runtime": ir}


def exported(**settings: Any) -> bytes:
    return ir.Core().compile_model(DIGITS / "digits.xml", "CPU", **settings).export_model().getvalue()  # type: ignore[union-attr]


@pytest.mark.parametrize("package", PACKAGES)
def test_an_exported_model_runs(package: str) -> None:
    core = PACKAGES[package].Core()
    compiled = core.compile_model(DIGITS / "digits.xml", "CPU")
    expected = compiled(IMAGES)["scores"]
    blob = compiled.export_model()
    assert isinstance(blob, io.BytesIO)
    stream = io.BytesIO()
    assert compiled.export_model(stream) is None
    tensor = PACKAGES[package].Tensor(np.frombuffer(blob.getvalue(), np.uint8))
    for source in (blob, blob.getvalue(), stream, tensor):
        found = core.import_model(source, "CPU")
        np.testing.assert_array_equal(found(IMAGES)["scores"], expected)
        assert (found.inputs[0].any_name, found.outputs[0].any_name) == ("image", "scores")
    assert found.get_property("NETWORK_NAME") == compiled.get_property("NETWORK_NAME")


def test_what_was_changed_is_exported() -> None:
    model = ir.read_model(DIGITS / "digits.xml")
    model.reshape([2, 1, 8, 8])
    compiled = ir.compile_model(model, outputs="*relu*")
    found = ir.Core().import_model(compiled.export_model())
    assert [str(port.partial_shape) for port in found.inputs] == ["[2,1,8,8]"]
    assert len(found.outputs) == len(compiled.outputs) > 1
    for ours, theirs in zip(found(IMAGES[:2]).values(), compiled(IMAGES[:2]).values(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_model_in_f16_is_exported_in_f16() -> None:
    config = {"INFERENCE_PRECISION_HINT": "f16"}
    compiled = ir.compile_model(DIGITS / "digits.xml", "CPU", config, backend="numpy")
    blob = compiled.export_model()
    found = ir.Core().import_model(blob, backend="numpy")
    np.testing.assert_array_equal(found(IMAGES)[0], compiled(IMAGES)[0])
    assert len(blob.getvalue()) < len(exported()) * 0.7  # type: ignore[union-attr]


def test_a_model_without_weights_is_exported() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2", out="FP32 2"), out="FP32 2", name="y"))
    blob = ir.compile_model(ir.read_model(net.xml())).export_model()
    assert ir.Core().import_model(blob)(np.float32([-1, 1]))[0].tolist() == [0, 1]


def test_the_same_model_gives_the_same_bytes() -> None:
    assert exported() == exported(backend="reference")


def test_blobs_of_openvino_are_refused() -> None:
    blob = openvino.Core().compile_model(DIGITS / "digits.xml", "CPU").export_model().getvalue()
    with pytest.raises(ir.ParseError, match="a blob of OpenVINO, which only the OpenVINO that wrote it"):
        ir.Core().import_model(blob, "CPU")


@pytest.mark.parametrize("size", [0, 7, 8, 30, _HEAD.size - 1, _HEAD.size, 1000, -1])
def test_blobs_that_are_cut_off_are_refused(size: int) -> None:
    with pytest.raises(ir.ParseError):
        ir.Core().import_model(exported()[:size])


@pytest.mark.parametrize("place", [0, 9, 16, 25, 40, _HEAD.size + 5, -3])
def test_blobs_that_are_damaged_are_refused(place: int) -> None:
    blob = bytearray(exported())
    blob[place] ^= 0x55
    with pytest.raises(ir.ParseError):
        ir.Core().import_model(blob)


def test_lengths_in_a_blob_are_not_believed() -> None:
    head = struct.pack("<8sI4xQQ32s", b"IRRTBLOB", 1, 1 << 62, 1 << 62, b"")
    with pytest.raises(ir.ParseError, match="must have"):
        ir.Core().import_model(head)


def test_limits_hold_for_blobs() -> None:
    with pytest.raises(ir.LimitError):
        ir.Core().import_model(exported(), limits=ir.Limits(xml_bytes=100))


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("form", ["text and tensor", "bytes and bytes", "path and path", "path alone"])
def test_models_are_read_from_text(package: str, form: str) -> None:
    ov = PACKAGES[package]
    xml, weights = DIGITS / "digits.xml", DIGITS / "digits.bin"
    given = {
        "text and tensor": (xml.read_text("utf-8"), ov.Tensor(np.fromfile(weights, np.uint8))),
        "bytes and bytes": (xml.read_bytes(), weights.read_bytes()),
        "path and path": (str(xml), str(weights)),
        "path alone": (xml,),
    }[form]
    model = ov.Core().read_model(*given)
    expected = ov.Core().compile_model(xml, "CPU")(IMAGES)[0]
    np.testing.assert_array_equal(ov.Core().compile_model(model, "CPU")(IMAGES)[0], expected)


def test_weights_of_a_text_may_be_anything() -> None:
    """OpenVINO accepts only a tensor."""
    text, weights = (DIGITS / "digits.xml").read_text("utf-8"), DIGITS / "digits.bin"
    for given in (weights, str(weights), weights.read_bytes(), np.fromfile(weights, np.uint8)):
        assert ir.compile_model("\n " + text, weights=given)(IMAGES)[0].shape == (3, 10)
    with pytest.raises(ir.ParseError, match="<text>:1"):
        ir.read_model("<net")


def test_a_cache_folder_is_accepted(tmp_path: Path) -> None:
    for _ in range(2):
        compiled = ir.compile_model(DIGITS / "digits.xml", "CPU", {"CACHE_DIR": str(tmp_path)})
        assert compiled.get_property("LOADED_FROM_CACHE") is False
    assert list(tmp_path.iterdir()) == []
