"""Load documents from a path, bytes or a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...diagnostics import Diagnostics, Location
from ...errors import InputError
from ...limits import DEFAULT, Limits
from .document import parse
from .model import Document, read_net
from .source import Source, SourceLike, WeightsLike, open_source, open_weights

if TYPE_CHECKING:
    from .fragment import Values

__all__ = ["load"]

# A whole model starts with <net>, perhaps behind a declaration and comments; a page has <layer> anywhere.
_WHOLE = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?>(?:<\?.*?\?>|<!--.*?-->)\s*+)*+<(?!layer|!--|\?)", re.DOTALL)


def load(
    source: SourceLike | Source,
    weights: WeightsLike | None = None,
    report: Diagnostics | None = None,
    limits: Limits = DEFAULT,
    *,
    values: Values | None = None,
    example: int | None = None,
) -> list[Document]:
    """Read a model, or each example on a page of the specification.

    Args:
        source: a path, bytes or an open file, opened before or not.
        weights: the ``.bin``; by default, the file of the same name beside the model.
        report: takes the findings.
        limits: the resource limits.
        values: for a page: contents for input ports.
        example: for a page: which one to read, from 1.

    Raises:
        ParseError: if it cannot be read as an IR at all.
        LimitError: if it exceeds ``limits``.
        InputError: if ``values`` or ``example`` do not fit it.
    """
    opened = source if isinstance(source, Source) else open_source(source, limits)
    report = Diagnostics() if report is None else report
    if _WHOLE.match(opened.data) or b"<layer" not in opened.data:
        if values or example is not None:
            raise InputError(
                f"{opened.name} is a whole model, which has no examples and no unconnected inputs",
                hint="values and examples are for pages of the specification",
            )
        root = parse(opened.data, opened.name, limits=limits)
        return [read_net(root, opened, open_weights(weights, opened.path), report, limits)]
    limits.check("page_bytes", len(opened.data), Location(opened.name))
    from .fragment import read_fragments

    text = opened.data.decode("utf-8", errors="replace")
    return read_fragments(text, report, values=values, name=opened.name, example=example, limits=limits)
