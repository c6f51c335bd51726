"""Find the number of rows per chunk that a model accepts, where it refuses another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..analysis.constraints.lengths import Pattern, explore
from ..analysis.constraints.phrasing import in_plural, residue_text

__all__ = ["Chunking", "find_chunking"]

# Numbers of rows to try until the model accepts one.
_GUESSES = (*range(1, 65), *range(72, 257, 8))

# How far from the requested number of rows the search goes.
_NEAR = 1024


@dataclass(frozen=True)
class Chunking:
    """The numbers of rows that a model accepts at once, and a chunk size made of them.

    Args:
        pattern: the numbers.
        batch: one of them that leaves a remainder, of all rows, which the model accepts, too; ``None`` if none does.
        chunk: a multiple of the batch, near the requested chunk.
        most: the largest of the numbers, if there is one.
    """

    pattern: Pattern
    batch: int | None = None
    chunk: int = 0
    most: int | None = None

    def __str__(self) -> str:
        """Return the numbers as text.

        >>> print(Chunking(Pattern(2, 8), most=8), Chunking(Pattern(step=4)), Chunking(Pattern(3, 3)), sep="; ")
        2 to 8; multiples of 4; 3
        """
        found = self.pattern
        if found.single is not None:
            return str(found.single)
        if not found.regular:
            return "only some numbers of"
        if found.step == 1:
            return f"at least {found.low}" if self.most is None else f"{found.low} to {self.most}"
        least = f"at least {found.low}" if found.low > found.step else ""
        most = "" if self.most is None else f"at most {self.most}"
        numbers = in_plural(residue_text(found)).removeprefix("are ")
        return ", ".join(filter(None, (numbers, least, most)))


def find_chunking(
    accepts: Callable[[int], bool],
    bounds: tuple[int, int | None],
    rows: int,
    chunk: int,
    total: int | None,
) -> Chunking | None:
    """Return the chunking nearest to a requested one; ``None`` if the model refuses every number of rows tried.

    Args:
        accepts: whether the model accepts a number of rows at once.
        bounds: the fewest and the most rows that it declares.
        rows: the number that it refused.
        chunk: the requested rows of a chunk.
        total: the rows of all chunks, if that is known.
    """
    low, high = max(bounds[0], 1), bounds[1] or max(4 * rows, _GUESSES[-1])
    guesses = (n for n in dict.fromkeys((low, *_GUESSES, high)) if low <= n <= high)
    start = next(filter(accepts, guesses), None)
    if start is None:
        return None
    found = explore(accepts, start, low, high)
    most = high if bounds[1] is not None else None
    if found.refused_above is not None:
        most = found.high
    near = range(max(low, rows - _NEAR), min(high, rows + _NEAR) + 1)
    for batch in sorted({*near, start, found.nearest(rows)}, key=lambda n: abs(n - rows)):
        if (
            found.contains(batch)
            and (total is None or _covers(accepts, found, batch, total))
            and accepts(batch)
        ):
            return Chunking(found, batch, max(batch, chunk // batch * batch), most)
    return Chunking(found, most=most)


def _covers(accepts: Callable[[int], bool], found: Pattern, batch: int, total: int) -> bool:
    """Return whether all rows can be split into batches, and a remainder that the model accepts."""
    rest = total % batch
    return batch <= total and (not rest or (found.contains(rest) and accepts(rest)))
