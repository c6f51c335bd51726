"""Phrases for the text of constraints."""

from __future__ import annotations

from collections.abc import Sequence

from .lengths import Pattern

__all__ = ["offset_text", "residue_text", "join_words", "sum_text", "in_plural"]


def join_words(items: Sequence[str], last: str = "and") -> str:
    """Join items with commas, and a word before the last.

    >>> join_words(["height", "width"]), join_words(["0", "1", "31"], "or")
    ('height and width', '0, 1 or 31')
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"


def sum_text(addends: Sequence[str], offset: int = 0) -> str:
    """Return the text of a sum.

    >>> sum_text(["past", "seq"], -1)
    'past + seq - 1'
    """
    return " + ".join(addends) + offset_text(offset)


def offset_text(offset: int) -> str:
    """Return the text of an offset; empty for 0."""
    return "" if not offset else f" {'+' if offset > 0 else '-'} {abs(offset)}"


def residue_text(pattern: Pattern) -> str:
    """Return the predicate for a length with a step and residues.

    >>> residue_text(Pattern(step=32)), residue_text(Pattern(step=4, residues=(0, 1)))
    ('is a multiple of 32', 'leaves 0 or 1 when divided by 4')
    """
    if pattern.residues == (0,):
        return f"is a multiple of {pattern.step}"
    if len(pattern.residues) == 1:
        return f"is a multiple of {pattern.step} plus {pattern.residues[0]}"
    return f"leaves {join_words(list(map(str, pattern.residues)), 'or')} when divided by {pattern.step}"


def in_plural(predicate: str) -> str:
    """Return a predicate in the plural.

    >>> in_plural("is a multiple of 32 plus 1"), in_plural("≤ 512")
    ('are multiples of 32 plus 1', '≤ 512')
    """
    for one, many in (("is a multiple ", "are multiples "), ("leaves ", "leave ")):
        predicate = predicate.replace(one, many, 1)
    return predicate
