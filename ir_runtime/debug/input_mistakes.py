"""Mistakes in how a whole model is fed, where a side shows its outputs only: BGR for RGB, another layout, another range of pixels.

Where tensors inside were observed, the first layer shows what it was fed; else that layer is far from the outputs, and each
guess is a run of the whole model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from ..ir.graph import Layer
from ..ir.tensor import Array
from .case import Case
from .guesses import channel_axes, permutations_of_axes
from .likeness import Likeness
from .report import Comparison
from .tensors import is_float
from .verdict import EXPLAINED, error_of

__all__ = ["input_mistake"]

SCALES = ((1 / 255, "1/255"), (255.0, "255"))
"""Factors between pixels of bytes and of numbers up to 1."""
LEAST = 2.0**-25
"""The least error that rounding explains, relative to a tensor."""


def input_mistake(case: Case, report: Comparison) -> Likeness | None:
    """Return the mistake in one input that explains all outputs, or ``None``.

    Args:
        case: the judged case.
        report: its report.
    """
    layers = case.plain.graph.of_type("Parameter")
    with np.errstate(all="ignore"):
        for index, layer in enumerate(layers):
            feed = case.feeds[index]
            if feed.dtype.kind != "f" or feed.ndim < 3 or not np.any(feed):
                continue
            for kind, what, change in _guesses(feed):
                changed = np.ascontiguousarray(change(feed)).astype(feed.dtype)
                if np.array_equal(changed, feed):
                    continue
                feeds = [changed if place == index else each for place, each in enumerate(case.feeds)]
                if (rest := _rest(case, report, feeds)) <= EXPLAINED:
                    return _likeness(kind, layer, what, rest)
    return None


def _guesses(feed: Array) -> Iterator[tuple[str, str, Callable[[Array], Array]]]:
    for axis in channel_axes(feed.shape):
        yield "channels", _reversed(axis), partial(np.flip, axis=axis)
    for what, permute in permutations_of_axes(feed.shape):
        yield "permuted", what, permute
    for factor, text in SCALES:
        yield "factor", f"times {text}", partial(np.multiply, factor)


def _reversed(axis: int) -> str:
    return f"channels in reverse order along axis {axis} (BGR for RGB)"


def _likeness(kind: str, layer: Layer, what: str, rest: float) -> Likeness:
    return Likeness(kind, layer.name, layer.operation, what, rest)


def _rest(case: Case, report: Comparison, feeds: Sequence[Array]) -> float:
    """Return how many times the errors of the outputs exceed what rounding explains, if the model is fed otherwise."""
    exact, worst = case.wide.run(feeds), 0.0
    for output in report.outputs:
        port, found = case.plain.outputs[output.index], case.seen.outputs[output.index]
        if found.shape != exact[output.index].shape:
            return np.inf
        if is_float(case.plain.types, port._port):
            error = error_of(found, exact[output.index])
            worst = max(worst, error.relative / max(output.scatter, LEAST))
    return worst
