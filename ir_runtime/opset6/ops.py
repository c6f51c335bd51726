"""The operations that opset6 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import Assign as assign, NodeInput, TypeLike, make, read_value
from ..api.nodes import Node

__all__ = [
    "assign",
    "ctc_greedy_decoder_seq_len",
    "gather_elements",
    "mvn",
    "read_value",
]


def ctc_greedy_decoder_seq_len(
    data: NodeInput,
    sequence_length: NodeInput,
    blank_index: NodeInput | None = None,
    merge_repeated: bool = True,
    classes_index_type: TypeLike = "i32",
    sequence_length_type: TypeLike = "i32",
    name: str | None = None,
) -> Node:
    """Create CTCGreedyDecoderSeqLen-6.

    The most likely class of each step in ``data``, without repetitions and blanks, and how many are left.

    Args:
        data: scores, [batch, time, classes].
        sequence_length: how many steps each sequence has, [batch].
        blank_index: the class that stands for nothing, a scalar or [1]; the last when absent.
        merge_repeated: take a class that is repeated from step to step once.
        classes_index_type: element type of the classes, i64 or i32.
        sequence_length_type: element type of the lengths, i64 or i32.
        name: the name of the node.
    """
    return make(
        "CTCGreedyDecoderSeqLen",
        6,
        [data, sequence_length, blank_index],
        {
            "merge_repeated": merge_repeated,
            "classes_index_type": classes_index_type,
            "sequence_length_type": sequence_length_type,
        },
        name,
    )


def gather_elements(
    data: NodeInput,
    indices: NodeInput,
    axis: int = 0,
    name: str | None = None,
) -> Node:
    """Create GatherElements-6.

    For each number in ``indices``, the element of ``data`` that is so far along ``axis``.

    Args:
        data: tensor to take from.
        indices: shaped as data but along axis.
        axis: axis that the indices count along; a negative one counts from the end.
        name: the name of the node.
    """
    return make(
        "GatherElements",
        6,
        [data, indices],
        {
            "axis": axis,
        },
        name,
    )


def mvn(
    data: NodeInput,
    axes: NodeInput,
    normalize_variance: bool,
    eps: float,
    eps_mode: str,
    name: str | None = None,
) -> Node:
    """MVN-6: Subtract the mean of ``data`` over ``axes`` and, if asked to, divide by the standard deviation.

    Args:
        data: tensor to normalize.
        axes: axes of the mean, 1-D, in any order.
        normalize_variance: divide by the standard deviation, too.
        eps: keeps the divisor away from zero.
        eps_mode: add eps to the variance, or to the standard deviation.
        name: the name of the node.
    """
    return make(
        "MVN",
        6,
        [data, axes],
        {
            "normalize_variance": normalize_variance,
            "eps": eps,
            "eps_mode": eps_mode,
        },
        name,
    )
