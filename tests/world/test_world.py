"""The program that runs collections, on files made here: runs, refusals, and reports."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness.nets import End, Net
from lxml import etree

import ir_runtime as ir
from world import sides
from world.__main__ import settle
from world.inputs import candidates
from world.processes import Action
from world.table import report
from world.verdict import Outcome, Row, difference
from world.weights import make, write_missing

TESTS = Path(__file__).parents[1]


def summing(version: str = "11", type: str = "Add") -> Net:
    net = Net(version=version)
    x = net.parameter("x", "?,3", "f32", out="FP32 -1 3")
    net.result(net.op(type, x, net.constant([1.0, 2.0, 3.0], "f32"), out="FP32 -1 3", name="y"))
    return net


def reading(
    net: Net, type: str, data: End, given: str, out: str, *constants: list[int], **how: object
) -> End:
    """Add a layer that reads a constant with wrong values but the right dims."""
    sources = [data, *map(net.constant, constants)]
    return net.op(type, *sources, out=f"FP32 {out}", inputs=[f"FP32 {given}"], **how)


def save(net: Net, path: Path) -> None:
    path.write_bytes(net.xml())
    path.with_suffix(".bin").write_bytes(net.weights)


def test_a_folder_is_run_everywhere(tmp_path: Path) -> None:
    save(summing(), tmp_path / "sum.xml")
    save(summing(version="10"), tmp_path / "old.xml")
    save(summing(type="NoSuchThing"), tmp_path / "unknown.xml")
    (tmp_path / "pom.xml").write_text("<project/>")
    log = tmp_path / "log.jsonl"
    line = [sys.executable, "-m", "world", str(tmp_path), "--backend", "reference", "--log", str(log)]
    done = subprocess.run(line, capture_output=True, text=True, cwd=TESTS)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "2 of 2 files that OpenVINO runs run here as well, on reference;"
    assert lines[1] == "validate ends with 0 for 2 of them. 0 crashed or took too long."
    table = [line.split()[:7] for line in lines[4:7]]
    assert table == [
        ["10", "1", "1", "0", "0", "0", "1"],
        ["11", "2", "1", "0", "0", "1", "1"],
        ["all", "3", "2", "0", "0", "1", "2"],
    ]
    assert done.returncode == 0
    again = subprocess.run(line, capture_output=True, text=True, cwd=TESTS)
    assert again.stdout == done.stdout
    assert log.read_text().count("\n") == 3


def test_what_is_not_good_is_named() -> None:
    ran = Outcome("ran")
    worse = Row("a.xml", "11", ran, ours={"numpy": ran}, validate=ran, differences={"numpy": 12.0})
    refused = Row(
        "b.xml",
        "11",
        ran,
        ours={"numpy": Outcome("refused", "no\nsuch")},
        validate=Outcome("refused", "exit code 1"),
    )
    neither = Row("c.xml", "10", Outcome("refused"), ours={"numpy": Outcome("refused")})
    crashed = Row(
        "d.xml", "10", Outcome("refused", "x" * 999), ours={"numpy": Outcome("crashed", "exit code -11")}
    )
    text = "\n".join(report([worse, refused, neither, crashed], ["numpy"]))
    assert "a.xml (version 11)\n  numpy differs by 12 times what rounding explains" in text
    assert "b.xml (version 11)\n  numpy refused: no such\n  validate refused: exit code 1" in text
    assert "c.xml" not in text
    assert "  numpy crashed: exit code -11" in text
    assert "1 crashed or took too long" in text
    assert max(map(len, text.splitlines())) < 400


def test_differences_with_a_reason_are_counted_not_named() -> None:
    row = Row("a", "10", Outcome("ran"), ours={"numpy": Outcome("ran")}, validate=Outcome("ran"))
    row.differences = {"reference": 3.0, "numpy": 2.0, "native": 0.5}
    assert row.apart == row.differing == ["reference", "numpy"]
    row.reasons = {"reference": "OpenVINO differs from itself", "numpy": "OpenVINO differs from itself"}
    assert (row.apart, row.good) == ([], True)
    lines = list(report([row], ["numpy"]))
    assert lines[2] == "1 differ from the CPU plugin: OpenVINO differs from itself."
    assert lines[-1].split()[-1] == "0"


def attempt_here(action: Action, path: Path, work: Path, seconds: float) -> Outcome:
    """Like `attempt`, but in this process, which has imported both packages."""
    try:
        return Outcome("ran", action(path, work))
    except RuntimeError as reason:
        return Outcome("refused", str(reason))


def settled(folder: Path, net: Net, ours: list[float], **inputs: object) -> Row:
    """Return the row of a model for which a backend is made to return given values."""
    path = folder / "net.xml"
    save(net, path)
    if inputs:
        np.savez(path.with_suffix(".npz"), **inputs)  # type: ignore[arg-type]
    row = Row("net.xml", "11", Outcome("ran", sides.openvino(path, folder)), ours={"numpy": Outcome("ran")})
    (theirs,) = sides.kept(folder / "openvino")
    wanted = np.array(ours, theirs.dtype).reshape(theirs.shape) if ours else theirs + 1
    (folder / "numpy").write_bytes(pickle.dumps([wanted]))
    row.differences = {"numpy": difference([wanted], [theirs])}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("world.__main__.attempt", attempt_here)
        settle(row, path, folder, seconds=100)
    return row


def test_what_openvino_itself_evaluates_is_no_difference(tmp_path: Path) -> None:
    """Its CPU plugin treats negative indices of Gather-7 as out of range."""
    net = Net()
    x, indices = net.parameter("x", "3", out="FP32 3"), net.parameter("indices", "2", "i32", out="I32 2")
    axis = net.constant(0, name="axis")
    net.result(net.op("Gather", x, indices, axis, out="FP32 2", version="opset7"))
    row = settled(tmp_path, net, [3.0, 2.0], x=np.float32([1, 2, 3]), indices=np.int32([-1, 1]))
    assert row.differences["numpy"] > 1
    assert row.reasons == {"numpy": "OpenVINO's Model.evaluate gives the same"}


@pytest.mark.parametrize(("ours", "is_named"), [([16.0, 144.0], False), ([16.0, 145.0], True)])
def test_what_f64_gives_is_no_difference(tmp_path: Path, ours: list[float], is_named: bool) -> None:
    """OpenVINO's CPU plugin saturates u8 products, and has no reference for them."""
    net = Net()
    x = net.parameter("x", "2", "u8", out="U8 2")
    net.result(net.op("Multiply", x, x, out="U8 2"))
    row = settled(tmp_path, net, ours, x=np.uint8([4, 20]))
    assert row.reasons == ({} if is_named else {"numpy": "f64 gives the same"})


@pytest.mark.parametrize("is_named", [False, True])
def test_what_rounding_explains_layer_by_layer_is_no_difference(tmp_path: Path, is_named: bool) -> None:
    """The floor of a sum close to 1 is 0 or 1; numpy's own results are explained."""
    net = Net()
    x = net.parameter("x", "64,64", out="FP32 64 64")
    ones = net.constant(np.ones((64, 1)), "f32", name="ones")
    summed = net.op("MatMul", x, ones, out="FP32 64 1", name="sum", transpose_a="false", transpose_b="false")
    net.result(net.op("Floor", summed, out="FP32 64 1", name="floor"))
    rng = np.random.default_rng(0)
    data = rng.random((64, 64), np.float32)
    data[:, 0] += np.float32(33) - data.sum(1, dtype=np.float64).astype(np.float32)
    path = tmp_path / "net.xml"
    save(net, path)
    (ours,) = ir.compile_model(path, backend="numpy")(data).to_tuple()
    if is_named:
        ours = ours + 1
    row = settled(tmp_path, net, list(map(float, ours.ravel())), x=data)
    reason = "rounding explains our results, and OpenVINO's, layer by layer"
    assert row.reasons == ({} if is_named else {"numpy": reason})


def test_what_is_random_is_no_difference(tmp_path: Path) -> None:
    net = Net()
    ends = [net.constant(x, "f32", name=f"c{x}") for x in (0.0, 1.0)]
    shape = net.constant([8], name="shape")
    random = {"output_type": "f32", "global_seed": 0, "op_seed": 0, "version": "opset8"}
    net.result(net.op("RandomUniform", shape, *ends, out="FP32 8", **random))
    row = settled(tmp_path, net, [])
    assert row.reasons == {"numpy": "OpenVINO differs from itself in another run"}


def test_differences_are_measured_in_what_rounding_explains() -> None:
    x = np.float32([1, -2, np.nan, np.inf])
    assert difference([x], [x.copy()]) == 0
    rms = np.sqrt(2.5)
    assert difference([np.float32([1, 2 + 1e-4 * (2 + rms)])], [np.float32([1, 2])]) == pytest.approx(
        1, rel=1e-2
    )
    assert difference([np.float32([1, np.nan])], [np.float32([1, 2])]) == np.inf
    assert difference([np.float32([1])], [np.float64([1])]) == np.inf
    assert difference([np.int32([1])], [np.int32([2])]) == np.inf
    assert difference([x], []) == np.inf
    assert difference([np.array(["a", "ß"])], [np.array(["a", "ß"], object)]) == 0
    assert difference([np.array(["a", "b"])], [np.array(["a", "ß"], object)]) == np.inf
    assert difference([np.float32([[1]])], [np.float32([1])]) == np.inf


def test_inputs_are_those_beside_the_file_or_random(tmp_path: Path) -> None:
    path = tmp_path / "sum.xml"
    save(summing(), path)
    model = ir.read_model(path)
    assert [x.shape for (x,) in candidates(path, model)][:3] == [(1, 3), (2, 3), (8, 3)]
    np.savez(path.with_suffix(".npz"), x=np.ones((4, 3)))
    ((x,),) = candidates(path, model)
    assert (x.shape, x.dtype) == ((4, 3), np.float32)


def test_weights_follow_from_the_shapes_that_a_file_declares(tmp_path: Path) -> None:
    """Whatever layers read them, the inferred shapes are those of the file."""
    net = Net(version="10")
    x = net.parameter("x", "1,4,6,8", "f32", out="FP32 1 4 6 8")
    turned = reading(net, "Transpose", x, "1 4 6 8", "1 6 8 4", [0, 0, 0, 0])
    flat = reading(net, "Reshape", turned, "1 6 8 4", "1 192", [0, 0], special_zero=True)
    padded = reading(net, "Pad", flat, "1 192", "1 195", [0, 0], [0, 0], pad_mode="edge")
    net.result(reading(net, "Unsqueeze", padded, "1 195", "1 195 1", [0]))
    net.result(reading(net, "ReduceMean", x, "1 4 6 8", "1 4", [0, 0], keep_dims=False), "means")
    split = [x, net.constant(0), net.constant([0, 0])]
    parts = net.layer("VariadicSplit", split, ["FP32 1 1 6 8", "FP32 1 3 6 8"], inputs=["FP32 1 4 6 8"])
    for part in parts:
        net.result(part, f"part{part.port}")
    path = tmp_path / "net.xml"
    path.write_bytes(net.xml())
    assert write_missing(tmp_path) == 1
    assert ir.validate(path).ok
    assert write_missing(tmp_path) == 0
    assert len(path.with_suffix(".bin").read_bytes()) == len(net.weights)


def test_readers_of_one_constant_have_to_agree() -> None:
    net = Net(version="10")
    x, y = net.parameter("x", "1,4", "f32", out="FP32 1 4"), net.parameter("y", "1,6", "f32", out="FP32 1 6")
    shape = net.constant([0, 0, 0])
    for name, data, out in (("a", x, "FP32 1 4 1"), ("b", y, "FP32 1 6 1")):
        shown = net.op("Reshape", data, shape, out=out, name=name, inputs=[out[:-2]], special_zero=True)
        net.result(shown, f"result{name}")
    values = np.frombuffer(make(etree.fromstring(net.xml())), np.int64)
    assert ir.validate(net.xml(), values.tobytes()).ok
