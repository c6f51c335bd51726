"""Write a report as one HTML file that works without network and server."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from .._util.escaping import json_text, markup_text, shown
from .._util.files import save_text
from .._version import __version__
from ..analysis.cost import count
from ..analysis.shapes import Shapes, shapes_in
from ..diagnostics import Severity
from .figures import figures
from .items import Scopes
from .overlays import lengths_of, mark_changes, notes, overlays
from .records import Record, Records
from .scopes import fold
from .source import Measures, OldModel, Source
from .story import Story, tell
from .summary import findings_html, subtitle, summary_html

__all__ = ["Page", "page"]

_VENDOR = ("dagrejs-dagre", *(f"d3-{name}" for name in ("dispatch", "color", "ease", "interpolate", "timer", "selection", "transition", "drag", "zoom")))  # fmt: skip
_OWN = ("model", "overlay", "graph", "values", "details", "layers", "main")


# The candidates for the initial overlay of the graph: the first measured one is used.
_FIRST = ("nan", "error", "time")


@dataclass(frozen=True)
class Page:
    """A report as self-contained HTML, displayed by notebooks and saved by `save`.

    >>> Page("<!doctype html><title>a page</title>").html[:15]
    '<!doctype html>'
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Page("<!doctype html><title>a page</title>").save(f"{folder}/page.html").name
    'page.html'
    """

    html: str
    story: Story = field(default=Story((), (), ()), repr=False)
    """The first screen, sentence by sentence."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, and return its path."""
        target = Path(path)
        save_text(target, self.html)
        return target

    def _repr_html_(self) -> str:
        """Return the page in a sandboxed iframe for notebooks."""
        inside = html.escape(self.html)
        frame = (
            'title="Report of the model" sandbox="allow-scripts allow-downloads" width="100%" height="700"'
        )
        return f'<iframe srcdoc="{inside}" {frame} frameborder="0"></iframe>'


class _Content:
    """The content of a page: scopes, records, overlays and measurements of a model."""

    def __init__(
        self, source: Source, measures: Measures, limit: int | None = None, quick: bool = False
    ) -> None:
        self.source, self.measures = source, measures
        self.tree: Scopes = fold(source.graph, source.values)
        self.shapes: Shapes = shapes_in(source.graph, source.values, source.types, source.constraints)
        cost = (
            count(source.graph, source.values, source.types, source.constraints) if source.report.ok else None
        )
        self.records = Records(self.tree, self.shapes, source.report, cost, limit, quick)
        self.overlays = overlays(self.records, measures, lengths_of(source, self.shapes, measures))

    def data(self) -> Record:
        """Return the JSON data that the page's scripts read."""
        records, source = self.records, self.source
        return {
            "file": shown(Path(source.file).name or source.name),
            "nodes": records.nodes(),
            "edges": records.edges(),
            "scopes": records.scopes(),
            "constants": records.constants.records(),
            "groups": records.groups,
            "findings": records.findings,
            "overlays": self.overlays,
            "notes": notes(records, self.measures),
            **self._pictures(),
            "start": next((o["key"] for o in self.overlays if o["key"] in _FIRST), "operation"),
        }

    def _pictures(self) -> Record:
        """Return the feature maps by layer number and the names of the compared runtimes; empty if there are none."""
        if not self.measures.pictures:
            return {}
        numbers = self.records.layers_by_name()
        records = {
            numbers[name]: maps.record() for name, maps in self.measures.pictures.items() if name in numbers
        }
        return {"pictures": records, "sides": ["this run", shown(self.measures.against)]}


def page(
    source: Source,
    measures: Measures | None = None,
    old: OldModel | None = None,
    values: int | None = None,
    quick: bool = False,
) -> Page:
    """Return the report of a model.

    >>> import ir_runtime
    >>> from ir_runtime.openvino.model import source_of
    >>> model = ir_runtime.read_model("examples/digits/digits.xml")
    >>> page(source_of(model, constraints=False)).html.count("</html>")
    1

    Args:
        source: the model.
        measures: its measurements.
        old: an older model to show beside it.
        values: the largest constant to include values of, in bytes; by default, values of a few small ones are included.
        quick: skip the statistics of large constants, as computing them reads all elements.
    """
    content = _Content(source, measures or Measures(), values, quick)
    data = content.data()
    story = tell(
        source, content.tree, content.shapes, content.records, content.overlays, content.measures, old
    )
    if old is not None:
        older = _Content(old.source, Measures(), values, quick)
        data["old"] = older.data()
        mark_changes(data, content.records, data["old"], older.records, old)
    return Page(_fill_template(content, data, story), story)


def summary(source: Source) -> str:
    """Return the inputs, outputs, operations and weights of a model as HTML.

    >>> import ir_runtime
    >>> from ir_runtime.openvino.model import source_of
    >>> model = ir_runtime.read_model("examples/digits/digits.xml")
    >>> "Convolution-1" in summary(source_of(model, constraints=False))
    True
    """
    content = _Content(source, Measures())
    return summary_html(source, content.shapes, content.records)


def _fill_template(content: _Content, data: Record, story: Story) -> str:
    source, records = content.source, content.records
    script, style = _scripts(), _asset("static/page.css")
    text, arrays = _pack(data)
    errors = source.report.count(Severity.ERROR) + source.report.count(Severity.WARNING)
    title = shown(source.name or Path(source.file).stem or "model")
    if source.file and title.startswith("Model"):  # the name that converters give every model
        title = shown(Path(source.file).stem)
    parts = {
        "POLICY": _policy(script, style),
        "VERSION": __version__,
        "TITLE": markup_text(title),
        "SUBTITLE": markup_text(subtitle(source)),
        "COUNT": f" ({errors})" if errors else "",
        "STYLE": style,
        "SCRIPT": script,
        "DATA": text,
        "ARRAYS": arrays,
        "STORY": story.html,
        "SUMMARY": summary_html(source, content.shapes, records),
        "CHARTS": figures(content.tree, records, content.overlays, content.measures),
        "FINDINGS": findings_html(source.report, records.all_layers_by_name()),
    }
    return re.sub(r"{{(\w+)}}", lambda found: parts[found[1]], _asset("static/page.html"))


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _scripts() -> str:
    texts = [_asset(f"vendor/{name}.js") for name in _VENDOR] + [_asset(f"static/{name}.js") for name in _OWN]
    return "\n".join(texts).replace("</script", "<\\/script")


def _policy(script: str, style: str) -> str:
    """Return a Content-Security-Policy that allows only this script and this style, and no network requests."""
    hashes = (f"script-src {_digest(script)}", f"style-src {_digest(style)}")
    return "; ".join(
        ("default-src 'none'", *hashes, "img-src data:", "base-uri 'none'", "form-action 'none'")
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _pack(data: Mapping[str, Any]) -> tuple[str, str]:
    """Return data as JSON and its byte strings as one array, which JSON refers to by offset; both gzipped, in base64."""
    arrays = bytearray()

    def place(array: bytes) -> int:
        arrays.extend(array)
        return len(arrays) - len(array)

    text = json_text(data, separators=(",", ":"), default=place)
    parts = (base64.b64encode(gzip.compress(part, 9, mtime=0)).decode() for part in (text.encode(), arrays))
    return next(parts), next(parts)
