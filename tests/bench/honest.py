"""Does `debug.compare` accuse an execution that has no fault?

    python tests/bench/honest.py [--others | --exported] [--side SIDE] [--operations N] [--seed N] [MODEL...]

Networks on which no threshold was set, among them int8, int4, nf4, FakeQuantize, recurrent layers, Loop, a detector,
masks, and files in f16, are run by OpenVINO in f32, in bf16 and as it comes, by ONNX Runtime where there is an ONNX model, and
by the backends; then single operations of the samples of the tests in f32 and in bf16. Printed is what is not
explained. Left out are samples of which the tests say that OpenVINO is wrong, inputs that are infinite or NaN, and what OpenVINO
does not run.
An overflow accuses nobody: the numbers exceed the type. Where OpenVINO's plugin differs from OpenVINO's own definition
of an operation, one of them is no honest execution: this is counted as two answers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as op

sys.path.insert(0, str(Path(__file__).parents[1]))
from harness.files import model_of
from harness.oracle import evaluated, plugin, read
from harness.sample import Sample, named_samples
from models import compressed, controlled, quantized, recurrent
from models.kinds import KINDS, inputs_of
from models.networks import NETWORKS, conv, weights

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.backends import available

SIDES = (
    "openvino",
    "openvino:default",
    "openvino:bf16",
    *(name for name in available() if name != "reference"),
)
Case = tuple[Callable[[], Any], Callable[[Any], Any]]


def detector() -> Any:
    """Boxes and scores from a feature map, followed by non-maximum suppression."""
    x = op.parameter([1, 3, 32, 32], np.float32, name="image")
    y = conv(conv(x, 16, stride=2), 32, stride=2)
    corners = op.sigmoid(conv(y, 4, activation=None))
    flat = op.transpose(op.reshape(corners, op.constant([1, 4, 64]), False), op.constant([0, 2, 1]))
    scores = op.reshape(op.sigmoid(conv(y, 5, activation=None)), op.constant([1, 5, 64]), False)
    limits = (op.constant(np.array(number)) for number in (10, np.float32(0.5), np.float32(0.3)))
    found = op.non_max_suppression(flat, scores, *limits, box_encoding="center")
    return ov.Model([op.result(output) for output in (*found.outputs()[:1], flat.output(0))], [x], "detector")


def masked() -> Any:
    """Attention with two masks of the lowest f32 value, whose sum overflows."""
    x = op.parameter([1, 12, 32], np.float32, name="x")
    least = np.where(np.tril(np.ones((12, 12))), 0, np.finfo(np.float32).min).astype(np.float32)
    padding = np.where(np.arange(12) < 9, 0, np.finfo(np.float32).min).astype(np.float32)
    q, k, v = (op.matmul(x, weights(32, 32), False, False) for _ in range(3))
    scores = op.multiply(op.matmul(q, k, False, True), op.constant(np.float32(0.18)))
    scores = op.add(op.add(scores, op.constant(least)), op.constant(padding))
    mixed = op.matmul(op.softmax(scores, -1), v, False, False)
    return ov.Model(
        [op.result(op.gelu(op.matmul(mixed, weights(64, 32), False, True), "erf"))], [x], "masked"
    )


def _rows(model: Any) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    return [_numbers(random, port) for port in model.inputs]


def _numbers(random: np.random.Generator, port: Any) -> np.ndarray:
    shape = [dim.get_length() if dim.is_static else 6 for dim in port.get_partial_shape()]
    dtype = port.get_element_type().to_dtype()
    return (
        random.standard_normal(shape).astype(dtype)
        if dtype.kind == "f"
        else random.integers(0, 5, shape, dtype)
    )


def _sequences(_: Any) -> list[np.ndarray]:
    return [recurrent.features(), np.full(recurrent.BATCH, recurrent.TIME)]


def _listed(name: str, _: Any) -> list[np.ndarray]:
    return NETWORKS[name][1]()


def _controlled(name: str) -> Case:
    build, inputs = controlled.CASES[name]
    return build, lambda _: inputs[0]


MODELS: dict[str, Case] = {
    **{
        f"{block.__name__}_{name}": (partial(block, compressed.COMPRESSIONS[name]), _rows)
        for block, name in (
            (compressed.mlp, "int8"), (compressed.mlp, "int4"), (compressed.transformer, "uint4"),
            (compressed.transformer, "nf4"), (compressed.transformer, "int8"), (compressed.transformer, "f16"),
        )
    },
    "fake_quantize": (partial(quantized.quantized_cnn, False), lambda _: quantized.pictures()[:1]),
    "fake_quantize_i8": (partial(quantized.quantized_cnn, True), lambda _: quantized.pictures()[1:2]),
    "lstm_cells": (recurrent.cells, _rows),
    "lstm_sequences": (partial(recurrent.tagger, recurrent.BATCH, recurrent.TIME), _sequences),
    "gru_sequences": (partial(recurrent.gated, recurrent.BATCH, recurrent.TIME), _sequences),
    "loop": _controlled("loop_over_slices"),
    "tensor_iterator": _controlled("iterator_backward"),
    "detector": (detector, _rows),
    "masked": (masked, _rows),
    **{
        name: (KINDS[name], inputs_of)
        for name in ("wavenet", "segformer", "gru_tagger", "looped_transformer", "graph_network")
    },
}  # fmt: skip
OTHERS: dict[str, Case] = {
    **{name: (build, inputs_of) for name, build in KINDS.items() if name not in MODELS},
    **{name: (build, partial(_listed, name)) for name, (build, _) in NETWORKS.items()},
    **{
        name: _controlled(name)
        for name in controlled.CASES
        if name not in ("loop_over_slices", "iterator_backward")
    },
}
"""Further networks, which run if they are named, or with ``--others``."""
DIVERGES = {
    "loop_whose_values_outgrow_the_input": "the plugin's ShapeOf gives the last length of what a Loop carries"
}
"""Networks that OpenVINO's plugin computes wrongly, by a fault that the page of divergences lists: these runs are not honest."""


def executions(names: Sequence[str], sides: Sequence[str], folder: Path) -> Iterator[tuple[str, str, Any]]:
    """Compare each side on each network; `None` if the side does not run it."""
    for name in names:
        build, draw = (MODELS | OTHERS)[name]
        theirs, path = build(), folder / f"{name}.xml"
        ov.save_model(theirs, path, compress_to_fp16=name in ("wavenet", "lstm_cells"))
        model, inputs = ir.read_model(path), draw(theirs)
        for side in sides:
            report = _judged(model, inputs, side)
            if side.startswith("openvino") and accused(report) and name in DIVERGES:
                print(f"{name} {side}: {DIVERGES[name]}, as the guide on divergences lists")
                continue
            yield name, side, report
    yield "onnx_cnn", "onnxruntime", _onnx(folder)


def _onnx(folder: Path) -> Any:
    """A convolutional network as computed by ONNX Runtime."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(3)
    arrays = {
        "w": random.standard_normal((12, 3, 3, 3)).astype(np.float32) / 5,
        "u": random.standard_normal((12, 7)).astype(np.float32) / 3,
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["c"], ["g"]),
        helper.make_node("Mul", ["c", "g"], ["s"]),
        helper.make_node("GlobalAveragePool", ["s"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "u"], ["m"]),
        helper.make_node("Softmax", ["m"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
        for n, s in (("x", [1, 3, 20, 20]), ("y", [1, 7]))
    ]
    graph = helper.make_graph(
        nodes, "net", ends[:1], ends[1:], [numpy_helper.from_array(a, n) for n, a in arrays.items()]
    )
    path = folder / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    ov.save_model(ov.convert_model(path), folder / "net.xml", compress_to_fp16=False)
    x = random.standard_normal((1, 3, 20, 20)).astype(np.float32)
    return _judged(ir.read_model(folder / "net.xml"), {"x": x}, f"onnxruntime:{path}")


EXPORTED = (
    "squeezenet1_1", "mobilenet_v2", "mobilenet_v3_small", "resnet18", "shufflenet_v2_x0_5", "efficientnet_b0", "mnasnet0_5",
    "regnet_y_400mf", "densenet121", "convnext_tiny", "googlenet", "inception_v3", "resnext50_32x4d", "lstm", "gru", "transformer",
)  # fmt: skip
"""Networks of PyTorch that are also ONNX models."""


def exported(names: Sequence[str], folder: Path) -> Iterator[tuple[str, str, Any]]:
    """Compare ONNX Runtime with f64 on networks exported from PyTorch, with random weights that hide no error."""
    import torch

    torch.manual_seed(0)
    for name in names:
        network, inputs = _torch_network(name)
        path = folder / f"{name}.onnx"
        torch.onnx.export(
            network.eval(), (inputs,), str(path), dynamo=False, input_names=["x"], opset_version=17
        )
        ov.save_model(ov.convert_model(path), path.with_suffix(".xml"), compress_to_fp16=False)
        model = ir.read_model(path.with_suffix(".xml"))
        yield name, "onnxruntime", _judged(model, {"x": inputs.numpy()}, f"onnxruntime:{path}")


def _torch_network(name: str) -> tuple[Any, Any]:
    import torch
    import torchvision

    if name in ("lstm", "gru"):
        cells: Any = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[name]
        return cells(24, 32, num_layers=2, batch_first=True, bidirectional=True), torch.rand(1, 20, 24)
    if name == "transformer":
        layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.rand(1, 16, 32)
    size = 96 if name == "inception_v3" else 64
    build = getattr(torchvision.models, name)
    settings = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return build(weights=None, **settings), torch.rand(1, 3, size, size)


def _judged(model: Any, inputs: Any, side: str) -> Any:
    try:
        return debug.compare(model, inputs, side)
    except ir.InputError as reason:
        if side.startswith("openvino"):
            return reason
        raise


def operations(count: int, seed: int) -> list[tuple[str, Sample]]:
    """Yield f32 samples, one of each operation first, except where OpenVINO is known to be wrong."""
    of: dict[str, list[tuple[str, Sample]]] = defaultdict(list)
    for name, sample in named_samples().items():
        labels = [value.element.label for value in sample.values()]
        is_judged = "f32" in labels and not sample.differs and sample.oracle != "none"
        if is_judged and all(map(_is_usual, sample.inputs)):
            of[sample.op].append((name, sample))
    random = np.random.default_rng(seed)
    order = [[found[i] for i in random.permutation(len(found))] for found in of.values()]
    drawn = [found[place] for place in range(max(map(len, order))) for found in order if place < len(found)]
    return drawn[:count]


def _is_usual(array: np.ndarray) -> bool:
    """Return whether an input is non-empty and finite, as the plugin is wrong in several functions of other values."""
    return bool(array.size and (array.dtype.kind != "f" or np.isfinite(array).all()))


def has_two_answers(xml: bytes, weights: bytes, feeds: Sequence[np.ndarray]) -> bool:
    """Return whether OpenVINO's plugin differs in f32 from its own reference, so that one of them is faulty."""
    theirs = read(xml, weights)
    try:
        defined = evaluated(theirs, feeds)
    except MemoryError:
        return False
    if defined is None:
        return False
    pairs = zip(plugin(theirs, feeds), defined, strict=True)
    return not all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True) for a, b in pairs
    )


def accused(report: Any) -> bool:
    """Return whether a report says that an execution is, or may be, wrong."""
    return isinstance(report, debug.Comparison) and not report.settled


def main(arguments: Iterable[str] | None = None) -> None:
    """Print the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="MODEL", help=f"networks (default: all): {', '.join(MODELS)}"
    )
    parser.add_argument(
        "--others", action="store_true", help=f"run other networks instead: {', '.join(OTHERS)}"
    )
    parser.add_argument(
        "--exported",
        action="store_true",
        help="run ONNX Runtime on networks that PyTorch exports instead; as in `make zoo`",
    )
    parser.add_argument("--side", action="append", help=f"sides (default: {', '.join(SIDES)})")
    parser.add_argument(
        "--operations", type=int, default=300, help="single operations (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the choice of operations (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    start = time.process_time()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    names = options.names or [*(OTHERS if options.others else MODELS)]
    with tempfile.TemporaryDirectory() as folder:
        runs = (
            exported(options.names or EXPORTED, Path(folder))
            if options.exported
            else executions(names, options.side or SIDES, Path(folder))
        )
        for name, side, report in runs:
            _note(table[side], name, side, report)
    for name, sample in operations(options.operations, options.seed):
        xml, stored = model_of(sample, sample.constant, False)
        model = ir.read_model(xml, stored)
        feeds = [x for i, x in enumerate(sample.inputs) if i not in sample.constant]
        for side in ("openvino", "openvino:bf16"):
            report = _judged(model, feeds, side)
            if accused(report) and has_two_answers(xml, stored, feeds):
                table[f"{side}, operations"]["two answers"] += 1
                print(f"{name}: OpenVINO's plugin differs from its own definition")
            else:
                _note(table[f"{side}, operations"], name, side, report)
    verdicts = ("explained", "overflow", "doubtful", "unexplained", "two answers", "not run")
    print(f"\n{'':28}", *(f"{verdict:>12}" for verdict in verdicts))
    for side, counts in table.items():
        print(f"{side:28}", *(f"{counts[verdict]:12}" for verdict in verdicts))
    print(f"{time.process_time() - start:.0f} s of CPU, and those of OpenVINO's process")


def _note(counts: Counter[str], name: str, side: str, report: Any) -> None:
    verdict = report.verdict if isinstance(report, debug.Comparison) else "not run"
    counts[verdict] += 1
    if accused(report):
        print(f"{name} {side}\n{report}\n", flush=True)


if __name__ == "__main__":
    main()
