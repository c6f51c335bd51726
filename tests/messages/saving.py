"""Messages for models that cannot be saved."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from harness.nets import Net
from harness.refusals import Call

import ir_runtime as ir
from ir_runtime._util import files

FOLDER = "messages"


def model(name: str = "net") -> ir.Model:
    """A model that returns its input."""
    net = Net()
    net.result(net.parameter("x", "2", out="FP32 2"))
    read = ir.read_model(net.xml())
    read.friendly_name = name
    return read


def saving(what: Any, path: str = "model.xml", name: str = "", **how: Any) -> Callable[[], None]:
    """Save in a temporary folder in which ``name`` is not a regular file."""

    def call() -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            if name:
                os.mkfifo(name)
            ir.serialize(what, path, **how)

    return call


def beside(save: Callable[[], object]) -> Callable[[], None]:
    """Save in a temporary folder, masked in messages, with a file and links to another folder."""

    def call() -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            Path("file").touch()
            Path("model.xml").symlink_to("elsewhere/model.xml")
            Path("out").symlink_to("elsewhere")
            try:
                save()
            except ir.InputError as reason:
                hint = reason.hint.replace(os.path.realpath("."), "/home")
                raise ir.InputError(reason.message, code=reason.code, hint=hint) from None

    return call


def into(target: str) -> None:
    with files.replace_in_folder(Path(target)):
        pass


def full() -> None:
    """Save on a full disk."""
    problem = OSError(errno.ENOSPC, "No space left on device")
    with patch.object(files.os, "fsync", side_effect=problem):
        saving(model())()


def backslashes() -> ir.Model:
    """An output with two names that end in a backslash: one in the Result, one at its port."""
    net = Net()
    x = net.parameter("x", "2", out="FP32 2")
    net.layer("Result", [x], name="y", inputs=["FP32 2"], extra={"output_names": "one\\"})
    here = b'<port id="0" precision="FP32"><dim>2</dim></port></input>'
    return ir.read_model(net.xml().replace(here, here.replace(b'"FP32"', b'"FP32" names="two\\"')))


REFUSALS = [
    Call("no xml", saving(model(), "model")),
    Call("another ending", saving(model(), "model.onnx")),
    Call("null in a path", saving(model(), "a\0.xml")),
    Call("one file for both", saving(model(), bin_path="model.xml")),
    Call("old version", saving(model(), version="IR_V10")),
    Call("path of a model", saving("model.xml"), (TypeError,)),
    Call("file in place of a folder", beside(lambda: ir.save_model(model(), "file/none/model.xml"))),
    Call("pipe", saving(model(), name="model.bin")),
    Call("full disk", full),
    Call("link", beside(lambda: ir.save_model(model(), "model.xml"))),
    Call("folder that is a link", beside(lambda: into("out"))),
    Call("file that would become a folder", beside(lambda: into("file"))),
    Call("character that XML does not have", saving(model("a\x07b"))),
    Call("two backslashes", saving(backslashes())),
]
