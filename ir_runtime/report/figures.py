"""The charts of a report: time by scope and operation, memory over the steps, histograms, pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .._util.escaping import shown
from .._util.markup import element
from .._util.text import bytes_text
from .charts import Bar, Block, bars, flame, histogram_svg, staircase
from .images import pictures
from .memory import memory_of
from .records import Record, Records
from .source import Measures
from .story import cost_text
from .tree import Scope, Scopes
from .weights import BINS, histogram

__all__ = ["figures"]

_MOST = 20
_DEEPEST = 8


def figures(tree: Scopes, records: Records, overlays: list[Record], measures: Measures) -> str:
    """Return the charts as HTML."""
    known = {overlay["key"]: overlay for overlay in overlays}
    parts: list[str] = []
    for key in ("time", "flops", "weights"):
        if key in known:
            parts += _by_scope(tree, records, known[key])
    if (memory := memory_of(tree.listing, measures.memory)) is not None:
        worst = tree.listing.items[memory.layers[memory.used.index(max(memory.used))]].layer
        parts.append(
            staircase(
                "Memory of activations over the steps", memory.used, bytes_text, f"peak at {worst.name}"
            )
        )
    if found := pictures(measures.tensors):
        parts.append(element("h2", text="Inputs and outputs as pictures") + found)
    parts += _histograms(records, measures)
    return "".join(parts) or element("p", text="Nothing was measured.")


def _by_scope(tree: Scopes, records: Records, overlay: Record) -> Iterator[str]:
    values = [value or 0 for value in overlay["values"]]
    inclusive = bool(overlay.get("inclusive"))
    own = records.own_values(overlay)
    total = sum(own)
    if not total:
        return

    def text(value: float) -> str:
        return f"{cost_text(overlay['key'], value)}, {100 * value / total:.1f} %"

    title = overlay["label"][0].upper() + overlay["label"][1:]
    title += f" at {overlay['at']}" if overlay.get("at") else ""
    root, depth = _Blocks(tree, records, values, inclusive, text).of(0)
    yield flame(f"{title} by scope", root, depth)
    by_type: dict[str, float] = defaultdict(float)
    for item, value in zip(records.items, own, strict=True):
        by_type[item.layer.type] += value
    rows = [
        Bar(shown(name), value, text(value))
        for name, value in sorted(by_type.items(), key=lambda pair: -pair[1])[:_MOST]
        if value
    ]
    yield bars(f"{title} by operation", rows)
    sums = [(sum(values[k] for k in copies), copies) for copies in records.copies()]
    order = sorted((pair for pair in sums if pair[0]), key=lambda pair: -pair[0])[:_MOST]
    yield bars(
        f"{title}: the layers with the most",
        [
            Bar(records.title_of_copies(copies), value, text(value), ("node", copies[0]))
            for value, copies in order
        ],
    )


@dataclass(frozen=True)
class _Blocks:
    """The blocks of a flame chart.

    Args:
        tree: the scopes.
        records: the layers.
        values: the number of each layer.
        inclusive: whether the number of a layer with bodies includes those of the layers in them.
        text: how a number is written.
    """

    tree: Scopes
    records: Records
    values: list[float]
    inclusive: bool
    text: Callable[[float], str]

    def of(self, number: int, level: int = 1) -> tuple[Block, int]:
        """Return the block of a scope, and its number of rows."""
        scope = self.tree.scopes[number]
        if level >= _DEEPEST:
            return self._block(number, self._total(number), ()), level
        inside, deepest = [], level
        for inner in scope.scopes:
            block, depth = self.of(inner, level + 1)
            inside.append(block)
            deepest = max(deepest, depth)
        for index in scope.layers:
            node = self.records.index[index]
            if value := self.values[node]:
                name = shown(self.tree.listing.items[index].layer.type)
                inside.append(Block(name, value, self.text(value), ("node", node)))
                deepest = max(deepest, level + 1)
        return self._block(number, self._owned(scope, sum(block.value for block in inside)), inside), deepest

    def _block(self, number: int, total: float, inside: Sequence[Block]) -> Block:
        label = shown(self.tree.scopes[number].title) or "the model"
        return Block(label, total, self.text(total), ("scope", number), inside)

    def _owned(self, scope: Scope, inside: float) -> float:
        """Return the total of a scope, with the number of the layer whose bodies it is."""
        own = self.values[self.records.index[scope.owner]] if scope.owner >= 0 else 0
        return max(own, inside) if self.inclusive else own + inside

    def _total(self, number: int) -> float:
        scope = self.tree.scopes[number]
        own = sum(self.values[self.records.index[index]] for index in scope.layers)
        return self._owned(scope, own + sum(map(self._total, scope.scopes)))


def _histograms(records: Records, measures: Measures) -> Iterator[str]:
    if measures.histograms:
        charts = []
        for number, found in records.constants.statistics.items():
            counted = histogram(found.values) if found.values.size > BINS else None
            if counted is not None:
                name = shown(records.constants.items[number].layer.name)
                charts.append(_small(name, histogram_svg(*counted, name, f"histogram-c{number}")))
        if charts:
            yield element("h2", text="Weights") + element("div", *charts, class_="grid")
    if measures.activations:
        names = records.layers_by_name()
        charts = [
            _small(shown(name), histogram_svg(*counted, shown(name), f"histogram-n{names[name]}"))
            for name, counted in measures.activations.items()
            if name in names
        ]
        yield element("h2", text="Activations") + element("div", *charts, class_="grid")


def _small(name: str, svg: str) -> str:
    return element("figure", element("figcaption", text=name), svg)
