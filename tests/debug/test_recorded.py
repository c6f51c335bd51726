"""Arrays written by a device: other layouts, types, names and slices than the model's."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op
from ir_runtime.cli import main
from ir_runtime.debug.recorded_side import find_permutation

RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.standard_normal((4, 3, 6, 5)).astype(np.float32)
FILTERS = RANDOM.standard_normal((7, 3, 3, 3)).astype(np.float32)


def network(batch: int = 4) -> ir.Model:
    """A convolution ``map``, its ``gate``, and two outputs, ``maps`` and ``scores``."""
    x = op.parameter([batch, 3, 6, 5], np.float32, name="x")
    y = op.convolution(x, op.constant(FILTERS), [1, 1], [1, 1], [1, 1], [1, 1], name="map")
    y = op.sigmoid(y, name="gate")
    scores = op.reduce_mean(y, op.constant([2, 3]), False, name="mean")
    y.output(0).set_names({"maps"})
    scores.output(0).set_names({"scores"})
    return ir.Model([op.result(y), op.result(scores)], [x])


def theirs() -> dict[str, np.ndarray]:
    """Return the arrays of a correct device."""
    found = ir.compile_model(network())(PICTURES)
    return {"maps": found[0], "scores": found[1]}


def judge(arrays: object, **how: str) -> debug.Comparison:
    return debug.compare(network(), PICTURES, arrays, **how)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda maps: maps.transpose(0, 2, 3, 1), "'maps' is read from [4, 6, 5, 7], NHWC"),
        (lambda maps: maps.reshape(-1), "'maps' is read from [840]"),
        (lambda maps: maps.reshape(4, 7, 30), "'maps' is read from [4, 7, 30]"),
        (lambda maps: maps.transpose(0, 2, 3, 1).reshape(4, 30, 7), "'maps' is read from [4, 30, 7], NHWC"),
        (lambda maps: maps.transpose(2, 1, 3, 0), "axes in the order [2, 1, 3, 0]"),
        (lambda maps: maps.astype(np.float64), ""),
    ],
)
def test_other_layouts_are_read_as_the_model_declares(change: object, said: str) -> None:
    arrays = theirs()
    report = judge({**arrays, "maps": change(arrays["maps"])})  # type: ignore[operator]
    assert report.explained, str(report)
    assert said in str(report)
    assert list(report.notes) == report.record()["notes"]


def test_a_single_picture_without_its_batch_is_read_with_its_channels_last() -> None:
    assert find_permutation((5, 5, 16), (1, 16, 5, 5)) == (0, 3, 1, 2)
    assert find_permutation((5, 5, 15), (1, 16, 5, 5)) is None


def test_a_wrong_layout_of_the_right_shape_is_not_read_otherwise() -> None:
    report = debug.compare(
        ir.Model([op.abs(x := op.parameter([1, 4, 4, 4], np.float32))], [x]),
        numbers := RANDOM.standard_normal((1, 4, 4, 4)).astype(np.float32),
        [np.abs(numbers).transpose(0, 2, 3, 1)],
    )
    assert report.verdict == "unexplained"
    assert "NHWC" in str(report.likeness)


@pytest.mark.parametrize(("dtype", "precision"), [(np.float16, "f16"), (ml_dtypes.bfloat16, "bf16")])
def test_the_type_of_arrays_is_taken_for_the_precision(dtype: type, precision: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "half.npz", **{name: array.astype(dtype) for name, array in theirs().items()})
    report = judge(str(tmp_path / "half.npz"))
    assert report.explained, str(report)
    assert report.ran == (precision,)
    assert f"judged as {precision}, the type of its arrays" in str(report)
    assert judge(str(tmp_path / "half.npz"), precision="f32").verdict == "unexplained"


def test_some_rows_of_a_batch_are_judged_on_as_many_rows_of_the_inputs() -> None:
    few = {name: array[:2] for name, array in theirs().items()}
    for batch in (4, -1):
        report = debug.compare(network(batch), PICTURES, few)
        assert report.explained, str(report)
        assert "arrays has 2 of 4 rows: the first 2 are judged" in str(report)
    few["maps"][1, 0, 0, 0] += 1
    assert judge(few).verdict == "unexplained"


@pytest.mark.parametrize("zero", [0, 128])
@pytest.mark.parametrize("axis", [None, 1])
def test_integers_with_a_scale_are_judged_in_its_steps(zero: int, axis: int | None) -> None:
    maps = theirs()["maps"]
    scale = np.float32(np.ptp(maps, (0, 2, 3)) / 100) if axis else np.float32(0.01)
    shape = (1, -1, 1, 1) if axis else ()
    levels = np.rint(maps / scale.reshape(shape)) + (zero - 100 if zero else 0)
    dtype = np.uint8 if zero else np.int8
    arrays = {"maps": levels.astype(dtype), "maps.scale": scale, "maps.zero_point": np.int32(zero and 28)}
    report = judge(arrays)
    assert report.explained, str(report)
    assert f"'maps' is {np.dtype(dtype)} with a scale: judged in these steps" in str(report)
    arrays["maps"][2, 3, 1, 1] += 2
    assert judge(arrays).verdict == "unexplained"


def test_inner_tensors_alone_suffice() -> None:
    maps = debug.oracle(network(), PICTURES, layers=["map"])["map"].astype(np.float32)
    report = judge({"map": maps})
    assert report.explained, str(report)
    assert [unit.name for unit in report.units] == ["map"]
    assert "arrays lacks the outputs 'maps', 'scores', which are not judged" in str(report)
    report = judge({"map": maps * np.float32(1.01)})
    assert report.verdict == "unexplained"
    assert report.first is not None
    assert report.first.layers == ("map",)
    report = judge({"scores": theirs()["scores"] + 1})
    assert "plus 1, in 'mean'" in str(report.likeness)


def test_names_that_match_nothing_are_said_with_the_nearest(tmp_path: Path) -> None:
    report = judge({**theirs(), "gait": PICTURES})
    assert report.explained
    assert "the model computes no tensor called 'gait'; did you mean 'gate'?" in str(report)
    np.savez(tmp_path / "theirs.npz", scorse=theirs()["scores"], other=PICTURES)
    with pytest.raises(
        ir.InputError, match=r"theirs.npz has no tensor of the model: it has scorse f.*other f"
    ) as found:
        judge(str(tmp_path / "theirs.npz"))
    assert found.value.hint == "did you mean 'scores'?"


def test_another_input_is_said() -> None:
    report = judge({**theirs(), "x": PICTURES[..., ::-1]})
    assert "arrays has another input 'x' than was given: " in str(report)
    assert not any("another input" in note for note in judge({**theirs(), "x": PICTURES}).notes)


def test_whole_numbers_are_read_as_the_integers_that_the_model_has() -> None:
    x = op.parameter([2, 3], np.float32, name="x")
    model = ir.Model([op.topk(x, op.constant(1), 1, "max", "value").output(1)], [x])
    for index, verdict in ((1.0, "explained"), (0.0, "unexplained"), (0.5, "unexplained")):
        report = debug.compare(
            model, np.float32([[1, 3, 2], [1, 3, 2]]), [np.full((2, 1), index, np.float32)]
        )
        assert report.verdict == verdict


@pytest.mark.parametrize("kind", ["npz", "folder", "npy"])
def test_files_of_results(kind: str, tmp_path: Path) -> None:
    ir.save_model(network(), tmp_path / "net.xml", compress_to_fp16=False)
    np.save(tmp_path / "x.npy", PICTURES)
    path = tmp_path / ("theirs" if kind == "folder" else f"theirs.{kind}")
    if kind == "npz":
        np.savez(path, **theirs())
    elif kind == "npy":
        np.save(path, theirs()["maps"])
    else:
        path.mkdir()
        for name, array in theirs().items():
            np.save(path / f"{name}.npy", array)
    call = ["compare", str(tmp_path / "net.xml"), "--results", str(path), "-i", str(tmp_path / "x.npy")]
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("explained")


def test_boxes_that_bf16_rounds_are_no_fault() -> None:
    """ROIPooling samples at its boxes, so rounding them moves the samples."""
    x, boxes = op.parameter([1, 1, 40, 40], np.float32), op.parameter([3, 5], np.float32)
    model = ir.Model([op.roi_pooling(x, boxes, [4, 4], 1.0, "bilinear")], [x, boxes])
    picture = RANDOM.standard_normal((1, 1, 40, 40)).astype(np.float32)
    found = np.float32([[0, 1.3, 2.7, 37.3, 33.1], [0, 0.4, 0.6, 21.7, 38.9], [0, 3.1, 3.3, 30.7, 12.1]])
    rounded = [array.astype(ml_dtypes.bfloat16).astype(np.float32) for array in (picture, found)]
    result = debug.oracle(model, rounded).outputs[0].astype(ml_dtypes.bfloat16)
    report = debug.compare(model, [picture, found], [result])
    assert report.explained, str(report)
    assert debug.compare(model, [picture, found], [result.astype(np.float32)]).verdict == "unexplained"
