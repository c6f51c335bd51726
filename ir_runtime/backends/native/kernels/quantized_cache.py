"""Caches of keys and values in 8 bits, and attention to them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from ....ir.graph import Layer
from ....ir.quantized_cache import PREFIX, unpacked_shape
from ....ir.tensor import Array
from ... import MatchContext
from ...common.kept_memory import empty
from ...common.sdpa import Attend, Factor
from ...core.kv_cache import CachedAttention, CacheKernels
from ...patterns.cached_attention import match_cached_attention
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task
from ._packed_attention import DECODE_PACKED, PACK, UNPACK, RowsJob
from .contiguous import contiguous
from .sdpa import (
    MAX_DECODE_ROWS,
    SCALE,
    attention,
    decode,
    followed,
    grouped_attention,
    shared_contents,
)

__all__ = ["KERNELS", "pack", "packed_attention", "unpack"]

# Numbers of a unit.
CHUNK = 1 << 13


def pack(x: Array) -> Array:
    """Pack rows of f32, as `ir.quantized_cache.pack_rows`."""
    return _each_row(PACK, x, empty((*x.shape[:-1], x.shape[-1] + PREFIX), np.uint8), x.shape[-1])


def unpack(x: Array) -> Array:
    """Unpack rows to f32, as `ir.quantized_cache.unpack_rows`."""
    return _each_row(UNPACK, x, empty(unpacked_shape(x), np.float32), x.shape[-1] - PREFIX)


def _each_row(task: Task, x: Array, out: Array, width: int) -> Array:
    rows = math.prod(x.shape[:-1])
    if not rows * width:
        return out
    job = RowsJob.fill(
        rows=rows, width=width, source_stride=x.shape[-1] * x.itemsize, target_stride=out.shape[-1] * out.itemsize,
        chunk=max(CHUNK // width, 1),
    )  # fmt: skip
    count = threads_for(moved=4 * rows * width)
    parallel_for(task.address, job, out.reshape(-1), contiguous(x).reshape(-1), UNUSED, UNUSED, count)
    return out


def packed_attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    factor: Factor,
    causal: bool,
    attend: Attend = grouped_attention,
) -> Array:
    """Return the attention of queries to packed keys and values; ``attend`` computes that of many to unpacked ones."""
    if q.shape[2] > MAX_DECODE_ROWS:
        return attend(q, unpack(k), unpack(v), mask, factor, causal)
    return decode(DECODE_PACKED, q, k, v, mask, factor, causal, v.shape[3] - PREFIX)


def cached_attention(context: MatchContext, layer: Layer) -> CachedAttention | None:
    """Match attention whose keys and values may be packed."""
    attend, _ = followed()
    found = match_cached_attention(
        context, layer, attention, attend, partial(packed_attention, attend=attend)
    )
    if found is None:
        return None
    contents = [SCALE] if len(found.layers) == 1 else shared_contents(found.reads)
    return replace(found, kernel=replace(found.kernel, replay=replayed(contents)))


KERNELS = CacheKernels(pack, cached_attention)
