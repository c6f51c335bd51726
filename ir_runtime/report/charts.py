"""Charts as SVG: bars, a flame chart, a staircase, histograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .._util.markup import element

__all__ = ["Bar", "Block", "bars", "flame", "histogram_svg", "staircase"]

_BLUE, _ORANGE = "#4c8fd6", "#e8833a"
_SHADES = ("#f6c177", "#f2ad62", "#efb98a", "#f3d19c", "#eba56a")
_WIDTH = 1000
_CHARACTER = 6.6


@dataclass(frozen=True)
class Bar:
    """A bar: a label, a number, its text, and its link (``node`` or ``scope``, and a number)."""

    label: str
    value: float
    text: str
    to: tuple[str, int] | None = None


@dataclass(frozen=True)
class Block:
    """A block of a flame chart: a label, a number, and the blocks inside."""

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


def _shortened(text: str, width: float) -> str:
    """Return as much of a text as fits, without its middle."""
    most = int(width / _CHARACTER)
    if len(text) <= most:
        return text
    return text[: most * 3 // 5 - 1] + "…" + text[len(text) - most * 2 // 5 :] if most > 4 else ""


def _path_end(text: str, width: float) -> str:
    """Return as much of a path as fits, without its first parts, which many paths have in common.

    >>> _path_end("encoder › layer › 0–11 › output › dense › MatMul", 200)
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
    return _shortened(text, width)


def _link(to: tuple[str, int] | None) -> dict[str, Any]:
    return {} if to is None else {f"data_{to[0]}": to[1]}


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Return horizontal bars, the longest as wide as the chart."""
    longest = max((row.value for row in rows), default=0) or 1
    left, right, step = 340, 130, 22
    drawn = []
    for k, row in enumerate(rows):
        y, length = k * step, (_WIDTH - left - right) * row.value / longest
        parts = [
            element("title", text=f"{row.label}: {row.text}"),
            _text(_path_end(row.label, left - 12), left - 8, y + 15, text_anchor="end"),
            _rect(left, y + 3, length, step - 6, fill=_BLUE, rx=2),
            _text(row.text, left + length + 6, y + 15),
        ]
        drawn.append(element("g", *parts, **_link(row.to)))
    return _figure(title, _svg(*drawn, width=_WIDTH, height=max(len(rows) * step, step), label=title))


def _figure(title: str, *inside: str) -> str:
    return element("figure", element("figcaption", text=title), *inside)


def flame(title: str, root: Block, depth: int) -> str:
    """Return a flame chart, from the top down: each block is as wide as its part of the whole."""
    row = 22
    drawn = _flame(root, 0, 0, _WIDTH / (root.value or 1), row, 0)
    return _figure(title, _svg(*drawn, width=_WIDTH, height=depth * row + 2, label=title))


def _flame(block: Block, x: float, level: int, scale: float, row: int, shade: int) -> list[str]:
    width = block.value * scale
    if width < 1:
        return []
    label = _shortened(block.label, width - 8)
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
    """Return an area over the steps of a run, with its highest point marked."""
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
    """Return a histogram."""
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
