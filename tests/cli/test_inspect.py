"""``ir-runtime inspect``: inputs, outputs and layers of a model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from click.testing import Result
from harness.nets import chain, constant, net, parameter, passing, result, total, write, write_chain

DIGITS = Path(__file__).parents[2] / "examples" / "digits"

Invoke = Callable[[str], Result]
Check = Callable[..., Result]


def test_shows_a_model(folder: Path, check: Check) -> None:
    write_chain(folder, rows="1..8")
    check("inspect", "inspect chain.xml")


def test_json_has_the_same(folder: Path, invoke: Invoke) -> None:
    write_chain(folder, rows="1..8")
    found = invoke("inspect chain.xml --json")
    assert json.loads(found.stdout) == {
        "schema": 1,
        "file": "chain.xml",
        "name": "tiny",
        "version": 11,
        "inputs": [{"name": "x", "type": "f32", "shape": ["1..8", 3]}],
        "outputs": [{"name": "y", "type": "f32", "shape": ["1..8", 3]}],
        "layers": 6,
        "operations": [
            {"operation": "Constant-1", "count": 2, "known": True},
            {"operation": "Add-1", "count": 1, "known": True},
            {"operation": "Multiply-1", "count": 1, "known": True},
            {"operation": "Parameter-1", "count": 1, "known": True},
            {"operation": "Result-1", "count": 1, "known": True},
        ],
        "parameters": 4,
        "weights": [{"type": "f32", "tensors": 2, "numbers": 4, "bytes": 16}],
        "dynamic": [{"input": "x", "axis": 0, "min": 1, "max": 8}],
        "releases": {
            "oldest": "2022.1",
            "known": ["2021.4", "2026.4"],
            "needs": [
                {
                    "need": "IR version 11",
                    "since": "2022.1",
                    "code": "IR601",
                    "layer": None,
                    "line": None,
                    "layers": 0,
                },
                {
                    "need": "dynamic dims",
                    "since": "2022.1",
                    "code": "IR605",
                    "layer": "x",
                    "line": 4,
                    "layers": 1,
                },
            ],
        },
        "errors": 0,
        "warnings": 0,
    }
    assert found.stderr == ""


def test_weights_are_counted_by_type(folder: Path, check: Check) -> None:
    layers = [
        constant(0, "a", "1000,2", 0, 4000, "f16"),
        constant(1, "b", "3", 4000, 24, "i64"),
        result(2, "1000,2", "f16"),
        result(3, "3", "i64"),
    ]
    write(folder, net(layers, [(0, 0, 2, 0), (1, 0, 3, 0)], name=""))
    (folder / "net.bin").write_bytes(bytes(4024))
    check("inspect_weights", "inspect net.xml")


def test_unknown_operations_are_shown_and_said(folder: Path, check: Check) -> None:
    write(folder, total().replace('type="Add" version="opset1"', 'type="Blend" version="custom"'))
    check("inspect_unknown", "inspect net.xml")


def test_unknown_operations_in_json(folder: Path, invoke: Invoke) -> None:
    write(folder, total().replace('type="Add"', 'type="Blend"'))
    found = invoke("inspect net.xml --json")
    assert found.exit_code == 0
    record = json.loads(found.stdout)
    assert {"operation": "Blend (opset1)", "count": 1, "known": False} in record["operations"]
    assert record["errors"] == 1
    assert record["outputs"] == [{"name": "sum", "type": "f32", "shape": [4]}]


def test_a_model_without_its_weights_is_shown(folder: Path, invoke: Invoke) -> None:
    write(folder, chain())
    found = invoke("inspect net.xml --json")
    assert found.exit_code == 0
    record = json.loads(found.stdout)
    assert record["weights"] == [{"type": "f32", "tensors": 2, "numbers": 4, "bytes": 16}]
    assert record["errors"] == 1
    assert found.stderr == "the model has 1 error; ir-runtime validate shows them\n"


def test_lengths_that_are_open(folder: Path, invoke: Invoke) -> None:
    layers = [
        parameter(0, "x", "?,3..,..5,2"),
        parameter(1, "y", "...").replace("<dim>-1</dim>", ""),
        result(2, "?,?,?,2"),
        result(3, ""),
    ]
    write(folder, net(layers, [(0, 0, 2, 0), (1, 0, 3, 0)]))
    record = json.loads(invoke("inspect net.xml --json").stdout)
    assert [tuple(d.values()) for d in record["dynamic"]] == [
        ("x", 0, 0, None),
        ("x", 1, 3, None),
        ("x", 2, 0, 5),
        ("y", None, 0, None),
    ]
    assert [i["shape"] for i in record["inputs"]] == [["?", "3..", "..5", 2], None]
    assert "  y     f32   [...]\n" in invoke("inspect net.xml").stdout


def test_an_example_of_a_page(folder: Path, invoke: Invoke) -> None:
    layer = (
        '<layer id="1" type="ReduceSum" ...><input><port id="0"><dim>6</dim><dim>12</dim></port>'
        '<port id="1"><dim>1</dim></port></input><output><port id="2"><dim>6</dim></port></output></layer>\n'
    )
    (folder / "page.txt").write_text(f"ReduceSum-1\n{layer} and \n{layer}")
    assert invoke("inspect page.txt").exit_code == 2
    found = invoke("inspect page.txt --example 2 --value 1=1 --json")
    record = json.loads(found.stdout)
    assert [i["name"] for i in record["inputs"]] == ["data"]
    assert record["outputs"][0]["shape"] == [6]


def test_names_cannot_steer_the_terminal(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("f32", "2", name="x&#x9b;2J").replace('name="tiny"', 'name="t&#x9b;2J"'))
    found = invoke("inspect net.xml")
    assert found.stdout.count("\\x9b2J") == 3
    assert "\x9b" not in found.stdout


def test_what_cannot_be_read_is_refused(folder: Path, invoke: Invoke) -> None:
    found = invoke("inspect none.xml")
    assert (found.exit_code, found.stdout) == (3, "")
    assert found.stderr == "none.xml: error[IR001]: no such file\n"


def test_shows_what_was_fused(folder: Path, check: Check, invoke: Invoke) -> None:
    shutil.copytree(DIGITS, folder / "digits")
    check("inspect_fusion", "inspect digits/digits.xml --fusion --backend numpy")
    record = json.loads(invoke("inspect digits/digits.xml --fusion --backend numpy --json").stdout)
    operations = [[layer["operation"] for layer in each["layers"]] for each in record["fused"]]
    assert operations == [["Convolution-1", "Add-1", "ReLU-1"]] * 3 + [["MatMul-1", "Add-1"]]
    assert record["single"] == 3


def test_shows_the_graph_after_a_pass(folder: Path, check: Check, invoke: Invoke) -> None:
    write_chain(folder, rows="1..8")
    check("inspect_after", "inspect chain.xml --print-after fuse --backend numpy")
    found = json.loads(invoke("inspect chain.xml --print-after fuse --backend numpy --json").stdout)
    assert (found["pass"], found["program"][0]) == ("fuse", '"x" = Parameter-1() : f32[1..8,3]')


def test_options_that_do_not_fit_are_refused(folder: Path, check: Check) -> None:
    write_chain(folder, rows="1..8")
    check("inspect_both", "inspect chain.xml --fusion --print-after fuse")
    check("inspect_backend", "inspect chain.xml --backend numpy")
    check("inspect_near_pass", "inspect chain.xml --print-after fusing")
    check("inspect_no_pass", "inspect chain.xml --print-after 9")
