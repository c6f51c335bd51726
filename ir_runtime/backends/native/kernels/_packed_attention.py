"""Tasks of caches in 8 bits: packing and unpacking rows, and attention of few queries to packed keys and values."""

from __future__ import annotations

from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Instruction, device
from ..codegen.memory import load_f32
from ..threading.task import Task, each_chunk, load_args
from ._attention import decode_task
from ._packed_rows import add_weighted_packed, dot_packed, pack_row, unpack_row
from ._reductions import sum_row

__all__ = ["DECODE_PACKED", "PACK", "UNPACK", "RowsJob"]


class RowsJob(Descriptor):
    """The job of `PACK` and `UNPACK`: rows, their width, bytes of one that is read and written, and rows of a unit."""

    rows: i64
    width: i64
    source_stride: i64
    target_stride: i64
    chunk: i64


def _rows_task(name: str, convert: Instruction) -> Task:
    """Return the task that converts rows; a unit is a chunk of them."""

    def rows_task(call: int) -> None:
        address, out, x, _, _, _ = load_args(call)
        job = RowsJob.at(address)
        rows, chunk = job.rows, job.chunk
        source, target = job.source_stride, job.target_stride
        for start, end in each_chunk(call, rows, chunk):
            for row in range(start, end):
                convert(x + source * row, job.width, out + target * row)

    rows_task.__qualname__ = name
    return Task(rows_task)


@device
def _sum(query: int, width: int, place: int) -> None:
    sum_row(query, width, place)


@device
def _dot(query: int, kept: int, keys: int, stride: int, count: int, width: int, out: int) -> None:
    dot_packed(query, keys, stride, count, width, out, load_f32(kept, 0))


PACK, UNPACK = _rows_task("_pack_rows", pack_row), _rows_task("_unpack_rows", unpack_row)
DECODE_PACKED = decode_task("_decode_packed", _sum, _dot, add_weighted_packed)
