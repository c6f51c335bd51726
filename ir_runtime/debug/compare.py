"""Compare an execution of a model with f64, and find where an unexplained difference starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from ..codes import Code
from ..errors import InputError
from ..ir.tensor import Array
from ..openvino.model import Model
from .caching import entry_for
from .case import Case
from .guessing import likeness_of
from .judging import judged_case
from .observation import Repeated, SideLike
from .observed import observed
from .precision import ROUNDING
from .progress import stage
from .recorded_side import Recorded, first_rows
from .reference import Reference, check_types
from .repeating import judge_each
from .report import Comparison
from .sides import recorded_of, side_of
from .spilling import within_budget
from .steps import step_of
from .tensors import read_ports

__all__ = ["compare", "judged"]

SEEN = 0.35
"""Which part of the time observing the side is taken to need."""


def compare(
    model: Model,
    inputs: object,
    side: SideLike,
    types: str = "real",
    precision: str = "",
    states: Mapping[str, object] | None = None,
) -> Comparison:
    """Decide whether rounding explains how an execution of a model differs from f64.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> debug.compare(model, inputs, "numpy").explained
    True
    >>> debug.compare(model, inputs, {0: np.array([1, 2], np.float32)}).verdict
    'unexplained'

    Args:
        model: the model; it is not changed.
        inputs: as for a compiled model.
        side: what is judged: ``"openvino"`` in f32 without quantizing activations or caches, ``"openvino:bf16"`` with a
            precision hint, or ``"openvino:default"`` as it comes; ``"onnxruntime:model.onnx"``; the name of a backend (``"numpy"``); the path of another IR, or of an ``.npz`` of tensors by name; a mapping of tensors by
            name (``layer``, ``layer:output``, or outputs by tensor name or index), or a sequence of the outputs;
            or a function of the inputs and the names of the tensors that returns such a mapping; or a `Side`, such as a
            `Command`, or `Repeated` for one whose results change from run to run.
        types: ``real``, or ``declared`` if what the model declares as f16 or bf16 is to be rounded to that, also in f64.
        precision: what a side ran in that does not say so itself, such as the arrays of another device: ``"f32"``,
            ``"bf16"`` or ``"f16"``.
        states: what variables hold before the step that is compared, by their ids. Then what they hold before and after it
            are further inputs and outputs.

    Returns:
        A report. Its ``units`` are judged each by what it makes of the side's own inputs, so that the layer
        stands out in which an error begins.

    Raises:
        InputError: if an input or the side is not as described.
        ExecutionError: if a layer fails on the data.
        Interrupted: on Ctrl-C, with a partial report.
        TimedOut: when the time is up, likewise.
    """
    if states is not None:
        model, inputs = step_of(model, Reference(model).feeds(inputs), states)
    return judged(model, inputs, side, types=types, precision=precision)[0]


def judged(
    model: Model,
    inputs: object,
    side: SideLike,
    inside: bool = True,
    types: str = "real",
    precision: str = "",
    names_mistakes: bool = True,
) -> tuple[Comparison, Sequence[Array]]:
    """Compare; also return the outputs in f64 with the decisions of the side.

    Args:
        model: the model.
        inputs: as for a compiled model.
        side: the judged execution.
        inside: also compare tensors between layers, not only outputs.
        types: ``real`` or ``declared``.
        precision: the precision of a side that does not report it.
        names_mistakes: look for a mistake that explains errors beyond rounding.
    """
    check_types(types)
    if precision and precision not in ROUNDING:
        hint = "expected f32, bf16 or f16"
        raise InputError(f"unknown precision {precision!r}", code=Code.NO_SUCH_NAME, hint=hint)
    plain, wide = Reference(model), Reference(model, wide=True)
    feeds = plain.feeds(inputs)
    for reference in (wide, plain):  # before a potentially long run of the side
        reference.check_memory(feeds)
    if isinstance(side := recorded_of(side), Recorded) and (rows := side.rows(plain, feeds)):
        part, few, note = first_rows(side.name, model, plain, feeds, rows)
        report, truth = judged(part, few, side, inside, types, precision, names_mistakes)
        return replace(report, notes=(note, *report.notes)), truth
    ports = list(read_ports(plain.graph, {port._port for port in plain.outputs})) if inside else []
    if isinstance(side, Repeated):

        def judge(seen: SideLike) -> tuple[Comparison, Sequence[Array]]:
            return judged(model, inputs, seen, inside, types, precision, names_mistakes)

        return judge_each(side_of(side), side.times, model, plain, feeds, ports, judge)
    with within_budget(model.limits):
        with stage(0, SEEN):
            seen = observed(model, plain, feeds, side, ports)
        if not precision and seen.stored:
            note = f"judged as {seen.stored}, the type of its arrays; --precision says otherwise"
            seen = replace(seen, ran=(seen.stored,), notes=(*seen.notes, note))
        elif precision and not seen.ran:
            seen = replace(seen, ran=(precision,))
        # Judging depends only on the observations of the side.
        ways = (
            seen.ran,
            seen.wide,
            seen.held,
            seen.f16_in_f32,
            seen.asked,
            dict(seen.settings),
            seen.steps,
            seen.absent,
        )
        kind = f"judging {types} {ways} {list(seen.tensors)}"
        entry = entry_for(kind, model, chain(feeds, seen.outputs, seen.tensors.values()), "reference")
        case = Case(plain, wide, feeds, seen, types)
        del seen  # would keep its tensors in memory
        with stage(SEEN, 1):
            report, truth = judged_case(case, entry)
        with stage(1, 1):
            return replace(report, likeness=likeness_of(case, report) if names_mistakes else None), truth
