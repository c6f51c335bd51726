"""The operations that opset5 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.building.factories import Loop as loop, NodeInput, make
from ..api.nodes import Node

__all__ = [
    "batch_norm_inference",
    "gru_sequence",
    "hsigmoid",
    "log_softmax",
    "loop",
    "lstm_sequence",
    "rnn_sequence",
    "round",
]


def batch_norm_inference(
    data: NodeInput,
    gamma: NodeInput,
    beta: NodeInput,
    mean: NodeInput,
    variance: NodeInput,
    epsilon: float,
    name: str | None = None,
) -> Node:
    """Create BatchNormInference-5.

    Scale and shift each channel of ``data``: ``gamma`` (x - ``mean``) / sqrt(``variance``) + ``beta``.

    Args:
        data: [N, C, ...].
        gamma: factor of each channel, [C].
        beta: added to each channel, [C].
        mean: mean of each channel, [C].
        variance: variance of each channel, [C].
        epsilon: added to the variance.
        name: the name of the node.
    """
    return make(
        "BatchNormInference",
        5,
        [data, gamma, beta, mean, variance],
        {
            "epsilon": epsilon,
        },
        name,
    )


def gru_sequence(
    X: NodeInput,
    initial_hidden_state: NodeInput,
    sequence_lengths: NodeInput,
    W: NodeInput,
    R: NodeInput,
    B: NodeInput,
    hidden_size: int,
    direction: str,
    activations: Sequence[str] | None = None,
    activations_alpha: Sequence[float] | None = None,
    activations_beta: Sequence[float] | None = None,
    clip: float = 0.0,
    linear_before_reset: bool = False,
    name: str | None = None,
) -> Node:
    """GRUSequence-5: A gated recurrent unit along the sequences in ``x``, as many elements of each as it has.

    Args:
        X: [batch, time, input].
        initial_hidden_state: [batch, directions, hidden].
        sequence_lengths: how many elements each sequence has, [batch].
        W: weights of x for all gates, [directions, gates * hidden, input].
        R: weights of the hidden state, [directions, gates * hidden, hidden].
        B: biases of the gates z, r, h, [directions, 3 * hidden]; with linear_before_reset one more for h,
            [directions, 4 * hidden].
        hidden_size: length of the hidden state.
        direction: forward: from the first element to the last; reverse: from the last to the first;
            bidirectional: both, with weights for each.
        activations: the functions f of the gates z and r, and g of h.
        activations_alpha: parameters of the functions, which none of the functions allowed has.
        activations_beta: more parameters of the functions, which none of the functions allowed has.
        clip: gates are kept within this of 0 before they are activated; 0: they are not.
        linear_before_reset: reset the product of the hidden state and its weights, not that state; h has two
            biases then.
        name: the name of the node.
    """
    return make(
        "GRUSequence",
        5,
        [X, initial_hidden_state, sequence_lengths, W, R, B],
        {
            "hidden_size": hidden_size,
            "direction": direction,
            "activations": activations,
            "activations_alpha": activations_alpha,
            "activations_beta": activations_beta,
            "clip": clip,
            "linear_before_reset": linear_before_reset,
        },
        name,
    )


def hsigmoid(
    data: NodeInput,
    name: str | None = None,
) -> Node:
    """HSigmoid-5: A straight line from 0 at -3 to 1 at 3, for each element of ``data``; flat outside.

    Args:
        data: tensor of any shape.
        name: the name of the node.
    """
    return make(
        "HSigmoid",
        5,
        [data],
        {},
        name,
    )


def log_softmax(
    data: NodeInput,
    axis: int,
    name: str | None = None,
) -> Node:
    """LogSoftmax-5: The logarithm of the SoftMax of ``data`` along ``axis``.

    Args:
        data: tensor of any shape.
        axis: the axis of the sums; a negative one counts from the end.
        name: the name of the node.
    """
    return make(
        "LogSoftmax",
        5,
        [data],
        {
            "axis": axis,
        },
        name,
    )


def lstm_sequence(
    X: NodeInput,
    initial_hidden_state: NodeInput,
    initial_cell_state: NodeInput,
    sequence_lengths: NodeInput,
    W: NodeInput,
    R: NodeInput,
    B: NodeInput,
    hidden_size: int,
    direction: str,
    activations: Sequence[str] | None = None,
    activations_alpha: Sequence[float] | None = None,
    activations_beta: Sequence[float] | None = None,
    clip: float = 0.0,
    name: str | None = None,
) -> Node:
    """Create LSTMSequence-5.

    A long short-term memory along the sequences in ``x``, as many elements of each as it has.

    Args:
        X: [batch, time, input].
        initial_hidden_state: [batch, directions, hidden].
        initial_cell_state: [batch, directions, hidden].
        sequence_lengths: how many elements each sequence has, [batch].
        W: weights of x for the gates f, i, c, o, [directions, 4 * hidden, input].
        R: weights of the hidden state, [directions, 4 * hidden, hidden].
        B: biases, [directions, 4 * hidden].
        hidden_size: length of the hidden state.
        direction: forward: from the first element to the last; reverse: from the last to the first;
            bidirectional: both, with weights for each.
        activations: the functions f of the gates f, i and o, g of c, and h of the cell state.
        activations_alpha: parameters of the functions, which none of the functions allowed has.
        activations_beta: more parameters of the functions, which none of the functions allowed has.
        clip: gates are kept within this of 0 before they are activated; 0: they are not.
        name: the name of the node.
    """
    return make(
        "LSTMSequence",
        5,
        [X, initial_hidden_state, initial_cell_state, sequence_lengths, W, R, B],
        {
            "hidden_size": hidden_size,
            "direction": direction,
            "activations": activations,
            "activations_alpha": activations_alpha,
            "activations_beta": activations_beta,
            "clip": clip,
        },
        name,
    )


def rnn_sequence(
    X: NodeInput,
    initial_hidden_state: NodeInput,
    sequence_lengths: NodeInput,
    W: NodeInput,
    R: NodeInput,
    B: NodeInput,
    hidden_size: int,
    direction: str,
    activations: Sequence[str] | None = None,
    activations_alpha: Sequence[float] | None = None,
    activations_beta: Sequence[float] | None = None,
    clip: float = 0.0,
    name: str | None = None,
) -> Node:
    """RNNSequence-5: A plain recurrent cell along the sequences in ``x``, as many elements of each as it has.

    Args:
        X: [batch, time, input].
        initial_hidden_state: [batch, directions, hidden].
        sequence_lengths: how many elements each sequence has, [batch].
        W: weights of x for all gates, [directions, gates * hidden, input].
        R: weights of the hidden state, [directions, gates * hidden, hidden].
        B: biases, [directions, gates * hidden].
        hidden_size: length of the hidden state.
        direction: forward: from the first element to the last; reverse: from the last to the first;
            bidirectional: both, with weights for each.
        activations: the function f of the gate.
        activations_alpha: parameters of the functions, which none of the functions allowed has.
        activations_beta: more parameters of the functions, which none of the functions allowed has.
        clip: gates are kept within this of 0 before they are activated; 0: they are not.
        name: the name of the node.
    """
    return make(
        "RNNSequence",
        5,
        [X, initial_hidden_state, sequence_lengths, W, R, B],
        {
            "hidden_size": hidden_size,
            "direction": direction,
            "activations": activations,
            "activations_alpha": activations_alpha,
            "activations_beta": activations_beta,
            "clip": clip,
        },
        name,
    )


def round(
    data: NodeInput,
    mode: str = "half_to_even",
    name: str | None = None,
) -> Node:
    """Round-5: The whole number nearest to ``data``.

    Args:
        data: tensor to map.
        mode: which of two numbers to take that are equally near.
        name: the name of the node.
    """
    return make(
        "Round",
        5,
        [data],
        {
            "mode": mode,
        },
        name,
    )
