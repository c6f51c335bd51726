"""Work on large arrays block by block: temporaries stay small, and the deadline is checked between blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .._util.arrays import Array, DType
from .._util.deadline import check_periodically

__all__ = ["BLOCK", "blocks", "by_blocks", "filled"]

BLOCK = 1 << 16
"""Elements of a block."""


def blocks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Yield the elements of arrays of one shape in flat blocks, in C order. A block is valid until the next one.

    >>> import numpy as np
    >>> from ir_runtime.ir.blocks import BLOCK, blocks
    >>> [block.shape for (block,) in blocks(np.zeros((2, BLOCK)))]
    [(65536,), (65536,)]

    Raises:
        LimitError: when the time is up.
    """
    if all(array.flags.c_contiguous for array in arrays):  # then each block is a view, of whatever type
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
    """Apply an elementwise function to arrays of one shape, block by block.

    >>> import numpy as np
    >>> from ir_runtime.ir.blocks import by_blocks
    >>> by_blocks(np.add, np.dtype(np.float32), np.float32([[1], [2]]), np.float32([[3], [4]]))
    array([[4.],
           [6.]], dtype=float32)

    Args:
        change: takes a flat block of each array, and returns one of the same length.
        dtype: the element type of the result.
        arrays: at least one.
    """
    result = np.empty(arrays[0].shape, dtype)
    flat, start = result.reshape(-1), 0
    for parts in blocks(*arrays):
        flat[start : start + parts[0].size] = change(*parts)
        start += parts[0].size
    return result


def filled(shape: tuple[int, ...], dtype: DType, draw: Callable[[int], Array]) -> Array:
    """Fill an array with numbers drawn block by block.

    >>> import numpy as np
    >>> from ir_runtime.ir.blocks import filled
    >>> filled((2, 2), np.dtype(np.int8), np.zeros)
    array([[0, 0],
           [0, 0]], dtype=int8)

    Args:
        shape: the shape of the array.
        dtype: its element type.
        draw: returns so many numbers.
    """
    result = np.empty(shape, dtype)
    flat = result.reshape(-1)
    for start in check_periodically(range(0, flat.size, BLOCK), 1):
        part = flat[start : start + BLOCK]
        part[...] = draw(part.size)
    return result
