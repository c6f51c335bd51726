"""Shapes with named lengths; equal names stand for equal lengths."""

from __future__ import annotations

from typing import TypeAlias

from ...ir.dimension import Dimension
from ...ir.shape import PartialShape

__all__ = ["Symbols", "match_shape"]

Symbols: TypeAlias = "dict[str, Dimension | tuple[Dimension, ...]]"
"""The length that each name stands for; for a name of several, such as ``Batches...``, all of them."""


def match_shape(text: str, shape: PartialShape, symbols: Symbols) -> bool:
    """Return whether a shape fits, and store the lengths of names.

    >>> found: Symbols = {}
    >>> match_shape("[N,3,?]", PartialShape([2, 3, -1]), found), found
    (True, {'N': <Dimension: 2>})
    """
    parts = [part.strip() for part in text.strip().strip("[]").split(",") if part.strip()]
    if shape.rank is None:
        return False
    dims, lengths = tuple(shape), dict(symbols)
    group = next((index for index, part in enumerate(parts) if part.endswith("...")), None)
    if group is None:
        fits = len(dims) == len(parts) and all(map(_fits, parts, dims, [lengths] * len(dims)))
    else:
        after = len(parts) - group - 1
        middle = dims[group : len(dims) - after]
        ends = [
            *zip(parts[:group], dims, strict=False),
            *zip(parts[group + 1 :], dims[len(dims) - after :], strict=False),
        ]
        fits = len(dims) >= len(parts) - 1 and all(_fits(part, dim, lengths) for part, dim in ends)
        fits = fits and _is_group(parts[group].removesuffix("..."), middle, lengths)
    if fits:
        symbols.update(lengths)
    return fits


def _fits(part: str, dim: Dimension, symbols: Symbols) -> bool:
    if part == "?":
        return True
    if part.lstrip("-").isdecimal():
        return dim.is_static and dim == int(part)
    if part not in symbols:
        symbols[part] = dim
        return dim.is_static or dim.symbol is not None
    length = symbols[part]
    if isinstance(length, tuple):
        return False
    return (dim.is_static and length == dim) or (dim.symbol is not None and dim.symbol is length.symbol)


def _is_group(name: str, dims: tuple[Dimension, ...], symbols: Symbols) -> bool:
    if not name:
        return True
    return symbols.setdefault(name, dims) == dims
