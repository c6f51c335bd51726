"""The order of the gates of an LSTM in which kernels compute them."""

from __future__ import annotations

import numpy as np

from ...ir.tensor import Array

__all__ = ["sigmoid_gates_first"]

# OpenVINO stores the gates f, i, c, o; of these, c alone has no sigmoid.
_F_I_O_C = (0, 1, 3, 2)


def sigmoid_gates_first(array: Array, hidden: int, axis: int = 0) -> Array:
    """Return a copy of the weights or biases of an LSTM with the gates in the order f, i, o, c.

    Gates with the same activation are adjacent, so that one call computes them.

    Args:
        array: weights or biases of four gates of ``hidden`` rows.
        hidden: the size of the hidden state.
        axis: the axis of the gates.
    """
    shape = array.shape
    gates = array.reshape(*shape[:axis], 4, hidden, *shape[axis + 1 :])
    return np.take(gates, _F_I_O_C, axis).reshape(shape)
