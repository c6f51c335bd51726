"""Each limit on the contents of a file, just below and just above; and no path in a file is followed."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime._util import deadline
from ir_runtime.io.reader import document

Read = Callable[[Net, ir.Limits], object]


def plain(count: int = 1, name: str = "relu") -> Net:
    net = Net()
    last = net.parameter("x", "2", out="FP32 2")
    for _ in range(count):
        last = net.op("ReLU", last, out="FP32 2", name=name)
    net.result(last)
    return net


def constants(count: int, element: str = "f32") -> Net:
    net = Net()
    for n in range(count):
        net.result(net.constant([1, 0, 1, 1], element, name=f"c{n}"))
    return net


def reading(net: Net, limits: ir.Limits) -> object:
    return ir.read_model(net.xml(), net.weights, limits=limits)


def validating(net: Net, limits: ir.Limits) -> object:
    report = ir.validate(net.xml(), net.weights, limits=limits)
    for found in report:
        if found.code == "IR501":
            raise ir.LimitError(found.message, where=found.where, hint=found.hint)
    return report


@pytest.mark.parametrize("read", [reading, validating])
@pytest.mark.parametrize(
    ("limit", "net", "enough", "says"),
    [
        ("edges", plain(3), 4, "the model has 4 edges"),
        ("layers", plain(3), 5, "the model has 5 layers"),
        ("attribute_bytes", plain(name="n" * 3000), 3000, "the value of an attribute has 3000 bytes"),
        ("attribute_bytes", plain(name="ü" * 1500), 3000, "the value of an attribute has 3000 bytes"),
        ("constant_bytes", constants(3), 48, "constants take 48 bytes together"),
        ("memory", constants(3, "boolean"), 12, "12 bytes of memory are needed at once"),
        ("elements", plain(), 2, "a tensor has 2 elements"),
        ("rank", plain(), 1, "a tensor has 1 dimensions"),
        ("xml_bytes", plain(), len(plain().xml()), f"the XML has {len(plain().xml())} bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_limit_just_above_and_just_below(limit: str, net: Net, enough: int, says: str, read: Read) -> None:
    read(net, ir.Limits(**{limit: enough}))  # type: ignore[arg-type]
    with pytest.raises(ir.LimitError) as caught:
        read(net, ir.Limits(**{limit: enough - 1}))  # type: ignore[arg-type]
    assert caught.value.message == f"{says}; the limit is {enough - 1}"
    assert caught.value.where is not None
    assert f"Limits({limit}=...)" in caught.value.hint


@pytest.mark.parametrize("read", [reading, validating])
def test_the_tree_of_a_large_file_counts(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of parsing is estimated before anything is parsed."""
    monkeypatch.setattr(document, "_AT_ONCE", 1 << 10)
    monkeypatch.setattr(document, "_parse_chunks", None)
    with pytest.raises(ir.LimitError, match="bytes of memory are needed at once; the limit is 10000"):
        read(plain(30), ir.Limits(memory=10_000))


@pytest.mark.parametrize(
    "flood", ["<x/>" * 100_000, "<edge/>" * 100_000, '<layer id="0"><data/></layer>' * 30_000]
)
def test_the_time_counts_from_the_first_byte(flood: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock advances by a second each time it is read."""
    seconds = itertools.count()
    monkeypatch.setattr(deadline.time, "monotonic", lambda: float(next(seconds)))
    monkeypatch.setattr(document, "_AT_ONCE", 1 << 10)
    xml = f'<net version="11"><layers>{flood}</layers><edges>{flood}</edges></net>'
    with pytest.raises(ir.LimitError, match="it takes longer than 10 seconds, the limit"):
        ir.read_model(xml.encode(), limits=ir.Limits(seconds=10))


@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-16-le"])
def test_a_file_in_pieces_is_the_same_file(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net = plain(50, name="ä")
    xml = net.xml().decode().encode(codec)
    whole = list(ir.validate(xml))
    monkeypatch.setattr(document, "_AT_ONCE", 1 << 10)
    assert list(ir.validate(xml)) == whole
    assert {found.line for found in whole} == set(range(6, 55)), "layers of the same name"


def test_constants_of_bodies_count_too() -> None:
    inner = constants(1)
    outer = Net(weights=inner.weights)
    condition = outer.parameter("c", "", "boolean", out="BOOL")
    body = f"<layers>{''.join(inner.layers)}</layers><edges>" + (
        '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges>'
    )
    inside = "".join(
        f'<{side}_port_map><output external_port_id="1" internal_layer_id="1"/></{side}_port_map>'
        f"<{side}_body>{body}</{side}_body>"
        for side in ("then", "else")
    )
    outer.result(outer.layer("If", [condition], ["FP32 4"], version="opset8", inside=inside)[0])
    reading(outer, ir.Limits(constant_bytes=32))
    with pytest.raises(ir.LimitError, match="constants take 32 bytes together; the limit is 31"):
        reading(outer, ir.Limits(constant_bytes=31))


def test_what_constants_claim_does_not_overflow() -> None:
    net = Net()
    for n in range(3):
        net.layer(
            "Const", [], ["FP32 1"], name=f"c{n}", element_type="f32", shape="1", offset=0, size=2**63 - 1
        )
    with pytest.raises(ir.LimitError, match="constants take 9223372036854775807 bytes"):
        reading(net, ir.Limits())


def test_fragments_are_limited() -> None:
    text = (
        '<layer id="0" name="sum" type="ReduceSum" version="opset1"><input><port id="0"><dim>2</dim></port>'
        '<port id="1"/></input><output><port id="2"/></output></layer>'
    )
    for read in (ir.read_fragment, ir.read_fragments):
        with pytest.raises(ir.LimitError):
            read(text, limits=ir.Limits(rank=0))
    model = ir.read_fragment(text, values={1: [0]}, limits=ir.Limits(memory=4))
    with pytest.raises(ir.LimitError):
        ir.compile_model(model)


# What has been, or looks like, a way to name a file.
PATHS = [
    'weights="{0}"', 'path="{0}"', 'location="{0}"', 'file="{0}"', 'filename="{0}"', 'library="{0}"',
    'extension="{0}"', 'href="{0}"', 'src="{0}"',
]  # fmt: skip


def files_opened(folder: Path) -> list[str]:
    """Return the files opened while a model is read and run, below the parent of its folder."""
    code = (
        "import sys; import numpy as np; import ir_runtime as ir; ir.compile_model; ir.Model; seen = []\n"
        "sys.addaudithook(lambda event, args: seen.append(str(args[0])) if event in ('open', 'import') else None)\n"
        "model = ir.read_model('in/m.xml', strict=False); ir.validate('in/m.xml')\n"
        "compiled = ir.compile_model(model); compiled(np.ones(1, np.float32))\n"
        "print([name for name in seen if 'secret' in name or 'm.' in name and name.startswith('in')])\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, encoding="utf-8", timeout=600, check=False,
        env={"PYTHONPATH": str(Path(ir.__file__).parents[1]), "PATH": ""},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return sorted(set(eval(found.stdout.splitlines()[-1])))


def test_no_path_in_the_xml_is_followed(tmp_path: Path) -> None:
    """Wherever a path may occur, only the .xml and its .bin are opened, and nothing is imported."""
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.bin").write_bytes(b"\1" * 16)
    (tmp_path / "secret.py").write_text("raise SystemExit('ran')")
    said = " ".join(PATHS).format("../secret.bin")
    net = Net(rt_info=f'<weights_path value="../secret.bin"/><extension {said}/><import value="secret"/>')
    x = net.parameter("../secret", "1", out="FP32 1", names="../../secret.bin")
    net.result(net.op("ReLU", x, out="FP32 1", name="../secret.py"))
    net.constant([1.0], "f32")
    xml = net.xml().decode().replace("<net ", f"<net {said} ").replace("<data ", f"<data {said} ")
    (tmp_path / "in" / "m.xml").write_text(xml)
    (tmp_path / "in" / "m.bin").write_bytes(net.weights)
    assert files_opened(tmp_path) == ["in/m.bin", "in/m.xml"]


def test_no_code_that_a_model_names_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown operations are looked up among installed extensions, not imported by name."""
    (tmp_path / "secret.py").write_text("raise SystemExit('ran')")
    monkeypatch.syspath_prepend(tmp_path)
    for type, version in (("secret", "secret"), ("secret:Op", "opset1"), ("os.system", "extension")):
        net = Net()
        net.result(net.op(type, net.parameter("x", "1", out="FP32 1"), out="FP32 1", version=version))
        with pytest.raises(ir.UnsupportedError):
            ir.read_model(net.xml())
    assert "secret" not in sys.modules


def test_the_bin_beside_a_model_may_be_a_link(tmp_path: Path) -> None:
    """Caches of downloaded models use symbolic links. The target must be a file."""
    net = Net()
    net.result(net.constant([1.0, 2.0], "f32"))
    (tmp_path / "blob").write_bytes(net.weights)
    (tmp_path / "m.xml").write_bytes(net.xml())
    (tmp_path / "m.bin").symlink_to("blob")
    assert np.array_equal(ir.compile_model(tmp_path / "m.xml")()[0], [1, 2])
    (tmp_path / "m.bin").unlink()
    (tmp_path / "m.bin").symlink_to("/dev/zero")
    with pytest.raises(ir.ValidationError, match="no weights were found"):
        ir.read_model(tmp_path / "m.xml")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_a_file_without_an_end_is_not_read_to_it() -> None:
    with pytest.raises(ir.LimitError, match="the XML has 1001 bytes; the limit is 1000"):
        ir.read_model("/dev/zero", limits=ir.Limits(xml_bytes=1000))
