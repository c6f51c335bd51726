"""Mark the differences between two models at the layers of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._util.escaping import shown
from .overlays import MANY
from .records import Record, Records
from .source import OldModel

__all__ = ["mark_changes"]


def mark_changes(new: Record, records: Records, old: Record, older: Records, beside: OldModel) -> None:
    """Record for the layers of both models their counterparts and differences, and add an overlay of these."""
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
            "full": MANY,
        }
    )
