"""The processing of one input: validate, read, inspect, reshape, compile and run."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ir_runtime as ir
from ir_runtime.backends import available
from ir_runtime.codes import Code

from . import booleans, empties, lengths, manifests, names
from .corpus import Case

__all__ = ["BACKENDS", "RUNNING", "BrokenError", "compiled_backends", "probe"]

RUNNING = ir.Limits(memory=1 << 28, trips=200, seconds=0.5)
"""What a run may take. Reading and checking keep to their bounds without being told."""

BACKENDS = ("reference", "numpy")
"""Those that need no compiler, whose time and memory are not those of the file: unless asked, no others."""
LARGEST_INPUT = 1 << 18
"""Elements of an input above which a model is not run."""
LOOKED_AT = 200
"""Findings of one input that are held to what is promised; more would take longer than finding them."""
LONGEST_TEXT = 4000
"""Characters that one finding may take, however long the names in the file are."""

# What no message may say: that Python found a mistake of the package's own, or ran out of something.
_BUGS = re.compile(
    r"\b(?:Attribute|Type|Key|Name|Assertion|Recursion|System|UnboundLocal|NotImplemented|_?Array|Memory"
    r"|_ArrayMemory)Error\b|StopIteration|\w+Warning\b"
)
# What no message may say before there are data to blame.
_LEAKS = re.compile(r"\b(?:ZeroDivision|Index|Overflow|FloatingPoint|Axis|Runtime|Value|Unicode\w*)Error\b")


_COMPARISONS: dict[str, Callable[[Case, Sequence[str]], str]] = {
    "lengths": lengths.compare,
    "empties": empties.compare,
    "booleans": booleans.compare,
}


class BrokenError(Exception):
    """An error of the package that violates its own contract; the message says how."""

    def __init__(self, how: str, found: ir.Diagnostic) -> None:
        text = str(found)
        super().__init__(f"{how}: {text if len(text) < 2000 else f'{text[:600]} … {text[-600:]}'}")
        self.how, self.found = how, found


def compiled_backends(asked: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the requested backends, else all that can run here."""
    return tuple(asked) or available()


def probe(case: Case, backends: Sequence[str] = BACKENDS) -> str:
    """Process one input; return ``"model"``, or the code of the reading error.

    Args:
        case: the input.
        backends: the backends to run it on.

    Raises:
        BrokenError: if an error or its message violates the contract.
        Exception: any exception that is not an error of the package.
    """
    if case.manifest_of:
        return _code(lambda: manifests.resume(case))
    if case.seeds is not None:
        return names.probe(case)
    if case.inputs is not None:
        return _COMPARISONS[case.kind](case, backends)
    _report(ir.validate(case.xml, case.weights))
    models: list[ir.Model] = []
    outcome = _code(lambda: models.append(ir.read_model(case.xml, case.weights, strict=False)))
    if models:
        outcome = _code(models[0].raise_if_invalid)
    if b"<net" not in case.xml[:4096]:
        text = case.xml.decode("utf-8", errors="replace")
        _code(lambda: models.extend(ir.read_fragments(text, strict=False)))
    for model in models[:3]:
        _look(model)
        _run(model, backends)
        _code(lambda model=model: _save(model))  # type: ignore[misc]
        _code(lambda model=model: _reshape(model))  # type: ignore[misc]
    return outcome


def _look(model: ir.Model) -> None:
    _report(model.report)
    repr(model)
    for node in model.get_ops():
        repr(node)
        node.get_attributes()
        for output in node.outputs():
            repr(output)
    _code(lambda: list(map(repr, model.get_ordered_ops())))


def _reshape(model: ir.Model) -> None:
    """Make all dims dynamic, then increment all dims of the inputs."""
    shapes = [port.partial_shape for port in model.inputs]
    for change in (lambda dim: -1, lambda dim: dim.min + 1):
        given = {i: [change(dim) for dim in s] for i, s in enumerate(shapes) if s.rank is not None}
        if given:
            _code(lambda given=given: model.reshape(given))  # type: ignore[misc]


def _save(model: ir.Model) -> None:
    """Save the model and read it again."""
    with tempfile.TemporaryDirectory(prefix="ir_runtime-fuzz-") as folder:
        path = Path(folder) / "model.xml"
        ir.save_model(model, path)
        ir.read_model(path, strict=False)


def _run(model: ir.Model, backends: Sequence[str]) -> None:
    for backend in backends:
        _code(lambda backend=backend: _infer(model, backend))  # type: ignore[misc]


def _infer(model: ir.Model, backend: str) -> None:
    compiled = ir.compile_model(model, backend=backend, limits=RUNNING)
    inputs = list(_smallest(model.inputs))
    if len(inputs) == len(model.inputs):
        compiled(inputs)


def _smallest(ports: Sequence[Any]) -> Iterator[Any]:
    """Return the smallest inputs that the model allows, if they are small."""
    for port in ports:
        shape = () if port.partial_shape.rank.is_dynamic else port.partial_shape.get_min_shape()
        if np.prod(shape, dtype=object) <= LARGEST_INPUT and len(shape) < 64:
            element = ir.Type.f32 if port.element_type is ir.Type.dynamic else port.element_type
            yield np.zeros(tuple(shape), element.dtype)


def _code(action: Callable[[], object]) -> str:
    """Return ``"model"`` on success, else the code of the error, after checking its contract."""
    try:
        action()
    except ir.IRError as problem:
        _finding(problem.diagnostic)
        for found in getattr(problem, "diagnostics", ())[:LOOKED_AT]:
            _finding(found)
        return str(problem.code)
    return "model"


def _report(report: ir.Diagnostics) -> None:
    for found in [*report][:LOOKED_AT]:
        _finding(found)


def _finding(found: ir.Diagnostic) -> None:
    text = str(found)
    if found.code not in list(Code):
        raise BrokenError("a code that there is not", found)
    if len(text) > LONGEST_TEXT:
        raise BrokenError("too long", found)
    if not found.message or "\n" in found.message or "\n" in found.hint:
        raise BrokenError("not one line", found)
    leak = _BUGS.search(found.message)
    if found.code != Code.LAYER_FAILED:
        leak = leak or _LEAKS.search(found.message)
    if leak:
        raise BrokenError(f"says {leak.group()}", found)
