"""Find a number of rows per chunk that a model accepts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..analysis.constraints.lengths import Pattern, explore, in_plural, residue_text

__all__ = ["Chunking", "find_chunking"]

# Numbers of rows to try until the model accepts one.
_GUESSES = (*range(1, 65), *range(72, 257, 8))

# How far from the requested number of rows the search goes.
_NEAR = 1024


@dataclass(frozen=True)
class Chunking:
    """The numbers of rows that a model accepts, and a chunk size derived from them.

    Args:
        pattern: the numbers.
        batch: a number that splits all rows with an acceptable remainder; ``None`` if there is none.
        chunk: a multiple of the batch, near the requested chunk.
        most: the largest accepted number, if bounded.
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
        pattern = self.pattern
        if pattern.single is not None:
            return str(pattern.single)
        if not pattern.regular:
            return "only some numbers of"
        if pattern.step == 1:
            return f"at least {pattern.low}" if self.most is None else f"{pattern.low} to {self.most}"
        least = f"at least {pattern.low}" if pattern.low > pattern.step else ""
        most = "" if self.most is None else f"at most {self.most}"
        numbers = in_plural(residue_text(pattern)).removeprefix("are ")
        return ", ".join(filter(None, (numbers, least, most)))


def find_chunking(
    accepts: Callable[[int], bool],
    bounds: tuple[int, int | None],
    rows: int,
    chunk: int,
    total: int | None,
) -> Chunking | None:
    """Return the chunking nearest to a requested one; ``None`` if no number of rows is accepted.

    Args:
        accepts: whether the model accepts a number of rows at once.
        bounds: the declared minimum and maximum.
        rows: the refused number.
        chunk: the requested rows of a chunk.
        total: the total number of rows, if known.
    """
    low, high = max(bounds[0], 1), bounds[1] or max(4 * rows, _GUESSES[-1])
    guesses = (n for n in dict.fromkeys((low, *_GUESSES, high)) if low <= n <= high)
    start = next(filter(accepts, guesses), None)
    if start is None:
        return None
    pattern = explore(accepts, start, low, high)
    most = high if bounds[1] is not None else None
    if pattern.refused_above is not None:
        most = pattern.high
    near = range(max(low, rows - _NEAR), min(high, rows + _NEAR) + 1)
    for batch in sorted({*near, start, pattern.nearest(rows)}, key=lambda n: abs(n - rows)):
        if (
            pattern.contains(batch)
            and (total is None or _covers(accepts, pattern, batch, total))
            and accepts(batch)
        ):
            return Chunking(pattern, batch, max(batch, chunk // batch * batch), most)
    return Chunking(pattern, most=most)


def _covers(accepts: Callable[[int], bool], pattern: Pattern, batch: int, total: int) -> bool:
    """Return whether all rows can be split into batches, and a remainder that the model accepts."""
    rest = total % batch
    return batch <= total and (not rest or (pattern.contains(rest) and accepts(rest)))
