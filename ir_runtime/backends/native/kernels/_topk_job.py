"""What is chosen by TopK, and where it is stored."""

from __future__ import annotations

from ..codegen.descriptor import i64
from ._columns_task import ColumnsJob

__all__ = ["TopKJob"]


class TopKJob(ColumnsJob):
    """The job of tasks that choose ``count`` elements along A ``[outer, length, inner]``; ``refused`` counts NaN.

    The result has all indices, of ``index_size`` bytes, then the elements from ``values`` bytes on.
    """

    count: i64
    largest: i64
    by_index: i64
    index_size: i64
    values: i64
    refused: i64
