"""Overlays: one value per layer, such as time, which colours the graph and sorts the table; and marks of changes.

Formulas of dynamic lengths are evaluated at the `_Lengths` of a report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from .._util.escaping import shown
from ..analysis.constraints.constraint import Dim
from ..analysis.constraints.symbols import label
from ..analysis.shapes import Shapes
from ..ir.formula import Count, Formula
from .items import Item
from .memory import output_bytes
from .records import Record, Records
from .source import Measures, OldModel, Source

__all__ = ["lengths_of", "mark_changes", "notes", "overlays"]

Number: TypeAlias = "float | int | None"

_EXPLAINED = 8
"""The largest R at which rounding explains the error of a layer."""
_MANY = 3
"""Findings, or changes, that have the darkest colour."""
_ERROR = f"the error over the largest that rounding causes; up to {_EXPLAINED}, rounding explains it"
_REACHED = "the largest magnitude over the largest number of the type; 1 is where Inf or NaN begins"


def overlays(records: Records, measures: Measures, lengths: _Lengths) -> list[Record]:
    """Return the overlays that have any values.

    Args:
        records: the layers.
        measures: the measurements.
        lengths: the dynamic lengths at which formulas are evaluated.
    """
    return [
        overlay
        for overlay in _all(records, measures, lengths)
        if any(v is not None for v in overlay["values"])
    ]


def _all(records: Records, measures: Measures, lengths: _Lengths) -> Iterator[Record]:
    def by_name(
        key: str, label: str, unit: str, kind: str, known: Mapping[str, Number], **more: float | str
    ) -> Record:
        def value(item: Item) -> Number:
            return None if item.base else known.get(item.layer.name)

        return _overlay(records, key, label, unit, kind, value) | more

    if measures.times:
        times = _times(records, measures, lengths)

        def time(item: Item) -> Number:
            within = records.within(item)
            return measures.inner.get((within, item.layer.name)) if within else times.get(item.layer.name)

        yield _overlay(records, "time", "time", "ms", "sum", time) | {"inclusive": 1}
    if measures.errors:
        label = f"error against {shown(measures.against)} (R)"
        yield by_name("error", label, "R", "max", measures.errors, full=2 * _EXPLAINED, legend=_ERROR)
    if measures.broken or measures.peaks:
        yield by_name(
            "nan",
            "first Inf or NaN",
            "of the limit",
            "max",
            _fractions_of_range(measures),
            full=1,
            legend=_REACHED,
        )
    counts = {
        item.index: lengths.at(cost) for item in records.items if (cost := records.cost_of(item)) is not None
    }
    flops = _overlay(records, "flops", "FLOPs", "FLOP", "sum", lambda i: counts.get(i.index) or None)
    unknown = sum(count is None for count in counts.values()) / max(len(counts), 1)
    yield flops | {"inclusive": 1, "at": shown(str(lengths)), "unknown": unknown}
    yield _overlay(
        records, "weights", "weights", "B", "sum", lambda i: records.constants.bytes_of(i.index) or None
    )
    yield _overlay(
        records, "memory", "memory of outputs", "B", "sum", lambda i: output_bytes(i, measures.memory)
    )
    findings = _overlay(
        records, "findings", "findings", "findings", "sum", lambda i: records.count_findings(i)
    )
    yield findings | {"full": _MANY}


def _times(records: Records, measures: Measures, lengths: _Lengths) -> Mapping[str, float]:
    """Return the time of each layer; the time of a fused step is divided among its layers by FLOPs."""
    shown_layers = {item.layer.name: item for item in records.items if not item.base}
    members: dict[str, list[str]] = {name: [name] for name in measures.times}
    for name, first in measures.fused.items():
        members.setdefault(first, [first]).append(name)
    times: dict[str, float] = {}
    for first, seconds in measures.times.items():
        names = [name for name in members[first] if name in shown_layers]
        costs = [lengths.at(records.cost_of(shown_layers[name])) or 0 for name in names]
        if not any(costs):
            costs = [1, *[0] * (len(names) - 1)]
        for name, cost in zip(names, costs, strict=False):
            if cost:
                times[name] = seconds * cost / sum(costs)
    return times


def _fractions_of_range(measures: Measures) -> Mapping[str, Number]:
    """Return the largest result of each layer relative to the largest number of its type.

    It is 1 for a layer that makes Inf or NaN of finite inputs.
    """
    return {**measures.peaks, **dict.fromkeys(measures.broken, 1)}


def _overlay(
    records: Records, key: str, label: str, unit: str, kind: str, value: Callable[[Item], Number]
) -> Record:
    values = [value(item) for item in records.items]
    short = [float(f"{v:.5g}") if isinstance(v, float) else v for v in values]
    return {"key": key, "label": label, "unit": unit, "kind": kind, "values": short}


def notes(records: Records, measures: Measures) -> dict[int, list[str]]:
    """Return sentences about each layer, by number: FLOPs, speed, fusion, and new NaN."""
    sentences: dict[int, list[str]] = {}
    for number, item in enumerate(records.items):
        if isinstance(count := records.cost_of(item), Formula):
            sentences[number] = [f"FLOPs: {shown(count.text())}"]
    for name, number in records.layers_by_name().items():
        if name in measures.rates:
            sentences.setdefault(number, []).append(measures.rates[name])
        if name in measures.fused:
            sentences.setdefault(number, []).append(f"computed together with {shown(measures.fused[name])}")
        if name in measures.broken:
            sentences.setdefault(number, []).append(shown(measures.broken[name]))
    return sentences


class _Lengths(NamedTuple):
    """Values of dynamic lengths by name, and where they come from."""

    values: Mapping[str, int]
    origin: str

    def at(self, count: Count | None) -> int | None:
        """Evaluate a count at these lengths; ``None`` if it also depends on run-time values."""
        if count is None or isinstance(count, int):
            return count
        return count.at(self.values) if count.symbols <= self.values.keys() else None

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={length}" for name, length in self.values.items())
        return f"{shown} ({self.origin})" if shown else ""


def lengths_of(source: Source, shapes: Shapes, measures: Measures) -> _Lengths:
    """Return the input lengths of the run, or else lengths that satisfy the constraints, or else the smallest ones."""
    names = {(each.input, each.axis): each.name for each in shapes.inputs}
    ran = dict(
        reversed(measures.tensors)
    )  # inputs come first, and take precedence over outputs of the same name
    accepted = source.constraints.accepted[:1] if source.constraints else ()
    fitting = accepted[0].lengths if accepted else {}
    numbers: dict[str, int] = {}
    for layer, type in source.types.items():
        name = label(source.graph[layer])
        for axis, dim in enumerate(type.shape if type.shape.rank is not None else ()):
            if (name, axis) not in names:
                continue
            smallest = fitting.get(Dim(layer, axis), max(dim.min, 1))
            numbers[names[name, axis]] = ran[name].shape[axis] if name in ran else smallest
    return _Lengths(
        numbers, "as in the run" if ran else "which the model accepts" if fitting else "the smallest"
    )


def mark_changes(new: Record, records: Records, old: Record, older: Records, beside: OldModel) -> None:
    """Record counterparts and changes of the layers in both models, and add an overlay with the number of changes per layer.

    Args:
        new: the JSON data of the newer model, which is changed.
        records: the layers of the newer model.
        old: the JSON data of the older model, which is changed.
        older: the layers of the older model.
        beside: the older model, with the changes.
    """
    ours, theirs = records.layers_by_id(), older.layers_by_id()
    for a, b in beside.pairs.items():
        if a in theirs and b in ours:
            old["nodes"][theirs[a]]["m"] = ours[b]
            new["nodes"][ours[b]]["m"] = theirs[a]
    _mark(new, records, ours, beside.changed)
    _mark(old, older, theirs, beside.removed)
    new["start"] = "change"


def _mark(
    data: Record, records: Records, numbers: Mapping[int, int], changes: Mapping[int, Sequence[str]]
) -> None:
    told: dict[int, list[str]] = {}
    for id, texts in changes.items():
        for number in [numbers[id]] if id in numbers else records.readers_of_constant(id):
            told.setdefault(number, []).extend(shown(text) for text in texts)
    for number, texts in told.items():
        data["nodes"][number]["x"] = texts
    values = [len(told[number]) if number in told else None for number in range(len(records.items))]
    data["overlays"].append(
        {
            "key": "change",
            "label": "changes",
            "unit": "changes",
            "kind": "sum",
            "values": values,
            "full": _MANY,
        }
    )
