"""``ir-runtime cost``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shlex import quote

import pytest
from click.testing import Result
from harness.nets import Net
from messages.control import cut, iterator

from ir_runtime import read_model, save_model

DIGITS = str(Path(__file__).parents[2] / "examples/digits/digits.xml")

Invoke = Callable[[str], Result]


def test_numbers_for_a_shape(invoke: Invoke) -> None:
    found = invoke(f"cost {quote(DIGITS)} --shape 1,1,8,8")
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert "  MACs                    1,231,136 (1.23 M)" in lines
    assert any(line.split()[:4] == ["Convolution-1", "3", "2.46", "M"] for line in lines)


def test_formulas_without(invoke: Invoke) -> None:
    found = invoke(f"cost {quote(DIGITS)}")
    assert "2478490·batch" in found.stdout
    assert "batch  ?" in found.stdout


@pytest.mark.parametrize(("top", "rows"), [("2", 2), ("0", 14)])
def test_layers_are_shown(invoke: Invoke, top: str, rows: int) -> None:
    table = invoke(f"cost {quote(DIGITS)} --top {top}").stdout.rpartition("\n\n")[2].splitlines()
    assert len(table) == rows + 2


def test_the_peak_says_which_shapes_to_pass(invoke: Invoke) -> None:
    open_lengths = invoke(f"cost {quote(DIGITS)}").stdout
    assert (
        "activation peak, bytes  depends on batch; pass numbers: --shape 'image[BATCH,1,8,8]'" in open_lengths
    )
    assert (
        "activation peak, bytes  24,832 (24.8 k)"
        in invoke(f"cost {quote(DIGITS)} --shape 'image[1,1,8,8]'").stdout
    )


def test_json(invoke: Invoke) -> None:
    found = json.loads(invoke(f"cost {quote(DIGITS)} --json").stdout)
    assert found["file"] == DIGITS
    assert found["flops"] == "2478490·batch"
    assert found["parameters"] == sum(weights["numbers"] for weights in found["weights"])
    assert {layer["layer"] for layer in found["layers"]} >= {"Multiply_2994"}
    assert found["open_lengths"] == [{"input": "image", "axis": 0, "name": "batch", "bounds": "?"}]


def test_layers_of_unknown_rank_are_named(invoke: Invoke, tmp_path: Path) -> None:
    page = tmp_path / "abs.xml"
    page.write_text(
        '<layer id="0" type="Abs" name="abs" version="opset1"><input><port id="0"/></input>'
        '<output><port id="1"/></output></layer>'
    )
    found = invoke(f"cost {quote(str(page))} --shape ...")
    assert found.exit_code == 0
    assert found.stderr == "not counted, as ranks are not known: abs\n"


def without_weights(folder: Path, **changes: str) -> str:
    """The digits model without its weights, and with some text of the file replaced."""
    path = folder / "digits.xml"
    text = Path(DIGITS).read_text()
    for before, after in changes.items():
        text = text.replace(before, after)
    path.write_text(text)
    return quote(str(path))


def test_counts_without_weights_are_those_of_the_declared_shapes(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "fixed.xml"
    model = read_model(DIGITS)
    model.reshape([2, 1, 8, 8])
    save_model(model, path)
    with_weights = json.loads(invoke(f"cost {quote(str(path))} --json").stdout)
    path.with_suffix(".bin").unlink()
    without = invoke(f"cost {quote(str(path))} --json")
    assert without.exit_code == 0
    assert without.stderr.splitlines() == [
        "the model has constants, but no weights were found; shapes that depend on them are those that the file declares",
        f"  hint: put it at {path.with_suffix('.bin')}, or name it (--weights BIN)",
    ]
    counted = json.loads(without.stdout)
    declared = {layer["layer"].rpartition("/")[2] for layer in counted["layers"] if layer.pop("is_declared")}
    assert declared == {"AdaptiveAvgPool", "Reshape", "MatMul"}
    assert not any(layer.pop("is_declared") for layer in with_weights["layers"])
    assert counted == with_weights


def test_layers_whose_shapes_are_declared_are_marked(invoke: Invoke, tmp_path: Path) -> None:
    lines = invoke(f"cost {without_weights(tmp_path)}").stdout.splitlines()
    (marked,) = [line for line in lines if "aten::linear/MatMul" in line and "MatMul-1  " in line]
    assert marked.endswith("declared")
    assert not any(line.endswith("declared") for line in lines if "Convolution-1" in line)


def test_other_shapes_without_weights_leave_lengths_unknown(invoke: Invoke, tmp_path: Path) -> None:
    found = invoke(f"cost {without_weights(tmp_path)} --shape 2,1,8,8")
    assert found.exit_code == 0
    assert "shapes that depend on them are unknown, as --shape changes those in the file" in found.stderr
    assert "axis 1" in found.stdout


def test_shapes_without_weights(invoke: Invoke, tmp_path: Path) -> None:
    found = invoke(f"shapes {without_weights(tmp_path)} --json")
    assert found.exit_code == 0
    assert "those that the file declares" in found.stderr
    assert "shapes may be wrong" not in found.stderr
    ports = json.loads(found.stdout)["ports"]
    shapes = {port["layer"].rpartition("/")[2]: (port["shape"], port["is_declared"]) for port in ports}
    assert shapes["AdaptiveAvgPool"] == (["?", 80, 1, 1], True)
    assert shapes["Multiply_3001"] == (["batch", 48, 8, 8], False)
    lines = invoke(f"shapes {without_weights(tmp_path)}").stdout.splitlines()
    assert [line.split()[1].rpartition("/")[2] for line in lines if line.endswith("declaration")] == [
        "AdaptiveAvgPool",
        "Reshape",
    ]


def test_a_body_without_weights(invoke: Invoke, tmp_path: Path) -> None:
    """The shape of a Reshape in a loop body is a constant whose data is missing."""
    body = Net()
    part = body.parameter("part", "1,6", out="FP32 1 6")
    square = body.op(
        "Reshape", part, body.constant([2, 3]), out="FP32 2 3", name="square", special_zero=False
    )
    body.result(square)
    model = iterator(
        f"<input {cut(0, axis=0)}", f"<output {cut(1, 3, axis=0)}", body, "4,6", out=["FP32 8 3"]
    )
    path = tmp_path / "loop.xml"
    path.write_bytes(model.xml())
    ports = json.loads(invoke(f"shapes {quote(str(path))} --json").stdout)["ports"]
    shapes = {port["layer"]: (port["shape"], port["is_declared"]) for port in ports}
    assert shapes["rows/body/square"] == ([2, 3], True)
    assert shapes["rows"][0] == [8, 3]


def test_lengths_in_formulas_get_numbers(invoke: Invoke, folder: Path) -> None:
    """Data-dependent dims, such as the rows found by NonZero, are included."""
    net = Net()
    x = net.parameter("x", "?,3", names="x")
    places = net.op("NonZero", x, version="opset3", output_type="i64")
    net.result(net.op("Exp", net.op("Convert", places, destination_type="f32")))
    net.result(net.op("Exp", x))
    (folder / "net.xml").write_bytes(net.xml())
    assert json.loads(invoke("cost net.xml --json").stdout)["flops"] == "6·batch + 2·n1"
    half = json.loads(invoke("cost net.xml --at n1=5 --json").stdout)
    assert (half["flops"], half["run_lengths"]) == ("6·batch + 10", [])
    assert [length["name"] for length in half["open_lengths"]] == ["batch"]
    whole = json.loads(invoke("cost net.xml --at 'n*=5' --at batch=4 --json").stdout)
    assert (whole["flops"], whole["open_lengths"]) == (34, [])
    wrong = invoke("cost net.xml --at bacth=5")
    assert wrong.exit_code == 2
    assert "unknown length 'bacth': the formulas have batch, n1; did you mean 'batch'?" in wrong.stderr
    assert "is not NAME=N" in invoke("cost net.xml --at n1").stderr
    assert (
        "the costs are numbers already" in invoke(f"cost {quote(DIGITS)} --shape 1,1,8,8 --at batch=2").stderr
    )
