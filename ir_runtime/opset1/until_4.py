"""The operations that opset1 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "lstm_cell",
    "proposal",
]


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
    """Create LSTMCell-1.

    As version 4, with peepholes, coupled gates and gates in other orders, of which the page says nothing.

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
        1,
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


def proposal(
    class_probs: NodeInput,
    bbox_deltas: NodeInput,
    image_shape: NodeInput,
    attrs: Mapping[str, Any],
    name: str | None = None,
) -> Node:
    """Create Proposal-1.

    Boxes that ``bbox_deltas`` make of anchors at every place, the best of those that do not overlap.

    Args:
        class_probs: [N, 2 * anchors, H, W]: scores of background, then of foreground.
        bbox_deltas: [N, 4 * anchors, H, W]: steps of the centre, logarithms of factors of sides.
        image_shape: [3 or 4]: height and width of the image, one scale for both or two.
        attrs: the attributes by name.
        name: the name of the node.
    """
    return make(
        "Proposal",
        1,
        [class_probs, bbox_deltas, image_shape],
        {
            **attrs,
        },
        name,
    )
