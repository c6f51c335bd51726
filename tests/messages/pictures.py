"""Messages for images that cannot be inputs, and for labels."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
from click.testing import CliRunner
from harness.missing import missing
from harness.nets import Net
from harness.refusals import Call

import ir_runtime as ir
from ir_runtime.cli import main
from ir_runtime.cli.outputs import labels_of
from ir_runtime.cli.pictures import ImageOptions, Pictures, picture_files

FOLDER = "messages"


def model(shape: str, element: str = "f32") -> ir.Model:
    net = Net()
    net.result(net.op("Abs", net.parameter("image", shape, element)))
    return ir.read_model(net.xml())


def in_folder(call: Callable[[Path], object]) -> None:
    """Call a function with a folder of images; its path is masked in messages."""
    from PIL import Image

    folder = Path(tempfile.mkdtemp())
    for name, size in (("a", (2, 2)), ("b", (3, 2))):
        Image.new("L", size).save(folder / f"{name}.png")
    (folder / "empty").mkdir()
    for name, pixels in (("i", np.zeros((2, 2), np.int32)), ("f", np.zeros((2, 2), np.float32))):
        Image.fromarray(pixels).save(folder / f"{name}.tiff")
    (folder / "notes.txt").write_text("no image")
    (folder / "broken.png").write_bytes(b"\x89PNG broken")
    try:
        call(folder)
    except ir.IRError as reason:
        raise type(reason)(
            reason.message.replace(f"{folder}/", ""), code=reason.code, hint=reason.hint
        ) from None


def feed(name: str, shape: str, element: str = "f32", **options: object) -> Call:
    """Feed one or several images to an input of a given shape."""

    def call(folder: Path) -> None:
        net = model(shape, element)
        files = picture_files(str(folder / name)) or []
        Pictures(name, files).laid_out(net, net.input(0), ImageOptions(**options))  # type: ignore[arg-type]

    return Call(f"{name} for {element} {shape} {options or ''}".strip(), lambda: in_folder(call))


def with_arrays(folder: Path) -> None:
    (folder / "empty" / "a.npy").touch()
    picture_files(f"{folder}/empty")


def without_pillow(folder: Path) -> None:
    with missing("PIL"):
        net = model("1,1,2,2")
        Pictures("a.png", [folder / "a.png"]).laid_out(net, net.input(0), ImageOptions())


def failing(reason: Exception) -> Call:
    """Let Pillow raise an error."""

    def call(folder: Path) -> None:
        from PIL import Image

        net = model("1,1,2,2")
        with warnings.catch_warnings(), mock.patch.object(Image, "open", side_effect=reason):
            Pictures("a.png", [folder / "a.png"]).laid_out(net, net.input(0), ImageOptions())

    return Call(f"Pillow raises {type(reason).__name__}", lambda: in_folder(call))


def bomb() -> Exception:
    from PIL.Image import DecompressionBombError

    return DecompressionBombError()


def labels(data: bytes) -> Call:
    def call(folder: Path) -> None:
        (folder / "labels").write_bytes(data)
        labels_of(model("1"), str(folder / "labels"))

    return Call(f"labels {data!r}", lambda: in_folder(call))


def numbers_that_are_none() -> str:
    return CliRunner().invoke(main, ["run", "model.xml", "--mean", "1,x"]).stderr


def unreadable() -> Call:
    from ir_runtime.cli.feeding import collect

    def call(folder: Path) -> None:
        with mock.patch("pathlib.Path.open", side_effect=PermissionError(13, "Permission denied")):
            collect(model("1,1,2,2"), [str(folder / "a.png")])

    return Call("image that may not be read", lambda: in_folder(call))


REFUSALS = [
    feed("a.png", "..."),
    feed("a.png", "5"),
    feed("a.png", "1,2,2,2"),
    feed("a.png", "1,3,2,2", color="gray"),
    feed("a.png", "1,1,2,2", layout="NCDW"),
    feed("a.png", "1,1,2,2", mean=(1.0, 2.0)),
    feed("a.png", "1,1,2,2", scale=(0.0,)),
    feed("a.png", "1,1,2,2", "u8", scale=(2.0,)),
    feed("a.png", "1,1,2,2", "i8"),
    feed("[ab].png", "?,1,?,?"),
    feed("[ab].png", "2,2"),
    feed("broken.png", "1,1,2,2"),
    feed("i.tiff", "1,1,2,2"),
    feed("f.tiff", "1,1,2,2"),
    feed("*", "1,1,2,2"),
    feed("empty", "1,1,2,2"),
    Call("a folder of arrays", lambda: in_folder(with_arrays)),
    Call("without Pillow", lambda: in_folder(without_pillow)),
    failing(MemoryError()),
    failing(bomb()),
    unreadable(),
    Call("labels that are not there", lambda: labels_of(model("1"), "missing.txt")),
    labels(b"\xff\xfe"),
    labels(b"[1, "),
    numbers_that_are_none,
]
