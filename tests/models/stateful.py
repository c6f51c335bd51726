"""Models with variables, built with OpenVINO."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset3, opset6
from openvino import opset13 as op


def total() -> ov.Model:
    """Accumulate the inputs, starting from 10."""
    x = op.parameter([1, 3], np.float32, name="x")
    held = opset6.read_value(op.constant(np.full((1, 3), 10, np.float32)), "total", np.float32, [1, 3])
    new = op.add(held, x)
    return ov.Model([op.result(new)], [opset6.assign(new, "total")], [x])


def cache() -> ov.Model:
    """Append every input to a cache, like keys and values of attention."""
    x = op.parameter([-1, 2], np.float32, name="x")
    held = opset6.read_value(op.constant(np.zeros((0, 2), np.float32)), "cache", np.float32, [-1, 2])
    grown = op.concat([held, x], 0)
    mean = op.reduce_mean(grown, op.constant([0]), False)
    return ov.Model([op.result(grown), op.result(mean)], [opset6.assign(grown, "cache")], [x])


def previous() -> ov.Model:
    """Return three times the previous input; the variable starts as twice the first input."""
    x = op.parameter([2], np.float32, name="x")
    held = opset6.read_value(op.multiply(x, op.constant(np.float32(2))), "previous", np.float32, [2])
    kept = op.multiply(x, op.constant(np.float32(3)))
    return ov.Model([op.result(op.relu(held))], [opset6.assign(kept, "previous")], [x])


def input_before() -> ov.Model:
    """Assign the input itself, which crashes OpenVINO's plugin."""
    x = op.parameter([2], np.float32, name="x")
    held = opset6.read_value(op.constant(np.zeros(2, np.float32)), "before", np.float32, [2])
    return ov.Model([op.result(held)], [opset6.assign(x, "before")], [x])


def old_versions() -> ov.Model:
    x = op.parameter([1, 3], np.float32, name="x")
    held = opset3.read_value(op.constant(np.ones((1, 3), np.float32)), "total")
    new = op.multiply(held, x)
    return ov.Model([op.result(new)], [opset3.assign(new, "total")], [x])


def decoder(most: int) -> ov.Model:
    """Cache [beams, 2, tokens, 4], reordered by ``beam_idx``, and return its mean over tokens."""
    new = op.parameter([-1, 2, -1, 4], np.float32, name="new")
    beams = op.parameter([-1], np.int32, name="beam_idx")
    empty = op.constant(np.zeros((most, 2, 0, 4), np.float32))
    held = opset6.read_value(empty, "cache", np.float32, [-1, 2, -1, 4])
    grown = op.concat([op.gather(held, beams, op.constant(0)), new], 2)
    mean = op.reduce_mean(grown, op.constant([2]), False)
    return ov.Model([op.result(mean), op.result(grown)], [opset6.assign(grown, "cache")], [new, beams])


VARIABLES = (total, cache, previous, input_before, old_versions)
