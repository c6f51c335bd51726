"""The charts of a report: time by scope and operation, memory over the steps, histograms, pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from ..markup import element, visible
from .charts import Bar, Block, bars, flame, histogram_svg, staircase
from .images import pictures
from .memory import memory_of
from .records import Record, Records
from .scopes import Scopes
from .source import Measures
from .weights import BINS, histogram

__all__ = ["figures", "size_text"]

_MOST = 20
_DEEPEST = 8


def figures(tree: Scopes, records: Records, overlays: list[Record], measures: Measures) -> str:
    """Return the charts as HTML."""
    known = {overlay["key"]: overlay for overlay in overlays}
    parts: list[str] = []
    for key, title, written in (
        ("time", "Time", _time_text),
        ("flops", "Operations of arithmetic", _count_text),
        ("weights", "Weights", size_text),
    ):
        if key in known:
            values = [value or 0 for value in known[key]["values"]]
            parts += _by_scope(tree, records, title, values, written)
    if (memory := memory_of(tree.found, measures.memory)) is not None:
        worst = tree.found.items[memory.layers[memory.used.index(max(memory.used))]].layer
        parts.append(
            staircase("Memory of activations over the steps", memory.used, size_text, f"peak at {worst.name}")
        )
    if found := pictures(measures.tensors):
        parts.append(element("h2", text="Inputs and outputs as pictures") + found)
    parts += _histograms(records, measures)
    return "".join(parts) or element("p", text="Nothing was measured.")


def _by_scope(
    tree: Scopes, records: Records, title: str, values: list[float], written: Callable[[float], str]
) -> Iterator[str]:
    total = sum(values)
    if not total:
        return

    def text(value: float) -> str:
        return f"{written(value)}, {100 * value / total:.1f} %"

    root, depth = _block(tree, records, values, 0, text)
    yield flame(f"{title} by scope", root, depth)
    by_type: dict[str, float] = defaultdict(float)
    for item, value in zip(records.items, values, strict=True):
        by_type[item.layer.type] += value
    rows = [
        Bar(visible(name), value, text(value))
        for name, value in sorted(by_type.items(), key=lambda pair: -pair[1])[:_MOST]
        if value
    ]
    yield bars(f"{title} by operation", rows)
    order = sorted(range(len(values)), key=lambda k: -values[k])[:_MOST]
    yield bars(
        f"{title}: the layers with the most",
        [Bar(f"{records.items[k].layer.type} {visible(records.items[k].layer.name)}", values[k], text(values[k]), ("node", k)) for k in order if values[k]],
    )  # fmt: skip


def _block(
    tree: Scopes,
    records: Records,
    values: list[float],
    number: int,
    text: Callable[[float], str],
    level: int = 1,
) -> tuple[Block, int]:
    """Return the block of a scope, and how many rows it takes."""
    scope = tree.scopes[number]
    inside, deepest = [], level
    if level < _DEEPEST:
        for inner in scope.scopes:
            block, depth = _block(tree, records, values, inner, text, level + 1)
            inside.append(block)
            deepest = max(deepest, depth)
        for index in scope.layers:
            node = records.index[index]
            if values[node]:
                name = tree.found.items[index].layer.type
                inside.append(Block(visible(name), values[node], text(values[node]), ("node", node)))
                deepest = max(deepest, level + 1)
        total = sum(block.value for block in inside)
    else:
        total = _total(tree, records, values, number)
    if scope.owner >= 0 and not inside:
        total = values[records.index[scope.owner]]
    return Block(visible(scope.label) or "the model", total, text(total), ("scope", number), inside), deepest


def _total(tree: Scopes, records: Records, values: list[float], number: int) -> float:
    scope = tree.scopes[number]
    own = sum(values[records.index[index]] for index in scope.layers)
    return own + sum(_total(tree, records, values, inner) for inner in scope.scopes)


def _histograms(records: Records, measures: Measures) -> Iterator[str]:
    if measures.histograms:
        shown = []
        for number, found in records.constants.statistics.items():
            counted = histogram(found.values) if found.values.size > BINS else None
            if counted is not None:
                name = visible(records.constants.items[number].layer.name)
                shown.append(_small(name, histogram_svg(*counted, name, f"histogram-c{number}")))
        if shown:
            yield element("h2", text="Weights") + element("div", *shown, class_="grid")
    if measures.activations:
        names = records.layers_by_name()
        shown = [
            _small(visible(name), histogram_svg(*counted, visible(name), f"histogram-n{names[name]}"))
            for name, counted in measures.activations.items()
            if name in names
        ]
        yield element("h2", text="Activations") + element("div", *shown, class_="grid")


def _small(name: str, svg: str) -> str:
    return element("figure", element("figcaption", text=name), svg)


def _time_text(value: float) -> str:
    return f"{value:.2f} ms" if value >= 1 else f"{1000 * value:.0f} µs"


def _count_text(value: float) -> str:
    size, unit = next(
        ((s, u) for s, u in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")) if value >= s), (1, "")
    )
    return f"{value / size:.3g} {unit}FLOP"


def size_text(value: float) -> str:
    """Write a number of bytes."""
    size, unit = next(
        ((1 << s, u) for s, u in ((30, "GB"), (20, "MB"), (10, "KB")) if value >= 1 << s), (1, "B")
    )
    return f"{value / size:.3g} {unit}"
