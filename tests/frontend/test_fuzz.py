"""Files changed at random, the same each time: what comes out is a model that runs, or an error of ours."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree

import ir_runtime as ir

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.xml"
PAGES = sorted((Path(__file__).parent / "pages").glob("*.txt"))

VALUES = """0 1 -1 2 8 99999999999 1000000000000 1e9 nan FP32 I64 f32 i64 f16 u4 string boolean dynamic ? ... 1..8 1,1
    1,2,3 0,0 -1,-1 opset1 opset14 opset99 Add Const Convolution Reshape Result Parameter If explicit valid true x""".split()  # fmt: skip  # noqa: SIM905
MARKUP = ["<", ">", "/", "--", "-->", "<!--", "...", "…", '"', "'", "“", "<layer", "</layer>", "<edges>", "</edges>", "[1]",
          "[", "= 3", 'id="1"', "<dim>", "-1", "99999999999", "\0", "\x0c", "</port>", '<port id="1">', "&", "]]>"]  # fmt: skip


def changed(root: Any, rng: random.Random) -> bytes:
    """A copy of a model with some attributes, texts and elements set, dropped, doubled or mixed up."""
    root = copy.deepcopy(root)
    for _ in range(rng.randint(1, 3)):
        elements = list(root.iter("*"))
        element, kind = rng.choice(elements), rng.random()
        parent = element.getparent()
        if element.tag == "dim" and kind < 0.6:
            element.text = rng.choice(VALUES)
        elif element.attrib and kind < 0.6:
            element.set(rng.choice(list(element.attrib)), rng.choice(VALUES))
        elif element.attrib and kind < 0.7:
            del element.attrib[rng.choice(list(element.attrib))]
        elif parent is not None and kind < 0.8:
            parent.remove(element)
        elif parent is not None and kind < 0.9:
            parent.append(copy.deepcopy(element))
        else:
            other = rng.choice([e for e in elements if e.tag == element.tag])
            element.attrib.update({k: v for k, v in other.attrib.items() if k in element.attrib})
    return bytes(etree.tostring(root))


def smallest(model: ir.Model) -> list[np.ndarray]:
    """Inputs as small as the model allows."""
    shapes = [() if i.partial_shape.rank is None else i.partial_shape.get_min_shape() for i in model.inputs]
    if any(np.prod(shape, dtype=object) > 1 << 20 for shape in shapes):
        raise ir.LimitError("too large to try")
    return [np.zeros(s, i.element_type.dtype) for s, i in zip(shapes, model.inputs, strict=True)]


@pytest.mark.parametrize("seed", range(6))
def test_models(seed: int) -> None:
    rng, weights = random.Random(seed), DIGITS.with_suffix(".bin")
    root = etree.parse(DIGITS).getroot()
    outcomes = set()
    for _ in range(60):
        xml = changed(root, rng)
        try:
            model = ir.read_model(xml, weights, strict=rng.random() < 0.5)
            assert repr(model)
            assert all(repr(node) for node in model.get_ops())
            ir.compile_model(model)(smallest(model))
            outcomes.add("runs")
        except ir.IRError as problem:
            outcomes.add(type(problem).__name__)
    assert len(outcomes) > 2, "changes go deep enough to be told apart"


@pytest.mark.parametrize("seed", range(6))
def test_pages(seed: int) -> None:
    rng = random.Random(seed)
    outcomes = set()
    for _ in range(60):
        text = rng.choice(PAGES).read_text(encoding="utf-8")
        start = text.index("<layer") - 30
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(start, len(text))
            text = text[:at] + rng.choice(MARKUP) + text[at + rng.randint(0, 8) :]
        try:
            outcomes |= {m.report.ok for m in ir.read_fragments(text, strict=False)}
        except ir.IRError as problem:
            outcomes.add(problem.code)
        ir.validate(text.encode())
    assert len(outcomes) > 1, "changes go deep enough to be told apart"


@pytest.mark.parametrize("seed", range(6))
def test_bytes(seed: int) -> None:
    rng = random.Random(seed)
    whole = DIGITS.read_bytes()
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            data[at : at + rng.randint(0, 9)] = rng.randbytes(rng.randint(0, 9))
        assert all(map(str, ir.validate(bytes(data), DIGITS.with_suffix(".bin"))))
