"""Descriptors of the GEMM kernel."""

from __future__ import annotations

from enum import IntFlag
from typing import Annotated

import numpy as np

from ..codegen.descriptor import Descriptor, i64
from ._packed_epilogue import EpilogueField

__all__ = ["GemmJob", "OutputLines", "StoredTypes", "WindowRecord"]


class GemmJob(Descriptor):
    """The job of `GEMM`: sizes, then addresses; ``depth`` counts the 32-bit words of a tap.

    ``residual_stride`` and ``types`` are for results or residuals of bf16: bytes between rows of the residual, and
    `StoredTypes`. ``lines`` is the address of `OutputLines`, 0 if rows of the result are at equal distances, and
    ``copied`` that of `CopiedLines`, for windows that are copied. A panel is used in parts of ``part_taps`` taps.
    """

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
    epilogue: EpilogueField
    zeros: i64
    skips_zeros: i64
    windows: i64
    residual_stride: i64
    types: i64
    lines: i64
    copied: i64
    part_taps: i64


class OutputLines(Descriptor):
    """A result that has several lines for a line of rows: one for each group of columns.

    Args:
        width: rows of a line.
        height: lines of a plane.
        columns: of a group.
        pitch: columns from one row of the result to the next.
        planes: planes of the result for one of the data.
        lines: lines of a plane of the result for one of the data.
        group_lines: how many of these have a group; the groups are ``[planes, lines]``.
    """

    width: i64
    height: i64
    columns: i64
    pitch: i64
    planes: i64
    lines: i64
    group_lines: i64


class StoredTypes(IntFlag):
    """What is stored in bf16; the rest is f32."""

    RESULT = 1
    RESIDUAL = 2


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
