"""Messages of the command line for files and options, beyond those of tests/cli."""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
from click.testing import CliRunner
from harness.nets import Net, chain, chain_weights, passing
from harness.refusals import Call

from ir_runtime.cli import main

FOLDER = "messages"

FILES = {"net.xml": chain().encode(), "net.bin": chain_weights()}
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 12345\n"
IMAGE = {"net.xml": passing("f32", "?,3,8,8", name="image").encode()}


def saved(**arrays: tuple[int, ...]) -> bytes:
    """An ``.npz`` of zeros of these shapes; an ``.npy`` for one called x."""
    file = io.BytesIO()
    zeros = {name: np.zeros(shape, np.float32) for name, shape in arrays.items()}
    if list(zeros) == ["x"]:
        np.save(file, zeros["x"])
    else:
        np.savez(file, **zeros)
    return file.getvalue()


def complex_numbers() -> bytes:
    """An ``.npy`` of complex numbers."""
    file = io.BytesIO()
    np.save(file, np.zeros((1, 3, 8, 8), np.complex64))
    return file.getvalue()


def added(lengths: str, *shape: int) -> dict[str, bytes]:
    """A model that adds zeros of a shape to an input of another."""
    net = Net()
    image = net.parameter("image", lengths, names="image")
    net.result(net.op("Add", image, net.constant(np.zeros(shape), "f32"), name="shift"))
    return {"net.xml": net.xml(), "net.bin": net.weights}


def declared(type: object, shape: tuple[int, ...]) -> bytes:
    """The header of an ``.npy`` without data."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": type, "fortran_order": False, "shape": shape})
    return file.getvalue()


def sum_of_two() -> bytes:
    """The sum of two inputs."""
    net = Net()
    net.result(net.op("Add", net.parameter("a", "2,3"), net.parameter("b", "2,3"), name="sum"))
    return net.xml()


class SaidError(Exception):
    """The output of a command that failed."""


def line(text: str, files: Mapping[str, bytes] = FILES) -> Callable[[], None]:
    """Run a command line in a folder with these files."""

    def call() -> None:
        with TemporaryDirectory() as folder, chdir(folder):
            Path("folder").mkdir()
            for name, contents in files.items():
                Path(name).write_bytes(contents)
            found = CliRunner().invoke(main, shlex.split(text, comments=True))
        if found.exit_code:
            raise SaidError(
                (found.stdout + found.stderr).rstrip().replace(os.path.realpath(folder), "FOLDER")
            )

    return call


def written(text: str, files: Mapping[str, bytes] = FILES) -> Call:
    """A case named by its command line."""
    return Call(text, line(text, files), (SaidError,))


TWO_EXAMPLES = b"""
<layer id="1" type="ReLU" version="opset1"><input><port id="0"><dim>2</dim></port></input>
<output><port id="1"/></output></layer>
and
<layer id="1" type="ReLU" version="opset1"><input><port id="0"><dim>3</dim></port></input>
<output><port id="1"/></output></layer>
"""


def folder_of_others() -> None:
    with patch.object(os, "access", return_value=False):
        line("run net.xml --random -o out.npz")()


def no_cache() -> None:
    """A user without a home folder."""
    with patch.dict(os.environ), patch("platformdirs.user_cache_path", side_effect=RuntimeError):
        os.environ.pop("IR_RUNTIME_CACHE", None)
        line("cache")()


def cache_moved_onto_another() -> None:
    """Move the cache to an existing folder."""
    with TemporaryDirectory() as folder, patch.dict(os.environ, IR_RUNTIME_CACHE=f"{folder}/here"):
        for place in ("here", "there"):
            Path(folder, place, "ir_runtime", "debug").mkdir(parents=True)
        try:
            line(f"cache --move {folder}/there")()
        except SaidError as said:
            raise SaidError(str(said).replace(folder, "FOLDER")) from None


def terminal() -> None:
    """Write arrays to a terminal."""
    from click import testing

    with patch.object(testing._NamedTextIOWrapper, "isatty", return_value=True, create=True):
        line("run net.xml --random -o -")()


SAMPLES = {
    **FILES,
    "two.xml": sum_of_two(),
    "x.npy": saved(x=(2, 3)),
    "rate.py": b"def top1(outputs):\n    return 1 / 0\n",
}

REFUSALS = [
    written("validate pointer.xml", {"pointer.xml": POINTER}),
    written("validate net.xml", {**FILES, "net.bin": POINTER}),
    written("validate net.xml # saved from a page", {"net.xml": b"<!DOCTYPE html>\n<html><pre>&lt;net"}),
    written("validate net.xml # whose .bin is a page", {**FILES, "net.bin": b"<!DOCTYPE html>\n<html>"}),
    written("validate net.xml # whose .bin is an .xml", {**FILES, "net.bin": FILES["net.xml"]}),
    written("run net.xml.gz --random", {"net.xml.gz": b"\x1f\x8b\x08\x00"}),
    written("validate net.xml # no .bin", {"net.xml": FILES["net.xml"]}),
    written(
        "run net.xml --random # the .bin is called weights.bin",
        {"net.xml": FILES["net.xml"], "weights.bin": b"1"},
    ),
    written("validate net.xml # of a newer version", {"net.xml": chain().replace('"11"', '"12"').encode()}),
    written("run https://example.com/net.xml --random"),
    written("run net.xml -i https://example.com/x.npy"),
    written("run net.xml -i image.npy # NHWC", {**IMAGE, "image.npy": saved(x=(1, 8, 8, 3))}),
    written("run net.xml -i image.npy # no batch", {**IMAGE, "image.npy": saved(x=(3, 8, 8))}),
    written("run net.xml -i image.npy # another size", {**IMAGE, "image.npy": saved(x=(1, 3, 9, 9))}),
    written(
        "run net.xml -i image.npy # channels",
        {**added("1,3,8,8", 1, 3, 1, 1), "image.npy": saved(x=(1, 4, 8, 8))},
    ),
    written(
        "run net.xml -i image.npy # lengths that a layer refuses",
        {**added("?", 3), "image.npy": saved(x=(2,))},
    ),
    written(
        "compare net.xml -i image.npy --against numpy # likewise",
        {**added("?", 3), "image.npy": saved(x=(2,))},
    ),
    written("run net.xml --random --shape image=[2]", added("?", 3)),
    written("cost net.xml --shape image=[2]", added("?", 3)),
    written("run net.xml -i image.npy # complex", {**IMAGE, "image.npy": complex_numbers()}),
    written("run net.xml -i - # nothing"),
    written("run net.xml -w net.xml --random"),
    written("compare net.xml --results theirs.npz --random", {**FILES, "theirs.npz": saved(logits=(2, 3))}),
    written(
        "compare net.xml --results theirs.npz --random # of two names",
        {**FILES, "theirs.npz": saved(logits=(2, 3), odds=(2, 3))},
    ),
    written("explain IR999"),
    written("run net.xml -i image:image.npy", IMAGE),
    written("run net.xml -i image.npy # records", {**IMAGE, "image.npy": declared([("a", "<f4")], (2,))}),
    written(
        "run net.xml -i image.npy # strings of no length", {**IMAGE, "image.npy": declared("<U0", (2**31,))}
    ),
    written(
        "run net.xml -i image.npy --max-memory 1M # lengths",
        {**IMAGE, "image.npy": declared("<f4", (2**31, 0))},
    ),
    written("run net.xml -i other.npz", {**IMAGE, "other.npz": saved(photo=(1, 3, 8, 8))}),
    written("run net.xml -i image=other.npz", {**IMAGE, "other.npz": saved(a=(1,), b=(1,))}),
    written("run net.xml --random --timeout 0.000001"),
    written("run net.xml --random --max-memory 1"),
    written("run net.xml --random --max-memory 12Q"),
    written("run page.txt", {"page.txt": TWO_EXAMPLES}),
    written("cost net.xml --at seq"),
    written("cost net.xml --at seq=2"),
    written("cost net.xml --at bathc=2", {"net.xml": chain("-1").encode(), "net.bin": chain_weights()}),
    written("validate folder", {}),
    Call("folder that is not writable", folder_of_others, (SaidError,)),
    Call("arrays for a terminal", terminal, (SaidError,)),
    written("run net.xml --random -o - --json"),
    written("bench net.xml -b 2 -layout [N"),
    written("bench"),
    written("bench net.xml -m net.xml"),
    Call("unknown cache folder", no_cache, (SaidError,)),
    Call("cache that is taken", cache_moved_onto_another, (SaidError,)),
    written("cache --clean --move there"),
    written("explain json runn"),
    written("explain json xyz"),
    written("explain IR301 run"),
    written("budget net.xml -i x.npy --group-size 8,x", SAMPLES),
    written("budget net.xml -i x.npy --metric rate.py", SAMPLES),
    written("budget net.xml -i x.npy --metric rate:top1", SAMPLES),
    written("budget net.xml -i x.npy --metric rote.py:top1", SAMPLES),
    written("budget net.xml -i x.npy --metric rate.py:top2", SAMPLES),
    written("budget net.xml -i x.npy --metric rate.py:top1", SAMPLES),
    written("budget net.xml -i x=x.npy -i x.npy", SAMPLES),
    written("budget two.xml -i a=x.npy -i a=x.npy -i a=x.npy -i b=x.npy -i b=x.npy", SAMPLES),
]
