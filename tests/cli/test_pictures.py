"""Image inputs."""

from __future__ import annotations

import io
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from shlex import quote

import numpy as np
import pytest
from click.testing import Result
from harness.missing import missing
from harness.nets import Net, passing, write
from PIL import Image

import ir_runtime
from ir_runtime.bench import report
from ir_runtime.bench.start import Start
from ir_runtime.cli.feeding import collect
from ir_runtime.cli.pictures import ImageOptions, Pictures, picture_files
from ir_runtime.errors import InputError, IRError
from ir_runtime.ir.tensor import Array

EXAMPLES = Path(__file__).parents[2] / "examples" / "digits"
DIGITS, PICTURES, NAMES = EXAMPLES / "digits.xml", EXAMPLES / "pictures", EXAMPLES / "digits.txt"

Invoke = Callable[[str], Result]

COLORS = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
"""An image 6 wide and 4 high, each number of which is another."""


def model(shape: str, element: str = "f32", layout: str = "", info: str = "") -> ir_runtime.Model:
    net = Net()
    net.result(net.op("Abs", net.parameter("image", shape, element)))
    if info:
        net.rt_info = f"<model_info>{info}</model_info>"
    found = ir_runtime.read_model(net.xml())
    if layout:
        ir_runtime.layout_helpers.set_layout(found.input(0), ir_runtime.Layout(layout))
    return found


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "colors.png"
    Image.fromarray(COLORS).save(path)
    return path


def fed(net: ir_runtime.Model, path: Path | str, **options: object) -> Array:
    files = picture_files(str(path))
    assert files is not None
    return Pictures(str(path), files).laid_out(net, net.input(0), ImageOptions(**options))[0]  # type: ignore[arg-type]


CHANNELS_FIRST = COLORS.transpose(2, 0, 1)[None]
GRAY = np.asarray(Image.fromarray(COLORS).convert("L"))


@pytest.mark.parametrize(
    ("shape", "how", "expected"),
    [
        ("1,3,4,6", {}, CHANNELS_FIRST),
        ("?,3,?,?", {}, CHANNELS_FIRST),
        ("1,4,6,3", {}, COLORS[None]),
        ("3,4,6", {}, CHANNELS_FIRST[0]),
        ("4,6", {}, GRAY),
        ("1,1,4,6", {}, GRAY[None, None]),
        ("1,3,4,6", {"color": "bgr"}, CHANNELS_FIRST[:, ::-1]),
        ("1,3,4,6", {"scale": (2.0,)}, CHANNELS_FIRST / 2),
        ("1,3,4,6", {"mean": (1.0, 2.0, 3.0), "scale": (1.0, 2.0, 4.0)}, (COLORS - [1.0, 2, 3]) / [1, 2, 4]),
        ("6,4,3,1", {"layout": "WHCN"}, COLORS.transpose(1, 0, 2)[..., None]),
    ],
)
def test_pixels_are_where_the_layout_says(
    picture: Path, shape: str, how: dict[str, object], expected: Array
) -> None:
    if "mean" in how:
        expected = np.asarray(expected).transpose(2, 0, 1)[None]
    found = fed(model(shape), picture, **how)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_layout_of_the_model_is_used(picture: Path) -> None:
    """[3,4,6,3] is ambiguous without the layout."""
    assert fed(model("?,4,6,3", "u8", "NHWC"), picture).tolist() == COLORS[None].tolist()
    assert fed(model("1,3,?,3", "u8", "NCHW"), picture, resize="none").shape == (1, 3, 4, 6)


def test_the_model_info_of_the_model_is_used(picture: Path) -> None:
    info = '<mean_values value="1 2 3"/><scale_values value="2 2 2"/><resize_type value="standard"/>'
    found = fed(model("1,3,4,6", info=info), picture)
    np.testing.assert_allclose(found[0].transpose(1, 2, 0), (COLORS - [1.0, 2, 3]) / 2, rtol=1e-6)
    np.testing.assert_allclose(fed(model("1,3,4,6", info=info), picture, mean=(0.0,)), CHANNELS_FIRST / 2)


def test_resizing(picture: Path) -> None:
    """For a white 6x4 image, letterboxing to 6x6 adds black rows; cropping and stretching do not."""
    Image.new("L", (6, 4), 255).save(picture)
    rows = {
        how: fed(model("6,6"), picture, resize=how).min(axis=1) for how in ("letterbox", "crop", "stretch")
    }
    assert rows["letterbox"].tolist() == [0, 255, 255, 255, 255, 0]
    assert rows["crop"].tolist() == rows["stretch"].tolist() == [255] * 6


def test_photographs_are_turned_as_their_camera_says(tmp_path: Path) -> None:
    path, exif = tmp_path / "turned.png", Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise
    Image.fromarray(COLORS).save(path, exif=exif)
    assert fed(model("?,?,?,3", "u8", "NHWC"), path).tolist() == np.rot90(COLORS, -1)[None].tolist()


SHORTS = np.array([[0, 255, 256], [32768, 65279, 65535]], np.uint16)


@pytest.mark.parametrize("suffix", ["png", "tiff", "pgm"])
@pytest.mark.parametrize("shape", ["1,1,2,3", "1,3,2,3"])
def test_images_of_16_bits_keep_their_high_byte(tmp_path: Path, suffix: str, shape: str) -> None:
    """As in OpenCV; Pillow would clip to 255."""
    path = tmp_path / f"x.{suffix}"
    Image.fromarray(SHORTS).save(path)
    found = fed(model(shape), path)
    np.testing.assert_array_equal(found, np.broadcast_to(SHORTS >> 8, found.shape))


def test_16_bits_in_the_other_byte_order(tmp_path: Path) -> None:
    path = tmp_path / "x.tiff"
    Image.frombytes("I;16B", (3, 2), SHORTS.astype(">u2").tobytes()).save(path)
    np.testing.assert_array_equal(fed(model("2,3"), path), SHORTS >> 8)


@pytest.mark.parametrize(("dtype", "said"), [(np.int32, "32-bit integers"), (np.float32, "real numbers")])
def test_pixels_of_no_known_range_are_refused(tmp_path: Path, dtype: type, said: str) -> None:
    path = tmp_path / "x.tiff"
    Image.fromarray(SHORTS.astype(dtype)).save(path)
    with pytest.raises(InputError, match=said):
        fed(model("1,1,2,3"), path)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr"])
def test_modes_of_bytes_are_what_pillow_shows(tmp_path: Path, mode: str) -> None:
    path = tmp_path / ("x.tiff" if mode in ("CMYK", "YCbCr", "PA", "LA") else "x.png")
    Image.fromarray(COLORS).convert("RGBA" if mode == "RGBA" else "RGB").convert(mode).save(path)
    expected = np.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1)[None]
    np.testing.assert_array_equal(fed(model("1,3,4,6"), path), expected)


def test_the_first_image_of_several_is_read_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.gif"
    frames = [Image.new("L", (6, 4), color) for color in (10, 200, 90)]
    frames[0].save(path, save_all=True, append_images=frames[1:])
    net = model("1,1,4,6")
    files = picture_files(str(path))
    assert files is not None
    found, said = Pictures(str(path), files).laid_out(net, net.input(0), ImageOptions())
    assert (found == 10).all()
    assert ", the first of 3 frames" in said


def test_folders_and_patterns_are_batches_in_the_order_of_names(tmp_path: Path) -> None:
    for number in (2, 1, 3):
        Image.new("L", (2, 2), number).save(tmp_path / f"{number}.png")
    (tmp_path / "notes.txt").write_text("no image")
    assert fed(model("?,1,2,2"), tmp_path)[:, 0, 0, 0].tolist() == [1, 2, 3]
    assert fed(model("?,1,2,2"), tmp_path / "[12].png")[:, 0, 0, 0].tolist() == [1, 2]


def test_the_digits_are_recognised(invoke: Invoke) -> None:
    found = invoke(
        f"run {quote(str(DIGITS))} -i image={quote(str(PICTURES))} --scale 255 --labels {quote(str(NAMES))} --backend numpy"
    )
    assert found.exit_code == 0
    names = [line.split()[-1] for line in found.stdout.rpartition("Best of scores")[2].splitlines()[2:]]
    assert names == ["five", "six", "seven", "eight", "nine"]
    assert found.stderr == (
        f"{PICTURES} (5 images, the first 8x8 L) for 'image': gray, divided by 255, [N,C,H,W] = [5,1,8,8]\n"
    )


@pytest.mark.parametrize("labels", ["lines", "list", "object"])
def test_the_best_have_their_labels(invoke: Invoke, tmp_path: Path, labels: str) -> None:
    names = NAMES.read_text().split()
    texts = {
        "lines": NAMES.read_text(),
        "list": json.dumps(names),
        "object": json.dumps({n: ["x", name] for n, name in enumerate(names)}),
    }
    (tmp_path / "labels").write_text(texts[labels])
    line = f"run {quote(str(DIGITS))} -i {quote(str(PICTURES))}/7.png --scale 255 --labels {quote(str(tmp_path))}/labels --backend numpy"
    assert "7    8.13463  seven" in invoke(line).stdout
    top = json.loads(invoke(f"{line} --json").stdout)["outputs"][0]["top"]
    assert [each["label"] for each in top][:2] == ["seven", "five"]


def test_bench_lays_images_out_as_its_layout_says(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "measure", lambda *_: Start(0, 0, 0, 0, 0, 0))
    write(folder, passing("f32", "1,3,4,3", name="image"))
    line = f"bench net.xml -niter 1 --backend numpy -i image={quote(str(PICTURES))}/7.png"
    assert "[N,C,H,W] = [1,3,4,3]" in invoke(line).stderr
    assert "[N,H,W,C] = [1,3,4,3]" in invoke(f"{line} -layout [NHWC]").stderr


@pytest.mark.parametrize(
    "command",
    [
        "bench -niter 1 --backend numpy",
        "compare --against reference",
        "profile --runs 1 --backend numpy",
        "report --profile --runs 1 --backend numpy",
    ],
)
def test_other_commands_take_images(invoke: Invoke, command: str) -> None:
    name, _, options = command.partition(" ")
    found = invoke(f"{name} {quote(str(DIGITS))} {options} -i image={quote(str(PICTURES))}/7.png --scale 255")
    assert found.exit_code == 0, found.stderr
    assert "(8x8 L) for 'image': gray, divided by 255" in found.stderr


def test_without_pillow_it_is_said_what_to_install(picture: Path) -> None:
    with missing("PIL"), pytest.raises(InputError, match="Pillow") as caught:
        fed(model("1,3,4,6"), picture)
    assert caught.value.hint == "pip install 'ir_runtime[image]' installs it"


def test_pillow_is_imported_for_images_only() -> None:
    import subprocess

    program = "import sys, ir_runtime.cli.feeding; sys.exit('PIL' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


REFUSED = [
    ("1,2,4,6", {}, "input 'image' has 2 channels"),
    ("1,3,4,6", {"color": "gray"}, "input 'image' has 3 channels, which gray does not have"),
    ("5", {}, "has shape [5], which is not that of an image"),
    ("1,3,4,6", {"layout": "NCDW"}, "layout NCDW is not one of images"),
    ("1,3,4,6", {"mean": (1.0, 2.0)}, "--mean must have one number or 3"),
    ("1,3,4,6", {"scale": (0.0,)}, "--scale must not be 0"),
    ("...", {}, "has no rank"),
]


@pytest.mark.parametrize(("shape", "how", "said"), REFUSED)
def test_what_does_not_fit_is_refused(picture: Path, shape: str, how: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as caught:
        fed(model(shape), picture, **how)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("element", "how", "said"),
    [("u8", {"scale": (255.0,)}, "are for real numbers"), ("i8", {}, "does not hold numbers up to 255")],
)
def test_integers_stay_as_they_are(picture: Path, element: str, how: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        fed(model("1,3,4,6", element), picture, **how)


def test_images_of_different_sizes_are_no_batch(tmp_path: Path) -> None:
    for size in (2, 3):
        Image.new("L", (size, 2)).save(tmp_path / f"{size}.png")
    with pytest.raises(InputError, match="have different sizes: 2x2, 3x2"):
        fed(model("?,1,?,?"), tmp_path)
    assert fed(model("?,1,4,4"), tmp_path).shape == (2, 1, 4, 4)


def test_several_images_need_a_batch(tmp_path: Path) -> None:
    for name in "ab":
        Image.new("L", (2, 2)).save(tmp_path / f"{name}.png")
    with pytest.raises(InputError, match=r"has no batch, but .* is 2 images"):
        fed(model("1,2,2", layout="CHW"), tmp_path)
    with pytest.raises(InputError, match=r"has shape \[2, 1, 2, 2\], expected \[1,1,2,2\]"):
        collect(model("1,1,2,2"), [str(tmp_path)])


def test_folders_without_images_and_patterns_with_others_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no images"):
        picture_files(str(tmp_path))
    for name in ("a.png", "b.npy"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=r"matches 2 files, of which .*b\.npy is not an image"):
        picture_files(f"{tmp_path}/*")


def test_an_image_that_claims_more_pixels_than_memory_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    """A decompression bomb: a PNG whose header declares 60000x60000 pixels."""
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
    path = tmp_path / "bomb.png"
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
    )
    with pytest.raises(IRError, match=r"too large|memory"):
        fed(model("1,3,4,6"), path)


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "bmp", "webp", "tiff", "ppm"])
def test_damaged_images_end_in_one_message(tmp_path: Path, kind: str) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.tile(COLORS, (8, 8, 1))).save(buffer, kind)
    whole, rng = buffer.getvalue(), random.Random(0)
    path, refused = tmp_path / f"damaged.{kind}", 0
    for number in range(30):
        data = bytearray(whole[: len(whole) // 2] if number % 3 == 0 else whole)
        for _ in range(number % 5):
            data[rng.randrange(4, len(data))] = rng.randrange(256)
        path.write_bytes(data)
        said = refusal(path)
        refused += said is not None
        assert said is None or str(path) in said
    assert refused


def refusal(path: Path) -> str | None:
    """Return the error for an image; ``None`` if it is read."""
    try:
        fed(model("1,3,4,6"), path)
    except IRError as reason:
        return str(reason)
    return None


def test_labels_that_cannot_be_read(invoke: Invoke, tmp_path: Path) -> None:
    for name, data in (("bytes", b"\xff\xfe"), ("json", b"[1, ")):
        (tmp_path / name).write_bytes(data)
    line = f"run {quote(str(DIGITS))} --random --labels"
    assert "missing cannot be read" in invoke(f"{line} missing").stderr
    assert "is not text in UTF-8" in invoke(f"{line} bytes").stderr
    assert "is not a list of names" in invoke(f"{line} json").stderr


def test_numbers_that_are_none(invoke: Invoke) -> None:
    found = invoke(f"run {quote(str(DIGITS))} --random --mean 1,x")
    assert found.exit_code == 2
    assert "'1,x' is not numbers such as" in found.stderr
