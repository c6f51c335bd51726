"""Descriptors of the GEMM kernel."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from ..codegen.descriptor import Descriptor, i64

__all__ = ["GemmJob", "WindowRecord"]


class GemmJob(Descriptor):
    """The job of `GEMM`: sizes, then addresses; ``depth`` counts the 32-bit words of a tap."""

    rows: i64
    chunk: i64
    panels: i64
    by_panel: i64
    taps: i64
    depth: i64
    layout: i64
    row_stride: i64
    table: i64
    weights: i64
    bias: i64
    tap_offsets: i64
    out_stride: i64
    epilogue_words: i64
    epilogue_numbers: i64
    zeros: i64
    skips_zeros: i64
    windows: i64


Axes = Annotated[int, (np.int64, (3,))]


class WindowRecord(Descriptor):
    """Windows as kernels read them: three numbers for three spatial axes."""

    lengths: Axes
    out: Axes
    strides: Axes
    pads: Axes
    kernel: Axes
    dilations: Axes
    element: i64
    image: i64
