"""Element-wise operations of any type on up to three operands, row by row, of which some are broadcast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np

from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Device
from ..codegen.memory import load_i64
from ..threading.task import Task, each_unit, load_args
from ._elementwise_axes import aligned_strides, collapse_axes, contiguous_strides, operand_axes, stored
from .contiguous import contiguous

__all__ = ["BroadcastJob", "Layout", "broadcast_layout", "broadcast_task"]

OPERANDS = 3
# Elements of a block, which is a unit.
BLOCK = 4096

_Strides: TypeAlias = tuple[tuple[int, ...], ...]


class BroadcastJob(Descriptor):
    """The job of a `broadcast_task`.

    ``code`` says what is computed, ``size`` how many bytes an element of the result has. ``singles`` has a bit for each operand
    that is one number for a row. Strides are in bytes: of images, rows and elements of each operand. ``refused`` counts rows.
    """

    blocks: i64
    height: i64
    width: i64
    block_height: i64
    block_width: i64
    size: i64
    code: i64
    singles: i64
    strides: Annotated[int, (np.int64, (3 * OPERANDS,))]
    refused: i64


def broadcast_task(name: str, compute: Device[..., None]) -> Task:
    """Return a task that calls ``compute(job, out, a, b, c, count)`` for each row of a block."""

    def run(call: int) -> None:
        address, out, a, b, c, _ = load_args(call)
        job = BroadcastJob.at(address)
        height, width = job.height, job.width
        tall, wide = job.block_height, job.block_width
        size, strides = job.size, job + 8 * BroadcastJob.strides
        across = (width + wide - 1) // wide
        per_image = (height + tall - 1) // tall * across
        blocks = job.blocks
        for index in each_unit(call, blocks):
            image = index // per_image
            rest = index - image * per_image
            top, column = rest // across * tall, rest % across * wide
            for row in range(top, min(top + tall, height)):
                x = (
                    a
                    + image * load_i64(strides, 0)
                    + row * load_i64(strides, 1)
                    + column * load_i64(strides, 2)
                )
                y = (
                    b
                    + image * load_i64(strides, 3)
                    + row * load_i64(strides, 4)
                    + column * load_i64(strides, 5)
                )
                z = (
                    c
                    + image * load_i64(strides, 6)
                    + row * load_i64(strides, 7)
                    + column * load_i64(strides, 8)
                )
                place = out + size * ((image * height + row) * width + column)
                compute(job, place, x, y, z, min(wide, width - column))

    run.__qualname__ = name
    return Task(run)


class Layout(NamedTuple):
    """How operands are stored: in which order their axes are, and the fields of the job."""

    shape: tuple[int, ...]
    """The shape of the result, its axes in memory order."""
    orders: list[tuple[int, ...]]
    back: tuple[int, ...]
    fields: dict[str, int | tuple[int, ...]]

    def operands(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the operands with their axes in memory order."""
        return [contiguous(x.transpose(order)) for x, order in zip(arrays, self.orders, strict=True)]


def broadcast_layout(arrays: Sequence[Array]) -> Layout | None:
    """Return the layout of operands that broadcast as in NumPy, one of which has the shape of the result; else ``None``.

    Also ``None`` if the result is empty, or if operands take turns to broadcast more than three axes.
    """
    return _layout(*((x.shape, x.strides, x.itemsize) for x in arrays))


@lru_cache(maxsize=256)
def _layout(*found: tuple[tuple[int, ...], tuple[int, ...], int]) -> Layout | None:
    shapes = [shape for shape, _, _ in found]
    whole = max(shapes, key=lambda shape: (len(shape), math.prod(shape)))
    if not math.prod(whole):
        return None
    _, strides, size = found[shapes.index(whole)]
    order = stored(_array(whole, strides, size))
    orders = [operand_axes(shape, order) for shape in shapes]
    aligned = [
        aligned_strides(shape, contiguous_strides(shape, own), whole, order)
        for shape, own in zip(shapes, orders, strict=True)
    ]
    if any(each is None for each in aligned):
        return None
    grouped = collapse_axes(
        tuple(whole[axis] for axis in order), [each for each in aligned if each is not None]
    )
    if grouped is None:
        return None
    (images, height, width), steps = grouped
    wide = min(width, BLOCK)
    tall = min(max(BLOCK // wide, 1), height)
    in_bytes = [tuple(n // 4 * size for n in step) for step, (_, _, size) in zip(steps, found, strict=True)]
    fields: dict[str, int | tuple[int, ...]] = {
        "blocks": images * -(-height // tall) * -(-width // wide), "height": height, "width": width,
        "block_height": tall, "block_width": wide,
        "singles": sum(1 << index for index, step in enumerate(in_bytes) if not step[2]),
        "strides": (*(n for step in in_bytes for n in step), *[0] * (3 * (OPERANDS - len(found)))),
    }  # fmt: skip
    return Layout(tuple(whole[axis] for axis in order), orders, tuple(np.argsort(order).tolist()), fields)


def _array(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> Array:
    """Return an array of this layout; its contents do not matter."""
    return np.lib.stride_tricks.as_strided(np.empty(1, f"V{size}"), shape, strides)
