"""Messages for invalid Range, Eye and random layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.refusals import Refusal, refusal


def counted(name: str, *inputs: Any, output_type: str = "i64", **more: Any) -> Refusal:
    return refusal(name, "Range-4", *inputs, output_type=output_type, **more)


def unit(name: str, *inputs: Any, output_type: str = "f32") -> Refusal:
    rows, columns, *batch = inputs
    return refusal(name, "Eye-9", rows, columns, 0, *batch, output_type=output_type)


def uniform(name: str, *inputs: Any, output_type: str = "f32") -> Refusal:
    return refusal(name, "RandomUniform-8", *inputs, output_type=output_type)


def drawn(name: str, probs: Any, count: Any, again: bool = True, **more: Any) -> Refusal:
    attributes = {"convert_type": "i64", "log_probs": False} | more
    return refusal(name, "Multinomial-13", probs, count, with_replacement=again, **attributes)


F = np.float32

REFUSALS = [
    counted("step of 0", 0, 3, 0),
    counted("step of 0 when it runs", 0, 3, 0, _run=True),
    counted("step that is cut to 0", F(0), F(3), F(0.5), output_type="i32"),
    counted("infinite stop", F(0), F(np.inf), F(1), output_type="f32"),
    counted("start that is no number", F(np.nan), F(3), F(1), output_type="f32"),
    counted("start that is no scalar", "i64 1", 3, 1),
    counted("range of booleans", 0, 3, 1, output_type="boolean"),
    unit("rows below 0", -1, 2),
    unit("several numbers of columns", 2, "i64 2"),
    unit("columns of rank 2", 2, "i64 1,1"),
    unit("batch below 0", 2, 2, [3, -1]),
    unit("batch that is no list", 2, 2, 3),
    refusal("several diagonals", "Eye-9", 2, 2, "i64 2", output_type="f32"),
    unit("unit matrix of booleans", 2, 2, output_type="boolean"),
    uniform("length below 0", [2, -1], F(0), F(1)),
    uniform("shape that is no list", "i64", F(0), F(1)),
    uniform("two lowest numbers", "i64 2", "f32 2", F(1)),
    uniform("type of the limits", "i64 2", "f16", "f16"),
    uniform("nothing between the limits", "i64 2", F(2), F(2)),
    uniform("limit that is no number", "i64 2", F(np.nan), F(2)),
    uniform("type of random numbers", "i64 2", F(0), F(1), output_type="u8"),
    drawn("rank of probs", "f32 3", 5),
    drawn("no classes", "f32 2,0", 5),
    drawn("more than there are classes", "f32 2,3", 4, again=False),
    drawn("samples below 0", "f32 2,3", -1),
    drawn("several numbers of samples", "f32 2,3", "i64 2"),
    drawn("type of samples", "f32 2,3", 5, convert_type="u8"),
]
