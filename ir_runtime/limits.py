"""How much a file may ask for before it is refused."""

from __future__ import annotations

from dataclasses import dataclass

from .codes import Code
from .errors import LimitError

__all__ = ["DEFAULT", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what a file may ask for. The defaults are far above any honest model.

    Args:
        xml_bytes: size of the XML.
        layers: number of layers of one graph.
        rank: number of dimensions of a tensor.
        elements: number of elements of one tensor.
    """

    xml_bytes: int = 1 << 30
    layers: int = 1_000_000
    rank: int = 64
    elements: int = 1 << 40

    def check(self, name: str, found: int) -> None:
        """Raise `LimitError` if ``found`` is more than the limit of that name."""
        most = getattr(self, name)
        if found > most:
            raise LimitError(
                f"{found} {name.replace('_', ' ')}, but the limit is {most}",
                code=Code.LIMIT,
                hint=f"if you trust the file, raise limits=Limits({name}=...)",
            )


DEFAULT = Limits()
