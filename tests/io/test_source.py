"""Files that are not IR: the message says what they are and what to do."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.codes import Code
from ir_runtime.io.reader.source import open_source


def refused(source: object, **how: object) -> ir.ParseError:
    with pytest.raises(ir.ParseError) as caught:
        ir.read_model(source, **how)  # type: ignore[arg-type]
    assert caught.value.code in (Code.UNREADABLE, Code.IR_VERSION)
    return caught.value


def archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("data.pkl", "x")
    return file.getvalue()


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


ONNX = b"\x08\x08\x12\x07pytorch\x1a\x051.9.0"
PB = b"\n\x1c\n\x01x\x12\x0bPlaceholder*\n\n\x05dtype"


@pytest.mark.parametrize(
    ("data", "what", "do"),
    [
        (b"", "the file is empty", "an IR starts with <net"),
        (b" \n\t", "the file is empty", "an IR starts with <net"),
        (archive(), "a ZIP archive", "convert it first: ovc"),
        (npy(), "a NumPy array", "give the .xml"),
        (ONNX, "a protocol buffer, such as an ONNX", "convert it first: ovc"),
        (PB, "in an unknown format", "give the .xml of the model"),
        (b"\x1c\0\0\0TFL3\0\0", "a TensorFlow Lite model", "convert it first"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "convert it first"),
        (b"GGUF\x03\0\0\0", "a GGUF model", "convert it first"),
        (b"\x80\x04\x95\x0c", "a Python pickle, which is never opened", "convert it first"),
        (b"\x89PNG\r\n\x1a\n", "in an unknown format", "give the .xml of the model"),
        (b"net: a\nlayers: 3\n", "in an unknown format", "give the .xml of the model"),
        (b"<!DOCTYPE html>\n<html><layer></html>", "a web page with examples", "copy the <layer> elements"),
        (b"<!doctype html><pre>&lt;layer type", "a web page with examples", "copy the <layer> elements"),
        (b"\n <HTML lang='ja'>", "a web page about the file", "download the raw file"),
        (b"<!DOCTYPE html>\n<pre>&lt;net>&lt;layer", "a web page about the file", "download the raw file"),
    ],
)
def test_other_files(data: bytes, what: str, do: str) -> None:
    problem = refused(data)
    assert what in problem.message
    assert do in problem.hint
    assert problem.where == ir.Location("<bytes>")


@pytest.mark.parametrize(
    ("version", "hint"),
    [("9", "convert the original model again"), ("1", "convert the original model again"), ("12", "")],
)
def test_other_versions(version: str, hint: str) -> None:
    problem = refused(Net(version=version).xml())
    assert f"this is an IR of version {version}; supported are 2 to 7, 10 and 11" in problem.message
    assert problem.code == Code.IR_VERSION
    assert hint in problem.hint
    assert problem.where is not None
    assert problem.where.line == 2


@pytest.mark.parametrize("root", ["<model/>", "<netlist version='11'/>", "<mapping><map/></mapping>"])
def test_other_xml(root: str) -> None:
    assert "not <net>: this is not an OpenVINO IR" in refused(root.encode()).message


def test_the_file_beside_may_be_meant(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_bytes(Net().xml())
    (tmp_path / "m.bin").write_bytes(np.float32([1, 2]).tobytes())
    meant = f"did you mean {str(tmp_path / 'm.xml')!r}?"
    assert refused(tmp_path / "m.bin").hint == meant
    assert refused(tmp_path / "m").hint == meant
    assert refused(tmp_path / "m.onnx").hint == meant
    assert refused(tmp_path / "other.xml").hint == ""
    assert "this is a folder" in refused(tmp_path).message


def test_text_that_begins_as_xml_is_the_model() -> None:
    net = Net("given")
    net.result(net.parameter("x", "2"))
    assert ir.read_model(net.xml().decode()).name == "given"
    assert str(refused("<svg/>").where).startswith("<text>")


def test_other_text_is_a_path() -> None:
    assert "a path must not contain a null character" in refused("a\0b.xml").message
    assert "cannot be read" in refused("a" * 5000).message


def test_open_files_find_the_weights_beside_them(tmp_path: Path) -> None:
    net = Net()
    net.result(net.constant([1], name="c"))
    xml = tmp_path / "m.xml"
    xml.write_bytes(net.xml())
    xml.with_suffix(".bin").write_bytes(net.weights)
    with xml.open("rb") as file:
        assert open_source(file).path == xml
        file.seek(0)
        assert ir.read_model(file).constant("c").tolist() == [1]


def test_members_of_archives_have_nothing_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.xml").write_bytes(Net().xml())
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as made:
        made.write(tmp_path / "m.xml", "m.xml")
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("m.zip") as opened, opened.open("m.xml") as member:
        found = open_source(member)
    assert (found.name, found.path) == ("m.xml", None)


def test_size_is_limited(tmp_path: Path) -> None:
    xml = tmp_path / "m.xml"
    xml.write_bytes(Net().xml())
    few = ir.Limits(xml_bytes=10)
    for source in (xml, xml.read_bytes(), io.BytesIO(xml.read_bytes())):
        with pytest.raises(ir.LimitError, match=r"the XML has \d+ bytes; the limit is 10") as caught:
            ir.read_model(source, limits=few)
        assert caught.value.code == Code.LIMIT
        assert "Limits(xml_bytes=" in caught.value.hint


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    xml = tmp_path / "m.xml"
    with xml.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ir.LimitError):
        ir.read_model(xml)
