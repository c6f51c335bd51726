"""A reproducible sample of booleans of any byte; ``make fuzz FUZZ="--kind booleans"`` tries more."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from harness.nets import Net

from ir_runtime.backends import available

from . import booleans, lengths
from .booleans import compare, overwritten
from .corpus import Case, Corpus
from .lengths import DisagreementError
from .mutations import mutant, recipe

INPUTS = 60


@cache
def corpus() -> Corpus:
    return [case for case in lengths.cases() if any(x.dtype == bool for x in case.inputs or ())]


def test_every_run_takes_each_byte_but_0_for_true() -> None:
    outcomes = {
        compare(mutant(corpus(), recipe(corpus(), "booleans", 0, number)), available())
        for number in range(INPUTS)
    }
    assert "result" in outcomes


def negation() -> Case:
    net = Net()
    x = net.parameter("x", "8", "boolean", out="BOOL 8")
    net.result(net.op("LogicalNot", x, out="BOOL 8"))
    return Case("not", net.xml(), net.weights, (np.ones(8, np.bool_),))


def test_bytes_are_drawn_for_booleans() -> None:
    made = overwritten(negation(), (1, 2))
    assert made.inputs is not None
    assert set(made.inputs[0].view(np.uint8).tolist()) - {0, 1}


def test_a_run_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(booleans, "difference", lambda *_: "other bytes")
    with pytest.raises(DisagreementError, match="run 0 on reference: LogicalNot"):
        compare(overwritten(negation(), (1,)), ("reference",))
