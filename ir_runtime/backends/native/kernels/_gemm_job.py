"""Descriptors of the GEMM kernels."""

from __future__ import annotations

from enum import IntFlag
from typing import Annotated

import numpy as np

from ..codegen.descriptor import Descriptor, i64
from ._packed_epilogue import EpilogueField

__all__ = ["GemmJob", "OutputLines", "StoredTypes", "WindowRecord"]


class GemmJob(Descriptor):
    """The job of `GEMM`: sizes, then addresses; ``depth`` counts the 32-bit words of a tap.

    ``residual_stride`` (the bytes between rows of the residual) and ``types`` (a `StoredTypes`) are used if
    the result or the residual is bf16. ``lines`` is the address of `OutputLines`, 0 if result rows are
    equally spaced, and ``copied`` the address of `CopiedLines`, if windows are copied. A panel is processed
    in parts of ``part_taps`` taps.
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
    """A result with several lines for each line of rows: one for each group of columns.

    Args:
        width: the number of rows in a line.
        height: the number of lines in a plane.
        columns: the number of columns in a group.
        pitch: the columns from one result row to the next.
        planes: the number of result planes per data plane.
        lines: the number of result lines per data line.
        group_lines: the number of these lines with a group; groups are ``[planes, lines]``.
    """

    width: i64
    height: i64
    columns: i64
    pitch: i64
    planes: i64
    lines: i64
    group_lines: i64


class StoredTypes(IntFlag):
    """Flags for the tensors stored in bf16; the others are f32."""

    RESULT = 1
    RESIDUAL = 2


Axes = Annotated[int, (np.int64, (3,))]


class WindowRecord(Descriptor):
    """The windows in the kernels' layout: three numbers, one for each spatial axis."""

    lengths: Axes
    out: Axes
    strides: Axes
    pads: Axes
    kernel: Axes
    dilations: Axes
    element: i64
    image: i64
