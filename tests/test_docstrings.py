"""Docstrings and comments of the package are in plain English: idioms that readers stumble over are refused."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import ir_runtime

PACKAGE = Path(ir_runtime.__file__).parent
_IDIOMS = re.compile(
    r"\b(whoever|nobody|somebody|anybody|everybody|so many|anew|lies?|lying|crew|desk|sights?)\b"
    r"|\bwhat is (known|asked|left|seen|said|there|found|done|wanted)\b|\bthere (is|are) no\b"
    r"|\b(thread|thread pool|process|processes|line|lines|errors|axis) of (its|their) own\b"
    r"|\b(is|are) told (of|which|that)\b|\bmade of numpy\b|\bheld against\b"
    r"|\bgo(es)? on\b|\bin the place of\b|\btruth values?\b|\bonly a run tells\b",
    re.IGNORECASE,
)


def prose(source: str) -> Iterator[tuple[int, str]]:
    """The lines of docstrings, without their examples, and the comments of a module, by number."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                example = False
                for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    text = lines[number - 1].strip()
                    example = text.startswith(">>>") or (example and bool(text))
                    if not example:
                        yield number, text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def idioms(source: str) -> list[tuple[int, str]]:
    return [(number, text) for number, text in prose(source) if _IDIOMS.search(text)]


def test_docstrings_and_comments_are_in_plain_english() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}:{number}": text
        for path in PACKAGE.rglob("*.py")
        if _IDIOMS.search(source := path.read_text("utf-8"))  # parsing all would take long
        for number, text in idioms(source)
    }
    assert found == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""Whoever reads."""', 1),
        ('"""Readers.\n\n>>> 1\n\'whoever\'\n\nWhoever.\n"""', 1),
        ("x = 1  # there is no other", 1),
        ('x = "there is no other"', 0),
        ('"""A pool of threads."""', 0),
    ],
)
def test_idioms_are_found_in_prose_alone(source: str, expected: int) -> None:
    assert len(idioms(source)) == expected
