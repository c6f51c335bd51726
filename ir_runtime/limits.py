"""How much a file may ask for before it is refused."""

from __future__ import annotations

from dataclasses import dataclass

from .codes import Code
from .diagnostics import Location
from .errors import LimitError

__all__ = ["DEFAULT", "Limits"]

_WORDS = {
    "xml_bytes": "the XML has {} bytes",
    "page_bytes": "the page has {} bytes",
    "examples": "the page has {} examples",
    "layers": "there are {} layers",
    "nesting": "bodies lie {} deep in bodies",
    "rank": "a tensor has {} dimensions",
    "elements": "a tensor has {} elements",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what a file may ask for. The defaults are far above any honest model.

    Args:
        xml_bytes: size of the XML.
        page_bytes: size of a page of the specification.
        examples: number of examples on such a page.
        layers: number of layers of one graph.
        nesting: how deep bodies lie in bodies.
        rank: number of dimensions of a tensor.
        elements: number of elements of one tensor.
    """

    xml_bytes: int = 1 << 30
    page_bytes: int = 1 << 22
    examples: int = 1000
    layers: int = 1_000_000
    nesting: int = 32
    rank: int = 64
    elements: int = 1 << 36

    def check(self, name: str, found: int, where: Location | None = None) -> None:
        """Raise `LimitError` if ``found`` is more than the limit of that name."""
        most = getattr(self, name)
        if found > most:
            raise LimitError(
                f"{_WORDS[name].format(found)}; the limit is {most}",
                code=Code.LIMIT,
                where=where,
                hint=f"if you trust the file, read it with limits=ir_runtime.Limits({name}=...)",
            )


DEFAULT = Limits()
