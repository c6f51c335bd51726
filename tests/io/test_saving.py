"""Saving models: new shapes, added outputs, names, findings; and models that cannot be saved."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.dropin import assert_same, run
from harness.nets import Net
from harness.oracle import core, plugin, seen_by_openvino
from models.collection import saved
from models.networks import NETWORKS

import ir_runtime as ir
from ir_runtime.ops import T_FLOAT, Array, Input, Op, Output, PartialShape, Value, attr, op, registry


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "there.xml"


def sums() -> Net:
    """x[?,3] plus a constant, twice; both constants are equal."""
    net = Net(name="sums")
    x = net.parameter("x", "?,3", out="FP32 -1 3")
    once = net.op(
        "Add", x, net.constant([[1, 2, 3]], "f32"), out="FP32 -1 3", inputs=["FP32 -1 3"], name="once"
    )
    net.result(net.op("Add", once, net.constant([[1, 2, 3]], "f32"), out="FP32 -1 3", names="y"))
    return net


def read(net: Net, **how: Any) -> ir.Model:
    return ir.read_model(net.xml(), net.weights, **how)


def again(model: ir.Model, path: Path) -> ir.Model:
    """Save a model and read it again."""
    ir.save_model(model, path)
    return ir.read_model(path)


def test_equal_constants_share_their_bytes(there: Path) -> None:
    ir.save_model(read(sums()), there)
    assert there.with_suffix(".bin").read_bytes() == np.float32([1, 2, 3]).tobytes()
    assert there.read_text().count('offset="0" size="12"') == 2


def test_new_shapes_are_saved(there: Path) -> None:
    model = read(sums())
    model.reshape("2..4,3")
    bounded = again(model, there)
    assert [str(p.partial_shape) for p in (bounded.input(), bounded.output())] == ["[2..4,3]"] * 2
    assert 'shape="2..4,3"' in there.read_text()
    model.reshape([4, 3])
    fixed = again(model, there)
    assert "<dim>-1</dim>" not in there.read_text()
    assert str(core().read_model(there).outputs[0].partial_shape) == "[4,3]"
    assert fixed.output().shape == [4, 3]


def test_new_shapes_go_into_bodies(there: Path) -> None:
    model = ir.read_model(saved("iterator_forward"))
    model.reshape({0: [9, 3]})
    assert list(again(model, there).report) == []
    theirs = core().read_model(saved("iterator_forward"))
    theirs.reshape({0: [9, 3]})
    ours = core().read_model(there)
    assert [o.partial_shape for o in ours.outputs] == [o.partial_shape for o in theirs.outputs]


def test_shapes_may_be_unknown_altogether(there: Path) -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "..."), out="FP32", name="y"))
    model = again(read(net), there)
    assert 'shape="..."' in there.read_text()
    assert model.input().partial_shape.rank.is_dynamic
    assert core().read_model(there).inputs[0].partial_shape.rank.is_dynamic


def test_added_outputs_become_results(there: Path) -> None:
    model = read(sums())
    model.add_outputs("once")
    found = again(model, there)
    x = np.float32([[1, 2, 3]])
    both = ir.compile_model(found)(x).to_tuple()
    np.testing.assert_array_equal(both, [3 * x, 2 * x])
    np.testing.assert_array_equal(plugin(core().read_model(there), [x]), both)


def test_a_model_computed_in_f16(there: Path) -> None:
    inputs = NETWORKS["encoder"][1]()
    config = {"INFERENCE_PRECISION_HINT": "f16"}
    compiled = ir.compile_model(ir.read_model(saved("encoder")), backend="reference", config=config)
    found = again(compiled._model, there)
    assert [p.element_type for p in found.outputs] == [p.element_type for p in compiled.outputs]
    results = ir.compile_model(found, backend="reference")(inputs).to_tuple()
    for array, wanted in zip(results, compiled(inputs).to_tuple(), strict=True):
        np.testing.assert_array_equal(array, wanted)
    assert core().read_model(there).outputs[0].get_element_type().to_string() == "f32"


def test_a_page_becomes_a_model(there: Path) -> None:
    layer = (
        '<layer id="1" type="ReduceSum" version="opset1"><data keep_dims="true"/><input>'
        '<port id="0"><dim>2</dim><dim>3</dim></port><port id="1"/></input><output><port id="2"/></output>'
        "</layer>"
    )
    found = again(ir.read_fragment(layer, values={1: [1]}), there)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(ir.compile_model(found)(x)[0], [[3], [12]])
    np.testing.assert_array_equal(plugin(core().read_model(there), [x])[0], [[3], [12]])


@pytest.mark.parametrize("element", ["u1", "u2", "u3", "u4", "u6", "i4", "nf4", "f4e2m1", "bf16", "boolean"])
def test_numbers_of_a_page_are_packed(element: str, there: Path) -> None:
    layer = (
        f'<layer id="1" type="Convert" version="opset1"><data destination_type="f32"/><input>'
        f'<port id="0" precision="{element}"/></input><output><port id="1"/></output></layer>'
    )
    model = ir.read_fragment(layer, values={0: [0, 1, 1, 0, 1]})
    bits = ir.Type(model._graph.of_type("Constant")[0].op.element_type).bits
    found = again(model, there)
    assert there.with_suffix(".bin").stat().st_size == {3: 3, 6: 6}.get(bits, -(-5 * bits // 8))
    np.testing.assert_array_equal(ir.compile_model(found)([])[0], ir.compile_model(model)([])[0])
    np.testing.assert_array_equal(plugin(core().read_model(there), [])[0], ir.compile_model(model)([])[0])


def test_texts_are_saved(there: Path) -> None:
    net = Net()
    layer = net.constant(["ä", "", "long"], "string")
    net.result(layer)
    found = again(read(net), there)
    assert ir.compile_model(found)([])[0].tolist() == ["ä", "", "long"]
    assert there.with_suffix(".bin").read_bytes() == net.weights


def test_version_10_becomes_version_11(there: Path) -> None:
    net = Net(version="10")
    x = net.parameter("x", "2", "f16", out="FP16 2", names="")
    net.result(net.op("Exp", x, out="FP16 2", name="y"))
    first, found = read(net), again(read(net), there)
    assert 'version="11"' in there.read_text().splitlines()[1]
    theirs = [core().read_model(net.xml(), net.weights), core().read_model(there)]
    for model in (found, *theirs):
        assert [p.any_name for p in (*model.inputs, *model.outputs)] == ["x", "y"]
        assert [p.element_type.to_string() for p in (*model.inputs, *model.outputs)] == ["f32", "f32"]
    given = np.float32([1, 2])
    for wanted, result in (
        [ir.compile_model(m)(given)[0] for m in (first, found)],
        [plugin(m, [given])[0] for m in theirs],
    ):
        np.testing.assert_array_equal(result, wanted)


def test_operations_that_nobody_knows_are_kept(there: Path) -> None:
    net = Net()
    x = net.parameter("x", "2", out="FP32 2")
    made = net.op("Abz", x, out="FP32 2", inputs=["FP32 2"], version="mine", name="odd", depth=3, mode='"<')
    net.result(made)
    ir.save_model(read(net, strict=False), there)
    layer = ir.read_model(there, strict=False)._graph[1]
    assert (layer.type, layer.version, dict(layer.attributes)) == (
        "Abz",
        "mine",
        {"depth": "3", "mode": '"<'},
    )
    assert str(layer.outputs[0].type) == "f32[2]"


@pytest.fixture
def scaled() -> Iterator[None]:
    """An operation outside OpenVINO's opsets."""

    @op("Scaled-1")
    class Scaled(Op):
        data = Input(T_FLOAT)
        output = Output(T_FLOAT)

        by: tuple[float, ...] = (1.0,)
        to: ir.Type = attr(ir.Type.f32)

        def infer(self, data: Value) -> PartialShape:
            return data.shape

        def evaluate(self, data: Array) -> Array:
            return data * np.float32(self.by)

    yield
    registry.remove(Scaled)


@pytest.mark.usefixtures("scaled")
def test_operations_of_our_own_keep_their_version(there: Path) -> None:
    net = Net()
    x = net.parameter("x", "2", out="FP32 2")
    net.result(net.op("Scaled", x, out="FP32 2", version="extension", name="y", by="1e-3, 2.50"))
    found = again(read(net), there)
    assert '<data by="1e-3, 2.50" />' in there.read_text(), "in the words of the file"
    assert 'type="Scaled" version="extension"' in there.read_text()
    np.testing.assert_array_equal(ir.compile_model(found)(np.float32([1, 1]))[0], np.float32([1e-3, 2.5]))


def test_wrong_dims_are_put_right(there: Path) -> None:
    net = sums()
    wrong = net.xml().replace(b"<dim>3</dim></port></output>", b"<dim>4</dim></port></output>")
    model = ir.read_model(wrong, net.weights, strict=False)
    assert {d.code for d in model.report} == {"IR303"}
    assert list(again(model, there).report) == []


def test_other_mistakes_are_not_saved(there: Path) -> None:
    net = sums()
    net.edges.pop()
    with pytest.raises(ir.ValidationError, match="has no edge"):
        ir.save_model(read(net, strict=False), there)
    assert not there.exists()


def test_what_the_file_says_and_nobody_asked_is_kept(there: Path) -> None:
    net = sums()
    net.rt_info = '<a><b value="1"/><info name="c d" value="2"/></a><e/>'
    text = net.xml().decode()
    text = text.replace('name="add"', 'name="add" ', 1)
    start = text.index('<layer id="2"')
    at = text.index("<input>", start)
    info = '<rt_info><attribute name="fused_names" version="0" value="p,q"/></rt_info>'
    text = text[:at] + '<data unheard="of" auto_broadcast="NUMPY"/>' + info + text[at:]
    model = ir.read_model(text.encode(), net.weights)
    found = again(model, there)
    assert found.rt_info == model.rt_info == {"a": {"b": "1", "c d": "2"}, "e": {}, "version": 11}
    assert "<version" not in there.read_text()
    assert found._graph[2].rt_info == {"fused_names": {"version": "0", "value": "p,q"}}
    assert found._graph[2].attributes == {"unheard": "of", "auto_broadcast": "NUMPY"}
    assert "fused_names" in seen_by_openvino(there)[0]


NAMES = [
    '"quoted"',
    "<a&b>",
    "tab\tline\nreturn\r",
    "'",
    "長い",
    "a,b",
    "back\\slash",
    " spaces ",
    "]]>",
    "x" * 3000,
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_survives(name: str, there: Path) -> None:
    model = read(sums())
    model.friendly_name = name
    assert again(model, there).name == name
    assert core().read_model(there).friendly_name == name
    net = Net()
    escaped = name.replace(",", "\\,")
    x = net.parameter(name, "2", out="FP32 2", names=escaped)
    net.result(net.op("ReLU", x, out="FP32 2", name=name + "2", names=f"{escaped}2,other"))
    text = net.xml().decode().replace("\t", "&#9;").replace("line\n", "line&#10;").replace("\r", "&#13;")
    found = again(ir.read_model(text.encode()), there)
    theirs = core().read_model(there)
    assert found.output().names == theirs.outputs[0].names == {f"{name}2", "other"}
    assert [n.friendly_name for n in found.get_ordered_ops()][:2] == [name, f"{name}2"]
    assert {n.get_friendly_name() for n in theirs.get_ops()} >= {name, f"{name}2"}


def test_a_name_that_ends_in_a_backslash(there: Path) -> None:
    net = Net()
    x = net.parameter("x", "2", out="FP32 2", names="")
    net.result(net.op("ReLU", x, out="FP32 2", name="y", names="other,end\\"))
    found = again(read(net), there)
    assert found.output().names == core().read_model(there).outputs[0].names == {"other", "end\\"}


def test_characters_that_xml_does_not_have(there: Path) -> None:
    model = read(sums())
    for name, code in {"a\x01": "0001", "\ud800": "D800", "\ufffe": "FFFE", "\0": "0000"}.items():
        model.friendly_name = name
        with pytest.raises(ir.InputError, match=rf"XML has no character U\+{code}, but 'name' of <net>"):
            ir.save_model(model, there)
    assert list(there.parent.iterdir()) == []


PROGRAM = """
model = ov.Core().read_model(source)
note(ov.save_model(model, folder / "a.xml", compress_to_fp16=False))
note(ov.save_model(model, str(folder / "b.xml"), False), (folder / "b.bin").exists())
note(ov.serialize(model, folder / "c.xml"), ov.serialize(model, str(folder / "d.xml"), str(folder / "e.bin")))
note(ov.serialize(model, folder / "f.xml", version="IR_V11"))
note(sorted(path.name for path in folder.iterdir()))
note(ov.Core().read_model(folder / "d.xml", folder / "e.bin").outputs)
for name in ("none", "x.txt"):
    try:
        ov.save_model(model, folder / name)
    except RuntimeError:
        note("refused")
"""


def test_called_as_openvino_is(tmp_path: Path) -> None:
    notes = []
    for package in ("ir_runtime", "openvino"):
        (tmp_path / package).mkdir()
        notes.append(run(PROGRAM, package, source=saved("plain_cnn"), folder=tmp_path / package))
    assert_same(*notes)
    for name in ("a.xml", "a.bin", "c.xml", "c.bin", "e.bin"):
        ours, theirs = (
            sorted((tmp_path / p / name).read_bytes().split(b"\n")) for p in ("ir_runtime", "openvino")
        )
        assert ours == theirs


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("model", "must end in .xml, got 'model'"),
        ("model.bin", "end in .xml"),
        ("", "end in .xml"),
        ("file/none/model.xml", "Not a directory"),
        ("folder.xml", "is a folder"),
        ("a\0.xml", "null character"),
    ],
)
def test_paths_that_will_not_do(path: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "folder.xml").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(ir.InputError, match=message):
        ir.save_model(read(sums()), f"{tmp_path}/{path}")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder.xml"]


def test_folders_that_do_not_exist_are_created_unless_saving_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = read(sums())
    ir.save_model(model, tmp_path / "new" / "deep" / "model.xml")
    ir.serialize(model, tmp_path / "xml" / "model.xml", tmp_path / "bin" / "model.bin")
    assert ir.read_model(tmp_path / "new/deep/model.xml").outputs
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin", "new", "xml"]

    def fill(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fill)
    with pytest.raises(ir.InputError, match="No space"):
        ir.save_model(model, tmp_path / "other" / "deep" / "model.xml")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin", "new", "xml"]


def test_requests_that_make_no_sense(there: Path) -> None:
    with pytest.raises(ir.InputError, match="cannot hold both"):
        ir.serialize(read(sums()), there, there)
    with pytest.raises(ir.InputError, match="unknown version 'IR_V10'"):
        ir.serialize(read(sums()), there, version="IR_V10")
    with pytest.raises(TypeError, match="expected a model, got str"):
        ir.save_model("model.xml", there)  # type: ignore[arg-type]
    assert not there.exists()


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_paths_may_be_bytes(there: Path) -> None:
    ir.save_model(read(sums()), os.fsencode(there))
    assert there.with_suffix(".bin").exists()
