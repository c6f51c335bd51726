"""Which results of OpenVINO's CPU plugin differ from the specification in the installed version?

    python tests/bench/divergences.py [NAME...]

Each case is a model of one or few layers with its inputs (the page `ir-runtime guide divergences` lists them). The plugin runs it in
f32 in a process of its own, as it may die; what it gives is compared with f64 of this package, which computes what the
page of the operation says, and where that leaves it open, what the guide says. Prints for each case whether the difference holds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op

RUN = """
import sys
import numpy as np, openvino as ov
settings = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
compiled = ov.Core().compile_model(sys.argv[1] + "/model.xml", "CPU", settings)
arrays = np.load(sys.argv[1] + "/inputs.npz")
results = compiled([arrays[name] for name in sorted(arrays.files)])
np.savez(sys.argv[1] + "/results.npz", *[results[index] for index in range(len(compiled.outputs))])
"""

Made = tuple[ir.Model, list[np.ndarray]]
CASES: dict[str, Callable[[], Made]] = {}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case.

    Args:
        name: its name.
        holds: whether the plugin differs.
        what: a description of the difference.
    """

    name: str
    holds: bool
    what: str

    def __str__(self) -> str:
        return f"{self.name:24} {'differs' if self.holds else 'agrees':8} {self.what}"


def case(make: Callable[[], Made]) -> Callable[[], Made]:
    """Register a case."""
    CASES[make.__name__.replace("_", "-")] = make
    return make


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _parameter(array: np.ndarray, name: str = "x") -> ir.Node:
    return op.parameter(list(array.shape), array.dtype, name=name)


def _of_one(make: Callable[[ir.Node], ir.Node], array: np.ndarray) -> Made:
    x = _parameter(array)
    return ir.Model([make(x)], [x]), [array]


@case
def grouped_u8_weights() -> Made:
    """Compressed weights of 8 bits with a zero point, in two groups of 6: of 1 with the scale 1, and of 2 with the scale 10."""
    weights = np.broadcast_to(np.uint8([[101], [102]]), (8, 2, 6))
    scales = np.broadcast_to(np.float32([[1], [10]]), (8, 2, 1))
    wide = op.convert(op.constant(weights), "f32")
    zero = op.convert(op.constant(np.full((8, 2, 1), 100, np.uint8)), "f32")
    scaled = op.multiply(op.subtract(wide, zero), op.constant(scales))
    matrix = op.reshape(scaled, op.constant([8, 12]), False)
    return _of_one(lambda x: op.matmul(x, matrix, False, True), np.ones((2, 12), np.float32))


@case
def space_to_batch() -> Made:
    """A Convolution with pads between SpaceToBatch and BatchToSpace."""
    block, none = op.constant([1, 1, 2, 2]), op.constant([0, 0, 0, 0])
    filters = op.constant(np.ones((1, 1, 3, 3), np.float32))

    def make(x: ir.Node) -> ir.Node:
        y = op.space_to_batch(x, block, none, none)
        y = op.convolution(y, filters, [1, 1], [1, 1], [1, 1], [1, 1])
        return op.batch_to_space(y, block, none, none)

    return _of_one(make, np.ones((1, 1, 8, 8), np.float32))


@case
def strided_slice() -> Made:
    """StridedSlice that removes an axis, then adds one, behind another layer."""
    place, step = op.constant([1, 0, 0]), op.constant([1, 1, 1])
    return _of_one(
        lambda x: op.strided_slice(
            op.relu(x), place, place, step, [0, 1, 1], [0, 1, 1], [0, 1, 0], [1, 0, 0], [0, 0, 0]
        ),
        np.arange(24, dtype=np.float32).reshape(4, 3, 2),
    )


@case
def interpolate_antialias() -> Made:
    """Interpolate-11, linear, smaller, with antialias."""
    return _of_one(
        lambda x: op.interpolate(
            x, op.constant(np.array([3, 4], np.int32)), "linear", "sizes", [0, 0], [0, 0], antialias=True,
            axes=op.constant(np.array([2, 3], np.int32)),
        ),
        _random(1, 1, 8, 9),
    )  # fmt: skip


@case
def equal_of_integers() -> Made:
    """Equal of i32 that differ by 1 above 2^24."""
    x = np.array([2**24, 2**24 + 2], np.int32)
    return _of_one(lambda p: op.equal(p, op.constant(np.array([2**24 + 1, 2**24 + 2], np.int32))), x)


@case
def divide_of_integers() -> Made:
    """Divide of i32, negative ones too."""
    x = np.array([-7, 7, -8, 2**25 + 1], np.int32)
    return _of_one(lambda p: op.divide(p, op.constant(np.array([2, -2, 3, 1], np.int32))), x)


@case
def gelu_tanh() -> Made:
    """The layers of the tanh formula of Gelu, with 0.79 in place of the root of 2/pi."""

    def make(x: ir.Node) -> ir.Node:
        cube = op.multiply(op.power(x, op.constant(np.float32(3))), op.constant(np.float32(0.044715)))
        inner = op.multiply(op.add(x, cube), op.constant(np.float32(0.79)))
        outer = op.add(op.tanh(inner), op.constant(np.float32(1)))
        return op.multiply(op.multiply(x, op.constant(np.float32(0.5))), outer)

    return _of_one(make, np.float32([0, 1, 2]))


@case
def convert_to_boolean() -> Made:
    """Convert of tiny numbers and NaN to boolean."""
    return _of_one(lambda x: op.convert(x, "boolean"), np.float32([256, np.nan, 1e-10, 0, 0.5]))


@case
def convert_to_u16() -> Made:
    """Convert of numbers beyond the range to u16 and back."""
    return _of_one(lambda x: op.convert(op.convert(op.abs(x), "u16"), "f32"), np.float32([70000, 5.7, 40000]))


@case
def fake_quantize_reversed() -> Made:
    """FakeQuantize whose input limits are exchanged."""
    low, high = op.constant(np.float32(-1)), op.constant(np.float32(1))
    half = np.full((1, 4, 4, 4), 0.5, np.float32)
    return _of_one(lambda x: op.fake_quantize(x, high, low, low, high, 256), half)


@case
def gather_of_nothing() -> Made:
    """Gather without indices."""
    return _of_one(
        lambda x: op.gather(op.constant(_random(4, 3)), x, op.constant(0)), np.zeros((0,), np.int32)
    )


@case
def pad_of_an_input() -> Made:
    """Pad by a value that is an input of the model."""
    x, value = op.parameter([2, 3], np.float32), op.parameter([], np.float32)
    padded = op.pad(x, np.int64([1, 0]), np.int64([0, 2]), "constant", value)
    data = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    return ir.Model([padded], [x, value], "pad"), [data, np.array(-2.5, np.float32)]


@case
def range_of_nothing() -> Made:
    """Range of real numbers whose stop is on the other side of its start than the step."""
    ends = [op.parameter([], np.float32) for _ in range(3)]
    model = ir.Model([op.range(*ends, "f32")], ends, "range")
    return model, [np.array(number, np.float32) for number in (-1, -5, 2)]


def _nan(name: str, make: Callable[[ir.Node], ir.Node], values: Iterable[float] = (np.nan, 0, 1)) -> None:
    def build() -> Made:
        return _of_one(make, np.array([[*values]], np.float32))

    build.__doc__ = f"{name} of NaN."
    CASES[name] = build


_nan("exp-of-nan", op.exp)
_nan("softmax-of-nan", lambda x: op.softmax(x, 1))
_nan("hsigmoid-of-nan", op.hsigmoid)
_nan("gelu-of-infinity", lambda x: op.gelu(x, "erf"), (np.inf, 1))


@case
def lstm_lengths() -> Made:
    """The last state of LSTMSequence with dynamic shapes and shorter sequences."""
    x = op.parameter([-1, -1, 4], np.float32, name="x")
    lengths = op.parameter([-1], np.int64, name="z_lengths")
    batch = op.gather(op.shape_of(x), op.constant([0]), op.constant(0))
    zero = op.constant(np.zeros((1, 1, 3), np.float32))
    state = op.broadcast(zero, op.concat([batch, op.constant([1, 3])], 0))
    parts = (op.constant(_random(*shape)) for shape in ((1, 12, 4), (1, 12, 3), (1, 12)))
    sequence = op.lstm_sequence(x, state, state, lengths, *parts, 3, "forward")
    return ir.Model([sequence.output(1)], [x, lengths]), [_random(3, 7, 4), np.array([7, 4, 2])]


@case
def iterator_squeeze_add() -> Made:
    """TensorIterator whose body adds what it carries to a squeezed slice."""
    x, carried = op.parameter([1, 3, 2], np.float32, name="x"), op.parameter([1, 2], np.float32, name="y")
    piece, before = op.parameter([1, 1, 2], np.float32), op.parameter([1, 2], np.float32)
    after = op.add(op.squeeze(piece, op.constant([1])), before)
    iterator = op.tensor_iterator()
    iterator.set_body(ir.Model([op.result(after)], [piece, before], "body"))
    iterator.set_sliced_input(piece, x.output(0), 0, 1, 1, -1, 1)
    iterator.set_merged_input(before, carried.output(0), after.output(0))
    last = iterator.get_iter_value(after.output(0), -1)
    return ir.Model([op.result(last)], [x, carried]), [_random(1, 3, 2), np.float32([[100, 200]])]


@case
def loop_that_grows() -> Made:
    """ShapeOf the input of a Loop that carries it, longer in each iteration."""
    count, x = op.parameter([], np.int64, name="count"), op.parameter([-1, 2], np.float32, name="x")
    before = op.parameter([-1, 2], np.float32)
    first, longer = op.relu(before), op.concat([before, before], 0)
    true = op.constant(np.array(True))
    loop = op.loop(count, true)
    loop.set_function(ir.Model([op.result(longer), op.result(first), op.result(true)], [before], "body"))
    loop.set_special_body_ports([-1, 2])
    loop.set_merged_input(before, x.output(0), longer.output(0))
    last = loop.get_iter_value(first.output(0), -1)
    rows = op.gather(op.shape_of(x), op.constant([0]), op.constant(0))
    made = op.reshape(last, op.concat([rows, op.constant([-1])], 0), False)
    return ir.Model([op.result(made)], [count, x]), [np.array(3), _random(1, 2)]


@case
def avg_pool_of_nothing() -> Made:
    """AvgPool with a window that holds no element: pads that are not counted, and a length rounded up."""
    return _of_one(lambda x: op.avg_pool(x, [4], [0], [0], [3], True, "ceil", "same_upper"), _random(1, 1, 8))


@case
def ctc_loss_of_nothing() -> Made:
    """CTCLoss of sequences without labels."""
    x = _parameter(logits := _random(1, 3, 3))
    lengths, none = op.constant(np.int32([3])), op.constant(np.int32([0]))
    labels = op.constant(np.int32([[1, 1, 0]]))
    loss = op.ctc_loss(x, lengths, labels, none, op.constant(np.int32(0)), False, True, False)
    return ir.Model([loss], [x]), [logits]


def outcome(name: str) -> Outcome:
    """Run a case on the plugin, and compare."""
    model, inputs = CASES[name]()
    truth = debug.oracle(model, inputs).outputs
    with tempfile.TemporaryDirectory() as folder:
        ir.save_model(model, Path(folder, "model.xml"), compress_to_fp16=False)
        np.savez(Path(folder, "inputs.npz"), **{f"input_{i}": array for i, array in enumerate(inputs)})
        done = subprocess.run(
            [sys.executable, "-c", RUN, folder], capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or [f"ends with {done.returncode}"]
            return Outcome(name, True, f"cannot run: {last[0][:100]}")
        with np.load(Path(folder, "results.npz")) as archive:
            found = [archive[key] for key in archive.files]
    for theirs, exact in zip(found, truth, strict=True):
        if theirs.shape != exact.shape:
            return Outcome(name, True, f"shape {list(theirs.shape)} instead of {list(exact.shape)}")
        with np.errstate(all="ignore"):
            close = np.isclose(
                theirs.astype(np.float64), exact.astype(np.float64), 1e-4, 1e-5, equal_nan=True
            )
        if not close.all():
            place = tuple(int(i) for i in np.argwhere(~close)[0])
            return Outcome(
                name,
                True,
                f"{theirs[place]} instead of {exact[place]} at {list(place)}, {int((~close).sum())} of {close.size}",
            )
    return Outcome(name, False, "")


def main(names: Iterable[str]) -> None:
    """Print a line for each case."""
    for name in list(names) or CASES:
        print(outcome(name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
