"""The operations that opset15 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "bitwise_left_shift",
    "bitwise_right_shift",
    "col2im",
    "embedding_bag_offsets",
    "embedding_bag_packed",
    "roi_align_rotated",
    "scatter_nd_update",
    "search_sorted",
    "slice_scatter",
    "squeeze",
    "stft",
    "string_tensor_pack",
    "string_tensor_unpack",
]


def bitwise_left_shift(
    arg0: NodeInput,
    arg1: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """BitwiseLeftShift-15: The bits of ``a`` moved up by ``b`` places; those that leave the type are lost.

    Args:
        arg0: integers whose bits to move.
        arg1: by how many places.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "BitwiseLeftShift",
        15,
        [arg0, arg1],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def bitwise_right_shift(
    arg0: NodeInput,
    arg1: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """BitwiseRightShift-15: The bits of ``a`` moved down by ``b`` places; the sign stays.

    Args:
        arg0: integers whose bits to move.
        arg1: by how many places.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "BitwiseRightShift",
        15,
        [arg0, arg1],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def col2im(
    data: NodeInput,
    output_size: NodeInput,
    kernel_size: NodeInput,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads_begin: Sequence[int] | None = None,
    pads_end: Sequence[int] | None = None,
    name: str | None = None,
) -> Node:
    """Create Col2Im-15.

    Put the columns of ``data`` back where patches of an image were; where they overlap, add them up.

    Args:
        data: [batch, channels * patch elements, patches], or without batch.
        output_size: rows and columns of the image.
        kernel_size: rows and columns of a patch.
        strides: distance between patches.
        dilations: distance between the elements of a patch.
        pads_begin: rows and columns by which patches start before the image.
        pads_end: rows and columns by which patches end behind the image.
        name: the name of the node.
    """
    return make(
        "Col2Im",
        15,
        [data, output_size, kernel_size],
        {
            "strides": strides,
            "dilations": dilations,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
        },
        name,
    )


def embedding_bag_offsets(
    emb_table: NodeInput,
    indices: NodeInput,
    offsets: NodeInput,
    default_index: NodeInput | None = None,
    per_sample_weights: NodeInput | None = None,
    reduction: str = "sum",
    name: str | None = None,
) -> Node:
    """Create EmbeddingBagOffsets-15.

    For each bag, the sum or mean of the rows of ``emb_table`` that its ``indices`` name.

    Args:
        emb_table: [rows, ...]: the rows to add up.
        indices: 1-D: rows of the table, bag after bag.
        offsets: 1-D: where in indices each bag starts, ascending.
        default_index: scalar: row for empty bags; absent or -1, they are zeros.
        per_sample_weights: 1-D: a factor for each index.
        reduction: how rows of a bag are reduced; only sum takes weights.
        name: the name of the node.
    """
    return make(
        "EmbeddingBagOffsets",
        15,
        [emb_table, indices, offsets, default_index, per_sample_weights],
        {
            "reduction": reduction,
        },
        name,
    )


def embedding_bag_packed(
    emb_table: NodeInput,
    indices: NodeInput,
    per_sample_weights: NodeInput | None = None,
    reduction: str = "sum",
    name: str | None = None,
) -> Node:
    """Create EmbeddingBagPacked-15.

    For each row of ``indices``, the sum or mean of the rows of ``emb_table`` that it names.

    Args:
        emb_table: [rows, ...]: the rows to add up.
        indices: [bags, rows of a bag]: rows of the table.
        per_sample_weights: a factor for each index.
        reduction: how rows of a bag are reduced; only sum takes weights.
        name: the name of the node.
    """
    return make(
        "EmbeddingBagPacked",
        15,
        [emb_table, indices, per_sample_weights],
        {
            "reduction": reduction,
        },
        name,
    )


def roi_align_rotated(
    data: NodeInput,
    rois: NodeInput,
    batch_indices: NodeInput,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int,
    spatial_scale: float,
    clockwise_mode: bool,
    name: str | None = None,
) -> Node:
    """Create ROIAlignRotated-15.

    Divide each rotated region of ``data`` into bins, and give the mean of points in each.

    Args:
        data: [N, C, H, W]: feature maps.
        rois: [regions, 5]: x and y of the centre, width, height, angle in radians.
        batch_indices: [regions]: the batch entry of each; none from the first -1 on.
        pooled_h: height of the result.
        pooled_w: width of the result.
        sampling_ratio: points along each axis of a bin; 0 means as many as there are elements.
        spatial_scale: what coordinates of regions are multiplied by.
        clockwise_mode: whether angles turn clockwise.
        name: the name of the node.
    """
    return make(
        "ROIAlignRotated",
        15,
        [data, rois, batch_indices],
        {
            "pooled_h": pooled_h,
            "pooled_w": pooled_w,
            "sampling_ratio": sampling_ratio,
            "spatial_scale": spatial_scale,
            "clockwise_mode": clockwise_mode,
        },
        name,
    )


def scatter_nd_update(
    data: NodeInput,
    indices: NodeInput,
    updates: NodeInput,
    reduction: str | None = None,
    name: str | None = None,
) -> Node:
    """ScatterNDUpdate-15: Combine the elements or slices of ``data`` that ``indices`` name with ``updates``.

    Args:
        data: tensor to copy.
        indices: tuples along the last axis, each naming an element or a slice of data.
        updates: an element or a slice for each tuple.
        reduction: how an update meets what is there; none replaces it.
        name: the name of the node.
    """
    return make(
        "ScatterNDUpdate",
        15,
        [data, indices, updates],
        {
            "reduction": reduction,
        },
        name,
    )


def search_sorted(
    sorted_sequence: NodeInput,
    values: NodeInput,
    right_mode: bool = False,
    name: str | None = None,
) -> Node:
    """SearchSorted-15: Where to insert each of ``values`` so that ``sorted_sequence`` stays sorted.

    Args:
        sorted_sequence: 1-D, or shaped as values but along the last axis; ascending along it.
        values: numbers to find places for.
        right_mode: insert behind equal elements instead of before them.
        name: the name of the node.
    """
    return make(
        "SearchSorted",
        15,
        [sorted_sequence, values],
        {
            "right_mode": right_mode,
        },
        name,
    )


def slice_scatter(
    data: NodeInput,
    updates: NodeInput,
    start: NodeInput,
    stop: NodeInput,
    step: NodeInput,
    axes: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """Create SliceScatter-15.

    ``data`` with the elements from ``start`` to before ``stop`` by ``step`` replaced by ``updates``.

    Args:
        data: tensor to update.
        updates: the new elements, in the shape of the slices.
        start: 1-D; first indices; negative ones count from the end, and all are clamped.
        stop: 1-D; indices behind the last ones, likewise.
        step: 1-D; numbers from one element to the next, negative backwards, never 0.
        axes: 1-D; the axes, each once; the first ones when absent.
        name: the name of the node.
    """
    return make(
        "SliceScatter",
        15,
        [data, updates, start, stop, step, axes],
        {},
        name,
    )


def squeeze(
    data: NodeInput,
    axes: NodeInput | None = None,
    allow_axis_skip: bool = False,
    name: str | None = None,
) -> Node:
    """Squeeze-15: Remove ``axes`` of length 1 from ``data``.

    Args:
        data: tensor to squeeze.
        axes: axes to remove; none, or an empty list, means all of length 1.
        allow_axis_skip: take an axis of unknown length for one that may stay: the rank is unknown then.
        name: the name of the node.
    """
    return make(
        "Squeeze",
        15,
        [data, axes],
        {
            "allow_axis_skip": allow_axis_skip,
        },
        name,
    )


def stft(
    data: NodeInput,
    window: NodeInput,
    frame_size: NodeInput,
    frame_step: NodeInput,
    transpose_frames: bool,
    name: str | None = None,
) -> Node:
    """STFT-15: The first half of the discrete Fourier transform of each frame of a real ``signal``.

    Args:
        data: one signal, 1-D, or a batch of them, 2-D.
        window: factors of a frame's elements, 1-D; at most as many as a frame has.
        frame_size: length of a frame, a scalar.
        frame_step: distance from frame to frame, a scalar.
        transpose_frames: put the frequencies before the frames.
        name: the name of the node.
    """
    return make(
        "STFT",
        15,
        [data, window, frame_size, frame_step],
        {
            "transpose_frames": transpose_frames,
        },
        name,
    )


def string_tensor_pack(
    begins: NodeInput,
    ends: NodeInput,
    symbols: NodeInput,
    name: str | None = None,
) -> Node:
    """Create StringTensorPack-15.

    Texts from their bytes: the i-th is what ``symbols`` hold from the i-th of ``begins`` up to that of
    ``ends``.

    Args:
        begins: where strings begin, of any shape.
        ends: where strings end: the place behind their last byte, of the shape of begins.
        symbols: bytes in UTF-8, 1-D.
        name: the name of the node.
    """
    return make(
        "StringTensorPack",
        15,
        [begins, ends, symbols],
        {},
        name,
    )


def string_tensor_unpack(
    data: NodeInput,
    name: str | None = None,
) -> Node:
    """Create StringTensorUnpack-15.

    The bytes of the texts in ``data``, one text behind the other, and where each of them begins and ends.

    Args:
        data: strings, of any shape.
        name: the name of the node.
    """
    return make(
        "StringTensorUnpack",
        15,
        [data],
        {},
        name,
    )
