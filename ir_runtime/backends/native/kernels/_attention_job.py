"""The descriptor of the attention kernels."""

from __future__ import annotations

from typing import Annotated

from ..codegen.descriptor import Descriptor, f32, i64

__all__ = ["AttentionJob", "Strides"]


class Strides(Descriptor):
    """The strides of a tensor in bytes."""

    batch: i64
    head: i64
    row: i64


Tensor = Annotated[int, Strides]


class AttentionJob(Descriptor):
    """The job of `BLOCKED` and `DECODE`: ``shared_heads`` query heads share a head of keys.

    ``masked`` says whether the fourth input is a mask; ``zeros`` is the address of a row of zeros. Scores are multiplied
    by ``factor``, or by one number for each head, whose address is ``factors``, unless that is 0.
    """

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
    out: Tensor
    masked: i64
    mask_strides: Tensor
    causal: i64
    block: i64
    scratch_bytes: i64
    zeros: i64
    factors: i64
    factor: f32
