"""Every example of the five pages sent by a user, checked against plain NumPy.

The pages are kept as they came: in English and Japanese, with literal dots in the tags and values in
comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime.codes import Code
from ir_runtime.ir.tensor import Array

PAGES = Path(__file__).parent / "pages"
REDUCTIONS: dict[str, Callable[..., Array]] = {
    "ReduceSum": np.sum,
    "ReduceMin": np.min,
    "ReduceL2": lambda x, **how: np.sqrt(np.sum(np.square(x), **how)),
}
BACKENDS = ("reference", "numpy")


class Example(NamedTuple):
    """An example: its position, and its content as text."""

    page: str
    number: int
    line: int
    operation: str
    axes: tuple[int, ...]
    keep_dims: bool = False
    axes_are_given: bool = True

    def __str__(self) -> str:
        return f"{self.page} {self.number}"


def reductions(page: str, operation: str, lines: list[int], blank: int = 0) -> list[Example]:
    """Each reduction page has the same four examples; in one, the value in a comment is missing."""
    axes = [(2, 3), (2, 3), (1,), (-2,)]
    return [
        Example(page, i + 1, line, operation, a, keep_dims=i == 0, axes_are_given=i + 1 != blank)
        for i, (line, a) in enumerate(zip(lines, axes, strict=True))
    ]


EXAMPLES = [
    *reductions("ReduceSum-1.ja", "ReduceSum-1", [55, 77, 97, 118]),
    *reductions("ReduceMin-1.ja", "ReduceMin-1", [57, 79, 99, 120]),
    *reductions("ReduceL2-4.ja", "ReduceL2-4", [53, 75, 95, 115]),
    *reductions("ReduceL2-4.en", "ReduceL2-4", [55, 77, 97, 118], blank=3),
    Example("NormalizeL2-1.ja", 1, 65, "NormalizeL2-1", (1,)),
    Example("NormalizeL2-1.ja", 2, 90, "NormalizeL2-1", (1, 2, 3)),
]
examples = pytest.mark.parametrize("example", EXAMPLES, ids=str)

X = np.random.default_rng(0).normal(size=(6, 12, 10, 24)).astype(np.float32)


def text_of(page: str) -> str:
    return (PAGES / f"{page}.txt").read_text(encoding="utf-8")


def read(example: Example, **how: object) -> ir.Model:
    path = PAGES / f"{example.page}.txt"
    return ir.read_model(path, example=example.number, **how)  # type: ignore[arg-type]


def wanted(example: Example) -> Array:
    x = X.astype(np.float64)
    name = example.operation.partition("-")[0]
    if name == "NormalizeL2":
        squares = np.sum(x * x, axis=example.axes, keepdims=True)
        return np.asarray(x / np.sqrt(squares + 1e-8))
    return np.asarray(REDUCTIONS[name](x, axis=example.axes, keepdims=example.keep_dims))


def test_no_example_is_left_out() -> None:
    counts = {page.stem: page.read_text(encoding="utf-8").count("<layer ") for page in PAGES.glob("*.txt")}
    assert counts == {e.page: sum(o.page == e.page for o in EXAMPLES) for e in EXAMPLES}
    assert len(counts) == 5


@pytest.mark.parametrize("page", sorted({e.page for e in EXAMPLES}))
def test_pages_validate(page: str) -> None:
    assert list(ir.validate(PAGES / f"{page}.txt")) == []
    assert list(ir.validate(text_of(page).encode())) == [], "the text alone says the version"


@examples
def test_what_is_read(example: Example) -> None:
    model = read(example)
    layer = model._graph.layers[1]
    assert (layer.op.versioned_name(), layer.where.line) == (example.operation, example.line)
    assert list(model.report) == []
    assert [p.any_name for p in model.inputs] == ["data"] + ["axes"] * (not example.axes_are_given)
    assert str(model.inputs[0].partial_shape) == "[6,12,10,24]"
    if example.axes_are_given:
        assert model.output().shape == wanted(example).shape
    else:
        assert model.output().partial_shape.contains(wanted(example).shape)


@examples
@pytest.mark.parametrize("backend", BACKENDS)
def test_results(example: Example, backend: str) -> None:
    inputs = [X] if example.axes_are_given else [X, np.int64(example.axes)]
    found = ir.compile_model(read(example), backend=backend)(inputs)[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted(example), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if len(e.axes) == 1], ids=str)
def test_results_with_values_of_the_caller(example: Example) -> None:
    """Other axes than on the page give other dims than it declares."""
    model = read(example, values={1: [0]}, strict=False)
    wrong_now = [] if example.operation.startswith("NormalizeL2") else [Code.DECLARED_SHAPE]
    assert [d.code for d in model.report] == wrong_now
    found = ir.compile_model(model)(X)[0]
    np.testing.assert_allclose(found, wanted(example._replace(axes=(0,))), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if len(e.axes) > 1], ids=str)
def test_values_of_the_caller_that_contradict_the_page(example: Example) -> None:
    says = rf"input port 1 has the value \[0\], but dims \[{len(example.axes)}\]"
    with pytest.raises(ir.ValidationError, match=says):
        read(example, values={1: [0]})


@examples
def test_from_python_in_one_call(example: Example) -> None:
    model = ir.read_fragment(text_of(example.page), example=example.number, values={1: list(example.axes)})
    np.testing.assert_allclose(ir.compile_model(model)(X)[0], wanted(example), rtol=1e-4, atol=1e-5)


def broken(example: Example) -> tuple[str, int]:
    """The page with wrong output dims in one example, and the line of the output port."""
    lines = text_of(example.page).splitlines(keepends=True)
    start = example.line - 1
    port = next(i for i in range(start, len(lines)) if '<port id="2">' in lines[i])
    lines[port + 1] = re.sub(r"<dim>\d+</dim>", "<dim>700</dim>", lines[port + 1])
    return "".join(lines), port + 1


@examples
def test_wrong_dims_are_reported_with_layer_and_line(example: Example, tmp_path: Path) -> None:
    text, line = broken(example)
    page = tmp_path / f"{example.page}.txt"
    page.write_text(text, encoding="utf-8")
    found = list(ir.validate(page))
    name = f"{example.operation.partition('-')[0]}_1"
    assert [(d.code, d.line, d.layer) for d in found] == [(Code.DECLARED_SHAPE, line, name)]
    assert "declares dims [700" in found[0].message
    assert f"{page}:{line}: layer '{name}' ({example.operation}): error[IR303]" in str(found[0])
    with pytest.raises(ir.ValidationError):
        ir.read_model(page, example=example.number)
    others = [
        n for n in range(1, len([e for e in EXAMPLES if e.page == example.page]) + 1) if n != example.number
    ]
    for number in others:
        assert ir.read_model(page, example=number).report.ok
