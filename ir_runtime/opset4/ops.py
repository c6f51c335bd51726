"""The operations that opset4 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "acosh",
    "asinh",
    "atanh",
    "ctc_loss",
    "hswish",
    "lstm_cell",
    "mish",
    "proposal",
    "reduce_l1",
    "reduce_l2",
    "softplus",
    "swish",
]


def acosh(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Acosh-4: Inverse hyperbolic cosine of ``data``; NaN below 1.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Acosh",
        4,
        [node],
        {},
        name,
    )


def asinh(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Asinh-4: Inverse hyperbolic sine of ``data``.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Asinh",
        4,
        [node],
        {},
        name,
    )


def atanh(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Atanh-4: Inverse hyperbolic tangent of ``data``; infinite at -1 and 1, NaN beyond.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Atanh",
        4,
        [node],
        {},
        name,
    )


def ctc_loss(
    logits: NodeInput,
    logit_length: NodeInput,
    labels: NodeInput,
    label_length: NodeInput,
    blank_index: NodeInput | None = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    unique: bool = False,
    name: str | None = None,
) -> Node:
    """Create CTCLoss-4.

    How unlikely ``labels`` are, given ``logits``: minus the log of the probability of all paths to them.

    Args:
        logits: scores, [batch, time, classes].
        logit_length: how many steps each sequence has, [batch].
        labels: the classes that it should say, [batch, time].
        label_length: how many labels each sequence has, [batch].
        blank_index: the class that stands for nothing, a scalar; the last when absent.
        preprocess_collapse_repeated: take labels that are repeated once.
        ctc_merge_repeated: classes that a path repeats from step to step count once.
        unique: take each label only where it occurs first.
        name: the name of the node.
    """
    return make(
        "CTCLoss",
        4,
        [logits, logit_length, labels, label_length, blank_index],
        {
            "preprocess_collapse_repeated": preprocess_collapse_repeated,
            "ctc_merge_repeated": ctc_merge_repeated,
            "unique": unique,
        },
        name,
    )


def hswish(
    data: NodeInput,
    name: str | None = None,
) -> Node:
    """HSwish-4: Each element of ``data`` times its HSigmoid.

    Args:
        data: tensor of any shape.
        name: the name of the node.
    """
    return make(
        "HSwish",
        4,
        [data],
        {},
        name,
    )


def lstm_cell(
    X: NodeInput,
    initial_hidden_state: NodeInput,
    initial_cell_state: NodeInput,
    W: NodeInput,
    R: NodeInput,
    B: NodeInput,
    hidden_size: int,
    activations: Sequence[str] | None = None,
    activations_alpha: Sequence[float] | None = None,
    activations_beta: Sequence[float] | None = None,
    clip: float = 0.0,
    name: str | None = None,
) -> Node:
    """Create LSTMCell-4.

    One step of a long short-term memory: the gates say what its cell state forgets, takes in and shows.

    Args:
        X: [batch, input].
        initial_hidden_state: [batch, hidden].
        initial_cell_state: [batch, hidden].
        W: weights of x for the gates f, i, c, o, [4 * hidden, input].
        R: weights of the hidden state, [4 * hidden, hidden].
        B: biases, [4 * hidden]; none when absent.
        hidden_size: length of the hidden state.
        activations: the functions f of the gates f, i and o, g of c, and h of the cell state.
        activations_alpha: parameters of the functions, which none of the functions allowed has.
        activations_beta: more parameters of the functions, which none of the functions allowed has.
        clip: gates are kept within this of 0 before they are activated; 0: they are not.
        name: the name of the node.
    """
    return make(
        "LSTMCell",
        4,
        [X, initial_hidden_state, initial_cell_state, W, R, B],
        {
            "hidden_size": hidden_size,
            "activations": activations,
            "activations_alpha": activations_alpha,
            "activations_beta": activations_beta,
            "clip": clip,
        },
        name,
    )


def mish(
    data: NodeInput,
    name: str | None = None,
) -> Node:
    """Mish-4: Each element of ``data`` times the hyperbolic tangent of its SoftPlus.

    Args:
        data: tensor of any shape.
        name: the name of the node.
    """
    return make(
        "Mish",
        4,
        [data],
        {},
        name,
    )


def proposal(
    class_probs: NodeInput,
    bbox_deltas: NodeInput,
    image_shape: NodeInput,
    attrs: Mapping[str, Any],
    name: str | None = None,
) -> Node:
    """Proposal-4: As version 1, and the scores of the boxes.

    Args:
        class_probs: [N, 2 * anchors, H, W]: scores of background, then of foreground.
        bbox_deltas: [N, 4 * anchors, H, W]: steps of the centre, logarithms of factors of sides.
        image_shape: [3 or 4]: height and width of the image, one scale for both or two.
        attrs: the attributes by name.
        name: the name of the node.
    """
    return make(
        "Proposal",
        4,
        [class_probs, bbox_deltas, image_shape],
        {
            **attrs,
        },
        name,
    )


def reduce_l1(
    node: NodeInput,
    reduction_axes: NodeInput,
    keep_dims: bool = False,
    name: str | None = None,
) -> Node:
    """ReduceL1-4: Sum of the absolute values of ``data`` over ``axes``.

    Args:
        node: tensor to reduce.
        reduction_axes: axes to reduce, a scalar or 1-D; negative ones count from the end.
        keep_dims: keep reduced axes, with length 1.
        name: the name of the node.
    """
    return make(
        "ReduceL1",
        4,
        [node, reduction_axes],
        {
            "keep_dims": keep_dims,
        },
        name,
    )


def reduce_l2(
    node: NodeInput,
    reduction_axes: NodeInput,
    keep_dims: bool = False,
    name: str | None = None,
) -> Node:
    """Create ReduceL2-4.

    Square root of the sum of squares of ``data`` over ``axes``; for integers, rounded towards zero.

    Args:
        node: tensor to reduce.
        reduction_axes: axes to reduce, a scalar or 1-D; negative ones count from the end.
        keep_dims: keep reduced axes, with length 1.
        name: the name of the node.
    """
    return make(
        "ReduceL2",
        4,
        [node, reduction_axes],
        {
            "keep_dims": keep_dims,
        },
        name,
    )


def softplus(
    data: NodeInput,
    name: str | None = None,
) -> Node:
    """SoftPlus-4: The logarithm of 1 plus the exponential of each element of ``data``.

    Args:
        data: tensor of any shape.
        name: the name of the node.
    """
    return make(
        "SoftPlus",
        4,
        [data],
        {},
        name,
    )


def swish(
    data: NodeInput,
    beta: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """Swish-4: Each element of ``data`` times the logistic function of ``beta`` times it.

    Args:
        data: tensor of any shape.
        beta: a scalar; 1 when absent.
        name: the name of the node.
    """
    return make(
        "Swish",
        4,
        [data, beta],
        {},
        name,
    )
