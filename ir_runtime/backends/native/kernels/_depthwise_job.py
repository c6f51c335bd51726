"""The jobs of depthwise convolutions."""

from __future__ import annotations

from ..codegen.descriptor import Descriptor, i64
from ._windows import SlidingWindows

__all__ = ["DepthwiseJob", "RowWindow"]


class DepthwiseJob(SlidingWindows):
    """The job of `_depthwise_rows.DEPTHWISE`; ``out_height`` counts the rows of all images, sizes are bytes of a number.

    Windows have ``kernel_depth`` planes at most, each ``plane_rows`` rows of the data behind the one before. Groups have
    ``group_channels``; data and weights of ``channel_block`` channels stay in the L1 cache. ``more`` is added to the way.
    Windows that are computed together are ``spread`` columns of the result apart.
    """

    group_channels: i64
    channel_block: i64
    spread: i64

    kernel_depth: i64
    plane_rows: i64
    units: i64
    rows_per_unit: i64
    way: i64
    more: i64
    weights: i64
    bias: i64
    fill_values: i64
    epilogue_words: i64
    epilogue_numbers: i64
    row_table: i64
    data_size: i64
    result_size: i64


class RowWindow(Descriptor):
    """The window of a row of the result: the first row of data, its row of the kernel, the number of rows and planes."""

    data_row: i64
    kernel_row: i64
    rows: i64
    planes: i64
