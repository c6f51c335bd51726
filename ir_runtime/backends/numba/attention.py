"""Attention: scores of queries and keys, softmax, and the mean of the values, without the scores ever being whole."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence

import numpy as np

from ...ir.graph import Layer, Port
from ...ir.tensor import Array, Value
from ...ops.sequence.attention import ScaledDotProductAttention
from .. import Kernel, Look, Match
from ..numpy._memory import is_f32
from ..numpy.attention import fits
from ._attention import (
    ATTEND,
    BATCH,
    BLOCK,
    CAUSAL,
    DECODE,
    FACTOR,
    MASK,
    OUT,
    SCRATCH,
    VALUES,
    WORDS,
    ZEROS,
    K,
    Q,
    V,
)  # fmt: skip
from ._backend import backend
from ._threads import share, threads
from ._tile import WIDE
from ._vectors import LANES
from ._work import NOTHING

__all__ = ["attend"]

# Scores of a block; with keys and values they fit the second cache.
SCORES = 1 << 16
# At most so many queries are answered without packing keys.
FEW = 4
# Fewer multiplications than this are not worth a second thread.
WORTH = 1 << 16
_ZEROS = np.zeros(WIDE * LANES, np.float32)


@backend.accelerates(ScaledDotProductAttention)
def attention(
    op: ScaledDotProductAttention, query: Value, key: Value, value: Value, *others: Value
) -> Kernel | None:
    """What fits the numpy backend's kernel, too."""
    if not fits(query, key, value, *others):
        return None

    def kernel(q: Array, k: Array, v: Array, *rest: Array) -> Array:
        mask = None if op.causal or not rest or rest[0].ndim == 0 else rest[0]
        batch = np.broadcast_shapes(q.shape[:2], k.shape[:2], v.shape[:2])
        full = (*batch, q.shape[2], k.shape[2])
        if mask is not None and np.broadcast_shapes(mask.shape, full) != full:
            return op.evaluate(q, k, v, *rest)  # rare: a mask that has more than the scores
        factor = rest[1].item() if len(rest) > 1 else 1 / math.sqrt(q.shape[3]) if q.shape[3] else math.inf
        q, k, v = (
            x if x.shape[:2] == batch else np.broadcast_to(x, (*batch, *x.shape[2:])) for x in (q, k, v)
        )
        if not q.size > 0 or not v.size > 0:
            return op.evaluate(q, k, v, *rest)
        return attend(q, k, v, mask, factor, op.causal)

    return kernel


@backend.recognises(ScaledDotProductAttention)
def shared_heads(look: Look, layer: Layer) -> Match | None:
    """Attention whose keys and values are repeated for every head of the queries that shares them.

    ``Unsqueeze → Broadcast → Reshape`` of both is not done: the kernel takes them as they were. That the
    shapes are those of repeated heads is looked at in every run.
    """
    query, key, value, *others = look.sources(layer)
    sources = [_repeated(look, port) for port in (key, value)]
    first, second = sources
    if first is None or second is None or not isinstance(layer.op, ScaledDotProductAttention):
        return None
    plain = attention(layer.op, *(look.seen(port) for port in look.sources(layer)))
    if plain is None:
        return None
    layers, ports = (*first[0], *second[0], layer), (*first[1], *second[1])
    kernel = _Shared(layer.op, plain, first[0], second[0])
    return Match(layers, (query, *ports, *others), kernel)


_Steps = tuple[Layer, Layer, Layer]


def _repeated(look: Look, port: Port) -> tuple[_Steps, tuple[Port, ...]] | None:
    """Layers that repeat heads, and what they read: the heads, the axis, the shape, and the shape in the end."""
    joined = look.made_by(port, "Reshape")
    wide = None if joined is None else look.made_by(look.sources(joined)[0], "Broadcast")
    if joined is None or wide is None or len(look.sources(wide)) != 2:
        return None
    apart = look.made_by(look.sources(wide)[0], "Unsqueeze")
    if apart is None or look.seen(look.sources(apart)[1]).ints() not in ((2,), (-3,)):
        return None
    source = look.sources(apart)[0]
    if look.seen(source).shape.rank != 4 or not is_f32(look.seen(source)):
        return None
    ports = (source, look.sources(apart)[1], look.sources(wide)[1], look.sources(joined)[1])
    return (apart, wide, joined), ports


class _Shared:
    """Attention with heads that several heads of the queries share."""

    def __init__(self, op: ScaledDotProductAttention, plain: Kernel, *steps: _Steps) -> None:
        self._op, self._plain, self._steps = op, plain, steps
        self._copies = [bool(getattr(joined.op, "special_zero", False)) for _, _, joined in steps]

    def __call__(self, q: Array, *arrays: Array) -> Array:
        k, _, wide, joined, v, _, others_wide, others_joined, *rest = arrays
        if (
            k.shape[1]
            and q.shape[1] % k.shape[1] == 0
            and q.shape[0] == k.shape[0] == v.shape[0]
            and q.size
            and v.size
        ):
            times = q.shape[1] // k.shape[1]
            mask = None if self._op.causal or not rest or rest[0].ndim == 0 else rest[0]
            scores = (*q.shape[:3], k.shape[2])
            fits = _repeats(k.shape, times, wide, joined, self._copies[0])
            fits = fits and _repeats(v.shape, times, others_wide, others_joined, self._copies[1])
            if fits and v.shape[1] == k.shape[1] and v.shape[2] == k.shape[2] and _within(mask, scores):
                factor = rest[1].item() if len(rest) > 1 else 1 / math.sqrt(q.shape[3])
                return attend(q, k, v, mask, factor, self._op.causal)
        keys, values = self._made(0, arrays[:4]), self._made(1, arrays[4:8])
        return np.asarray(self._plain(q, keys, values, *rest))

    def _made(self, which: int, arrays: Sequence[Array]) -> Array:
        """The heads repeated after all, for shapes that are unlike those of heads."""
        found, axis, wide, joined = arrays
        for step, other in zip(self._steps[which], (axis, wide, joined), strict=True):
            assert step.op is not None
            found = step.op.evaluate(found, other)
        return found


def _within(mask: Array | None, scores: tuple[int, ...]) -> bool:
    return mask is None or np.broadcast_shapes(mask.shape, scores) == scores


def _repeats(shape: tuple[int, ...], times: int, wide: Array, joined: Array, copies: bool) -> bool:
    """Whether heads ``[batch, heads, length, width]`` become so many more, and nothing else."""
    batch, heads, length, width = shape
    target, end = wide.tolist(), joined.tolist()
    if len(target) != 5 or len(end) != 4 or 0 in shape or (end[0] == 0 and not copies):
        return False
    full = (batch, heads, times, length, width)
    if target[2] != times or any(n not in (1, m) for n, m in zip(target, full, strict=True)):
        return False
    return (
        end[0] in (0, -1, batch) and end[1] in (-1, heads * times) and end[3] in (-1, width)
        and (end[2] in (-1, length)) and end.count(-1) <= 1
    )  # fmt: skip


def attend(q: Array, k: Array, v: Array, mask: Array | None, factor: float, causal: bool) -> Array:
    """The mean of values ``[batch, shared heads, keys, values]`` for queries ``[batch, heads, queries, width]``.

    Heads are a multiple of the shared ones. The result lies so that the heads of a token are side by side.
    """
    batch, heads, rows, width = q.shape
    groups, keys, values = k.shape[1], k.shape[2], v.shape[3]
    out = np.empty((batch, rows, heads, values), np.float32)
    q, k, v = map(_whole_rows, (q, k, v))
    job = np.zeros(WORDS, np.int64)
    job[BATCH : VALUES + 1] = batch, heads, heads // groups, rows, keys, width, values
    for place, array in ((Q, q), (K, k), (V, v), (OUT, out.transpose(0, 2, 1, 3))):
        job[place : place + 4] = array.ctypes.data, *array.strides[:3]
    if mask is not None:
        mask = _added(mask)
        if mask.shape[-1] != keys:
            mask = np.repeat(mask, keys, -1)
        added = np.broadcast_to(mask, (batch, heads, rows, keys))
        job[MASK : MASK + 4] = added.ctypes.data, *added.strides[:3]
    job[CAUSAL], job[ZEROS] = causal, _ZEROS.ctypes.data
    job.view(np.float32)[2 * FACTOR] = factor
    lines, few = -(-keys // LANES) * LANES, rows <= FEW
    worth = batch * heads * rows * keys * (width + values) >= WORTH
    if few:
        units, size = batch * groups, lines * heads // groups * rows
    else:
        block = _block(rows, keys, batch * heads)
        job[BLOCK] = block
        units = batch * heads * -(-rows // block)
        size = block * lines + lines * width + (-(-values // LANES) * LANES) * keys + 4 * block
    size = -(-(size + 32) // 16) * 16
    job[SCRATCH] = 4 * size
    count = min(threads(), units) if worth else 1
    scratch = np.empty(count * size, np.float32)
    share((DECODE if few else ATTEND).address, job, out.reshape(-1), scratch, NOTHING, NOTHING, count)
    return out.transpose(0, 2, 1, 3)


def _block(rows: int, keys: int, heads: int) -> int:
    """Queries at a time: what the cache has room for, and no fewer parts than threads."""
    most = max(SCORES // keys, 16)
    parts = -(-rows // most)
    if heads % threads():
        parts = max(parts, min(threads(), -(-rows // 32)))
    return -(-rows // parts)


def _whole_rows(x: Array) -> Array:
    """The same with numbers of a row side by side."""
    return x if x.strides[-1] == x.itemsize or x.shape[-1] == 1 else np.ascontiguousarray(x)


_last: tuple[weakref.ref[Array], Array] | None = None


def _added(mask: Array) -> Array:
    """A mask as what is added to scores; that of truth values is kept for the next layer, which often has the same."""
    global _last
    if mask.dtype != np.bool_:
        return _whole_rows(mask)
    last = _last
    if last is not None and last[0]() is mask:
        return last[1]
    added = np.where(mask, np.float32(0), np.float32(-np.inf))
    _last = weakref.ref(mask), added
    return added
