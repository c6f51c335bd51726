"""Parts of the sentences in which constraints are said."""

from __future__ import annotations

from collections.abc import Sequence

from .lengths import Pattern

__all__ = ["apart", "divided", "listed", "plus", "several"]


def listed(items: Sequence[str], last: str = "and") -> str:
    """Items with commas, and a word before the last.

    >>> listed(["height", "width"]), listed(["0", "1", "31"], "or")
    ('height and width', '0, 1 or 31')
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"


def plus(addends: Sequence[str], offset: int = 0) -> str:
    """A sum.

    >>> plus(["past", "seq"], -1)
    'past + seq - 1'
    """
    return " + ".join(addends) + apart(offset)


def apart(offset: int) -> str:
    """What is added, if anything is."""
    return "" if not offset else f" {'+' if offset > 0 else '-'} {abs(offset)}"


def divided(found: Pattern) -> str:
    """What is said of one length that has a pattern.

    >>> divided(Pattern(step=32)), divided(Pattern(step=4, residues=(0, 1)))
    ('is a multiple of 32', 'leaves 0 or 1 when divided by 4')
    """
    if found.residues == (0,):
        return f"is a multiple of {found.step}"
    if len(found.residues) == 1:
        return f"is a multiple of {found.step} plus {found.residues[0]}"
    return f"leaves {listed(list(map(str, found.residues)), 'or')} when divided by {found.step}"


def several(predicate: str) -> str:
    """What is said of one, said of several.

    >>> several("is a multiple of 32 plus 1"), several("≤ 512")
    ('are multiples of 32 plus 1', '≤ 512')
    """
    for one, many in (("is a multiple ", "are multiples "), ("leaves ", "leave ")):
        predicate = predicate.replace(one, many, 1)
    return predicate
