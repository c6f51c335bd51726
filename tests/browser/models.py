"""Small models that exercise everything a report shows."""

from __future__ import annotations

import numpy as np

import ir_runtime as ov
from ir_runtime import opset13 as ops

HOSTILE = "</script><img src=x onerror=alert(1)><script>alert(2)</script>\"'&\u202e\u0007"


def named(node: ov.Node, name: str) -> ov.Node:
    node.friendly_name = name
    return node


def residual(blocks: int = 12) -> ov.Model:
    """A residual network with a dynamic batch and shape arithmetic at its end."""
    x = ops.parameter([-1, 4, 8, 8], np.float32, "image")
    y: ov.Node = x
    for number in range(blocks):
        kernel = ops.constant(
            np.linspace(-1, number, 144, dtype=np.float32).reshape(4, 4, 3, 3), name=f"kernel{number}"
        )
        conv = named(ops.convolution(y, kernel, [1, 1], [1, 1], [1, 1], [1, 1]), f"body/block{number}/conv")
        conv = named(ops.add(conv, np.float32(1)), f"body/block{number}/bias")
        y = named(ops.add(named(ops.relu(conv), f"body/block{number}/relu"), y), f"body/block{number}/sum")
    size = ops.gather(named(ops.shape_of(y), "head/shape"), np.int64([0]), np.int64(0))
    flat = named(ops.reshape(y, ops.concat([size, np.int64([-1])], 0), False), "head/flat")
    return ov.Model([named(ops.softmax(flat, 1), "head/softmax")], [x], "residual")


def loop() -> ov.Model:
    """A loop that adds the rows of its input."""
    x, carried = ops.parameter([3, 2], np.float32, "x"), ops.parameter([1, 2], np.float32, "sum")
    part = ops.parameter([1, 2], np.float32, "part")
    body = ov.Model([ops.result(named(ops.add(carried, part), "total"))], [carried, part], "body")
    found = ops.tensor_iterator()
    found.set_body(body)
    found.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 0)
    found.set_merged_input(
        carried, ops.constant(np.zeros((1, 2), np.float32)).output(0), body.results[0].output(0)
    )
    return ov.Model([ops.relu(found.get_iter_value(body.results[0].output(0), -1))], [x])


def hostile() -> ov.Model:
    """A model with markup as names."""
    x = ops.parameter([1, 2], np.float32, HOSTILE)
    y: ov.Node = x
    for number in range(3):
        y = named(
            ops.add(
                named(ops.relu(y), f"{HOSTILE}/{number}/relu"), ops.constant(np.float32([1, 2]), name=HOSTILE)
            ),
            f"{HOSTILE}/{number}/add",
        )
        y.get_rt_info()[HOSTILE] = HOSTILE
        y.output(0).set_names({f"{HOSTILE}{number}"})
    return ov.Model([y], [x], HOSTILE)


def long(layers: int) -> ov.Model:
    """Blocks of 20 layers, in stages of 10 blocks."""
    x = ops.parameter([2], np.float32, "x")
    y: ov.Node = x
    for number in range(layers):
        y = named(ops.relu(y), f"net/stage{number // 200}/block{number // 20}/r{number}")
    return ov.Model([y], [x])
