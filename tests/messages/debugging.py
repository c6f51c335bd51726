"""Messages for executions that cannot be compared, and for invalid patches."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from click.testing import CliRunner
from harness.missing import missing
from harness.nets import Net
from harness.refusals import Call

import ir_runtime as ir
from ir_runtime import debug, opset13
from ir_runtime.bench.openvino_process import Died, Failed
from ir_runtime.cli import main
from ir_runtime.debug.caching import Cache
from ir_runtime.debug.recorded_side import read_array, recorded
from ir_runtime.testing import Golden

FOLDER = "messages"
X = np.float32([1, 2])


def net(outputs: int = 1, length: str = "2") -> Net:
    """A model that doubles x."""
    found = Net()
    y = found.op("Add", x := found.parameter("x", length), x, name="doubled")
    for index in range(outputs):
        found.result(y, f"y{index}")
    return found


def model() -> ir.Model:
    return ir.read_model(net().xml())


def unlike() -> Net:
    """A model with another layer of another name."""
    found = Net()
    found.result(found.op("Exp", found.parameter("x", "2"), name="grown"), "y0")
    return found


def scaled(kind: str, sign: int = 1) -> ir.Model:
    """X times a matrix."""
    x = opset13.parameter([2], np.float32, name="x")
    weights = opset13.convert(opset13.constant(np.array([[sign, 2], [3, sign]]), kind), "f32")
    return ir.Model([opset13.matmul(x, weights, False, False, name="scaled")], [x])


def halves() -> ir.Model:
    """X split in two."""
    found = Net()
    sources = [found.parameter("x", "2"), found.constant(0)]
    for index, end in enumerate(found.layer("Split", sources, ["", ""], name="halves", num_splits=2)):
        found.result(end, f"half{index}")
    return ir.read_model(found.xml(), found.weights)


def of_files(call: str) -> None:
    """Compare with a file; its folder is masked in messages."""
    folder = Path(tempfile.mkdtemp())
    (folder / "other.xml").write_bytes(net(2).xml())
    (folder / "unlike.xml").write_bytes(unlike().xml())
    (folder / "longer.xml").write_bytes(net(length="3").xml())
    (folder / "theirs.npz").write_bytes(b"no archive")
    np.savez(folder / "arrays.npz", X)
    (folder / "bug").mkdir()
    (folder / "shared").mkdir()
    (folder / "shared").chmod(0o777)
    (folder / "bug" / "notes.txt").write_text("kept")
    try:
        eval(
            call,
            {
                "debug": debug,
                "model": model(),
                "X": X,
                "at": folder,
                "wrong": Wrong(),
                "Cache": Cache,
                "Golden": Golden,
                "recorded": recorded,
                "read_array": read_array,
            },
        )
    except ir.IRError as reason:
        raise type(reason)(
            reason.message.replace(f"{folder}/", ""),
            code=reason.code,
            hint=reason.hint.replace(f"{folder}/", ""),
        ) from None


class Wrong:
    """A faulty side."""

    def observe(self, model, reference, feeds, ports):  # type: ignore[no-untyped-def]
        return debug.Observation("wrong", [np.float32([5, 5])] * len(reference.outputs), {})


def where_openvino_answers(answer: Exception) -> None:
    with mock.patch("ir_runtime.bench.openvino_process.run", side_effect=answer):
        debug.compare(model(), X, "openvino")


def of_onnx(outputs: int = 1, installed: bool = True, text: bytes = b"", operation: str = "Add") -> None:
    """Compare with an ONNX model that doubles x; its folder is masked in messages."""
    import onnx
    from onnx import helper

    x, *results = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2])
        for name in ("x", *(f"r{index}" for index in range(outputs)))
    ]
    nodes = [helper.make_node(operation, ["x", "x"], [result.name]) for result in results]
    made = helper.make_model(helper.make_graph(nodes, "net", [x], results), ir_version=10)
    path = Path(tempfile.mkdtemp()) / "net.onnx"
    path.write_bytes(text or made.SerializeToString())
    try:
        with missing(*([] if installed else ["onnxruntime"])):
            debug.compare(model(), X, f"onnxruntime:{path}")
    except ir.IRError as reason:
        raise type(reason)(
            reason.message.replace(f"{path.parent}/", ""), code=reason.code, hint=reason.hint
        ) from None


def some_rows() -> None:
    """Two rows of four, of a model with four rows in a constant."""
    found = Net()
    x = found.parameter("x", "4,2")
    found.result(found.op("Add", x, found.constant(np.zeros((4, 2)), "f32"), name="sum"), "y")
    debug.compare(
        ir.read_model(found.xml(), found.weights),
        [np.ones((4, 2), np.float32)],
        [np.ones((2, 2), np.float32)],
    )


def refused_by_openvino() -> None:
    found = Net()
    found.result(found.op("Convert", found.parameter("x", "2", "f8e4m3"), destination_type="f4e2m1"))
    debug.compare(ir.read_model(found.xml()), [np.zeros(2, ir.Type.f8e4m3.to_dtype())], "openvino")


def compare(side: object) -> Call:
    return Call(f"side {side!r}", lambda: debug.compare(model(), X, side))


def without_a_side() -> str:
    return CliRunner().invoke(main, ["compare", "model.xml", "--random"]).stderr


def without_a_side_that_runs_models() -> str:
    return CliRunner().invoke(main, ["bisect", "model.xml", "--random"]).stderr


def of_command(script: str) -> None:
    """Compare with a command; its path is masked in messages."""
    path = Path(tempfile.mkdtemp()) / "device.py"
    path.write_text(f"import sys; path = sys.argv[-1] + '/outputs/0.npy'; {script}")
    try:
        debug.bisect(model(), X, debug.Command([sys.executable, str(path)]))
    except ir.IRError as reason:
        message = reason.message.replace(sys.executable, "python").replace(f"{path.parent}/", "")
        raise type(reason)(message, code=reason.code, hint=reason.hint) from None


def of_another_user() -> None:
    with mock.patch("os.geteuid", return_value=12345):
        of_files("Cache(at / 'bug')")


REFUSALS = [
    without_a_side,
    compare("openvinho"),
    compare("somewhere"),
    compare("openvino:f8"),
    compare("native:f8"),
    compare(7),
    compare({"nothing": X}),
    compare({"doubled": np.int8([1, 2])}),
    compare({"doubled": np.int8([1, 2]), "doubled.scale": np.float32([1, 2, 3])}),
    Call("folder without arrays", lambda: of_files("recorded(str(at / 'bug'))")),
    Call("archive in place of an array", lambda: of_files("read_array(str(at / 'arrays.npz'))")),
    Call("some rows of a batch of a model that has all", some_rows),
    Call("command that is empty", lambda: debug.Command(" ")),
    Call("command with an open quote", lambda: debug.Command("python 'device.py")),
    Call("command that is not there", lambda: debug.bisect(model(), X, debug.Command("no-such-program"))),
    Call("command that fails", lambda: of_command("print('no device'); sys.exit(3)")),
    Call("command without results", lambda: of_command("pass")),
    Call("command with a damaged result", lambda: of_command("open(path, 'w').write('text')")),
    Call("side that is never run", lambda: debug.Repeated("numpy", 0)),
    Call("state of a model without variables", lambda: debug.bisect(model(), X, "numpy", {"sum": X})),
    without_a_side_that_runs_models,
    Call("side that is no archive", lambda: of_files("debug.compare(model, X, str(at / 'theirs.npz'))")),
    Call("side that is not there", lambda: debug.compare(model(), X, "missing.npz")),
    Call("side with other outputs", lambda: of_files("debug.compare(model, X, str(at / 'other.xml'))")),
    Call("side with other inputs", lambda: of_files("debug.compare(model, X, str(at / 'longer.xml'))")),
    Call("side that is not installed", lambda: where_openvino_answers(Failed("no module", missing=True))),
    Call("side that ends its process", lambda: where_openvino_answers(Died("SIGFPE"))),
    compare("onnxruntime:missing.onnx"),
    Call("unknown precision of a side", lambda: debug.compare(model(), X, [X], precision="f8")),
    Call("ONNX Runtime that is not installed", lambda: of_onnx(installed=False)),
    Call("ONNX model that is none", lambda: of_onnx(text=b"text")),
    Call("ONNX model with other outputs", lambda: of_onnx(outputs=2)),
    Call("ONNX model that cannot be run", lambda: of_onnx(operation="Addd")),
    Call("model that a side cannot run", refused_by_openvino),
    Call("reducing for arrays", lambda: debug.reduce(model(), X, "theirs.npz")),
    Call("bisecting an ONNX model", lambda: debug.bisect(model(), X, "onnxruntime:net.onnx")),
    Call(
        "bisecting for an IR that differs everywhere",
        lambda: of_files("debug.bisect(model, X, str(at / 'unlike.xml'))"),
    ),
    Call("unknown types", lambda: debug.compare(model(), X, "reference", types="ideal")),
    Call("archive without recorded outputs", lambda: of_files("Golden.load(at / 'arrays.npz')")),
    Call("cache that is a file", lambda: of_files("Cache(at / 'theirs.npz')")),
    Call("cache that others may write", lambda: of_files("Cache(at / 'shared')")),
    Call("cache of another user", of_another_user),
    Call("folder that is there", lambda: of_files("debug.reduce(model, X, wrong, at / 'bug')")),
    Call("folder below a file", lambda: of_files("debug.reduce(model, X, wrong, at / 'theirs.npz' / 'bug')")),
    Call("budget of an unknown precision", lambda: debug.budget(model(), X, "int7")),
    Call("budget of groups that bf16 lacks", lambda: debug.budget(model(), X, "bf16", group_size=8)),
    Call("budget of groups of nothing", lambda: debug.budget(model(), X, "int4", group_size=0)),
    Call("budget by no number", lambda: debug.budget(model(), X, metric=lambda _: "good")),  # type: ignore[arg-type,return-value]
    Call("budget of no inputs", lambda: debug.budget(model(), iter([]))),
    Call("budget of an original that is not asked for", lambda: debug.budget(model(), X, original=model())),
    Call("budget of an original without the layer", lambda: debug.budget(scaled("i8"), X, original=model())),
    Call("budget of another original", lambda: debug.budget(scaled("i8"), X, original=scaled("f32", -9))),
    Call("trace in an unknown precision", lambda: debug.trace_nan(model(), X, "f8")),
    Call(
        "results of a run that has not ended",
        lambda: debug.step(ir.compile_model(model()), X).results,
        (RuntimeError,),
    ),
    Call("patch of an unknown layer", lambda: ir.compile_model(model())(X, patch={"dubled": lambda y: y})),
    Call(
        "patch of one output of two", lambda: ir.compile_model(halves())(X, patch={"halves": lambda a, b: a})
    ),
    Call("patch of another shape", lambda: ir.compile_model(model())(X, patch={"doubled": lambda y: y[:1]})),
]
