"""Runtime information: reading, changing, saving."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type, get_overloads

import numpy as np
import pytest
from harness.dropin import assert_same, evaluate, run
from harness.nets import Net

import ir_runtime as ir

VALUES = """
A(1).value|A("x").value|A(1.5).value|A(True).value|A([1, 2]).value|A(["a"]).value|A({"a": 1}).value
A({"a": {"b": 1}}).value|A((1, 2)).value|A(np.float32(1.5)).value|A(A(1)).value|A([1, "a"])|A(1).get()|A(None).value
A(1) == 1|A(1) == A(1)|A("x") == "x"|A(1) == "1"|A("1") == 1|A([1, 2]) == [1, 2]|A([1, 2]) == (1, 2)|A(True) == True
A({"a": 1}) == {"a": 1}|A(1) != 2|hash(A(1)) == hash(1)|hash(A("x")) == hash("x")
A("1").astype(int)|A("1.5").astype(float)|A(1).astype(str)|A("x").astype(int)|A("x").astype(float)|A(1).astype(float)
A(1.5).astype(int)|A("1.5").astype(int)|A("1e3").astype(float)|A([1, 2]).astype(list)|A("x").astype(dict)|A("x").astype(None)
A([1]).astype(int)|A(2.0).astype(str)|A(0.1).astype(str)|A(1e-7).astype(str)|A(True).astype(str)|A([1, 2]).astype(str)
A([1.5, 2]).astype(str)|A([True, False]).astype(str)|A({"a": 1, "b": "x"}).astype(str)|A(["a", "b"]).astype(str)
A([]).astype(str)|A({"a": 1}).astype(dict)["a"].value|A({"a": {"b": 1}}).astype(dict)["a"].astype(str)
A("true").astype(bool)|A("YES").astype(bool)|A("on").astype(bool)|A("1").astype(bool)|A("No").astype(bool)
A("off").astype(bool)|A("FALSE").astype(bool)|A("").astype(bool)|A("y").astype(bool)|A("2").astype(bool)|A(1).astype(bool)
A([1, 2]).aslist(int)|A(["a", "b"]).aslist(str)|A("1 2").aslist(int)|A("1 2").aslist(float)|A("a b").aslist(str)
A("True False").aslist(bool)|A("1, 2").aslist(str)|A("").aslist(str)|A("").aslist()|A([]).aslist()|A("x").aslist(dict)
A(3).aslist(int)|A({"a": 1})["a"]|A([1, 2])[0]|A("abc")[0]|A({"a": 1})["b"]|len(A([1, 2]))|len(A("abc"))|list(A([1, 2]))
repr(A(1))|str(A("x"))|changed(A(1), "y").value|A("x") < 1
"""


def changed(any_value: Any, value: Any) -> Any:
    any_value.set(value)
    return any_value


@pytest.mark.parametrize("line", VALUES.strip().splitlines(), ids=lambda line: line[:25])
def test_values(line: str) -> None:
    api = {package: pytest.importorskip(package) for package in ("ir_runtime", "openvino")}
    for expression in line.split("|"):
        ours, theirs = (
            evaluate(expression, package, A=api[package].OVAny, changed=changed) for package in api
        )
        assert_same(ours, theirs)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    net = Net(
        rt_info='<conversion_parameters><framework value="pytorch"/></conversion_parameters>'
        '<model_info><labels value="a b"/><scale value="1.5"/><nested><deep value="7"/></nested></model_info>'
        '<MO_version value="2024"/>'
    )
    x = net.parameter("x", "2,3", out="FP32 2 3")
    net.result(net.op("ReLU", x, out="FP32 2 3", name="r", names="r"), "res")
    (tmp_path / "m.xml").write_bytes(net.xml())
    return tmp_path / "m.xml"


READING = """
model = ov.Core().read_model(path)
for place in ("MO_version", "model_info", ["model_info", "scale"], ["model_info", "nested", "deep"], "nope",
              ["model_info", "nope"], ["a", "b"]):
    note(model.has_rt_info(place))
    try:
        note(model.get_rt_info(place).value)
    except RuntimeError:
        note("RuntimeError")
note(model.get_rt_info(["model_info", "scale"]).astype(float), model.get_rt_info(["model_info", "labels"]).aslist(str))
note(model.rt_info["MO_version"].value, model.rt_info["model_info"]["scale"].astype(float), "nope" in model.rt_info)
note(model.rt_info["model_info"]["nested"]["deep"].value, sorted(set(model.rt_info) - {"version"}), repr(model.rt_info))
note(repr(model.get_rt_info()), type(model.get_rt_info()).__name__, bool(model.rt_info))
note(model.get_rt_info("model_info").astype(dict)["labels"].astype(str), list(model.get_rt_info("model_info").value))
"""

CHANGING = """
model = ov.Core().read_model(path)
for value, place in ((3, "new"), ("text", ["model_info", "labels"]), ([1, 2], ["a", "b", "c"]), ({"k": "v", "n": 1}, "d"),
                     (1.5, ["model_info", "scale"]), (True, "flag"), (["x", "y"], "list"), ((1, 2), "pair"), (0.1, "f")):
    model.set_rt_info(value, place)
    note(model.get_rt_info(place).value, model.has_rt_info(place))
try:
    model.set_rt_info(2, ["MO_version", "sub"])
except RuntimeError:
    note("RuntimeError")
model.rt_info["direct"] = "x"
del model.rt_info["flag"]
note(model.get_rt_info("direct").value, model.has_rt_info("flag"), model.clone().get_rt_info("direct").value)
ov.save_model(model, folder / "saved.xml")
again = ov.Core().read_model(folder / "saved.xml")
for name in ("new", "model_info", "a", "d", "list", "pair", "direct", "f"):
    note(name, again.get_rt_info(name).value)
"""


@pytest.mark.parametrize("program", [READING, CHANGING], ids=["reading", "changing"])
def test_of_models(program: str, path: Path, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    ours, theirs = (
        run(program, package, path=path, folder=tmp_path) for package in ("ir_runtime", "openvino")
    )
    assert_same(ours, theirs)


def test_openvino_reads_what_is_saved(path: Path, tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino")
    model = ir.read_model(path)
    model.set_rt_info(["cat", "dog"], ["model_info", "labels"])
    model.set_rt_info(1 / 3, ["model_info", "third"])
    ir.save_model(model, tmp_path / "saved.xml")
    again = ov.Core().read_model(tmp_path / "saved.xml")
    assert again.get_rt_info(["model_info", "labels"]).aslist(str) == ["cat", "dog"]
    assert again.get_rt_info(["model_info", "third"]).astype(float) == 1 / 3


def test_a_copy_of_a_model_has_its_own(path: Path) -> None:
    model = ir.read_model(path)
    copy = model.clone()
    copy.set_rt_info(2, ["model_info", "scale"])
    model.set_rt_info("mine", "name")
    assert model.get_rt_info(["model_info", "scale"]) == "1.5"
    assert not copy.has_rt_info("name")
    assert ir.read_model(path).rt_info == {**copy.rt_info, "model_info": model.get_rt_info("model_info")}


def test_maps_of_their_own() -> None:
    mine = ir.RTMap()
    mine["b"], mine["a"] = 1, {"c": np.int64(2)}
    assert list(mine) == ["a", "b"]
    assert mine["a"]["c"] == 2
    del mine["b"]
    assert mine == {"a": {"c": 2}} != ir.RTMap()
    with pytest.raises(KeyError):
        mine["b"]


def test_entries_of_a_value_can_be_changed() -> None:
    mine = ir.OVAny({"a": 1})
    mine["b"] = ir.OVAny(2)
    assert mine == {"a": 1, "b": 2}
    assert [bool(ir.OVAny(each)) for each in (0, 1, "", "x", [], {})] == [
        False,
        True,
        False,
        True,
        False,
        False,
    ]


PLACES = """
model = ov.Core().read_model(path)
node = next(op for op in model.get_ops() if op.get_friendly_name() == "r")
for place in (node, node.output(0), node.input(0), model.input(0)):
    note(len(place.rt_info), repr(place.rt_info))
    place.rt_info["mine"] = "x"
    place.set_rt_info(5, "count")
    place.set_rt_info([1, 2], "list")
    note(place.rt_info["mine"].value, place.get_rt_info()["count"].value, place.rt_info["list"].aslist(int))
    note(sorted(place.rt_info), "mine" in place.rt_info, place.rt_info["count"] == 5, len(place.get_rt_info()))
    del place.rt_info["count"]
    note("count" in place.rt_info)
again = next(op for op in model.get_ops() if op.get_friendly_name() == "r")
note(again.rt_info["mine"].value, again.output(0).rt_info["list"].value, again.input(0).rt_info["mine"].astype(str))
note(model.clone().input(0).rt_info["mine"].value)
"""


def test_of_nodes_and_ports(path: Path) -> None:
    pytest.importorskip("openvino")
    ours, theirs = (run(PLACES, package, path=path) for package in ("ir_runtime", "openvino"))
    assert_same(ours, theirs)


def test_of_nodes_and_ports_is_saved(path: Path, tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino")
    model = ir.read_model(path)
    node = next(op for op in model.get_ops() if op.get_friendly_name() == "r")
    given = {"text": "x", "count": 5, "list": [1.5, 2.0], "flag": True, "nested": {"a": 1, "b": {"c": "d"}}}
    for place in (node, node.output(0), node.input(0)):
        for name, value in given.items():
            place.set_rt_info(value, name)
    ir.save_model(model, tmp_path / "saved.xml")
    saved = {"text": "x", "count": "5", "list": "1.5 2", "flag": "YES", "nested": {"a": "1", "b": {"c": "d"}}}
    again = next(
        op for op in ir.read_model(tmp_path / "saved.xml").get_ops() if op.get_friendly_name() == "r"
    )
    for place in (again, again.output(0), again.input(0)):
        assert place.rt_info == saved
    x = np.float32([[-1, 2, -3], [4, -5, 6]])
    np.testing.assert_array_equal(ov.Core().compile_model(tmp_path / "saved.xml", "CPU")(x)[0], x.clip(0))


def test_what_is_read_has_its_type() -> None:
    """Type checkers infer the same types from the overloads."""
    assert len(get_overloads(ir.Model.get_rt_info)) == 2
    model = ir.Model([], [], "empty")
    model.set_rt_info("v", "k")
    assert assert_type(model.get_rt_info(), ir.RTMap)["k"] == "v"
    assert assert_type(model.get_rt_info("k"), ir.OVAny).value == "v"


@pytest.mark.parametrize("version", [10, 11])
def test_models_that_were_read_say_of_which_ir_version(version: int, tmp_path: Path) -> None:
    text = f'''<net name="a" version="{version}"><layers>
        <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
            <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
        <layer id="1" name="y" type="Relu" version="opset1"><input><port id="0"><dim>2</dim></port></input>
            <output><port id="1" precision="FP32"><dim>2</dim></port></output></layer>
        <layer id="2" name="r" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer>
        </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>'''.encode()
    for package in ("ir_runtime", "openvino"):
        api = pytest.importorskip(package)
        model = api.Core().read_model(text)
        assert model.has_rt_info("version")
        assert (model.rt_info["version"].value, model.clone().get_rt_info("version").value) == (
            version,
            version,
        )
        api.serialize(model, tmp_path / f"{package}.xml")
        assert "<version" not in (tmp_path / f"{package}.xml").read_text()


def test_entries_may_have_numbers_for_names() -> None:
    for package in ("ir_runtime", "openvino"):
        value = pytest.importorskip(package).OVAny({2: "b", 1: "a"})
        assert (value[1], list(value.value)) == ("a", [2, 1])
