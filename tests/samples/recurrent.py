"""Samples of recurrent cells and sequences: directions, lengths, activations, clipping, types.

OpenVINO has no reference for them, so the oracle is its plugin, which computes all types in f32. It requires explicit
activations, for which the specification has defaults.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, numbers

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": "tanh", "GRU": "sigmoid,tanh", "LSTM": "sigmoid,tanh,tanh"}
F64 = {"_rtol": 1e-6, "_atol": 1e-6}  # the plugin computes f64 as f32
NAN, INF = np.nan, np.inf


def weights(
    kind: str, inputs: int, hidden: int, dtype: str, biases: int, lead: tuple[int, ...] = ()
) -> list[Any]:
    shapes = ((GATES[kind] * hidden, inputs), (GATES[kind] * hidden, hidden), (biases * hidden,))
    return [numbers(*lead, *s, dtype=dtype, low=-1, high=1, seed=i) for i, s in enumerate(shapes)]


def states(kind: str, *shape: int, dtype: str) -> list[Any]:
    return [numbers(*shape, dtype=dtype, low=-1, high=1, seed=7 + i) for i in range(1 + (kind == "LSTM"))]


def cell(
    op: str, batch: int = 2, inputs: int = 3, hidden: int = 4, dtype: str = "f32", **more: Any
) -> Sample:
    """A cell; without ``fixed``, weights are dynamic inputs."""
    kind = op.partition("Cell")[0]
    fixed, more_inputs = more.pop("fixed", True), more.pop("p", ())
    x = more.pop("x", numbers(batch, inputs, dtype=dtype))
    biases = GATES[kind] + bool(more.get("linear_before_reset"))
    before = [x, *states(kind, batch, hidden, dtype=dtype)]
    after = [*weights(kind, inputs, hidden, dtype, biases)[: more.pop("weights", 3)], *more_inputs]
    constant = tuple(range(len(before), len(before) + len(after))) if fixed else ()
    more = {"activations": FUNCTIONS[kind], "_constant": constant} | more
    return case(op, *before, *after, hidden_size=hidden, **more)


def sequence(
    op: str,
    lengths: tuple[int, ...],
    time: int = 4,
    inputs: int = 3,
    hidden: int = 2,
    dtype: str = "f32",
    **more: Any,
) -> Sample:
    """A sequence with these lengths; without ``fixed``, weights are dynamic inputs."""
    kind = op.partition("Sequence")[0]
    more = {"direction": "forward", "activations": FUNCTIONS[kind]} | more
    fixed, integers = more.pop("fixed", True), more.pop("integers", "i64")
    directions, batch = 1 + (more["direction"] == "bidirectional"), len(lengths)
    x = more.pop("x", numbers(batch, time, inputs, dtype=dtype))
    biases = GATES[kind] + bool(more.get("linear_before_reset"))
    before = [x, *states(kind, batch, directions, hidden, dtype=dtype), ints(*lengths, dtype=integers)]
    after = weights(kind, inputs, hidden, dtype, biases, (directions,))
    constant = tuple(range(len(before), len(before) + 3)) if fixed else ()
    return case(op, *before, *after, hidden_size=hidden, _constant=constant, **more)


def cells(op: str) -> list[Sample]:
    return [
        cell(op),
        cell(op, 1, 1, 1),
        cell(op, 5, 2, 3),
        cell(op, 1, 7, 2),
        cell(op, fixed=False),
        cell(op, clip=0.3),
        cell(op, 3, 5, 2, clip=0.05),
        cell(op, 2, 3, 2, clip=0),
        cell(op, 2, 3, 1, dtype="f64", **F64),
        cell(op, dtype="f16"),
        cell(op, dtype="bf16"),
        cell(op, 2, 2, 2, x=np.array([[INF, 1], [-1, -INF]], "f4")),
        cell(op, 2, 2, 2, x=np.array([[NAN, 1], [-1, 2]], "f4")),
        cell(op, 2, 2, 3, x=np.array([[1e30, 1], [-1, -1e4]], "f4")),
        cell(op, 1, 1, 2, activations_alpha=(1.5, 2), activations_beta=(0.5,)),
    ]


def sequences(op: str) -> list[Sample]:
    return [
        *(
            sequence(op, lengths, direction=direction)
            for direction in ("forward", "reverse", "bidirectional")
            for lengths in ((4, 4), (2, 4, 1), (0, 4, 3))
        ),
        *(sequence(op, (3, 1), integers=integers) for integers in ("i32", "i8", "u8", "u64", "i16")),
        *(sequence(op, lengths, fixed=False, direction="bidirectional") for lengths in ((4, 4), (1, 3))),
        sequence(op, (0, 0)),
        sequence(op, (1,), time=1),
        sequence(op, (9,), time=9, inputs=1, hidden=1),
        sequence(op, (1, 0), time=1, direction="reverse", inputs=2),
        sequence(op, (4, 4), hidden=5, clip=0.2),
        sequence(op, (4, 1), hidden=5, clip=0.2, direction="reverse"),
        sequence(op, (4, 4), dtype="f64", **F64),
        sequence(op, (2, 3), dtype="f64", direction="bidirectional", **F64),
        sequence(op, (4, 4), dtype="f16"),
        sequence(op, (2, 3), dtype="f16", direction="bidirectional"),
        sequence(op, (4, 4), dtype="bf16"),
        sequence(op, (2, 3), dtype="bf16", direction="bidirectional"),
        sequence(op, (2, 4), hidden=3, activations_alpha=(1,), activations_beta=(0.5, 2)),
        sequence(op, (2, 2), 2, 1, 2, x=np.array([[[1], [NAN]], [[-1], [INF]]], "f4")),
        # What lies behind the end of a sequence is not looked at.
        sequence(
            op, (1, 2), 2, 1, 2, x=np.array([[[1], [NAN]], [[-1], [2]]], "f4"), direction="bidirectional"
        ),
        _empty(op),
    ]


def _empty(op: str) -> Sample:
    y = np.zeros((0, 2, 4, 2), "f4")
    last = np.zeros((0, 2, 2), "f4")
    return sequence(
        op,
        (),
        direction="bidirectional",
        _oracle="none",
        _differs="the plugin crashes without a batch entry",
        _expect=(y, last, last)[: 2 + op.startswith("LSTM")],
    )


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm(
    x: Any, h: Any, c: Any, w: Any, r: Any, b: Any, p: Any, order: str, coupled: bool
) -> tuple[Any, Any]:
    """An LSTM cell by its definition, in f64."""
    x, h, c, w, r, b, p = (a.astype("f8") for a in (x, h, c, w, r, b, p))
    gates = dict(zip(order, np.split(x @ w.T + h @ r.T + b, 4, axis=1), strict=True))
    to_f, to_i, to_o = np.split(p, 3)
    forget = _sigmoid(gates["f"] + to_f * c)
    take = 1 - forget if coupled else _sigmoid(gates["i"] + to_i * c)
    state = forget * c + take * np.tanh(gates["c"])
    shown = _sigmoid(gates["o"] + to_o * state) * np.tanh(state)
    return shown.astype("f4"), state.astype("f4")


def peeping(order: str = "fico", coupled: bool = False, peepholes: bool = True) -> Sample:
    p = numbers(12) if peepholes else np.zeros(12, "f4")
    made = cell("LSTMCell-1", p=[p])
    return cell(
        "LSTMCell-1",
        p=[p] if peepholes or not coupled else [],
        weights_format=order,
        input_forget=coupled,
        _oracle="none",
        _differs="the plugin ignores peepholes, input_forget and weights_format",
        _expect=lstm(*made.inputs, order, coupled),
    )


SAMPLES = [
    *(sample for op in ("LSTMCell-1", "LSTMCell-4", "GRUCell-3", "RNNCell-1") for sample in cells(op)),
    *(
        cell(op, 3, 2, 5, activations=functions)
        for op in ("LSTMCell-1", "LSTMCell-4")
        for functions in ("relu,sigmoid,relu", "tanh,relu,sigmoid", "sigmoid,sigmoid,tanh")
    ),
    cell("LSTMCell-1", weights=2),
    cell("LSTMCell-1", p=[np.zeros(12, "f4")]),
    peeping(),
    peeping(coupled=True),
    peeping(coupled=True, peepholes=False),
    *(peeping(order, peepholes=False) for order in ("icof", "ifco", "ifoc", "iofc")),
    *(
        cell("GRUCell-3", 3, 2, 5, activations=functions)
        for functions in ("relu,tanh", "tanh,relu", "sigmoid,sigmoid")
    ),
    *(
        cell("GRUCell-3", linear_before_reset=True, **more)
        for more in ({}, {"clip": 0.4}, {"activations": "relu,sigmoid"}, {"dtype": "f16"}, {"fixed": False})
    ),
    *(cell("RNNCell-1", 3, 2, 5, activations=function) for function in ("relu", "sigmoid")),
    cell("RNNCell-1", 3, 2, 5, activations="relu", clip=0.5),
    *(sample for op in ("LSTMSequence-5", "GRUSequence-5", "RNNSequence-5") for sample in sequences(op)),
    *(
        sequence("LSTMSequence-5", (4, 2), hidden=5, direction=direction, activations=functions)
        for direction in ("forward", "bidirectional")
        for functions in ("relu,sigmoid,relu", "tanh,relu,sigmoid")
    ),
    *(
        sequence("GRUSequence-5", lengths, hidden=5, direction=direction, linear_before_reset=True, **more)
        for direction in ("forward", "reverse", "bidirectional")
        for lengths in ((4, 4), (2, 4))
        for more in ({}, {"clip": 0.4})
    ),
    sequence("GRUSequence-5", (4, 2), hidden=5, activations="sigmoid,relu"),
    # Functions of the second direction, as ONNX has them, are not looked at.
    *(
        sequence(
            f"{kind}Sequence-5", (4, 2), direction="bidirectional", activations=f"{FUNCTIONS[kind]},{more}"
        )
        for kind, more in (("LSTM", "relu,relu,relu"), ("GRU", "sigmoid,tanh"), ("RNN", "relu"))
    ),
    sequence("GRUSequence-5", (4, 2), hidden=5, activations="tanh,sigmoid", direction="bidirectional"),
    *(
        sequence("RNNSequence-5", (4, 2), hidden=5, direction=direction, activations=function)
        for direction in ("forward", "bidirectional")
        for function in ("relu", "sigmoid")
    ),
]
