"""The operations that opset3 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.building.factories import NodeInput, TypeLike, make
from ..api.nodes import Node

__all__ = [
    "broadcast",
    "bucketize",
    "cum_sum",
    "cumsum",
    "embedding_bag_offsets_sum",
    "embedding_bag_packed_sum",
    "embedding_segments_sum",
    "extract_image_patches",
    "gru_cell",
    "non_zero",
    "rnn_cell",
    "scatter_update",
    "shape_of",
    "shuffle_channels",
]


def broadcast(
    data: NodeInput,
    target_shape: NodeInput,
    axes_mapping: NodeInput | None = None,
    broadcast_spec: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Broadcast-3: Repeat ``data`` along axes until it has the lengths in ``target_shape``.

    Args:
        data: tensor to broadcast.
        target_shape: 1-D; the lengths to reach.
        axes_mapping: 1-D; for each axis of the data its axis in the target, rising; for mode explicit.
        broadcast_spec: whether last axes are aligned, one way or both, first ones, or those in axes_mapping.
        name: the name of the node.
    """
    return make(
        "Broadcast",
        3,
        [data, target_shape, axes_mapping],
        {
            "mode": broadcast_spec,
        },
        name,
    )


def bucketize(
    data: NodeInput,
    buckets: NodeInput,
    output_type: TypeLike = "i64",
    with_right_bound: bool = True,
    name: str | None = None,
) -> Node:
    """Bucketize-3: How many of ``buckets``, which ascend, lie below each element of ``data``.

    Args:
        data: numbers to sort into buckets.
        buckets: the bounds between buckets, 1-D and ascending.
        output_type: type of the result: i64 or i32.
        with_right_bound: whether a bound belongs to the bucket below it, not above.
        name: the name of the node.
    """
    return make(
        "Bucketize",
        3,
        [data, buckets],
        {
            "output_type": output_type,
            "with_right_bound": with_right_bound,
        },
        name,
    )


def cum_sum(
    arg: NodeInput,
    axis: NodeInput,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Node:
    """CumSum-3: Sums of ``data`` up to each element along ``axis``.

    Args:
        arg: tensor to sum, of rank 1 or more.
        axis: axis to sum along, a scalar; 0 when absent.
        exclusive: leave each element out of its own sum.
        reverse: sum from the end.
        name: the name of the node.
    """
    return make(
        "CumSum",
        3,
        [arg, axis],
        {
            "exclusive": exclusive,
            "reverse": reverse,
        },
        name,
    )


def cumsum(
    arg: NodeInput,
    axis: NodeInput,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Node:
    """CumSum-3: Sums of ``data`` up to each element along ``axis``.

    Args:
        arg: tensor to sum, of rank 1 or more.
        axis: axis to sum along, a scalar; 0 when absent.
        exclusive: leave each element out of its own sum.
        reverse: sum from the end.
        name: the name of the node.
    """
    return make(
        "CumSum",
        3,
        [arg, axis],
        {
            "exclusive": exclusive,
            "reverse": reverse,
        },
        name,
    )


def embedding_bag_offsets_sum(
    emb_table: NodeInput,
    indices: NodeInput,
    offsets: NodeInput,
    default_index: NodeInput | None = None,
    per_sample_weights: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """EmbeddingBagOffsetsSum-3: For each bag, the sum of the rows of ``emb_table`` that its ``indices`` name.

    Args:
        emb_table: [rows, ...]: the rows to add up.
        indices: 1-D: rows of the table, bag after bag.
        offsets: 1-D: where in indices each bag starts, ascending.
        default_index: scalar: row for empty bags; absent or -1, they are zeros.
        per_sample_weights: 1-D: a factor for each index.
        name: the name of the node.
    """
    return make(
        "EmbeddingBagOffsetsSum",
        3,
        [emb_table, indices, offsets, default_index, per_sample_weights],
        {},
        name,
    )


def embedding_bag_packed_sum(
    emb_table: NodeInput,
    indices: NodeInput,
    per_sample_weights: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """Create EmbeddingBagPackedSum-3.

    For each row of ``indices``, the sum of the rows of ``emb_table`` that it names.

    Args:
        emb_table: [rows, ...]: the rows to add up.
        indices: [bags, rows of a bag]: rows of the table.
        per_sample_weights: a factor for each index.
        name: the name of the node.
    """
    return make(
        "EmbeddingBagPackedSum",
        3,
        [emb_table, indices, per_sample_weights],
        {},
        name,
    )


def embedding_segments_sum(
    emb_table: NodeInput,
    indices: NodeInput,
    segment_ids: NodeInput,
    num_segments: NodeInput | None = None,
    default_index: NodeInput | None = None,
    per_sample_weights: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """Create EmbeddingSegmentsSum-3.

    For each segment, the sum of the rows of ``emb_table`` whose ``indices`` belong to it.

    Args:
        emb_table: [rows, ...]: the rows to add up.
        indices: 1-D: rows of the table.
        segment_ids: 1-D: the segment of each index.
        num_segments: scalar: how many segments there are.
        default_index: scalar: row for empty segments; absent or -1, they are zeros.
        per_sample_weights: 1-D: a factor for each index.
        name: the name of the node.
    """
    return make(
        "EmbeddingSegmentsSum",
        3,
        [emb_table, indices, segment_ids, num_segments, default_index, per_sample_weights],
        {},
        name,
    )


def extract_image_patches(
    image: NodeInput,
    sizes: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    auto_pad: str,
    name: str | None = None,
) -> Node:
    """ExtractImagePatches-3: Cut patches out of ``data`` and lay each one out along the channels.

    Args:
        image: [batch, channels, rows, columns].
        sizes: rows and columns of a patch.
        strides: distance between patches.
        rates: distance between the elements of a patch.
        auto_pad: valid: whole patches only; same: pad with zeros, an odd one at the end (upper) or the
            beginning (lower).
        name: the name of the node.
    """
    return make(
        "ExtractImagePatches",
        3,
        [image],
        {
            "sizes": sizes,
            "strides": strides,
            "rates": rates,
            "auto_pad": auto_pad,
        },
        name,
    )


def gru_cell(
    X: NodeInput,
    initial_hidden_state: NodeInput,
    W: NodeInput,
    R: NodeInput,
    B: NodeInput,
    hidden_size: int,
    activations: Sequence[str] | None = None,
    activations_alpha: Sequence[float] | None = None,
    activations_beta: Sequence[float] | None = None,
    clip: float = 0.0,
    linear_before_reset: bool = False,
    name: str | None = None,
) -> Node:
    """Create GRUCell-3.

    One step of a gated recurrent unit: a mixture, by the gate z, of the hidden state and a new one.

    Args:
        X: [batch, input].
        initial_hidden_state: [batch, hidden].
        W: weights of x for the gates z, r, h, [3 * hidden, input].
        R: weights of the hidden state, [3 * hidden, hidden].
        B: biases, [3 * hidden]; with linear_before_reset one more for h, [4 * hidden]; none when absent.
        hidden_size: length of the hidden state.
        activations: the functions f of the gates z and r, and g of h.
        activations_alpha: parameters of the functions, which none of the functions allowed has.
        activations_beta: more parameters of the functions, which none of the functions allowed has.
        clip: gates are kept within this of 0 before they are activated; 0: they are not.
        linear_before_reset: reset the product of the hidden state and its weights, not that state; h has two
            biases then.
        name: the name of the node.
    """
    return make(
        "GRUCell",
        3,
        [X, initial_hidden_state, W, R, B],
        {
            "hidden_size": hidden_size,
            "activations": activations,
            "activations_alpha": activations_alpha,
            "activations_beta": activations_beta,
            "clip": clip,
            "linear_before_reset": linear_before_reset,
        },
        name,
    )


def non_zero(
    data: NodeInput,
    output_type: TypeLike = "i64",
    name: str | None = None,
) -> Node:
    """Create NonZero-3.

    Where ``data`` is not zero: one row of indices for each axis, one column for each element found.

    Args:
        data: tensor to search.
        output_type: type of the indices: i64 or i32.
        name: the name of the node.
    """
    return make(
        "NonZero",
        3,
        [data],
        {
            "output_type": output_type,
        },
        name,
    )


def rnn_cell(
    X: NodeInput,
    initial_hidden_state: NodeInput,
    W: NodeInput,
    R: NodeInput,
    B: NodeInput,
    hidden_size: int,
    activations: Sequence[str],
    activations_alpha: Sequence[float],
    activations_beta: Sequence[float],
    clip: float = 0.0,
    name: str | None = None,
) -> Node:
    """RNNCell-1: One step of a plain recurrent cell: ``f(x @ w.T + initial_hidden_state @ r.T + b)``.

    Args:
        X: [batch, input].
        initial_hidden_state: [batch, hidden].
        W: weights of x, [hidden, input].
        R: weights of the hidden state, [hidden, hidden].
        B: biases, [hidden].
        hidden_size: length of the hidden state.
        activations: the function f of the gate.
        activations_alpha: parameters of the functions, which none of the functions allowed has.
        activations_beta: more parameters of the functions, which none of the functions allowed has.
        clip: gates are kept within this of 0 before they are activated; 0: they are not.
        name: the name of the node.
    """
    return make(
        "RNNCell",
        1,
        [X, initial_hidden_state, W, R, B],
        {
            "hidden_size": hidden_size,
            "activations": activations,
            "activations_alpha": activations_alpha,
            "activations_beta": activations_beta,
            "clip": clip,
        },
        name,
    )


def scatter_update(
    data: NodeInput,
    indices: NodeInput,
    updates: NodeInput,
    axis: NodeInput,
    name: str | None = None,
) -> Node:
    """ScatterUpdate-3: Replace the slices of ``data`` that ``indices`` name along ``axis`` with ``updates``.

    Args:
        data: tensor to copy.
        indices: places along axis, none negative; of equal ones the last wins.
        updates: shaped as data, with the shape of indices in place of axis.
        axis: one number; a negative one counts from the end.
        name: the name of the node.
    """
    return make(
        "ScatterUpdate",
        3,
        [data, indices, updates, axis],
        {},
        name,
    )


def shape_of(
    data: NodeInput,
    output_type: TypeLike = "i64",
    name: str | None = None,
) -> Node:
    """ShapeOf-3: Lengths of ``data`` along each axis.

    Args:
        data: tensor to measure.
        output_type: element type of the result, i64 or i32.
        name: the name of the node.
    """
    return make(
        "ShapeOf",
        3,
        [data],
        {
            "output_type": output_type,
        },
        name,
    )


def shuffle_channels(
    data: NodeInput,
    axis: int,
    group: int,
    name: str | None = None,
) -> Node:
    """Create ShuffleChannels-1.

    Deal the channels of ``data`` out like cards: the first of each group, then the second of each, and on.

    Args:
        data: tensor to shuffle.
        axis: axis of the channels; a negative one counts from the end.
        group: number of groups, which divides the number of channels.
        name: the name of the node.
    """
    return make(
        "ShuffleChannels",
        1,
        [data],
        {
            "axis": axis,
            "group": group,
        },
        name,
    )
