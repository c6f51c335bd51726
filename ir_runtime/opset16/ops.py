"""The operations that opset16 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "avg_pool",
    "identity",
    "istft",
    "one_hot",
    "segment_max",
    "sparse_fill_empty_rows",
]


def avg_pool(
    data_batch: NodeInput,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    kernel_shape: Sequence[int],
    exclude_pad: bool,
    rounding_type: str = "floor",
    auto_pad: str | None = None,
    dilations: Sequence[int] | None = None,
    name: str | None = None,
) -> Node:
    """AvgPool-16: As version 14, with windows that may have gaps.

    Args:
        data_batch: [N, C, spatial...].
        strides: step of the window along each spatial axis.
        pads_begin: padding before each spatial axis; ignored unless auto_pad is explicit.
        pads_end: padding after each spatial axis; ignored unless auto_pad is explicit.
        kernel_shape: length of the window along each spatial axis.
        exclude_pad: whether the mean is over data only, without padding.
        rounding_type: how the number of windows is rounded; with ceil, the last one may be cut off;
            ceil_torch leaves it out if it would start in the padding.
        auto_pad: explicit: as pads_begin and pads_end say; valid: none; same_upper, same_lower: so much that
            the output is the input divided by the stride, rounded up, an odd one at the end or at the
            beginning.
        dilations: distance between elements of the window along each spatial axis; 1 when absent.
        name: the name of the node.
    """
    return make(
        "AvgPool",
        16,
        [data_batch],
        {
            "strides": strides,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "kernel": kernel_shape,
            "exclude_pad": exclude_pad,
            "rounding_type": rounding_type,
            "auto_pad": auto_pad,
            "dilations": dilations,
        },
        name,
    )


def identity(
    data: NodeInput,
    name: str | None = None,
) -> Node:
    """Identity-16: The tensor ``data``, as it is.

    Args:
        data: any tensor.
        name: the name of the node.
    """
    return make(
        "Identity",
        16,
        [data],
        {},
        name,
    )


def istft(
    data: NodeInput,
    window: NodeInput,
    frame_size: NodeInput,
    frame_step: NodeInput,
    center: bool,
    normalized: bool,
    signal_length: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """Create ISTFT-16.

    The signal of which ``data`` is what STFT gives: frames added up, and divided by the windows' squares.

    Args:
        data: [batch, frequencies, frames, 2], the real and the imaginary part last, or without batch.
        window: factors of a frame's elements, 1-D; at most as many as a frame has.
        frame_size: length of a frame, a scalar.
        frame_step: distance from frame to frame, a scalar.
        center: leave out half a frame at the beginning, which was added for the transform.
        normalized: multiply by the square root of frame_size, by which data was divided.
        signal_length: how long to make the signal, one number, by cutting or by adding zeros at the end;
            absent, all that frames cover, and if center is true less half a frame on both sides.
        name: the name of the node.
    """
    return make(
        "ISTFT",
        16,
        [data, window, frame_size, frame_step, signal_length],
        {
            "center": center,
            "normalized": normalized,
        },
        name,
    )


def one_hot(
    indices: NodeInput,
    depth: NodeInput,
    on_value: NodeInput,
    off_value: NodeInput,
    axis: int,
    negative_indices_mode: str | None = None,
    name: str | None = None,
) -> Node:
    """OneHot-16: As version 1, where negative classes may count from the end.

    Args:
        indices: the class of each element.
        depth: number of classes, a scalar.
        on_value: what stands at the class, a scalar.
        off_value: what stands elsewhere, a scalar.
        axis: where the output has the new axis; negative ones count from the end.
        negative_indices_mode: normalize: negative classes count from the end; ignore_negative, on the page
            ignore-negative: they set nothing.
        name: the name of the node.
    """
    return make(
        "OneHot",
        16,
        [indices, depth, on_value, off_value],
        {
            "axis": axis,
            "negative_indices_mode": negative_indices_mode,
        },
        name,
    )


def segment_max(
    data: NodeInput,
    segment_ids: NodeInput,
    num_segments: NodeInput | None = None,
    fill_mode: str | None = None,
    name: str | None = None,
) -> Node:
    """Create SegmentMax-16.

    Largest elements of ``data`` over runs of slices that have the same number in ``segment_ids``.

    Args:
        data: slices, of rank 1 or more.
        segment_ids: the segment of each slice, ascending.
        num_segments: how many segments to return; all when absent.
        fill_mode: what empty segments hold: zero, or the lowest number.
        name: the name of the node.
    """
    return make(
        "SegmentMax",
        16,
        [data, segment_ids, num_segments],
        {
            "fill_mode": fill_mode,
        },
        name,
    )


def sparse_fill_empty_rows(
    values: NodeInput,
    dense_shape: NodeInput,
    indices: NodeInput,
    default_value: NodeInput,
    name: str | None = None,
) -> Node:
    """Create SparseFillEmptyRows-16.

    Put ``default_value`` at the start of each row of a sparse matrix that has no elements.

    Args:
        values: 1-D: the elements.
        dense_shape: rows and columns of the matrix.
        indices: [elements, 2]: row and column of each element.
        default_value: scalar for empty rows.
        name: the name of the node.
    """
    return make(
        "SparseFillEmptyRows",
        16,
        [values, dense_shape, indices, default_value],
        {},
        name,
    )
