"""Scaled dot-product attention."""

from __future__ import annotations

import math

import numpy as np

from ...codes import Code
from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.formula import Count, product
from ...ir.operation import Operands
from ...ir.shape import PartialShape
from ...ir.signature import FLOATS
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, Element, Input, Op, Output, attr, op
from .._lengths import broadcast_dims, broadcast_shapes
from ..kernels.matmul import accumulator_dtype

T_MASK = Element("T_MASK", (*FLOATS, ElementType.boolean), "the type of query, or boolean")


@op("ScaledDotProductAttention-13", spec="sequence/scaled-dot-product-attention")
class ScaledDotProductAttention(Op):
    """Mean of ``value`` weighted by the softmax, over keys, of ``query @ key.T * scale + attention_mask``.

    The query axis of the mask may broadcast, as in OpenVINO; the specification does not say.
    """

    decisions = (
        "without keys the result is 0, the sum of nothing; the page does not say, and OpenVINO's plugin leaves the memory as it was",
        "the axis of queries of the mask may have length 1, as in OpenVINO; the page does not say so",
    )

    bounded = True
    flops_per_element = 0

    query = Input(T_FLOAT, "[N, ..., L, E]")
    key = Input(T_FLOAT, "[N, ..., S, E]; batch axes broadcast")
    value = Input(T_FLOAT, "[N, ..., S, Ev]")
    attention_mask = Input(
        T_MASK,
        "[..., L or 1, S or 1]: numbers to add to the scores, or booleans that tell whether a query attends to a key; a "
        "scalar masks nothing; ignored if causal is true",
        optional=True,
    )
    scale = Input(T_FLOAT, "factor of the scores, one number; 1 / sqrt(E) if absent", optional=True)
    output = Output(T_FLOAT, "[N, ..., L, Ev]")

    causal: bool = attr(default_with_warning="false", doc="whether query i attends to keys 0 to i only")

    def infer(
        self,
        query: Value,
        key: Value,
        value: Value,
        attention_mask: Value | None = None,
        scale: Value | None = None,
    ) -> PartialShape:
        if scale is not None and not (scale.count.contains(1) and scale.shape.rank in (None, 0, 1)):
            raise InferenceError(
                f"scale must be one number, found {scale.shape}", clause="scale is one number"
            )
        for name, operand in (("query", query), ("key", key), ("value", value)):
            if operand.shape.rank is not None and operand.shape.rank < 3:
                raise InferenceError(
                    f"{name} must have rank 3 or more, [batch, ..., length, features], found {operand.shape}",
                    clause=f"{name} has at least 3 axes, [batch, ..., length, features]",
                )
        mask = None if self.causal else _mask_shape(attention_mask, query.element)
        if query.shape.rank is None or key.shape.rank is None:
            return PartialShape.dynamic()
        batch, rows, columns = self._scores(query.shape, key.shape)
        if mask is not None:
            batch, rows, columns = _broadcast_mask(batch, rows, columns, mask)
        if value.shape.rank is None or batch.rank is None:
            return PartialShape.dynamic()
        if not columns.compatible(value.shape[-2]):
            raise InferenceError(
                f"key {key.shape} holds {key.shape[-2]} keys, but value {value.shape} {value.shape[-2]} values; as "
                f"many are expected, in the last dimension but one",
                clause="key and value have equal lengths along the second to last axis",
            )
        batch = _batch(batch, value.shape, "value")
        return PartialShape([*batch, rows, value.shape[-1]])

    def _scores(self, query: PartialShape, key: PartialShape) -> tuple[PartialShape, Dimension, Dimension]:
        if not query[-1].compatible(key[-1]):
            raise InferenceError(
                f"query {query} and key {key} differ in their last dimension, over which they are multiplied",
                hint="key must be [batch, ..., length, features]; it is transposed here"
                if query[-1] == key[-2]
                else "",
                clause="query and key have equal lengths along the last axis",
            )
        batch = _batch(PartialShape(query[:-2]), key, "key")
        return batch, query[-2], key[-2]

    def evaluate(
        self,
        query: Array,
        key: Array,
        value: Array,
        attention_mask: Array | None = None,
        scale: Array | None = None,
    ) -> Array:
        bias = None if self.causal or attention_mask is None or attention_mask.ndim == 0 else attention_mask
        if bias is not None and bias.dtype == np.bool_:
            bias = np.where(bias, np.float32(0), np.float32(-np.inf))
        factor = usual_scale(query.shape[-1]) if scale is None else float(scale.item())
        return scaled_dot_product(query, key, value, bias, factor, self.causal)

    def macs(self, operands: Operands) -> Count:
        """Return the MACs of both products, including masked keys."""
        features = operands.inputs[0][-1] + operands.outputs[0][-1]
        return self._pairs(operands) * features

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of both products, of the softmax, and of scaling and masking the scores."""
        return 2 * self.macs(operands) + 7 * self._pairs(operands)

    def _pairs(self, operands: Operands) -> Count:
        """Return the number of scores: pairs of a query and a key."""
        return product(operands.outputs[0][:-1]) * operands.inputs[1][-2]


def usual_scale(width: int) -> float:
    """Return the default scale for queries of ``width`` features."""
    return 1 / math.sqrt(width) if width else math.inf


def _mask_shape(mask: Value | None, element: ElementType) -> PartialShape | None:
    """Return the shape of a mask, or ``None`` if it is absent or a scalar, which is only a placeholder."""
    if mask is None:
        return None
    if mask.element not in (element, ElementType.boolean) and ElementType.dynamic not in (
        mask.element,
        element,
    ):
        raise InferenceError(
            f"attention_mask is {mask.element.label}; {element.label}, as query, or boolean is expected",
            code=Code.ELEMENT_TYPE,
            clause="attention_mask is boolean or of the type of query",
        )
    if mask.shape.rank == 0:
        return None
    if mask.shape.rank == 1:
        raise InferenceError(
            f"attention_mask must be a scalar or have rank 2 or more, found {mask.shape}",
            clause="attention_mask is a scalar or has at least 2 axes",
        )
    return mask.shape


def _broadcast_mask(
    batch: PartialShape, rows: Dimension, columns: Dimension, mask: PartialShape
) -> tuple[PartialShape, Dimension, Dimension]:
    if mask.rank is None:
        return PartialShape.dynamic(), rows, columns
    wider, longer = broadcast_dims(rows, mask[-2]), broadcast_dims(columns, mask[-1])
    if wider is None or longer is None:
        raise InferenceError(
            f"attention_mask {mask} must end in dimensions that broadcast with [{rows},{columns}], the lengths of "
            f"query and key",
            clause="attention_mask broadcasts to the lengths of query and key",
        )
    return _batch(batch, mask, "attention_mask"), wider, longer


def _batch(batch: PartialShape, other: PartialShape, name: str) -> PartialShape:
    try:
        return broadcast_shapes(batch, PartialShape(other[:-2]))
    except InferenceError:
        raise InferenceError(
            f"{name} {other} has the batch {PartialShape(other[:-2])}, which does not broadcast with {batch} of the "
            f"inputs before it",
            hint="dimensions must be equal, or one of them 1",
            clause=f"the batch of {name} broadcasts with those of the inputs before it",
        ) from None


def scaled_dot_product(
    query: Array, key: Array, value: Array, bias: Array | None, scale: float, causal: bool
) -> Array:
    """Compute ``softmax(query @ key.T * scale + bias) @ value``, for query ``[..., L, E]`` and key ``[..., S, E]``.

    With ``causal``, query i attends to keys 0 to i only. A fully masked query gives NaN; without keys, the result is 0.
    """
    work = accumulator_dtype(query.dtype)
    scores = query.astype(work, copy=False) @ np.swapaxes(key, -1, -2).astype(work, copy=False)
    scores *= work.type(scale)
    if bias is not None:
        shape = np.broadcast_shapes(scores.shape, bias.shape)
        scores = np.add(scores, bias, out=scores if shape == scores.shape else None, dtype=work)
    if causal:
        queries, keys = scores.shape[-2:]
        scores[..., np.arange(keys) > np.arange(queries)[:, None]] = -np.inf
    scores -= scores.max(axis=-1, keepdims=True, initial=-np.inf)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return np.asarray(scores @ value.astype(work, copy=False)).astype(query.dtype, copy=False)
