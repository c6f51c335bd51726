"""Draw the charts and pictures of a report, as SVG and PNG.

Bar and flame charts of costs by scope and layer, a step chart of memory use, histograms, and images.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.escaping import shown
from .._util.markup import element
from .._util.text import bytes_text
from ..ir.array import Array
from .constants import BINS, histogram
from .items import Scope, Scopes
from .memory import memory_of
from .records import Record, Records
from .source import Measures
from .story import cost_text
from .text import dims

__all__ = ["Bar", "Block", "as_picture", "bars", "figures", "flame", "histogram_svg", "png", "staircase"]

_MOST = 20
_DEEPEST = 8


def figures(tree: Scopes, records: Records, overlays: list[Record], measures: Measures) -> str:
    """Return all charts of a report as HTML.

    Args:
        tree: the layers and their scopes.
        records: the layers, numbered as in the graph of the page.
        overlays: the records of quantities with one value per layer, such as time.
        measures: the measurements.
    """
    known = {overlay["key"]: overlay for overlay in overlays}
    parts: list[str] = []
    for key in ("time", "flops", "weights"):
        if key in known:
            parts += _bars_by_scope(tree, records, known[key])
    if (memory := memory_of(tree.listing, measures.memory)) is not None:
        worst = tree.listing.items[memory.layers[memory.used.index(max(memory.used))]].layer
        parts.append(
            staircase(
                "Memory of activations over the steps", memory.used, bytes_text, f"peak at {worst.name}"
            )
        )
    if found := _pictures(measures.tensors):
        parts.append(element("h2", text="Inputs and outputs as pictures") + found)
    parts += _histograms(records, measures)
    return "".join(parts) or element("p", text="Nothing was measured.")


def _bars_by_scope(tree: Scopes, records: Records, overlay: Record) -> Iterator[str]:
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
    """Builds the blocks of a flame chart from the tree of scopes.

    Args:
        tree: the scopes.
        records: the layers.
        values: the value of each layer.
        inclusive: whether the value of a layer with bodies includes the layers of its bodies.
        text: formats a value.
    """

    tree: Scopes
    records: Records
    values: list[float]
    inclusive: bool
    text: Callable[[float], str]

    def of(self, number: int, level: int = 1) -> tuple[Block, int]:
        """Return the block of a scope, and the level of its deepest block; blocks inside level `_DEEPEST` are omitted.

        Args:
            number: the number of the scope.
            level: the level of its block; the outermost one has 1.
        """
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
        return self._block(
            number, self._scope_total(scope, sum(block.value for block in inside)), inside
        ), deepest

    def _block(self, number: int, total: float, inside: Sequence[Block]) -> Block:
        label = shown(self.tree.scopes[number].title) or "the model"
        return Block(label, total, self.text(total), ("scope", number), inside)

    def _scope_total(self, scope: Scope, inside: float) -> float:
        """Return the total of a scope: that of its contents, plus the value of the layer that owns the bodies in it, if any."""
        own = self.values[self.records.index[scope.owner]] if scope.owner >= 0 else 0
        return max(own, inside) if self.inclusive else own + inside

    def _total(self, number: int) -> float:
        scope = self.tree.scopes[number]
        own = sum(self.values[self.records.index[index]] for index in scope.layers)
        return self._scope_total(scope, own + sum(map(self._total, scope.scopes)))


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


_BLUE, _ORANGE = "#4c8fd6", "#e8833a"
_SHADES = ("#f6c177", "#f2ad62", "#efb98a", "#f3d19c", "#eba56a")
_WIDTH = 1000
_CHARACTER = 6.6


@dataclass(frozen=True)
class Bar:
    """A bar: its label, value, formatted value, and link (``node`` or ``scope``, with a number)."""

    label: str
    value: float
    text: str
    to: tuple[str, int] | None = None


@dataclass(frozen=True)
class Block:
    """A block of a flame chart: its label, value, and inner blocks."""

    label: str
    value: float
    text: str
    to: tuple[str, int]
    inside: Sequence[Block] = ()


def _svg(*inside: str, width: float, height: float, label: str, id: str | None = None) -> str:
    return element(
        "svg", *inside, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=label, id=id,
        font_family="system-ui, sans-serif", font_size=12, xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


def _text(text: str, x: float, y: float, **attributes: Any) -> str:
    return element("text", text=text, x=f"{x:.1f}", y=f"{y:.1f}", **({"fill": "currentColor"} | attributes))


def _rect(x: float, y: float, width: float, height: float, *inside: str, **attributes: Any) -> str:
    place: dict[str, Any] = {
        "x": f"{x:.2f}",
        "y": f"{y:.1f}",
        "width": f"{max(width, 0.5):.2f}",
        "height": f"{height:.1f}",
    }
    return element("rect", *inside, **place, **attributes)


def _elide(text: str, width: float) -> str:
    """Elide the middle of a text to fit a width."""
    most = int(width / _CHARACTER)
    if len(text) <= most:
        return text
    return text[: most * 3 // 5 - 1] + "…" + text[len(text) - most * 2 // 5 :] if most > 4 else ""


def _elide_path(text: str, width: float) -> str:
    """Elide leading parts of a path to fit a width, as paths often share them.

    >>> _elide_path("encoder › layer › 0–11 › output › dense › MatMul", 200)
    '… › output › dense › MatMul'
    """
    most, parts = int(width / _CHARACTER), text.split(" › ")
    if len(text) <= most:
        return text
    while len(parts) > 1:
        parts.pop(0)
        shorter = " › ".join(("…", *parts))
        if len(shorter) <= most:
            return shorter
    return _elide(text, width)


def _link(to: tuple[str, int] | None) -> dict[str, Any]:
    return {} if to is None else {f"data_{to[0]}": to[1]}


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Return a chart of horizontal bars, scaled so that the longest fills the chart."""
    longest = max((row.value for row in rows), default=0) or 1
    left, right, step = 340, 130, 22
    drawn = []
    for k, row in enumerate(rows):
        y, length = k * step, (_WIDTH - left - right) * row.value / longest
        parts = [
            element("title", text=f"{row.label}: {row.text}"),
            _text(_elide_path(row.label, left - 12), left - 8, y + 15, text_anchor="end"),
            _rect(left, y + 3, length, step - 6, fill=_BLUE, rx=2),
            _text(row.text, left + length + 6, y + 15),
        ]
        drawn.append(element("g", *parts, **_link(row.to)))
    return _figure(title, _svg(*drawn, width=_WIDTH, height=max(len(rows) * step, step), label=title))


def _figure(title: str, *inside: str) -> str:
    return element("figure", element("figcaption", text=title), *inside)


def flame(title: str, root: Block, depth: int) -> str:
    """Return a flame chart, with the root on top: the width of a block is its share of the total.

    Args:
        title: the title.
        root: the outermost block.
        depth: the number of levels of blocks.
    """
    row = 22
    drawn = _flame(root, 0, 0, _WIDTH / (root.value or 1), row, 0)
    return _figure(title, _svg(*drawn, width=_WIDTH, height=depth * row + 2, label=title))


def _flame(block: Block, x: float, level: int, scale: float, row: int, shade: int) -> list[str]:
    width = block.value * scale
    if width < 1:
        return []
    label = _elide(block.label, width - 8)
    parts = [
        element("title", text=f"{block.label}: {block.text}"),
        _rect(x, level * row, width - 0.5, row - 1, fill=_SHADES[(level + shade) % len(_SHADES)], rx=2),
        *([_text(label, x + 4, level * row + 15, fill="#1b2026")] if label else []),
    ]
    drawn = [element("g", *parts, **_link(block.to))]
    for k, inner in enumerate(sorted(block.inside, key=lambda b: -b.value)):
        drawn += _flame(inner, x, level + 1, scale, row, k)
        x += inner.value * scale
    return drawn


def staircase(title: str, values: Sequence[float], written: Callable[[float], str], peak: str) -> str:
    """Return a step chart over the layers of a run, with the peak marked.

    Args:
        title: the title.
        values: the value at each layer, such as bytes in use.
        written: formats a value.
        peak: the label of the peak, to which its value is appended.
    """
    height, left = 200, 70
    top = max(values) or 1
    step = (_WIDTH - left) / len(values)
    points = [f"M{left} {height}"]
    for k, value in enumerate(values):
        points.append(f"V{height - (height - 16) * value / top:.1f}H{left + (k + 1) * step:.1f}")
    at = left + (list(values).index(max(values)) + 0.5) * step
    anchor = "end" if at > _WIDTH / 2 else "start"
    parts = [
        element("path", d="".join([*points, f"V{height}Z"]), fill=_BLUE, fill_opacity=0.55, stroke=_BLUE),
        element("path", d=f"M{at:.1f} 14V{height}", stroke=_ORANGE, stroke_width=2),
        _text(f"{peak}: {written(top)}", at + (-6 if anchor == "end" else 6), 12, text_anchor=anchor),
        _text(written(top), left - 6, 24, text_anchor="end"),
        _text("0", left - 6, height, text_anchor="end"),
        element("path", d=f"M{left} {height}H{_WIDTH}", stroke="currentColor"),
        _text("first step", left, height + 16),
        _text("last step", _WIDTH, height + 16, text_anchor="end"),
    ]
    return _figure(
        title, _svg(*parts, width=_WIDTH, height=height + 22, label=f"{title}. {peak}: {written(top)}")
    )


def histogram_svg(counts: Sequence[int], low: float, high: float, label: str, id: str) -> str:
    """Return a histogram as SVG.

    Args:
        counts: the number of values in each bin.
        low: the lower bound of the first bin.
        high: the upper bound of the last bin.
        label: a description of the picture.
        id: the id of the SVG element.
    """
    width, height = 220, 70
    step, most = width / len(counts), max(counts) or 1
    drawn = [
        _rect(k * step, height - 56 * count / most, step - 0.6, 56 * count / most, fill=_BLUE)
        for k, count in enumerate(counts)
        if count
    ]
    ends = [_text(f"{low:.3g}", 0, height + 13), _text(f"{high:.3g}", width, height + 13, text_anchor="end")]
    if low < 0 < high:
        zero = -low / (high - low) * width
        drawn.append(element("path", d=f"M{zero:.1f} 8V{height}", stroke=_ORANGE))
    return _svg(*drawn, *ends, width=width, height=height + 16, label=f"histogram of {label}", id=id)


_LARGEST = 160
_LEAST = 8
_MOST_PICTURES = 8


def _pictures(tensors: Sequence[tuple[str, Array]]) -> str:
    """Return the tensors that look like images as HTML; empty if there are none."""
    parts: list[str] = []
    for name, array in tensors:
        picture = as_picture(array)
        if picture is None or len(parts) == _MOST_PICTURES:
            continue
        source = "data:image/png;base64," + base64.b64encode(png(picture)).decode()
        size = {"width": picture.shape[1], "height": picture.shape[0]}
        caption = element("figcaption", text=f"{name} ({dims(array.shape)})")
        parts.append(
            element(
                "figure",
                caption,
                f'<img alt="" src="{source}" width="{size["width"]}" height="{size["height"]}">',
            )
        )
    return element("div", *parts, class_="thumbs") if parts else ""


def as_picture(array: Array) -> Array | None:
    """Return the first image of a tensor as u8 ``[height, width, 1 or 3]``; ``None`` if it does not look like images."""
    if array.dtype.kind not in "fuib" or array.ndim not in (3, 4) or not array.size:
        return None
    image = array[0] if array.ndim == 4 else array
    if image.shape[0] in (1, 3) and min(image.shape[1:]) >= _LEAST:
        image = np.moveaxis(image, 0, -1)
    elif image.shape[-1] not in (1, 3) or min(image.shape[:2]) < _LEAST:
        return None
    step = -(-max(image.shape[:2]) // _LARGEST)
    return _bytes(image[::step, ::step])


def _bytes(image: Array) -> Array:
    """Scale an image to 0–255: the smallest finite value is black, the largest white."""
    if image.dtype == np.uint8:
        return image
    wide = np.nan_to_num(image.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = wide.min(), wide.max()
    scaled: Array = (wide - low) * (255 / (high - low) if high > low else 0)
    return scaled.astype(np.uint8)


def png(image: Array) -> bytes:
    """Encode u8 ``[height, width, 1 or 3]`` as PNG."""
    height, width, colours = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(image))
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if colours == 3 else 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
