"""Networks on tabular data and graphs."""

from __future__ import annotations

import numpy as np
from openvino import opset15 as op

from models.kinds.registry import Built, Weights, dense, index_input, kind


@kind
def embedding_bags(w: Weights, batch: int) -> Built:
    """A recommender: bags of eight embedding tables and dense features, followed by a perceptron."""
    bags, parameters, features = 16 * batch, [], []
    for table in range(8):
        indices = index_input(f"table_{table}", 1000, bags * 6)
        offsets = op.constant(np.arange(bags, dtype=np.int64) * 6)
        parameters.append(indices)
        features.append(op.embedding_bag_offsets_sum(w(1000, 32, gain=5), indices, offsets))
    numbers = op.parameter([bags, 13], np.float32, name="numbers")
    features.append(dense(w, numbers, 13, 32, op.relu))
    x = dense(w, op.concat(features, 1), 9 * 32, 128, op.relu)
    return op.sigmoid(dense(w, dense(w, x, 128, 64, op.relu), 64, 1, None)), [*parameters, numbers]


@kind
def graph_network(w: Weights, batch: int) -> Built:
    """Message passing as exported from PyTorch Geometric, with ScatterElementsUpdate sums."""
    nodes, edges, width = 64 * batch, 256 * batch, 32
    x = op.parameter([nodes, width], np.float32, name="x")
    source, target = (index_input(name, nodes, edges) for name in ("source", "target"))
    y = x
    for _ in range(3):
        messages = dense(w, op.gather(y, source, op.constant(0)), width, width, op.relu)
        column = op.unsqueeze(target, op.constant([1]))
        places = op.broadcast(column, op.constant([edges, width]), broadcast_spec="BIDIRECTIONAL")
        zeros = op.broadcast(op.constant(np.float32(0)), op.constant([nodes, width]))
        summed = op.scatter_elements_update(zeros, places, messages, op.constant(0), "sum")
        joined = op.concat([y, summed], 1)
        y = dense(w, joined, 2 * width, width, op.relu)
    return op.reduce_mean(y, op.constant([0])), [x, source, target]


@kind
def tabular(w: Weights, batch: int) -> Built:
    """A three-layer perceptron, dominated by the fixed cost of a call."""
    x = op.parameter([batch, 32], np.float32, name="row")
    y = dense(w, dense(w, x, 32, 64, op.relu), 64, 64, op.relu)
    return op.softmax(dense(w, y, 64, 4, None), 1), [x]


@kind
def perceptron(w: Weights, batch: int) -> Built:
    """Three wide layers on 28x28 images, dominated by matrix products."""
    x = op.parameter([batch, 784], np.float32, name="picture")
    y = dense(w, dense(w, x, 784, 512, op.relu), 512, 512, op.relu)
    return op.softmax(dense(w, y, 512, 10, None), 1), [x]
