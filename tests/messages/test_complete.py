"""Every message that the package can give is in some snapshot, where reviewers see it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from messages.raised import NO_MESSAGES, is_for_users, is_one, lost, messages, missing

# An operation, type or setting may come first, as may XML; other words have a small letter there.
_CAPITAL = re.compile(r"[A-Z][a-z]+\b(?![A-Z-])")
_UNUSUAL = re.compile(
    r"^there (is|are) no\b|(?<!there )\bis no [a-z]|whole number|\btexts\b|\b(no|any|some)body\b|depend on themselves|cannot be meant"
    r"|\blies?\b|\bso many\b|\banew\b|\bwhoever\b|of its own\b|what is (known|left|asked)"
)
_PYTHON = re.compile(r"\b(ndarray|dtype|NoneType|tuple|kwargs|ndim)\b")


def test_every_message_is_shown() -> None:
    """``python tests/messages/missing.py`` prints the others with file and line."""
    assert list(map(str, missing())) == []


def test_every_error_and_finding_says_something() -> None:
    """If this fails, `messages.raised` cannot trace how a text is composed."""
    assert list(map(str, lost())) == []


def test_what_is_no_message_is_there() -> None:
    said = messages()
    assert [key for key in NO_MESSAGES if not any(is_one(message, *key) for message in said)] == []


def test_messages_have_one_style() -> None:
    """Lower case at the start, no full stop at the end, no Python jargon."""
    said = [m for m in messages() if is_for_users(m)]
    assert [str(m) for m in said if _CAPITAL.match(m.text) and "…" not in m.text.split()[0]] == []
    assert [str(m) for m in said if m.text.endswith(".") and not m.text.endswith("..")] == []
    assert [str(m) for m in said if _PYTHON.search(m.text) and m.file != "ir_runtime/ir/element.py"] == []


def test_messages_have_the_usual_forms() -> None:
    """For example: unknown x, x is not a y, x must be y, expected x, got y."""
    assert [str(m) for m in messages() if is_for_users(m) and _UNUSUAL.search(m.text)] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('raise ValueError("no such thing")', ["no such thing"]),
        ('raise ValueError(f"{1} is no such thing")', ["{…} is no such thing"]),
        ('raise ValueError("one thing" if x else "another thing")', ["one thing", "another thing"]),
        ('def f():\n    what = "no such " + "thing"\n    raise InputError(what)', ["no such thing"]),
        ('def f(what):\n    raise InputError(what)\nf("the thing")', ["the thing"]),
        ('def f():\n    return "of a helper"\nraise InputError(f())', ["of a helper"]),
        ('def f():\n    return "first", "second"\ndef g():\n    a, b = f()\n    raise InputError(b)', ["second"]),
        ('def f():\n    return "first", "second"\nreport.error(1, *f())', ["first"]),
        ('report.warning(1, "odd", None, "do that")', ["odd", "do that"]),
        ('raise ParseError("odd", hint="do that")', ["odd", "do that"]),
        ('W = {"a": "has {} parts"}\nraise InputError(f"{W[k].format(2)}; at most 1")', ["has {…} parts; at most 1"]),
        ('def f():\n    p = []\n    p.append("one wrong")\n    for t in p:\n        raise InputError(t)', ["one wrong"]),
        ('def f():\n    yield "in turn"\ndef g():\n    for t in f():\n        raise InputError(t)', ["in turn"]),
        ("try:\n    pass\nexcept E as reason:\n    raise InputError(reason.message)", []),
    ],
)  # fmt: skip
def test_messages_are_found(tmp_path: Path, source: str, expected: list[str]) -> None:
    (tmp_path / "module.py").write_text(source)
    assert sorted(m.text for m in messages(tmp_path)) == sorted(expected)


def test_what_is_not_understood_is_found(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("raise InputError(texts[n])")
    assert [m.line for m in lost(tmp_path)] == [1]
