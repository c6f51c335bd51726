"""Inspection of the compiler: the program after each pass, and the report of fusions."""

from __future__ import annotations

from ..backends import Precision, load
from ..compiler.compile import PASSES, After, check_pass, compile_plan
from ..compiler.fusion_report import FusionReport, fusion_report
from ..compiler.program import Program, listing
from .model import Model

__all__ = ["NARROW", "PASS_NAMES", "fusions_of", "program_after"]

NARROW = "narrow"
PASS_NAMES = (NARROW, *(compiler_pass.name for compiler_pass in PASSES))
"""The passes, in order. The first one runs only for f16."""


def program_after(model: Model, name: str, backend: str | None = None) -> str:
    """Return the listing of a model's program after a compiler pass.

    Args:
        model: the model, which is not changed.
        name: the pass, one of `PASS_NAMES`. With ``narrow``, the model is compiled for f16.
        backend: the backend. The default is the one that would run the model.

    Raises:
        InputError: if the pass or the backend is unknown.
    """
    texts: dict[str, str] = {}
    check_pass(name, PASS_NAMES)

    def after(step: str, program: Program) -> None:
        if step == name:
            texts[step] = listing(program)

    _compile(model, backend, after, name == NARROW)
    return texts[name]


def fusions_of(model: Model, backend: str | None = None) -> FusionReport:
    """Return the report of fused layers, with the reasons against other fusions.

    Args:
        model: the model, which is not changed.
        backend: the backend. The default is the one that would run the model.
    """
    reports: list[FusionReport] = []

    def after(step: str, program: Program) -> None:
        if step == "fuse":
            reports.append(fusion_report(program))

    _compile(model, backend, after)
    return reports[-1]


def _compile(model: Model, backend: str | None, after: After, narrow: bool = False) -> None:
    """Compile a model, calling ``after`` after each compiler pass over the model itself (not its bodies)."""
    runnable = model._runnable(narrow)
    ports = [output._port for output in runnable._const_outputs()]
    if narrow:
        after(NARROW, Program(runnable._graph, dict(runnable._values), list(runnable._graph), ports))
    name, chain = load(backend)
    precision = Precision(f16="f16") if narrow else None
    compile_plan(
        runnable._graph, runnable._values, ports, chain, name != "reference", model.limits, after, precision
    )
