"""Block-by-block processing of large arrays: temporaries stay small, and the deadline is checked between blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .._util.arrays import Array, DType
from .._util.deadline import check_periodically

__all__ = ["BLOCK", "blocks", "by_blocks", "filled"]

BLOCK = 1 << 16
"""Elements per block."""


def blocks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Yield 1-D blocks of arrays of equal shape, in C order. Each block is valid only until the next is requested.

    >>> import numpy as np
    >>> from ir_runtime.ir.blocks import BLOCK, blocks
    >>> [block.shape for (block,) in blocks(np.zeros((2, BLOCK)))]
    [(65536,), (65536,)]

    Raises:
        LimitError: if the deadline has passed.
    """
    if all(array.flags.c_contiguous for array in arrays):  # then each block is a view, for any dtype
        flat = [array.reshape(-1) for array in arrays]
        for start in check_periodically(range(0, flat[0].size, BLOCK), 1):
            yield tuple(array[start : start + BLOCK] for array in flat)
        return
    with np.nditer(
        arrays,
        flags=("external_loop", "buffered", "zerosize_ok", "refs_ok"),
        op_flags=[("readonly",)] * len(arrays),
        order="C",
        buffersize=BLOCK,
    ) as iterator:
        for parts in check_periodically(iterator, 1):
            yield parts if isinstance(parts, tuple) else (parts,)


def by_blocks(change: Callable[..., Array], dtype: DType, *arrays: Array) -> Array:
    """Apply an elementwise function to arrays of equal shape, block by block.

    >>> import numpy as np
    >>> from ir_runtime.ir.blocks import by_blocks
    >>> by_blocks(np.add, np.dtype(np.float32), np.float32([[1], [2]]), np.float32([[3], [4]]))
    array([[4.],
           [6.]], dtype=float32)

    Args:
        change: maps a 1-D block of each array to a block of the same length.
        dtype: the dtype of the result.
        arrays: one or more operands.
    """
    result = np.empty(arrays[0].shape, dtype)
    flat, start = result.reshape(-1), 0
    for parts in blocks(*arrays):
        flat[start : start + parts[0].size] = change(*parts)
        start += parts[0].size
    return result


def filled(shape: tuple[int, ...], dtype: DType, draw: Callable[[int], Array]) -> Array:
    """Return a new array filled block by block with generated elements.

    >>> import numpy as np
    >>> from ir_runtime.ir.blocks import filled
    >>> filled((2, 2), np.dtype(np.int8), np.zeros)
    array([[0, 0],
           [0, 0]], dtype=int8)

    Args:
        shape: the shape of the array.
        dtype: its dtype.
        draw: returns a given number of elements.
    """
    result = np.empty(shape, dtype)
    flat = result.reshape(-1)
    for start in check_periodically(range(0, flat.size, BLOCK), 1):
        part = flat[start : start + BLOCK]
        part[...] = draw(part.size)
    return result
