"""Dims that inference refuses are refused at run time as well, even if NumPy would broadcast them; for every operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import pytest
from harness.files import model_of
from harness.nets import Net
from harness.sample import Sample, all_samples
from harness.subjects import lengths

import ir_runtime as ir
from ir_runtime.backends import available
from ir_runtime.errors import IRError
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value

FEEDS = 6
"""Of each operation, so many are tried that inference refuses: of several samples."""
SAMPLES: dict[str, list[Sample]] = {}
for _sample in all_samples():
    if len(_sample.inputs) > len(_sample.constant) and not _sample.layer().needs("visit"):
        SAMPLES.setdefault(_sample.op, []).append(_sample)
REFUSING = [op for op, samples in SAMPLES.items() if any(s.layer().refuses_lengths() for s in samples)]


def refused(sample: Sample) -> Iterator[tuple[Array, ...]]:
    """Return inputs whose dims inference refuses, whatever their contents."""
    op, elements = sample.layer(), [value.element for value in sample.values()]
    for feed in lengths(sample.inputs):
        if any(feed.arrays[index].shape != sample.inputs[index].shape for index in sample.constant):
            continue
        values = [
            Value.constant(x, element)
            if index in sample.constant
            else Value.unknown(element, PartialShape(x.shape))
            for index, (x, element) in enumerate(zip(feed.arrays, elements, strict=True))
        ]
        try:
            op.infer_types(*values)
        except IRError:
            yield feed.arrays


def opened(sample: Sample) -> ir.Model:
    """A model of the operation with fully dynamic inputs."""
    model = ir.read_model(*model_of(sample, sample.constant))
    free = [x for index, x in enumerate(sample.inputs) if index not in sample.constant]
    model.reshape({place: [-1] * x.ndim for place, x in enumerate(free)})
    return model


def fed(sample: Sample, arrays: Sequence[Array]) -> list[Array]:
    return [x for index, x in enumerate(arrays) if index not in sample.constant]


@pytest.mark.parametrize("op", SAMPLES)
def test_a_run_refuses_what_inference_refuses(op: str) -> None:
    tried = 0
    for sample in SAMPLES[op][:2]:
        feeds = list(islice(refused(sample), FEEDS))
        if not feeds or tried >= FEEDS:
            continue
        compiled = ir.compile_model(opened(sample), backend="reference")
        for arrays in feeds:
            with pytest.raises(IRError):
                compiled(fed(sample, arrays))
        tried += len(feeds)


@pytest.mark.parametrize("op", REFUSING)
def test_references_that_are_not_checked_refuse_lengths_themselves(op: str) -> None:
    for sample in SAMPLES[op][:12]:
        if not sample.layer().refuses_lengths():
            continue
        evaluate = sample.layer().evaluator([value.element for value in sample.values()])
        for arrays in refused(sample):
            with pytest.raises((ValueError, IRError)), np.errstate(all="ignore"):
                evaluate(*arrays)


CELLS = {
    "RNNCell": (1, (1, 2)),
    "GRUCell": (3, (1, 2)),
    "LSTMCell": (4, (1, 2)),
    "RNNSequence": (1, (1, 3)),
    "GRUSequence": (3, (1, 3)),
    "LSTMSequence": (4, (1, 3)),
}


def recurrent(type: str) -> tuple[Net, list[Array]]:
    """A recurrent layer with 64 rows of data, but one row of each state."""
    gates = CELLS[type][0]
    is_sequence, hidden, inputs = type.endswith("Sequence"), 4, 3
    net = Net()
    states = 2 if type.startswith("LSTM") else 1
    between = "?,1," if is_sequence else "?,"
    x = net.parameter("x", "?,2,3" if is_sequence else "?,3")
    reads = [x, *(net.parameter(f"s{i}", f"{between}{hidden}") for i in range(states))]
    fed = [np.ones((64, 2, inputs) if is_sequence else (64, inputs), np.float32)]
    fed += [np.ones((1, 1, hidden) if is_sequence else (1, hidden), np.float32)] * states
    lead = (1,) if is_sequence else ()
    if is_sequence:
        reads.append(net.parameter("lengths", "?", element="i32"))
        fed.append(np.full(64, 2, np.int32))
    shapes = [(*lead, gates * hidden, columns) for columns in (inputs, hidden)]
    reads += [net.constant(np.full(shape, 0.1), "f32") for shape in shapes]
    reads.append(net.constant(np.full((*lead, gates * hidden), 0.1), "f32"))
    version = {"RNNCell": "opset1", "GRUCell": "opset3", "LSTMCell": "opset4"}.get(type, "opset5")
    how = {"direction": "forward"} if is_sequence else {}
    net.result(net.op(type, *reads, version=version, hidden_size=hidden, **how))
    return net, fed


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("type", CELLS)
def test_rows_of_data_without_states_of_their_own(type: str, backend: str) -> None:
    net, fed = recurrent(type)
    compiled = ir.compile_model(ir.read_model(net.xml(), net.weights), backend=backend)
    with pytest.raises(IRError, match=r"initial_hidden_state has shape \[1,.*; \[batch 64"):
        compiled(fed)
    compiled([fed[0], *(np.repeat(x, 64, 0) if len(x) == 1 else x for x in fed[1:])])
