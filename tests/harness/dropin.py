"""Run the same program on OpenVINO and on ir_runtime, and compare the values that it records."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["START"]

KINDS = (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError, OSError)
"""The kinds of errors for which programs look."""

IMPORTS = {"openvino": "import openvino as ov", "ir_runtime": "import ir_runtime as ov"}


def run(program: str, package: str, **given: Any) -> list[Any]:
    """Return the values that a program passes to ``note``, as plain data. Only the import differs between packages."""
    noted: list[Any] = []
    names = {"np": np, "note": lambda *things: noted.extend(map(plain, things)), **given}
    exec(compile(f"{IMPORTS[package]}\n{program}", f"<{package}>", "exec"), names)
    return noted


def evaluate(expression: str, package: str, **given: Any) -> Any:
    """Return the value of an expression as plain data, or the kind of error that it raises."""
    names: dict[str, Any] = {"np": np, **given}
    exec(IMPORTS[package], names)
    try:
        return plain(eval(expression, names))
    except Exception as reason:
        kinds = (KeyError, RuntimeError, TypeError, ValueError, AttributeError)
        return "raises " + next(k.__name__ for k in kinds if isinstance(reason, k))


class Raised(frozenset[str]):
    """An error: the names of its class and bases."""


def plain(thing: Any) -> Any:
    """Convert to plain data: numbers, strings, lists and arrays are kept, errors become their kinds, other objects their text."""
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
    """Require equal structure and close numbers; our errors may have more kinds."""
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


START = """
import importlib, io, copy
package = ov.__name__
def of(name):
    return importlib.import_module(f"{package}.{name}")
ops, preprocess, passes, util = of("opset13"), of("preprocess"), of("passes"), of("utils")
CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
core = ov.Core()

def tried(*calls):
    for number, call in enumerate(calls):
        try:
            note(number, call())
        except Exception as reason:
            note(number, reason)

def parameter(shape, name, type=np.float32):
    made = ops.parameter(shape, type, name=name); made.output(0).set_names({name}); return made

def classifier():
    draw = np.random.default_rng(0)
    x = parameter([1, 3, 8, 8], "image")
    w = ops.constant(draw.normal(size=(4, 3, 3, 3)).astype(np.float32), name="w")
    c = ops.convolution(x, w, [2, 2], [1, 1], [1, 1], [1, 1], name="conv")
    b = ops.add(c, ops.constant(draw.normal(size=(1, 4, 1, 1)).astype(np.float32), name="b"), name="bias")
    pool = ops.reduce_mean(ops.relu(b, name="relu"), ops.constant(np.array([2, 3]), name="axes"), keep_dims=False, name="pool")
    fcw = ops.constant(draw.normal(size=(5, 4)).astype(np.float32), name="fcw")
    fc = ops.matmul(pool, fcw, False, True, name="fc"); fc.output(0).set_names({"logits"})
    return ov.Model([ops.result(fc, name="out")], [x], "classifier")

def saved(model, name="model"):
    path = folder / f"{package}_{name}.xml"; ov.save_model(model, path, compress_to_fp16=False); return path

def named(model):
    return {n.get_friendly_name(): n for n in model.get_ops()}

def types(model):
    return [n.get_type_name() for n in model.get_ordered_ops()]

def computed(model, *inputs):
    return [np.array(x) for x in ov.compile_model(model, "CPU", CONFIG)(list(inputs)).to_tuple()]

IMAGE = np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)
"""
"""Modules by their names in either package, a small classifier, and what is done with models again and again."""
