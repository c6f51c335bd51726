"""Rows of a padded image in scratch memory, with views that are made once: each thread pads what its windows meet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ....ops.window import Pads
from ...common.layout import FEW_CHANNELS
from ...common.tape import Tape, replay

__all__ = ["PaddedRows"]


class PaddedRows(NamedTuple):
    """Some rows of a padded image ``[row, ..., C]``."""

    array: Array
    source: slice
    """Which rows of the image they have."""
    inside: Array
    """Where these are, in the middle of their padding."""
    clear: Tape
    """Fills the padding with zeros."""

    @classmethod
    def of(cls, rows: slice, length: int, pads: Pads, array: Array) -> PaddedRows:
        """Return the rows of a padded image, laid out in an array.

        Args:
            rows: which of the padded ones.
            length: how many rows the image has without padding.
            pads: the padding of the whole image.
            array: memory for the rows.
        """
        (begin, _), *others = pads
        count = rows.stop - rows.start
        start = min(max(rows.start - begin, 0), length)
        stop = max(min(rows.stop - begin, length), start)
        before = min(max(begin - rows.start, 0), count)
        own = ((before, count - before - (stop - start)), *others)
        inside, edges = _places(own, array.shape)
        return cls(array, slice(start, stop), array[inside], [(array[edge].fill, (0,)) for edge in edges])

    def fill(self, image: Array) -> None:
        """Copy the rows of an image ``[row, ..., C]``, and clear the padding.

        The long call comes first: another thread gets the interpreter meanwhile.
        """
        rows, inside = image[self.source], self.inside
        if rows.shape[-1] <= FEW_CHANNELS and not rows.flags.c_contiguous:
            for channel in range(rows.shape[-1]):
                inside[..., channel] = rows[..., channel]
        else:
            np.copyto(inside, rows)
        replay(self.clear)


def _places(pads: Pads, padded: tuple[int, ...]) -> tuple[tuple[slice, ...], list[tuple[slice, ...]]]:
    """Return where the data are in padded data, and where the edges."""
    inside, edges = tuple(slice(b, n - e) for (b, e), n in zip(pads, padded, strict=False)), []
    for axis, (begin, end) in enumerate(pads):
        edges += [(*inside[:axis], slice(begin))] if begin else []
        edges += [(*inside[:axis], slice(padded[axis] - end, None))] if end else []
    return inside, edges
