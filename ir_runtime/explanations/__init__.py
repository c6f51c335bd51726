"""Explanations of the codes of findings: meaning, example and fix. Each code has a page next to this file."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from ..codes import Code

__all__ = ["Explanation", "explanation"]

_EXAMPLE, _FIX = "\n## Example\n", "\n## Fix\n"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a code: its meaning, an example and the fix, as Markdown."""

    code: Code
    meaning: str
    example: str
    fix: str

    @property
    def markdown(self) -> str:
        """The whole page as Markdown."""
        return f"# {self.code}: {self.code.summary}\n\n{self.meaning}\n{_EXAMPLE}\n{self.example}\n{_FIX}\n{self.fix}\n"

    def text(self) -> str:
        """Return the page as plain text, for readers of SARIF: without fences, the example indented."""
        lines = [line for line in self.example.splitlines() if not line.startswith("```")]
        example = "\n".join(f"    {line}".rstrip() for line in lines)
        title = f"{self.code}: {self.code.summary}"
        return f"{title}\n\n{self.meaning}\n\nExample\n\n{example}\n\nFix\n\n{self.fix}"


def explanation(code: str) -> Explanation:
    """Return the explanation of the code of a finding or error, such as ``IR301``.

    Raises:
        ValueError: if the code is unknown.
    """
    known = Code.of(code)
    page = files(__package__).joinpath(f"{known}.md").read_text(encoding="utf-8")
    meaning, _, rest = page.partition(_EXAMPLE)
    example, _, fix = rest.partition(_FIX)
    return Explanation(known, meaning.strip(), example.strip("\n"), fix.strip())
