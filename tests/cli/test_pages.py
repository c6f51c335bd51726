"""Specification pages: every example runs, including the one whose comment lacks a value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

Invoke = Callable[[str], Result]

LAYER = """<layer id="1" type="ReduceL2" ...>
<data keep_dims="{keep}" />
<input>
<port id="0">
<dim>6</dim>
<dim>12</dim>
<dim>10</dim>
<dim>24</dim>
</port>
<port id="1">
<dim>{count}</dim>         <!-- value is {value} that means independent reduction in each channel -->
</port>
</input>
<output>
<port id="2">
{dims}
</port>
</output>
</layer>
"""

EXAMPLES = [
    ("true", "[2, 3]", [6, 12, 1, 1]),
    ("false", "[2, 3]", [6, 12]),
    ("false", "", [6, 10, 24]),
    ("false", "[-2]", [6, 12, 24]),
]


def layer(keep: str, value: str, dims: list[int]) -> str:
    printed = "\n".join(f"<dim>{n}</dim>" for n in dims)
    return LAYER.format(keep=keep, count=value.count(",") + 1, value=value, dims=printed)


@pytest.fixture(params=["Examples", "例: NCHW レイアウトの正規化"], ids=["en", "ja"])
def page(request: pytest.FixtureRequest, folder: Path) -> str:
    text = "Versioned name : ReduceL2-4\n\n" + request.param + "\n\n"
    path = folder / "page.txt"
    path.write_text(text + "".join(layer(*example) for example in EXAMPLES), encoding="utf-8")
    return path.name


def run(invoke: Invoke, line: str) -> dict[str, Any]:
    found = invoke(f"run {line} --random --json")
    assert found.exit_code == 0, found.stderr
    record: dict[str, Any] = json.loads(found.stdout)
    return record


@pytest.mark.parametrize("number", [1, 2, 4])
def test_every_example_runs(page: str, invoke: Invoke, number: int) -> None:
    record = run(invoke, f"{page} --example {number}")
    assert [i["name"] for i in record["inputs"]] == ["data"]
    assert [o["shape"] for o in record["outputs"]] == [EXAMPLES[number - 1][2]]


def test_an_example_that_lost_its_axes_asks_for_them(page: str, invoke: Invoke) -> None:
    found = invoke(f"run {page} --example 3")
    assert found.exit_code == 2
    assert "2 inputs are missing: 'data' (f32[6,12,10,24]); 'axes' (i64[1])" in found.stderr


def test_an_example_that_lost_its_axes_runs_on_any(page: str, invoke: Invoke) -> None:
    record = run(invoke, f"{page} --example 3")
    assert [i["name"] for i in record["inputs"]] == ["data", "axes"]
    assert record["outputs"][0]["shape"] == [12, 10, 24], "made-up axes start at 0"


@pytest.mark.parametrize("value", ["1=1", "axes=1", "1:1=1", "axes=-3"])
def test_a_value_fills_a_port(page: str, invoke: Invoke, value: str) -> None:
    record = run(invoke, f"{page} --example 3 --value {value}")
    assert [i["name"] for i in record["inputs"]] == ["data"]
    assert record["outputs"][0]["shape"] == [6, 10, 24]


def test_a_value_wins_over_the_comment(page: str, invoke: Invoke) -> None:
    found = invoke(f"run {page} --example 2 --value 1=0,1 --random")
    assert found.exit_code == 3
    assert "declares dims [6,12], but the operation gives [10,24]" in found.stderr


def test_a_value_may_come_from_a_file_instead(page: str, invoke: Invoke) -> None:
    np.save("axes.npy", np.array([1]))
    record = run(invoke, f"{page} --example 3 -i axes=axes.npy")
    assert record["outputs"][0]["shape"] == [6, 10, 24]


@pytest.mark.parametrize("value", ["1=x", "=1", "1", "1=2;3"])
def test_a_value_that_is_none_is_refused(page: str, invoke: Invoke, value: str) -> None:
    found = invoke(f"run {page} --example 3 --value '{value}' --random")
    assert found.exit_code == 2
    assert "is not PORT=NUMBERS, such as 1=2,3" in found.stderr


def test_made_up_axes_are_distinct(folder: Path, invoke: Invoke) -> None:
    text = layer("true", "[2, 3]", [6, 12, 1, 1]).replace("value is [2, 3] that means", "")
    (folder / "page.txt").write_text(f"ReduceL2-4\n{text}")
    np.save("data.npy", np.ones((6, 12, 10, 24), np.float32))
    (found,) = run(invoke, "page.txt -i data=data.npy")["outputs"]
    assert found["shape"] == [1, 1, 10, 24]
    assert found["max"] == pytest.approx(72**0.5)


def test_all_examples_are_validated(page: str, invoke: Invoke) -> None:
    found = invoke(f"validate {page}")
    assert (found.exit_code, found.stdout, found.stderr) == (0, "", "1 file, 0 errors, 0 warnings\n")
