"""Element-wise kernels of any element type, with up to three broadcast operands, computed row by row in a loop nest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from ...._util.arrays import DType
from ....ir.tensor import Array
from ... import Kernel
from ...common.kept_memory import empty
from ...core.kernel import any_lengths
from ..codegen.descriptor import i64
from ..codegen.language import Device, device
from ..threading.capture import replayed
from ..threading.parallel import is_recording, parallel_for, threads_for, was_refused
from ..threading.task import UNUSED, Task
from ._copy import COPY, contiguous
from ._nest import (
    OUTER,
    Addresses,
    NestJob,
    Place,
    align_strides,
    collapse_axes,
    contiguous_strides,
    memory_order,
    nest_fields,
    nest_task,
    operand_axes,
    row_stride,
)

__all__ = ["BroadcastJob", "broadcast_kernel", "broadcast_task"]

_Shape: TypeAlias = tuple[int, ...]
_WORD = 4


class BroadcastJob(NestJob):
    """Parameters of a `broadcast_task`.

    ``code`` selects the operation; ``size`` is the size of a result element in bytes. Bit ``i`` of ``singles``
    is set if operand ``i`` has one element per row. ``refused`` counts elements that the task cannot compute.
    """

    size: i64
    code: i64
    singles: i64
    refused: i64


def broadcast_task(name: str, compute: Device[..., None]) -> Task:
    """Return a task that calls ``compute(job, out, a, b, c, count)`` for each row of each block of a loop nest.

    ``out`` and ``a`` to ``c`` are the addresses of the row in the result and the operands, ``count`` its elements.
    """

    def compute_block(
        job: BroadcastJob, operands: Addresses, place: Place, rows: int, columns: int, room: int
    ) -> None:
        out, a, b, c = operands
        for row in range(rows):
            compute(
                job, out + row * row_stride(job, 0), a + row * row_stride(job, 1), b + row * row_stride(job, 2),
                c + row * row_stride(job, 3), columns,
            )  # fmt: skip

    return nest_task(name, device(compute_block))


class _Layout(NamedTuple):
    """The axis orders of the operands and the result, and the `BroadcastJob` that iterates over them."""

    shape: _Shape
    """The shape of the result, with its axes in memory order."""
    orders: list[_Shape] | None
    """The memory order of each operand's axes; ``None`` if all operands are already contiguous in this order."""
    back: _Shape | None
    """The permutation that restores the axis order of the result; ``None`` for the identity."""
    words: Array
    """The job as i64 words."""


def broadcast_kernel(
    task: Task,
    dtype: DType,
    evaluate: Callable[..., Array],
    code: int = 0,
    min_size: int = 0,
    steps: int = 1,
    operands: Callable[..., Sequence[Array]] | None = None,
    refuses: bool = False,
) -> Kernel:
    """Return a kernel that runs a `broadcast_task` on NumPy-broadcast operands, or falls back to ``evaluate``.

    Args:
        task: a `broadcast_task`.
        dtype: the dtype of the result.
        evaluate: computes the result if there are fewer than ``min_size`` elements outside a recorded run, if
            operands do not broadcast or need too many axes, or if the task refuses the data.
        code: the ``code`` of the job.
        min_size: the number of elements from which the task is faster than ``evaluate``.
        steps: the approximate time per element, in eighths of a nanosecond.
        operands: maps the kernel's inputs to the task's operands; ``None`` for the identity.
        refuses: whether the task counts elements that it cannot compute.
    """
    task.prepare()
    COPY.prepare()
    width = dtype.itemsize

    def kernel(*arrays: Array) -> Array:
        if min_size and max([x.size for x in arrays]) < min_size and not is_recording():
            return evaluate(*arrays)
        sources = arrays if operands is None else operands(*arrays)
        layout = _layout(width, code, *[(x.shape, x.strides, x.itemsize) for x in sources])
        if layout is None:
            return evaluate(*arrays)
        out = empty(layout.shape, dtype)
        words = layout.words.copy() if refuses else layout.words
        if layout.orders is not None:
            sources = [
                contiguous(x.transpose(order)) for x, order in zip(sources, layout.orders, strict=True)
            ]
        a, b, c = (*sources, UNUSED, UNUSED)[:3]
        parallel_for(task.address, words, out, a, b, c, threads_for(steps=out.size * steps // 8))
        if refuses and was_refused(words, BroadcastJob.refused):
            return evaluate(*arrays)
        return out if layout.back is None else out.transpose(layout.back)

    return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))


@lru_cache(maxsize=256)
def _layout(size: int, code: int, *operands: tuple[_Shape, _Shape, int]) -> _Layout | None:
    """Plan the iteration over ``operands`` (shape, strides, element size) and a result of ``size``-byte elements.

    Returns ``None`` if the result is empty, if the operands do not broadcast under NumPy's rules, or if they
    need more axes than a loop nest has.
    """
    shapes = [shape for shape, _, _ in operands]
    try:
        whole = np.broadcast_shapes(*shapes)
    except ValueError:
        return None
    if not math.prod(whole):
        return None
    order = next(
        (
            memory_order(_array(*operand))
            for operand, shape in zip(operands, shapes, strict=True)
            if shape == whole
        ),
        tuple(range(len(whole))),
    )
    orders = [operand_axes(shape, order) for shape in shapes]
    aligned = [
        align_strides(shape, contiguous_strides(shape, own), whole, order)
        for shape, own in zip(shapes, orders, strict=True)
    ]
    lengths = tuple(whole[axis] for axis in order)
    grouped = collapse_axes(lengths, [strides for strides in aligned if strides is not None], OUTER + 2)
    if grouped is None:
        return None
    lengths, steps = grouped
    in_bytes = [
        tuple(n // _WORD * width for n in step)
        for step, width in zip(
            (contiguous_strides(lengths), *steps), (size, *(n for _, _, n in operands)), strict=True
        )
    ]
    fields = nest_fields(list(zip(lengths, *in_bytes, strict=True))[::-1])
    if fields is None:
        return None
    singles = sum(1 << index for index, step in enumerate(in_bytes[1:]) if not step[-1])
    job = BroadcastJob.fill(**fields, room=0, size=size, code=code, singles=singles, refused=0)
    back = tuple(np.argsort(order).tolist())
    is_ready = all(
        _array(*operand).transpose(own).flags.c_contiguous
        for operand, own in zip(operands, orders, strict=True)
    )
    return _Layout(
        tuple(whole[axis] for axis in order),
        None if is_ready else orders,
        None if back == tuple(range(len(back))) else back,
        job.view(np.int64),
    )


def _array(shape: _Shape, strides: _Shape, size: int) -> Array:
    """Return a one-element buffer viewed with a shape and strides; only its layout may be used."""
    return np.lib.stride_tricks.as_strided(np.empty(1, f"V{size}"), shape, strides)
