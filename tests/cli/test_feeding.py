"""Inputs of a run: from files, and random."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import Result
from harness.nets import Net, net, parameter, passing, result, total, write, write_chain

Invoke = Callable[[str], Result]
Check = Callable[..., Result]

ONES, TWOS = np.ones(4, np.float32), np.full(4, 2, np.float32)


def saved(invoke: Invoke, line: str) -> dict[str, Any]:
    found = invoke(f"{line} -o out.npz")
    assert found.exit_code == 0, found.stderr
    with np.load("out.npz") as archive:
        return dict(archive)


@pytest.mark.parametrize(
    "given",
    [
        "-i a=one.npy -i b=two.npy",
        "-i b=two.npy -i a=one.npy",
        "-i one.npy -i two.npy",
        "-i b=two.npy -i one.npy",
        "-i both.npz",
        "-i unnamed.npz",
        "-i b=both.npz -i one.npy",
        "-i a=single.npz -i two.npy",
    ],
)
def test_files_reach_their_inputs(folder: Path, invoke: Invoke, given: str) -> None:
    text = total().replace('type="Add"', 'type="Subtract"')
    write(folder, text)
    np.save("one.npy", ONES)
    np.save("two.npy", TWOS)
    np.savez("both.npz", b=TWOS, a=ONES)
    np.savez("unnamed.npz", ONES, TWOS)
    np.savez("single.npz", anything=ONES)
    assert saved(invoke, f"run net.xml {given}")["sum"].tolist() == [-1, -1, -1, -1]


def test_a_file_may_have_an_equals_sign_in_its_name(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("f32", "4"))
    np.save("a=b.npy", ONES)
    assert saved(invoke, "run net.xml -i a=b.npy")["x"].tolist() == [1, 1, 1, 1]
    assert saved(invoke, "run net.xml -i x=a=b.npy")["x"].tolist() == [1, 1, 1, 1]


def test_random_fills_what_is_missing(folder: Path, invoke: Invoke) -> None:
    write(folder, total())
    np.save("one.npy", ONES)
    found = json.loads(invoke("run net.xml -i b=one.npy --random --json").stdout)
    assert [(i["name"], i["source"]) for i in found["inputs"]] == [("a", "random"), ("b", "one.npy")]


def test_random_depends_on_the_seed_alone(folder: Path, invoke: Invoke) -> None:
    write(folder, total())
    np.save("zero.npy", np.zeros(4, np.float32))
    runs = [saved(invoke, f"run net.xml --random {more}")["sum"] for more in ("", "--seed 0", "--seed 1")]
    assert runs[0].tolist() == runs[1].tolist() != runs[2].tolist()
    alone = [saved(invoke, f"run net.xml --random -i {name}=zero.npy")["sum"] for name in "ab"]
    assert alone[0].tolist() != alone[1].tolist()
    assert (alone[0] + alone[1]).tolist() == runs[0].tolist(), "each input has numbers of its own"


@pytest.mark.parametrize(
    "element", ["f16", "bf16", "f64", "f8e4m3", "f8e8m0", "i4", "u1", "nf4", "i8", "u64"]
)
def test_random_numbers_of_every_type(folder: Path, invoke: Invoke, element: str) -> None:
    write(folder, passing(element, "3,50"))
    found = json.loads(invoke("run net.xml --random --json").stdout)["outputs"][0]
    assert (found["type"], found["nan"], found["inf"]) == (element, 0, 0)
    assert found["min"] < found["mean"] < found["max"]


def test_random_integers_are_zeros_and_ones(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("i64", "40"))
    assert set(saved(invoke, "run net.xml --random")["x"].tolist()) == {0, 1}


def test_random_booleans_and_strings(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("boolean", "40"))
    found = saved(invoke, "run net.xml --random")["x"]
    assert found.dtype == bool
    assert set(found.tolist()) == {True, False}
    write(folder, passing("string", "2"))
    assert saved(invoke, "run net.xml --random")["x"].tolist() == ["text", "text"]


def test_random_lengths_are_typical_ones_within_bounds(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("f32", "?,3..8,..5,2"))
    assert saved(invoke, "run net.xml --random")["x"].shape == (1, 8, 5, 2)
    write(folder, passing("f32", "0,2"))
    assert saved(invoke, "run net.xml --random")["x"].shape == (0, 2)


def test_seed_and_open_lengths_of_random_data_are_said_once(folder: Path, invoke: Invoke) -> None:
    write(folder, total().replace('"4"', '"?"').replace("<dim>4</dim>", "<dim>-1</dim>"))
    assert invoke("run net.xml --random").stderr == (
        "random data: seed 0; a=[12]; b=[12]; -i, --shape and --seed change that\n"
    )


def test_numbers_that_converters_give_tensors_are_no_names(folder: Path, invoke: Invoke) -> None:
    """Numeric tensor names are not shown: another tensor name or the layer's name is; the number still selects the input."""
    model = Net()
    mask = model.parameter("mask", "?,4", names="53,attention_mask")
    model.result(model.op("Add", mask, model.parameter("ids", "?,4", names="54"), names="7", name="sum"))
    (folder / "net.xml").write_bytes(model.xml())
    found = invoke("run net.xml --random")
    assert found.stderr.startswith("random data: seed 0; attention_mask=[1,4]; ids=[1,4]; -i, --shape")
    assert "\n  sum   f32" in found.stdout
    assert "available are attention_mask, " in invoke("run net.xml --random --layers zz").stderr
    found = invoke("run net.xml --random --shape '54=[2,4]' --shape 'mask=[2,4]' --json")
    assert [each["name"] for each in json.loads(found.stdout)["inputs"]] == ["attention_mask", "ids"]


def test_random_needs_a_rank(folder: Path, check: Check, invoke: Invoke) -> None:
    layers = [parameter(0, "x", "...").replace("<dim>-1</dim>", ""), result(1, "")]
    write(folder, net(layers, [(0, 0, 1, 0)]))
    check("random_without_rank", "run net.xml --random")
    assert saved(invoke, "run net.xml --random --shape 2,2")["x"].shape == (2, 2)


def test_types_that_numpy_lacks_go_in_and_out(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("bf16", "3"))
    numbers = np.array([1.5, -2, 0.125], ml_dtypes.bfloat16)
    np.save("x.npy", numbers)
    (folder / "out.npz").unlink(missing_ok=True)
    found = saved(invoke, "run net.xml -i x.npy")["x"]
    assert found.view(ml_dtypes.bfloat16).tolist() == [1.5, -2, 0.125]
    assert json.loads(invoke("run net.xml -i out.npz --json").stdout)["outputs"][0]["max"] == 1.5


def test_strings_go_in_and_out(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("string", "2"))
    np.save("x.npy", np.array(["né", "b"]))
    assert saved(invoke, "run net.xml -i x.npy")["x"].tolist() == ["né", "b"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("missing", "run net.xml"),
        ("missing_one", "run net.xml -i a=one.npy"),
        ("unknown", "run net.xml -i c=one.npy --random"),
        ("near", "run chain.xml -i X1=one.npy"),
        ("twice", "run net.xml -i a=one.npy -i a=one.npy"),
        ("too_many", "run net.xml -i one.npy -i one.npy -i one.npy"),
        ("wrong_shape", "run chain.xml -i one.npy"),
        ("wrong_type", "run net.xml -i a=double.npy --random"),
        ("text", "run net.xml -i a=text.npy --random"),
        ("empty", "run net.xml -i a=empty.npy --random"),
        ("no_file", "run net.xml -i a=none.npy"),
        ("folder", "run net.xml -i a=."),
        ("no_array", "run net.xml -i a=net.xml"),
        ("pickle", "run net.xml -i a=pickle.npy --random"),
        ("cut_off", "run net.xml -i a=cut.npy --random"),
        ("cut_off_npz", "run net.xml -i cut.npz --random"),
        ("npz_without", "run net.xml -i b=both.npz --random"),
        ("npz_with_text", "run net.xml -i text.npz --random"),
        ("endless", "run net.xml -i a=endless.npy --random"),
    ],
)
def test_what_does_not_fit_is_refused(folder: Path, check: Check, name: str, line: str) -> None:
    write(folder, total())
    write_chain(folder)
    np.save("one.npy", ONES)
    np.save("double.npy", ONES.astype(np.float64))
    np.save("pickle.npy", np.array([{}, []], object), allow_pickle=True)
    np.save("text.npy", np.array(["1", "2"]))
    (folder / "empty.npy").touch()
    np.savez("both.npz", c=ONES, d=ONES)
    (folder / "cut.npy").write_bytes((folder / "one.npy").read_bytes()[:-4])
    (folder / "cut.npz").write_bytes((folder / "both.npz").read_bytes()[:-30])
    with zipfile.ZipFile("text.npz", "w") as archive:
        archive.writestr("read me.txt", "no array")
    with open("endless.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (10**6,)}
        )
    found = check(f"feeding_{name}", line)
    assert (found.exit_code, found.stdout) == (2, "")


def test_arrays_that_memory_cannot_hold_are_refused(
    folder: Path, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object, **__: object) -> None:
        raise MemoryError

    write(folder, total())
    np.save("one.npy", ONES)
    monkeypatch.setattr(np, "load", load)
    assert check("feeding_no_memory", "run net.xml -i a=one.npy --random").exit_code == 2


def test_damaged_members_of_an_npz_are_refused(folder: Path, invoke: Invoke) -> None:
    write(folder, total())
    with zipfile.ZipFile("bad.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + b"x" * 300)
        archive.writestr("read me.txt", "no array")
    for text in ("bad.npz", "a=bad.npz"):
        found = invoke(f"run net.xml -i {text} --random")
        assert found.exit_code == 2
        assert found.stderr.startswith("error[IR401]: bad.npz is damaged or cut off\n")
