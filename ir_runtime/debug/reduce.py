"""Reduce a model to the smallest part that reproduces a difference, without confidential data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from .._util.records import Record
from ..diagnostics import Diagnostics
from ..errors import IRError, LimitError
from ..ir.blocks import blocks, filled
from ..ir.graph import Graph, Layer, Port
from ..ir.shape import PartialShape
from ..ir.tensor import Array
from ..openvino.model import Model
from .bisect import search
from .caching import Entry, entry_for, remembered
from .compare import judge
from .extract import cut, inputs_of
from .observation import SideLike
from .other_model import OtherParts
from .progress import STOPS, reached, stage, stopped
from .reference import Reference
from .report import Comparison, restore_report
from .reproducer import Reduced, check_folder, real_constants, write
from .sides import parts_side, variants_of
from .spilling import within_budget
from .stateless import step_of
from .tensors import computed_layers, ports_by_name

__all__ = ["reduce"]

FIRST = 0.3
"""The estimated share of the time for comparing the whole model; each further comparison takes a tenth of the rest."""
MOST = 12
"""The most times that a part is extended towards the inputs until it shows the difference."""


def reduce(
    model: Model,
    inputs: object,
    side: SideLike,
    out: str | Path | None = None,
    keep_values: bool = False,
    states: Mapping[str, object] | None = None,
) -> Reduced:
    """Find the smallest part of a model where a side still differs from f64 beyond rounding.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> class Device:
    ...     def observe(self, model, reference, feeds, ports):
    ...         found = ov.compile_model(model)(list(feeds))
    ...         return debug.Observation("device", [found[0] * np.float32(1.5)])
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(opset1.abs(x, name="positive"), name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> debug.reduce(model, inputs, Device()).layers
    ('positive',)

    Args:
        model: the model; it is not changed.
        inputs: as for a compiled model.
        side: the judged execution: ``"openvino"``, ``"openvino:bf16"``, a backend, the path of another IR, or a `Side`, such as a `Command`.
        out: a folder for the part, its inputs, a program that shows the difference, and the text of an issue.
        keep_values: keep weights and inputs instead of randomizing them.
        states: values of variables before the step, by id; by default their initial values.

    Returns:
        the part; false, and nothing is written, if rounding explains all differences.

    Raises:
        InputError: if the side cannot run other models, or the folder cannot be made.
        Interrupted: on Ctrl-C, with the smallest part so far.
        TimedOut: when the time is up, likewise.
    """
    with within_budget(model.limits):
        model, feeds = step_of(model, Reference(model).feeds(inputs), states)
        return _reduce(model, feeds, side, out, keep_values)


def _reduce(
    model: Model, feeds: list[Array], side: SideLike, out: str | Path | None, keep_values: bool
) -> Reduced:
    whole = Reference(model)
    original_side, side = side, parts_side(side, whole)
    if out is not None:
        check_folder(Path(out))
    work = _Reduction(side, entry_for(f"reduce {keep_values}", model, feeds, original_side))
    with stage(0, FIRST):
        whole_report = remembered(
            work.entry, "whole", lambda: (asdict(judge(model, feeds, side, names_mistakes=False)[0]), [])
        )
    report = restore_report(whole_report[0])
    original = len(computed_layers(whole.graph))
    work.found = _reduced(side, model, feeds, report, original)
    if report.verdict != "unexplained":
        reached(1)
        return replace(work.found, layers=())
    try:
        work.found = work.shrink(whole)
        if not keep_values:
            work.found = work.anonymize()
        work.found.notes += work.variants()
        work.found.report = work.named()
    except STOPS as reason:
        work.found.partial, work.found.tests = True, work.tests
        raise stopped(reason, lambda: work.found) from None
    work.found.tests = work.tests
    reached(1)
    if out is not None:
        other = side.part(work.found.model) if isinstance(side, OtherParts) else None
        work.found.folder = write(work.found, side, Path(out), other)
    return work.found


def _reduced(
    side: SideLike, part: Model, arrays: Sequence[Array], report: Comparison, original: int
) -> Reduced:
    layers = tuple(layer.name for layer in computed_layers(part._graph))
    constants = real_constants(part._graph)
    name = side if isinstance(side, str) else report.side
    return Reduced(part, list(arrays), name, report, layers, original, constants)


@dataclass
class _Reduction:
    side: SideLike
    entry: Entry | None
    found: Reduced = field(init=False)
    """The smallest part so far."""
    tests: int = 0

    def fails(self, part: Model, arrays: Sequence[Array], side: SideLike | None = None) -> Comparison | None:
        """Return the report of a part if rounding does not explain its difference; None if it cannot run."""
        start, self.tests = self._done, self.tests + 1

        def unexplained() -> Record | None:
            try:
                judging = self.side if side is None else side
                report, _ = judge(part, list(arrays), judging, names_mistakes=False)
            except LimitError:  # with more memory or time the verdict may differ
                raise
            except IRError:
                return None
            return asdict(report) if report.verdict == "unexplained" else None

        with stage(start, self._done):
            record, _ = remembered(self.entry, f"test-{self.tests}", lambda: (unexplained(), []))
        return None if record is None else restore_report(record)

    @property
    def _done(self) -> float:
        """The estimated fraction of work done."""
        return float(1 - (1 - FIRST) * 0.9**self.tests)

    def shrink(self, whole: Reference) -> Reduced:
        """Extract the first wrong unit and its necessary predecessors."""
        model, feeds, report = self.found.model, self.found.inputs, self.found.report
        graph, layers = whole.graph, computed_layers(whole.graph)
        ports = ports_by_name(graph, layers)
        computed = {layer.id for layer in layers}
        first = report.first or report.first_decision
        if first is None and report.boundaries == len(report.unobserved):  # nothing inside was seen
            with stage(self._done, self._done):
                found_layers = search(
                    model, feeds, self.side, self.entry and self.entry.part("bisect")
                ).layers
            names = set(found_layers)
            members = {layer.id for layer in layers if layer.name in names}
            ends = [layer.output_ports[0] for layer in layers if layer.name == found_layers[-1]]
        elif first is None:
            wrong = next(output for output in report.outputs if output.verdict == "unexplained")
            ends = [whole.outputs[wrong.index]._port]
            members = {ends[0].layer}
        else:
            ends = [ports[first.name]]
            names = set(first.layers)
            members = {layer.id for layer in layers if layer.name in names}
        for _ in range(MOST):
            starts = _starts(graph, members, computed)
            part = cut(model, starts, _ends(graph, members, ends))
            arrays = self._inputs(part, starts, whole, feeds)
            if (found := self.fails(part, arrays)) is not None:
                return _reduced(self.side, part, arrays, found, self.found.original)
            before = {port.layer for port in starts if port.layer in computed}
            if not before:
                break
            members |= before
        return self.found

    def _inputs(
        self, part: Model, starts: Sequence[Port], whole: Reference, feeds: Sequence[Array]
    ) -> list[Array]:
        with stage(self._done, self._done):
            name = f"inputs-{self.tests}"
            return [*remembered(self.entry, name, lambda: (None, inputs_of(part, starts, whole, feeds)))[1]]

    def anonymize(self) -> Reduced:
        """Randomize constants and inputs while the difference persists: all at once, or one by one."""
        random = np.random.default_rng(0)
        reduced = self.found
        drawn = [_random(array, random) for array in reduced.inputs]
        if (report := self.fails(reduced.model, drawn)) is not None:
            self.found = reduced = replace(reduced, inputs=drawn, report=report, kept_inputs=False)
        if isinstance(self.side, OtherParts):  # its own weights may cause the difference
            return reduced
        part, names = reduced.model, reduced.kept_weights
        everything = _with_random(part, set(names))
        if (report := self.fails(everything, reduced.inputs)) is not None:
            return replace(reduced, model=everything, report=report, kept_weights=())
        replaced: set[str] = set()
        for name in names:
            candidate = _with_random(part, replaced | {name})
            if (report := self.fails(candidate, reduced.inputs)) is not None:
                replaced.add(name)
                kept = tuple(name for name in names if name not in replaced)
                self.found = replace(self.found, model=candidate, report=report, kept_weights=kept)
        return self.found

    def named(self) -> Comparison:
        """Return the report of the part, including the likely mistake."""
        with stage(self._done, self._done):
            report, _ = judge(self.found.model, self.found.inputs, self.side)
        return report if report.verdict == "unexplained" else self.found.report

    def variants(self) -> list[str]:
        """Try static shapes, one thread, and no fusion."""
        part, arrays, notes = self.found.model, self.found.inputs, list[str]()
        if any(port.partial_shape.is_dynamic for port in part.inputs):
            static = part.clone()
            static.reshape({i: PartialShape(array.shape) for i, array in enumerate(arrays)})
            notes.append(_note("with static shapes", self.fails(static, arrays)))
        for what, side in variants_of(self.side).items():
            notes.append(_note(what, self.fails(part, arrays, side)))
        return notes


def _note(what: str, found: Comparison | None) -> str:
    return f"{what} the difference {'is gone' if found is None else 'stays'}"


def _starts(graph: Graph, members: set[int], computed: set[int]) -> list[Port]:
    """Return the inputs of layers that are computed ports."""
    starts: dict[Port, None] = {}
    for layer in graph:
        if layer.id in members:
            starts |= dict.fromkeys(
                s for s in graph.reads(layer) if s.layer not in members and s.layer in computed
            )
    return list(starts)


def _ends(graph: Graph, members: set[int], ends: Sequence[Port]) -> list[Port]:
    """Return the judged ports, and the other outputs of their layers."""
    return list(dict.fromkeys(port for end in ends for port in graph[end.layer].output_ports))


def _random(array: Array, random: np.random.Generator) -> Array:
    """Return normal numbers with the mean and deviation of an array; keep integers and scalars."""
    if array.dtype.kind != "f" or array.size < 2:
        return array
    mean, count = float(array.mean()), array.size
    squares = sum(float(np.square(block - np.float64(mean)).sum()) for (block,) in blocks(array))
    return filled(array.shape, array.dtype, lambda size: random.normal(mean, (squares / count) ** 0.5, size))


def _with_random(part: Model, names: set[str]) -> Model:
    """Randomize some constants of a model."""
    random = np.random.default_rng(1)

    def changed(layer: Layer) -> Layer:
        if layer.type != "Constant" or layer.name not in names or layer.op is None:
            return layer
        return replace(layer, op=layer.op.replace(value=_random(np.asarray(layer.op.evaluate()), random)))

    return _rebuilt(part, changed)


def _rebuilt(part: Model, change: Callable[[Layer], Layer]) -> Model:
    graph = part._graph
    document = replace(part._document, graph=Graph(map(change, graph.layers.values()), graph.edges))
    return Model._read(document, Diagnostics())
