"""``ir-runtime run``: results, table, and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from harness.nets import Net, constant, net, parameter, passing, result, total, write, write_chain

Invoke = Callable[[str], Result]
Check = Callable[..., Result]

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
Y = (X + np.array([1, 2, 3])) * 10


def outputs(found: Result) -> list[dict[str, Any]]:
    assert found.exit_code == 0, found.stderr
    return json.loads(found.stdout)["outputs"]


def test_shows_a_table_of_outputs(folder: Path, check: Check) -> None:
    write_chain(folder)
    np.save("x.npy", X)
    check("run", "run chain.xml -i x.npy")


def test_shows_layers(folder: Path, check: Check) -> None:
    write_chain(folder)
    np.save("x.npy", X)
    check("run_layers", "run chain.xml -i x=x.npy --layers 'sh*'")


def test_shows_the_best_of_a_vector_of_scores(folder: Path, check: Check) -> None:
    write(folder, passing("f32", "1,1,7", name="scores"), "net")
    np.save("s.npy", np.array([[[0.5, -1, 3, 0.25, 9, np.nan, 2]]], np.float32))
    check("run_top", "run net.xml -i s.npy")


def test_says_once_what_is_declared_against_inference(folder: Path, check: Check) -> None:
    write(folder, total().replace("<dim>4</dim>", "<dim>5</dim>", 1))
    np.save("x.npy", np.ones(4, np.float32))
    check("run_declared", "run net.xml -i a=x.npy -i b=x.npy")
    assert check("run_strict", "run net.xml -i a=x.npy -i b=x.npy --strict").exit_code == 3


def test_declarations_that_no_layer_computes_with_are_warned_of(folder: Path, check: Check) -> None:
    write(folder, passing("f32", "1,1,7").replace("<dim>7</dim>", "<dim>8</dim>"))
    np.save("x.npy", np.ones((1, 1, 7), np.float32))
    check("run_declared_unread", "run net.xml -i x.npy")
    assert check("run_strict_unread", "run net.xml -i x.npy --strict").exit_code == 3
    assert check("validate_unread", "validate net.xml").exit_code == 0
    assert check("validate_strict_unread", "validate net.xml --strict").exit_code == 1


@pytest.mark.parametrize("shape", ["2,5", "4", "1,4"])
def test_other_shapes_are_no_vectors_of_scores(folder: Path, invoke: Invoke, shape: str) -> None:
    write(folder, passing("f32", shape))
    found = invoke("run net.xml --random --json")
    assert outputs(found)[0]["top"] is None


def test_json_has_the_same(folder: Path, invoke: Invoke) -> None:
    write_chain(folder)
    np.save("x.npy", X)
    found = invoke("run chain.xml -i x.npy --layers shift --json")
    assert json.loads(found.stdout) == {
        "schema": 1,
        "model": "chain.xml",
        "backend": "numpy",
        "inputs": [{"name": "x", "type": "f32", "shape": [2, 3], "source": "x.npy"}],
        "outputs": [
            {
                "name": "y",
                "type": "f32",
                "shape": [2, 3],
                "min": 20.0,
                "mean": 55.0,
                "max": 90.0,
                "nan": 0,
                "inf": 0,
                "top": None,
                "file": None,
            }
        ],
        "nan_check": None,
        "layers": [
            {
                "name": "shift",
                "type": "f32",
                "shape": [2, 3],
                "min": 2.0,
                "mean": 5.5,
                "max": 9.0,
                "nan": 0,
                "inf": 0,
                "top": None,
                "file": None,
            }
        ],
    }
    assert found.stderr == ""


def test_json_carries_the_numbers_it_lacks_as_text(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("f32", "5"))
    np.save("x.npy", np.array([np.nan, np.inf, 1, -np.inf, 0], np.float32))
    (found,) = outputs(invoke("run net.xml -i x.npy --json"))
    assert (found["min"], found["mean"], found["max"]) == ("-Infinity", "NaN", "Infinity")
    assert (found["nan"], found["inf"]) == (1, 2)
    assert [t["index"] for t in found["top"]] == [1, 2, 4, 3, 0]
    assert found["top"][-1]["value"] == "NaN"


def test_table_counts_nan_and_inf_where_there_are_any(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("f32", "3"))
    np.save("x.npy", np.array([np.nan, 4, 2], np.float32))
    lines = invoke("run net.xml -i x.npy").stdout.splitlines()
    assert lines[1].split() == ["name", "type", "shape", "min", "mean", "max", "nan"]
    assert lines[2].split() == ["x", "f32", "[3]", "2", "3", "4", "1"]


@pytest.mark.parametrize(
    ("element", "array", "expected"),
    [
        ("i64", np.array([2**62, -7]), ["-7", "2.30584e+18", str(2**62)]),
        ("u64", np.array([2**64 - 1, 3], np.uint64), ["3", "9.22337e+18", str(2**64 - 1)]),
        ("boolean", np.array([True, False, True, True]), ["0", "0.75", "1"]),
        ("f32", np.zeros((0, 3), np.float32), ["-", "-", "-"]),
    ],
)
def test_statistics_of_every_kind_of_number(
    folder: Path, invoke: Invoke, element: str, array: Any, expected: list[str]
) -> None:
    write(folder, passing(element, ",".join(map(str, array.shape))))
    np.save("x.npy", array)
    cells = invoke("run net.xml -i x.npy").stdout.splitlines()[2].split()[3:]
    assert cells == expected


def test_two_outputs_of_one_tensor_have_two_names(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("f32", "2", results=2))
    assert [o["name"] for o in outputs(invoke("run net.xml --random --json"))] == ["x", "x_2"]


def test_backends_agree_and_are_named(folder: Path, invoke: Invoke) -> None:
    write_chain(folder)
    np.save("x.npy", X)
    found = [
        json.loads(invoke(f"run chain.xml -i x.npy --json --backend {b}").stdout)
        for b in ("numpy", "reference")
    ]
    assert [f.pop("backend") for f in found] == ["numpy", "reference"]
    assert found[0] == found[1]


def test_backend_comes_from_the_environment(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, total())
    monkeypatch.setenv("IR_RUNTIME_BACKEND", "reference")
    assert json.loads(invoke("run net.xml --random --json").stdout)["backend"] == "reference"


def test_weights_may_lie_elsewhere(folder: Path, invoke: Invoke) -> None:
    write_chain(folder)
    (folder / "chain.bin").rename(folder / "other.bin")
    np.save("x.npy", X)
    (found,) = outputs(invoke("run chain.xml -i x.npy --weights other.bin --json"))
    assert found["max"] == Y.max()


def test_reshapes_first(folder: Path, invoke: Invoke) -> None:
    write_chain(folder)
    np.save("x.npy", np.ones((5, 3), np.float32))
    for shape in ("5,3", "x=5,3", "x=[?,3]", "x=1..8,3"):
        (found,) = outputs(invoke(f"run chain.xml -i x.npy --json --shape '{shape}'"))
        assert found["shape"] == [5, 3]


def test_warnings_of_the_model_go_to_stderr(folder: Path, invoke: Invoke) -> None:
    text = passing("f32", "2").replace('element_type="f32"/>', 'element_type="f32" colour="red"/>')
    write(folder, text)
    found = invoke("run net.xml --random")
    assert found.exit_code == 0
    assert "warning[IR203]: Parameter-1 has no attribute 'colour'" in found.stderr
    assert "IR203" not in found.stdout


def test_a_model_without_inputs_runs(folder: Path, invoke: Invoke) -> None:
    (folder / "net.bin").write_bytes(np.float32(7).tobytes())
    write(folder, net([constant(0, "c", "1", 0, 4), result(1, "1")], [(0, 0, 1, 0)]))
    (found,) = outputs(invoke("run net.xml --json"))
    assert found["min"] == found["max"] == 7


def test_names_from_the_file_cannot_steer_the_terminal(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("f32", "2", name="x&#x9b;31m&#x202e;"))
    found = invoke("run net.xml --random")
    assert "x\\x9b31m\\u202e" in found.stdout
    assert "\x9b" not in found.stdout


def test_wide_names_keep_columns_straight(folder: Path, invoke: Invoke) -> None:
    layers = [parameter(0, "入力", "2"), parameter(1, "x", "2"), result(2, "2"), result(3, "2")]
    write(folder, net(layers, [(0, 0, 2, 0), (1, 0, 3, 0)]))
    header, wide, narrow = invoke("run net.xml --random").stdout.splitlines()[1:4]
    assert header.startswith("  name  type")
    assert wide.startswith("  入力  f32")
    assert narrow.startswith("  x     f32")


def test_options_may_have_one_dash(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("f32", "?,3"))
    for option in ("-shape '[2,3]'", "--shape '[2,3]'", "-shape=2,3"):
        (found,) = outputs(invoke(f"run net.xml -random -json {option}"))
        assert found["shape"] == [2, 3]


def test_precision_is_that_of_the_computation(folder: Path, invoke: Invoke) -> None:
    write_chain(folder)
    np.save("x.npy", np.full((2, 3), 1 / 3, np.float32))
    (exact,) = outputs(invoke("run chain.xml -i x.npy --json"))
    (narrow,) = outputs(invoke("run chain.xml -i x.npy --json --precision f16"))
    assert narrow["max"] != exact["max"]
    assert narrow["max"] == pytest.approx(exact["max"], rel=1e-2)


@pytest.mark.parametrize("precision", ["F16", "FP16"])
def test_a_precision_may_be_given_as_in_files(folder: Path, invoke: Invoke, precision: str) -> None:
    write_chain(folder)
    np.save("x.npy", np.full((2, 3), 1 / 3, np.float32))
    (named,) = outputs(invoke(f"run chain.xml -i x.npy --json --precision {precision}"))
    assert outputs(invoke("run chain.xml -i x.npy --json --precision f16")) == [named]


def test_products_are_rounded_to_bf16(folder: Path, invoke: Invoke) -> None:
    """1/3 has 8 significant bits in bf16. Smaller products stay in f32."""
    net = Net()
    x = net.parameter("x", "64,64", out="FP32 64 64")
    net.result(net.op("MatMul", x, net.constant(np.eye(64), "f32"), out="FP32 64 64", name="y"))
    (folder / "net.xml").write_bytes(net.xml())
    (folder / "net.bin").write_bytes(net.weights)
    np.save("x.npy", np.full((64, 64), 1 / 3, np.float32))
    (found,) = outputs(invoke("run net.xml -i x.npy --json --backend native --precision bf16"))
    assert found["max"] == 0.333984375


def test_a_precision_that_is_not_followed_is_said(folder: Path, invoke: Invoke) -> None:
    write_chain(folder)
    with pytest.warns(match="INFERENCE_PRECISION_HINT=bf16 is ignored: the backend numpy multiplies in f32"):
        invoke("run chain.xml --random --precision bf16 --backend numpy")


def test_layers_that_make_nan_are_named(folder: Path, invoke: Invoke) -> None:
    """Layers that only propagate NaN, and inputs, are not named."""
    net = Net()
    root = net.op("Sqrt", net.parameter("x", "3", names="x"), name="root")
    net.result(net.op("Tanh", root, name="after"))
    (folder / "net.xml").write_bytes(net.xml())
    np.save("x.npy", np.float32([-1, 4, 9]))
    found = invoke("run net.xml -i x.npy --nan-check --backend reference")
    assert found.exit_code == 1
    assert found.stdout.splitlines()[:3] == [
        "NaN or Inf of finite inputs",
        "  layer  operation  nan  inf",
        "  root   Sqrt-1       1    0",
    ]
    record = json.loads(invoke("run net.xml -i x.npy --nan-check --backend reference --json").stdout)
    assert record["nan_check"] == [{"layer": "root", "operation": "Sqrt-1", "nan": 1, "inf": 0}]
    np.save("x.npy", np.float32([1, np.nan, 9]))
    found = invoke("run net.xml -i x.npy --nan-check --backend reference")
    assert found.exit_code == 0
    assert found.stdout.startswith("NaN check: no layer makes NaN or Inf of finite inputs\n")
    assert invoke("run net.xml -i x.npy").stderr == "note: after has NaN, as input x has\n"
    np.save("x.npy", np.float32([-1, 4, 9]))
    assert "note: after has NaN: run it with --nan-check" in invoke("run net.xml -i x.npy").stderr
