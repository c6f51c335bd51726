"""``ir-runtime ops``: the list, and the page of each operation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from click.testing import Result

from ir_runtime.ops import Input, Op, Output, attr, op, registry
from ir_runtime.ops._define.describe import SPECIFICATION, link, page, record, source
from ir_runtime.ops._define.operation import T_FLOAT, T_INDEX

Invoke = Callable[[str], Result]
Check = Callable[..., Result]


@pytest.fixture
def blend() -> Iterator[type[Op]]:
    @op("Blend-99")
    class Blend(Op):
        """Mix ``first`` and the ``others``.

        A second paragraph.
        """

        first = Input(T_FLOAT, "what comes first")
        weight = Input(T_INDEX, "how much of it", optional=True)
        others = Input(T_FLOAT, "what comes next", variadic=True)
        mixed = Output(T_FLOAT, "all of it")
        kind = Output("index_type", "what was taken")

        mode: Literal["a", "b"] = attr(doc="which way")
        sizes: tuple[int, ...] = attr((1, 1), gt=0, le=9, doc="how large")
        limit: float | None = attr(None, ge=0, doc="how far")
        index_type: Literal["i64"] = attr("i64", doc="type of kind", xml="index-type")

    yield Blend
    registry.remove(Blend)


def without_lines(text: str) -> str:
    """Remove the line numbers of classes, which change with every edit above them."""
    return re.sub(r"(\.py):\d+", r"\1:LINE", text)


def test_describes_an_operation(check: Check) -> None:
    check("ops_reduce_l2", "ops ReduceL2", hide=without_lines)


def test_describes_every_kind_of_port_and_attribute(blend: type[Op]) -> None:
    assert page(blend).splitlines() == [
        "# Blend-99",
        "",
        "Mix `first` and the `others`.",
        "",
        "A second paragraph.",
        "",
        "## Inputs",
        "",
        "* `first`: type T; what comes first",
        "* `weight`: type T_IND, optional; how much of it",
        "* `others`: type T, any number; what comes next",
        "",
        "## Outputs",
        "",
        "* `mixed`: type T; all of it",
        "* `kind`: type index_type; what was taken",
        "",
        "## Attributes",
        "",
        "* `mode`: a | b, required; which way",
        "* `sizes`: int[], default [1, 1], > 0, <= 9; how large",
        "* `limit`: float, optional, >= 0; how far",
        "* `index-type`: i64, default i64; type of kind",
        "",
        "## Types",
        "",
        "* `T`: f32, f16, bf16, f64",
        "* `T_IND`: i64, i32, i16, i8, u64, u32, u16, u8",
        "",
        "## Where it is",
        "",
        "* Since opset99, in the group extension",
        f"* Declared in `{source(blend)}`",
    ]


def test_the_record_has_the_same_as_the_page(blend: type[Op]) -> None:
    found = record(blend)
    assert found["operation"] == "Blend-99"
    assert [found["group"], found["spec"], found["tested_against"], found["tests"]] == [None] * 4
    assert [p["optional"] for p in found["inputs"]] == [False, True, False]
    assert [p["variadic"] for p in found["inputs"]] == [False, False, True]
    assert [p["type"] for p in found["outputs"]] == ["T", "index_type"]
    assert found["attributes"][1] == {
        "name": "sizes",
        "kind": "int[]",
        "required": False,
        "default": [1, 1],
        "openvino_default": None,
        "greater_than": 0,
        "at_least": None,
        "at_most": 9,
        "doc": "how large",
    }
    assert found["attributes"][0]["required"] is True
    assert [t["name"] for t in found["types"]] == ["T", "T_IND"]


def test_lists_every_version(invoke: Invoke) -> None:
    found = invoke("ops")
    title, header, *rows = found.stdout.splitlines()
    assert re.fullmatch(r"\d+ operations, \d+ versions, tested against OpenVINO [\d.]+", title)
    assert header.split() == ["operation", "group", "what", "it", "does"]
    assert len(rows) == len(registry)
    assert any(re.fullmatch(r"  ReduceL2-4 +reduction +Square root of the sum .*", row) for row in rows)
    assert all(len(row.split()) >= 3 for row in rows)


def test_json_has_stable_keys_and_the_specification(invoke: Invoke) -> None:
    records = json.loads(invoke("ops --json").stdout)["operations"]
    assert [r["operation"] for r in records] == [cls.versioned_name() for cls in registry]
    keys = set(records[0])
    assert keys == {
        *("operation", "name", "version", "group", "summary", "doc", "inputs", "outputs"),
        *(
            "attributes",
            "types",
            "spec",
            "tested_against",
            "tests",
            "source",
            "flops_per_element",
            "clauses",
            "decisions",
            "engines",
        ),
    }
    assert all(set(r) == keys for r in records)
    (found,) = json.loads(invoke("ops ReduceL2-4 --json").stdout)["operations"]
    assert found == next(r for r in records if r["operation"] == "ReduceL2-4")
    assert found["spec"] == f"{SPECIFICATION}/reduction/reduce-l2-4.html"


@pytest.mark.parametrize("cls", list(registry), ids=lambda cls: cls.versioned_name())
def test_every_operation_has_a_page(cls: type[Op]) -> None:
    found: dict[str, Any] = json.loads(json.dumps(record(cls), allow_nan=False))
    assert found["summary"].endswith((".", ")", "`"))
    prose, example, *_ = re.split(r"\n## (?:Example|FLOPs|Tested against)\n", page(cls))
    assert "Outputs:" in example or cls.name == "Result"
    assert all(len(line) <= 100 for line in prose.splitlines() if not line.startswith("|"))
    path, _, line = source(cls).rpartition(":")
    text = (Path(__file__).parents[2] / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    assert cls.versioned_name() in text


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("ReduceL2-4", "reduction/reduce-l2-4"),
        ("Convolution-1", "convolution/convolution-1"),
        ("GroupConvolution-1", "convolution/group-convolution-1"),
        ("ScatterElementsUpdate-12", "movement/scatter-elements-update-12"),
        ("ScatterNDUpdate-4", "movement/scatter-nd-update-3"),
        ("MatMul-1", "matrix/matmul-1"),
        ("Col2Im-15", "movement/col2im-15"),
        ("MVN-6", "normalization/mvn-6"),
    ],
)
def test_links_follow_the_group_and_the_name(name: str, slug: str) -> None:
    cls = next(cls for cls in registry if cls.versioned_name() == name)
    assert link(cls) == f"{SPECIFICATION}/{slug}.html"


def test_every_version_is_shown_unless_one_is_named(invoke: Invoke) -> None:
    titles = [line for line in invoke("ops pad").stdout.splitlines() if line.startswith("# ")]
    assert titles == ["# Pad-1", "# Pad-12"]
    assert "# Pad-1\n" not in invoke("ops Pad-12").stdout


@pytest.mark.parametrize(
    ("name", "asked"), [("near", "ReduceL3"), ("far", "xyzzy"), ("version", "ReduceL2-3")]
)
def test_what_there_is_not_is_refused(check: Check, name: str, asked: str) -> None:
    found = check(f"ops_{name}", f"ops {asked}")
    assert (found.exit_code, found.stdout) == (2, "")
