"""The one way in: a path, bytes or a file becomes a document."""

from __future__ import annotations

from ..diagnostics import Diagnostics
from ..limits import DEFAULT, Limits
from .document import parse
from .model import Document, read_net
from .source import SourceLike, open_source
from .weights import WeightsLike, open_weights

__all__ = ["load"]


def load(
    source: SourceLike,
    weights: WeightsLike | None = None,
    report: Diagnostics | None = None,
    limits: Limits = DEFAULT,
) -> Document:
    """Read a model; what is wrong inside it goes into ``report``.

    Raises:
        ParseError: if it cannot be read as an IR at all.
        LimitError: if it asks for more than ``limits`` allow.
    """
    found = open_source(source, limits)
    root = parse(found.data, found.name)
    report = Diagnostics() if report is None else report
    return read_net(root, found, open_weights(weights, found.path), report, limits)
