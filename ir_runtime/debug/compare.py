"""Compare an execution of a model with the f64 reference, and find where an unexplained difference starts.

From the call to the verdict:

1. The side runs, and its tensors are observed (`Side.observe`).
2. Every layer is judged alone, by its results for the side's own inputs (`LayerErrors`).
3. The outputs are judged by the errors that rounding makes in the whole model (`OutputErrors`).
4. Results that the reported precision does not explain are judged again under other numerics, most exact first, and
   with other decisions inside bodies, as neither can be observed.
5. If rounding explains no error, typical mistakes are tried (`likeness_of`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, starmap

import numpy as np

from .._util.escaping import quoted
from ..codes import Code
from ..errors import InputError
from ..ir.graph import Port
from ..ir.tensor import Array
from ..openvino.model import Model
from .caching import Entry, entry_for
from .case import Case
from .decisions import Alternative, Choices
from .extract import step_of
from .judging import LayerErrors, OutputErrors
from .mistakes import likeness_of
from .observation import Observation, Repeated, SideLike, same_bits
from .precision import ROUNDING
from .progress import STOPS, attach_partial, skip_stage, stage
from .recorded_side import Recorded, first_rows
from .reference import Reference, check_types
from .results import Comparison, combine
from .sides import side_of, to_recorded
from .spilling import within_budget
from .tensors import name_of, read_ports

__all__ = ["compare", "judge"]

OBSERVING = 0.35
"""The estimated share of the time for observing the side."""
LAYERS = 0.4
"""The estimated share of the time for judging each layer alone."""
TRIES = 16
"""The most decisions inside bodies that are tried otherwise."""
_WORST_FIRST = ("unexplained", "unknown", "doubtful", "overflow", "explained")


def compare(
    model: Model,
    inputs: object,
    side: SideLike,
    types: str = "real",
    precision: str = "",
    states: Mapping[str, object] | None = None,
) -> Comparison:
    """Decide whether rounding explains the difference between an execution of a model and the f64 reference.

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
        side: the judged execution: ``"openvino"`` in f32 without quantizing activations or caches, ``"openvino:bf16"`` with a
            precision hint, or ``"openvino:default"`` as it comes; ``"onnxruntime:model.onnx"``; the name of a backend
            (``"numpy"``); the path of another IR, or of an ``.npz`` of tensors by name; a mapping of tensors by name
            (``layer``, ``layer:output``, or outputs by tensor name or index), or a sequence of the outputs; a function of
            the inputs and the names of the tensors that returns such a mapping; or a `Side`, such as a `Command`, or
            `Repeated` for one whose results change from run to run.
        types: ``real``, or ``declared`` to round tensors that the model declares as f16 or bf16 to that, also in f64.
        precision: the precision of a side that does not report it, such as arrays of another device: ``"f32"``,
            ``"bf16"`` or ``"f16"``.
        states: values of variables before the compared step, by id. Their values before and after it become
            inputs and outputs.

    Returns:
        A report. Its ``units`` are each judged by their results for the side's own inputs, so that the layer where an
        error starts stands out.

    Raises:
        InputError: if an input or the side is not as described.
        ExecutionError: if a layer fails on the data.
        Interrupted: on Ctrl-C, with a partial report.
        TimedOut: when the time is up, likewise.
    """
    if states is not None:
        model, inputs = step_of(model, Reference(model).feeds(inputs), states)
    return judge(model, inputs, side, types=types, precision=precision)[0]


def judge(
    model: Model,
    inputs: object,
    side: SideLike,
    inside: bool = True,
    types: str = "real",
    precision: str = "",
    names_mistakes: bool = True,
) -> tuple[Comparison, Sequence[Array]]:
    """Compare like `compare`; also return the f64 outputs computed with the decisions of the side.

    Args:
        model: the model.
        inputs: as for a compiled model.
        side: the judged execution.
        inside: also compare intermediate tensors, not only outputs.
        types: ``real``, or ``declared`` to round tensors that the model declares as f16 or bf16.
        precision: the precision of a side that does not report it.
        names_mistakes: search for a mistake that explains errors beyond rounding.
    """
    check_types(types)
    if precision and precision not in ROUNDING:
        hint = "expected f32, bf16 or f16"
        raise InputError(f"unknown precision {precision!r}", code=Code.NO_SUCH_NAME, hint=hint)
    plain, wide = Reference(model), Reference(model, wide=True)
    feeds = plain.feeds(inputs)
    for reference in (wide, plain):  # before a potentially long run of the side
        reference.check_memory(feeds)
    if isinstance(side := to_recorded(side), Recorded) and (rows := side.rows(plain, feeds)):
        part, first_feeds, note = first_rows(side.name, model, plain, feeds, rows)
        report, truth = judge(part, first_feeds, side, inside, types, precision, names_mistakes)
        return replace(report, notes=(note, *report.notes)), truth
    ports = list(read_ports(plain.graph, {port._port for port in plain.outputs})) if inside else []
    if isinstance(side, Repeated):
        return _judge_runs(model, plain, feeds, side, ports, types, precision, names_mistakes)
    with within_budget(model.limits):
        with stage(0, OBSERVING):
            seen = _observe(model, plain, feeds, side, ports)
        if not precision and seen.stored:
            note = f"judged as {seen.stored}, the type of its arrays; --precision says otherwise"
            seen = replace(seen, ran=(seen.stored,), notes=(*seen.notes, note))
        elif precision and not seen.ran:
            seen = replace(seen, ran=(precision,))
        # Judging depends only on the observations of the side.
        numerics = (
            seen.ran,
            seen.wide,
            seen.held,
            seen.f16_in_f32,
            seen.asked,
            dict(seen.settings),
            seen.steps,
            seen.absent,
        )
        kind = f"judging {types} {numerics} {list(seen.tensors)}"
        entry = entry_for(kind, model, chain(feeds, seen.outputs, seen.tensors.values()), "reference")
        case = Case(plain, wide, feeds, seen, types)
        del seen  # would keep its tensors in memory
        with stage(OBSERVING, 1):
            attempt = _judge_case(case, entry)
        report, truth = attempt.report, attempt.truth
        with stage(1, 1):
            return replace(report, likeness=likeness_of(case, report) if names_mistakes else None), truth


def _observe(
    model: Model, plain: Reference, feeds: list[Array], side: SideLike, ports: Sequence[Port]
) -> Observation:
    """Run a side, or restore its observations from the cache."""
    entry = entry_for(f"observation {list(ports)}", model, feeds, side)
    saved = None if entry is None else entry.read("seen")
    if saved is not None:
        skip_stage()
        record, arrays = saved
        count = len(plain.outputs)
        tensors = dict(zip(starmap(Port, record.pop("tensors")), arrays[count:], strict=True))
        unobserved, ran = tuple(starmap(Port, record.pop("unobserved"))), tuple(record.pop("ran"))
        wide, held = tuple(record.pop("wide")), tuple(record.pop("held"))
        seen = Observation(outputs=arrays[:count], tensors=tensors, ran=ran, wide=wide, held=held, **record)
        return replace(seen, unobserved=unobserved)
    seen = side_of(side).observe(model, plain, feeds, ports)
    if entry is not None:
        record = {
            "name": seen.name, "asked": seen.asked, "ran": seen.ran, "unobserved": seen.unobserved,
            "tensors": list(seen.tensors), "wide": seen.wide, "held": seen.held, "f16_in_f32": seen.f16_in_f32,
            "settings": dict(seen.settings),
        }  # fmt: skip
        entry.write("seen", record, chain(seen.outputs, seen.tensors.values()))
    return seen


@dataclass(frozen=True)
class _Replayed:
    """A side that returns previously made observations."""

    seen: Observation

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Return the stored observations."""
        return self.seen


def _judge_runs(
    model: Model,
    plain: Reference,
    feeds: list[Array],
    side: Repeated,
    ports: Sequence[Port],
    types: str,
    precision: str,
    names_mistakes: bool,
) -> tuple[Comparison, Sequence[Array]]:
    """Judge each distinct result of a repeated side, until one is unexplained; return the report with the worst verdict.

    Args:
        model: the model.
        plain: the reference in the model's own types.
        feeds: an array for each input.
        side: the repeated side.
        ports: the tensors to observe; if empty, only outputs are compared.
        types: as for `judge`.
        precision: as for `judge`.
        names_mistakes: as for `judge`.
    """
    single, distinct = side_of(side), list[Observation]()
    judged: list[tuple[int, Comparison, Sequence[Array]]] = []
    for run in range(1, side.times + 1):
        seen = single.observe(model, plain, feeds, ports)
        if any(_is_same(seen, other) for other in distinct):
            continue
        distinct.append(seen)
        report, truth = judge(model, feeds, _Replayed(seen), bool(ports), types, precision, names_mistakes)
        judged.append((run, report, truth))
        if report.verdict == "unexplained":
            break
    number, report, truth = min(judged, key=lambda entry: _WORST_FIRST.index(entry[1].verdict))
    if len(distinct) == 1:
        notes = [f"{run} runs gave the same result"] if run > 1 else []
    else:
        notes = [
            f"run {number} is judged: the first of its kind among {len(distinct)} different results in {run} runs"
        ]
    return replace(report, notes=(*report.notes, *notes)), truth


def _is_same(one: Observation, other: Observation) -> bool:
    """Return whether two runs are bitwise equal."""
    if one.tensors.keys() != other.tensors.keys() or one.absent != other.absent:
        return False
    ours, theirs = ([*seen.outputs, *(seen.tensors[port] for port in one.tensors)] for seen in (one, other))
    return same_bits(ours, theirs)


@dataclass(frozen=True)
class _Attempt:
    """A report under one choice of numerics and of decisions inside bodies."""

    report: Comparison
    truth: Sequence[Array]
    choices: Choices
    alternatives: list[Alternative]

    @property
    def excess(self) -> float:
        """The sum of the logarithms of all excess ratios above 1, to compare attempts."""
        report = self.report
        excesses = [*(output.excess for output in report.outputs), *(unit.excess for unit in report.units)]
        return float(np.log(np.clip(excesses, 1, 1e300)).sum())


def _judge_case(case: Case, entry: Entry | None) -> _Attempt:
    """Judge a case under its reported numerics, then under others for results that these do not explain."""
    attempt = _attempt(case, {}, entry)
    with stage(1, 1):
        attempt = _try_other_numerics(case, attempt, entry)
        return _try_other_decisions(case, attempt, entry)


def _attempt(case: Case, choices: Choices, entry: Entry | None, before: Comparison | None = None) -> _Attempt:
    """Judge a case under its numerics.

    Args:
        case: the case.
        choices: alternative decisions inside bodies.
        entry: the cache entry of finished runs, or ``None``.
        before: the partial report to raise on an interrupt; by default, the results so far.
    """
    layers = LayerErrors(case, choices, entry)
    outputs = OutputErrors(case, layers.exact.tensors, layers.rounded.inside, entry)
    try:
        with stage(0, LAYERS):
            layers.run()
        with stage(LAYERS, 1):
            truth = outputs.run()
    except STOPS as reason:

        def partial() -> Comparison:
            return replace(_report(case, layers, outputs) if before is None else before, partial=True)

        raise attach_partial(reason, partial) from None
    return _Attempt(_report(case, layers, outputs), truth, choices, layers.exact.alternatives)


def _report(case: Case, layers: LayerErrors, outputs: OutputErrors) -> Comparison:
    seen = case.seen
    return Comparison(
        side=seen.name,
        asked=seen.asked,
        ran=seen.ran,
        settings=dict(seen.settings),
        outputs=tuple(outputs.outputs),
        units=tuple(layers.units(outputs.inherited)),
        decisions=tuple(layers.exact.decisions),
        boundaries=len(case.tensors) + len(seen.unobserved),
        unobserved=tuple(name_of(case.plain.graph, port) for port in seen.unobserved),
        overflow=next(iter(layers.exact.overflows), None),
        notes=(*seen.notes, *_note_absent(case)),
    )


def _note_absent(case: Case) -> Iterator[str]:
    """Yield a note on missing outputs, if any."""
    names = [quoted(case.plain.outputs[index].label) for index in case.seen.absent]
    if names:
        many = "outputs" if len(names) > 1 else "output"
        yield f"{case.seen.name} lacks the {many} {', '.join(names)}, which {'are' if len(names) > 1 else 'is'} not judged"


def _try_other_numerics(case: Case, first: _Attempt, entry: Entry | None) -> _Attempt:
    """Judge each result by the most exact numerics that explain it."""
    best = first
    if first.report.overflow is not None and case.numerics.bounded and first.report.hides_overflow:
        unbounded = case.computing(replace(case.numerics, bounded=False))
        other = _attempt(unbounded, {}, _part(entry, "unbounded"), first.report)
        return replace(first, report=combine(other.report, first.report, overflows=True))
    tried = [case.numerics]
    for index, numerics in enumerate(case.others()):
        if best.report.settled:
            return best
        tried.append(numerics)
        other = _attempt(case.computing(numerics), {}, _part(entry, f"other-{index}"), best.report)
        best = replace(best, report=combine(best.report, other.report))
    for index, numerics in enumerate(tried):
        if best.report.settled or best.report.overflow is None:
            return best
        bounded = case.computing(replace(numerics, bounded=True))
        other = _attempt(bounded, {}, _part(entry, f"bounded-{index}"), best.report)
        best = replace(best, report=combine(best.report, other.report, overflows=True))
    return best


def _try_other_decisions(case: Case, best: _Attempt, entry: Entry | None) -> _Attempt:
    """Try other decisions inside bodies that rounding allows, one at a time and up to `TRIES`; keep each that lowers the excess."""
    tries, waiting = 0, _list_alternatives(best)
    while waiting and tries < TRIES and not best.report.settled:
        tries, tried = tries + 1, waiting.pop(0)
        elements = {**best.choices.get(tried.number, {}), tried.element: tried.value}
        choices = {**best.choices, tried.number: elements}
        attempt = _attempt(case, choices, _part(entry, f"try-{tries}"), best.report)
        if attempt.excess < best.excess:
            best = attempt
            waiting = [other for other in _list_alternatives(best) if other[:2] > tried[:2]]
    untried = () if best.report.settled else tuple({alternative.outer: None for alternative in waiting})
    return replace(best, report=replace(best.report, untried=untried))


def _list_alternatives(attempt: _Attempt) -> list[Alternative]:
    """Return the alternative decisions in layers whose results are unexplained or unobserved."""
    explained = {layer for unit in attempt.report.units if unit.explained for layer in unit.layers}
    return [alternative for alternative in attempt.alternatives if alternative.outer not in explained]


def _part(entry: Entry | None, name: str) -> Entry | None:
    return None if entry is None else entry.part(name)
