"""Work is proportional to the file, whatever it is flooded with; executed lines are counted instead of time."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from random import Random
from types import FrameType
from typing import Any

import pytest
from lxml import etree

import ir_runtime as ir
from ir_runtime._util import nearest
from ir_runtime.analysis import infer as causes
from ir_runtime.openvino import validating

from .corpus import DIGITS
from .floods import FLOODS, SPILLS, flooded
from .structure import Work

FEW = 40
TIMES = 4
MOST = 1.5
"""How much more than in proportion work may grow: enough for sorting, not for each to be held against each."""
NOISE = 4000
"""Lines of code that may come on top."""


def files(name: str, count: int) -> tuple[bytes, bytes]:
    root = etree.fromstring(DIGITS.read_bytes())
    work = Work(root, bytearray(DIGITS.with_suffix(".bin").read_bytes()), root, Random(1))
    return flooded(work, name, count), bytes(work.weights)


def lines_run(action: Callable[[], object]) -> int:
    """Count the executed lines of the package, repetitions included."""
    count = 0

    def count_line(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += 1
        return count_line

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        return count_line if "ir_runtime" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def look(xml: bytes, weights: bytes) -> None:
    with contextlib.suppress(ir.IRError):
        ir.validate(xml, weights, limits=ir.Limits(findings=10))


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce the package's own work budgets, so that unbudgeted work shows."""
    monkeypatch.setattr(validating, "_LOOKED_FOR", 10)
    monkeypatch.setattr(validating, "_LOOKED_AT", 1 << 10)
    monkeypatch.setattr(causes, "_MAX_TRIALS", 10)
    monkeypatch.setattr(nearest, "_OFTEN", 5)


@pytest.mark.parametrize("name", [*FLOODS, *SPILLS])
def test_work_grows_in_proportion(name: str) -> None:
    none, few, many = (files(name, count) for count in (1, FEW, TIMES * FEW))
    look(*many)  # so that modules are imported, and what is remembered is
    base, some, most = (lines_run(lambda given=given: look(*given)) for given in (none, few, many))  # type: ignore[misc]
    assert most - base < MOST * TIMES * max(some - base, 0) + NOISE
