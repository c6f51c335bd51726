"""The descriptor of the attention kernels."""

from __future__ import annotations

from typing import Annotated

from ..codegen.descriptor import Descriptor, f32, i64

__all__ = ["AttentionJob", "Operand"]


class Operand(Descriptor):
    """Address of a tensor, and its strides in bytes; all 0 for none."""

    data: i64
    batch_stride: i64
    head_stride: i64
    row_stride: i64


Tensor = Annotated[int, Operand]


class AttentionJob(Descriptor):
    """The job of `BLOCKED` and `DECODE`: ``shared_heads`` query heads share a head of keys; ``zeros`` is a row of zeros."""

    batch: i64
    heads: i64
    shared_heads: i64
    queries: i64
    keys: i64
    key_width: i64
    value_width: i64
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor
    out: Tensor
    causal: i64
    block: i64
    scratch_bytes: i64
    zeros: i64
    factor: f32
