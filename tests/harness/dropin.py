"""Runs the same program text on OpenVINO and on ir_runtime, and compares what it notes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

KINDS = (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError, OSError)
"""The kinds of errors for which programs look."""

IMPORTS = {"openvino": "import openvino as ov", "ir_runtime": "import ir_runtime as ov"}


def run(program: str, package: str, **given: Any) -> list[Any]:
    """Everything the program passes to ``note``, as plain data. Only the import differs."""
    noted: list[Any] = []
    names = {"np": np, "note": lambda *things: noted.extend(map(plain, things)), **given}
    exec(compile(f"{IMPORTS[package]}\n{program}", f"<{package}>", "exec"), names)
    return noted


def evaluate(expression: str, package: str, **given: Any) -> Any:
    """The value of an expression as plain data, or the kind of error it ends in."""
    names: dict[str, Any] = {"np": np, **given}
    exec(IMPORTS[package], names)
    try:
        return plain(eval(expression, names))
    except Exception as reason:
        kinds = (KeyError, RuntimeError, TypeError, ValueError, AttributeError)
        return "raises " + next(k.__name__ for k in kinds if isinstance(reason, k))


class Raised(frozenset[str]):
    """The kinds of an error."""


def plain(thing: Any) -> Any:
    """Numbers, texts, lists and arrays as they are; errors as their kinds; other objects as they show themselves."""
    if isinstance(thing, Exception):
        return Raised(kind.__name__ for kind in KINDS if isinstance(thing, kind))
    if isinstance(thing, np.ndarray):
        return thing.copy()
    if isinstance(thing, np.generic | int | float | str | bytes | type(None) | Path):
        return thing
    if isinstance(thing, Mapping):
        return {str(plain(key)): plain(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple) and type(thing) in (list, tuple):
        return type(thing)(map(plain, thing))
    if isinstance(thing, set | frozenset):
        return sorted(map(str, map(plain, thing)))
    if isinstance(thing, datetime.timedelta):
        return "a time"
    return repr(thing)


def assert_same(ours: Any, theirs: Any) -> None:
    """Equal in structure, and close in numbers; errors are of the same kinds, or of more."""
    if isinstance(theirs, np.ndarray | np.generic):
        assert isinstance(ours, np.ndarray | np.generic)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if theirs.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
        else:
            np.testing.assert_array_equal(ours, theirs)
        return
    assert type(ours) is type(theirs), (ours, theirs)
    if isinstance(theirs, Raised):  # ours may be of more kinds
        assert theirs <= ours, (set(ours), set(theirs))
        return
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs), (ours, theirs)
        for mine, its in zip(ours, theirs, strict=True):
            assert_same(mine, its)
        return
    assert ours == theirs
