"""``ir-runtime cost``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shlex import quote

import pytest
from click.testing import Result

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
