"""Operations that the specification defines in terms of others. Sums may be taken in another order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...io.reader.replacing import Tensor
from ...ir.element import ElementType
from .place import Lowered, Place, lowers

__all__: list[str] = []


@lowers("GroupNormalization-12")
def group_normalization(place: Place, op: Any) -> Lowered:
    """Normalize groups with MVN, then scale and shift each channel."""
    rank = place.rank()
    _, channels, *rest = place.values[0].shape
    if not channels.is_static:
        place.refuse("the number of its channels is dynamic")
    data, scale, bias = (place.wide(x) for x in place.inputs)
    lengths = [length.min for length in rest] if all(length.is_static for length in rest) else [-1]
    each = [channels.min // op.num_groups, *lengths] if lengths != [-1] else lengths
    grouped = place.reshape(data, [0, op.num_groups, *each])
    axes = place.constant(np.arange(2, 2 + len(each)), name="axes")
    normal = place.op("MVN-6", grouped, axes, normalize_variance=True, eps=op.epsilon, eps_mode="inside_sqrt")
    shape = place.op("ShapeOf-3", data, output_type=ElementType.i64)
    normal = place.op("Reshape-1", normal, shape, special_zero=False)
    factor, shift = (place.reshape(x, [1, -1, *[1] * (rank - 2)]) for x in (scale, bias))
    result = place.op("Add-1", place.op("Multiply-1", normal, factor), shift)
    return place.convert(result, place.inputs[0].element)


@lowers("ScaledDotProductAttention-13")
def attention(place: Place, op: Any) -> Lowered:
    """Compute scores, mask them, apply SoftMax and multiply by the values."""
    last = _rank_of_scores(place, op) - 1
    query, key, value = (place.wide(x) for x in place.inputs[:3])
    scores = place.op("MatMul-1", query, key, transpose_a=False, transpose_b=True)
    scores = place.op("Multiply-1", scores, _factor(place, query))
    if op.causal:
        scores = place.op("Add-1", scores, _causal_mask(place, scores.element))
    elif len(place.inputs) > 3 and place.rank(3) > 0:
        scores = place.op("Add-1", scores, _mask(place, scores.element))
    weights = place.op("SoftMax-1", scores, axis=last)
    result = place.op("MatMul-1", weights, value, transpose_a=False, transpose_b=False)
    return place.convert(result, place.inputs[0].element)


def _rank_of_scores(place: Place, op: Any) -> int:
    rank = op.infer_types(*place.values)[0].shape.rank
    if rank is None:
        place.refuse("the rank of its input is dynamic")
    return int(rank)


def _factor(place: Place, query: Tensor) -> Tensor:
    if len(place.inputs) > 4:
        return place.op("Squeeze-1", place.convert(place.inputs[4], query.element))
    features = place.values[0].shape[-1]
    if not features.is_static or features == 0:
        place.refuse("the number of features of its queries is dynamic")
    return place.constant(1 / math.sqrt(features.min), query.element)


def _causal_mask(place: Place, element: ElementType) -> Tensor:
    """Return a mask that hides keys after the query."""
    zero, one = place.constant(0), place.constant(1)
    queries, keys = (
        place.op(
            "Range-4",
            zero,
            place.op("Squeeze-1", place.lengths(place.inputs[index], [place.rank(index) - 2])),
            one,
            output_type=ElementType.i64,
        )
        for index in (0, 1)
    )
    later = place.op("Greater-1", keys, place.reshape(queries, [-1, 1]))
    return place.op("Select-1", later, place.constant(-np.inf, element), place.constant(0, element))


def _mask(place: Place, element: ElementType) -> Tensor:
    mask = place.inputs[3]
    if mask.element is not ElementType.boolean:
        return place.convert(mask, element)
    return place.op("Select-1", mask, place.constant(0, element), place.constant(-np.inf, element))
