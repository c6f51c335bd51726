"""Read image files and convert them to the layout and element type of a model input."""

from __future__ import annotations

import glob
import struct
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..diagnostics import Location
from ..errors import InputError
from ..ir.tensor import Array
from ..limits import current
from ..openvino.layout import layout_of
from ..openvino.model import Model
from ..openvino.node import Output

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["SUFFIXES", "ImageOptions", "Pictures", "picture_files"]

Resizing = Literal["stretch", "letterbox", "crop", "none"]
Color = Literal["rgb", "bgr", "gray"]

_CHANNELS = {1: "gray", 3: "rgb", 4: "rgba"}
_COMMON = (1, 3)
_MODES = {"rgb": "RGB", "bgr": "RGB", "gray": "L", "rgba": "RGBA"}

# The resize types that models of Open Model Zoo and of the Model API declare in rt_info.
_INFO = "model_info"
_RESIZE_TYPES: Mapping[str, Resizing] = {
    "standard": "stretch",
    "crop": "crop",
    "fit_to_window": "letterbox",
    "fit_to_window_letterbox": "letterbox",
}


@dataclass(frozen=True)
class ImageOptions:
    """Preprocessing of image inputs; ``None`` takes the setting from the model.

    Args:
        layout: the layout of the input, such as ``NCHW``.
        mean: the value to subtract, or one per channel.
        scale: the divisor applied afterwards, or one per channel.
        resize: how to fit images to the height and width of the input.
        color: the channel order.
    """

    layout: str | None = None
    mean: tuple[float, ...] | None = None
    scale: tuple[float, ...] | None = None
    resize: Resizing | None = None
    color: Color | None = None

    def completed(self, model: Model) -> ImageOptions:
        """Fill in unset options from the ``model_info`` of a model."""
        info = model.get_rt_info(_INFO).value if model.has_rt_info(_INFO) else {}
        if not isinstance(info, Mapping):
            return self
        texts = {key: str(entry) for key, entry in info.items()}
        return replace(
            self,
            mean=self.mean if self.mean is not None else _numbers(texts.get("mean_values")),
            scale=self.scale if self.scale is not None else _numbers(texts.get("scale_values")),
            resize=self.resize or _RESIZE_TYPES.get(texts.get("resize_type", "")),
        )


def _numbers(text: str | None) -> tuple[float, ...] | None:
    """Parse numbers separated by spaces or commas; ``None`` if there are none."""
    words = (text or "").replace(",", " ").strip("[]() ").split()
    try:
        return tuple(map(float, words)) or None
    except ValueError:
        return None


@dataclass(frozen=True)
class Pictures:
    """Image files for one input; several files form a batch."""

    source: str
    files: Sequence[Path]

    def laid_out(self, model: Model, port: Output, options: ImageOptions) -> tuple[Array, str]:
        """Decode and convert the images; return the array for an input, and a description of the conversion.

        Raises:
            InputError: if Pillow is not installed, an image cannot be read, or the shape of the input does not fit images.
        """
        completed_options = options.completed(model)
        letters = _letters(port, completed_options.layout)
        dims = dict(zip(letters, port._type.shape, strict=True))
        static_lengths = {axis: dim.min for axis, dim in dims.items() if dim.is_static}
        color = completed_options.color or _CHANNELS.get(static_lengths.get("C", 3 if "C" in dims else 1))
        if color is None or ("C" in static_lengths and static_lengths["C"] != _count(color)):
            has = f"{static_lengths['C']} channels" if "C" in static_lengths else "no channels"
            raise InputError(f"input {port.label!r} has {has}, which {color or 'an image'} does not have")
        how = completed_options.resize or "stretch"
        size = (
            (static_lengths["W"], static_lengths["H"])
            if {"H", "W"} <= static_lengths.keys() and how != "none"
            else None
        )
        images, first = [], None
        for path in self.files:
            image, before = _open_picture(path, _MODES[color])
            first = first or before
            images.append(np.asarray(_resize(image, size, how)).reshape(*_resized_shape(image, size), -1))
        pixels = self._stack(images)
        pixels = pixels[..., ::-1] if color == "bgr" else pixels
        numbers = _scale_pixels(port, pixels, completed_options)
        if "N" not in letters and len(self.files) > 1:
            raise InputError(
                f"input {port.label!r} has no batch, but {self.source} is {len(self.files)} images"
            )
        order = ["NHWC".index(letter) for letter in letters]
        missing = tuple(axis for axis, letter in enumerate("NHWC") if letter not in letters)
        array = numbers.transpose(*order, *missing).reshape([numbers.shape[axis] for axis in order])
        return np.ascontiguousarray(array), self._describe(
            port, first or "", size, how, color, letters, completed_options, array
        )

    def _stack(self, images: Sequence[Array]) -> Array:
        shapes = {image.shape for image in images}
        if len(shapes) > 1:
            sizes = ", ".join(f"{shape[1]}x{shape[0]}" for shape in sorted(shapes)[:3])
            raise InputError(
                f"the images of {self.source} have different sizes: {sizes}",
                hint="--shape gives the input a height and width, to which they are resized",
            )
        return np.stack(images)

    def _describe(
        self,
        port: Output,
        before: str,
        size: tuple[int, int] | None,
        how: str,
        color: str,
        letters: str,
        options: ImageOptions,
        array: Array,
    ) -> str:
        count = f"{len(self.files)} images, the first " if len(self.files) > 1 else ""
        resized = size is not None and not before.startswith(f"{size[0]}x{size[1]} ")
        steps = [f"resized to {size[0]}x{size[1]} ({how})"] if resized and size else []
        steps += [color.upper() if color != "gray" else color]
        steps += [f"minus {_text(options.mean)}"] if options.mean else []
        steps += [f"divided by {_text(options.scale)}"] if options.scale else []
        steps += ["values from 0 to 255"] if not (options.mean or options.scale) else []
        shape = ",".join(map(str, array.shape))
        layout = ",".join(letters)
        return (
            f"{self.source} ({count}{before}) for {port.label!r}: {', '.join(steps)}, [{layout}] = [{shape}]"
        )


def _text(numbers: Sequence[float]) -> str:
    return ",".join(f"{number:g}" for number in numbers)


def _count(color: str) -> int:
    return next((count for count, name in _CHANNELS.items() if name == color), 3)


def _letters(port: Output, requested: str | None) -> str:
    """Return the layout of an input: as requested, from the model, or guessed from its shape."""
    shape = port._type.shape
    if shape.rank is None:
        raise InputError(f"input {port.label!r} has no rank, so no layout", hint="--shape gives it one")
    layout_text = requested or str(layout_of(port.node.layer, port.index))
    letters = "".join(c for c in layout_text.upper() if c.isalpha()) or _guess_layout(
        [d.min if d.is_static else None for d in shape]
    )
    hint = "--layout NCHW says what its axes are: batch, channels, height, width"
    if len(letters) != shape.rank:
        raise InputError(f"input {port.label!r} has shape {shape}, which is not that of an image", hint=hint)
    if not {"H", "W"} <= set(letters) <= set("NCHW") or len(set(letters)) < len(letters):
        raise InputError(f"layout {letters} is not one of images: of N, C, H and W", hint=hint)
    return letters


def _guess_layout(lengths: Sequence[int | None]) -> str:
    """Guess the layout of an image tensor from the lengths of its axes."""
    if len(lengths) not in (2, 3, 4):
        return ""
    if len(lengths) == 2:
        return "HW"
    first, last = lengths[-3], lengths[-1]
    is_last = last in _CHANNELS and (first not in _CHANNELS or (last in _COMMON and first not in _COMMON))
    return "NHWC"[-len(lengths) :] if is_last else "NCHW"[-len(lengths) :]


def _resized_shape(image: Image, size: tuple[int, int] | None) -> tuple[int, int]:
    width, height = size or image.size
    return height, width


def _resize(image: Image, size: tuple[int, int] | None, how: str) -> Image:
    from PIL import Image, ImageOps

    if size is None or image.size == size:
        return image
    if how == "letterbox":
        return ImageOps.pad(image, size, Image.Resampling.BILINEAR)
    if how == "crop":
        return ImageOps.fit(image, size, Image.Resampling.BILINEAR)
    return image.resize(size, Image.Resampling.BILINEAR)


def _scale_pixels(port: Output, pixels: Array, options: ImageOptions) -> Array:
    """Subtract the mean from pixels, divide by the scale, and convert to the element type of an input."""
    element, channels = port.element_type, pixels.shape[-1]
    if not element.is_real():
        if options.mean or options.scale:
            raise InputError(
                f"input {port.label!r} is {element.label}: --mean and --scale are for real numbers"
            )
        if element.dtype.kind not in "iu" or np.iinfo(element.dtype).max < 255:
            raise InputError(
                f"input {port.label!r} is {element.label}, which does not hold numbers up to 255"
            )
        return pixels.astype(element.dtype)
    values = pixels.astype(np.float32)
    for name, numbers in (("--mean", options.mean), ("--scale", options.scale)):
        if numbers and len(numbers) not in (1, channels):
            raise InputError(
                f"{name} must have one number or {channels}, one for each channel, got {len(numbers)}"
            )
    if options.mean:
        values -= np.array(options.mean, np.float32)
    if options.scale:
        if 0 in options.scale:
            raise InputError("--scale must not be 0")
        values /= np.array(options.scale, np.float32)
    converted: Array = values.astype(element.dtype)
    return converted


SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
_STARTS = (b"\x89PNG", b"\xff\xd8\xff", b"BM", b"GIF8", b"RIFF", b"II*\0", b"MM\0*", b"P5", b"P6")
# Formats whose 16-bit gray images Pillow returns as 32-bit integers.
_OF_SHORTS = ("PPM", "PNG")
# Exceptions that Pillow raises for truncated or malicious files.
_DAMAGED: tuple[type[Exception], ...] = (
    OSError, ValueError, SyntaxError, EOFError, TypeError, LookupError, ArithmeticError, AttributeError, struct.error, zlib.error,
)  # fmt: skip


def picture_files(path: str) -> list[Path] | None:
    """Return the image files that a path, folder or glob pattern stands for; ``None`` if it names no images.

    Raises:
        InputError: if a folder contains no images, or a pattern also matches other files.
    """
    place = Path(path)
    if place.is_dir():
        files = sorted(file for file in place.iterdir() if file.suffix.lower() in SUFFIXES)
        if not files:
            by_rows = "`ir-runtime run --batch 32` reads a folder of .npy files"
            hint = (
                by_rows if any(place.glob("*.npy")) else f"expected files that end in {', '.join(SUFFIXES)}"
            )
            raise InputError(f"{path} has no images", hint=hint)
        return files
    if place.is_file():
        with place.open("rb") as file:
            return [place] if file.read(4).startswith(_STARTS) else None
    files = sorted(map(Path, glob.glob(path))) if glob.has_magic(path) else []
    if len(files) > 1 and (others := [file for file in files if file.suffix.lower() not in SUFFIXES]):
        raise InputError(f"{path} matches {len(files)} files, of which {others[0]} is not an image")
    return files or None


def _open_picture(path: Path, mode: str) -> tuple[Image, str]:
    """Read an image and convert it to a Pillow mode; also return a text with its original size and mode.

    Raises:
        InputError: if Pillow is not installed, or the file is damaged.
        LimitError: if its pixels exceed the memory limit.
    """
    try:
        from PIL import Image, ImageOps
    except ImportError:
        hint = "pip install 'ir_runtime[image]' installs it"
        raise InputError(
            f"{path} is an image, which the package Pillow reads; it is not installed", hint=hint
        ) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(path, formats=_FORMATS) as picture:
                _check_size(path, picture.width, picture.height)
                before = f"{picture.width}x{picture.height} {picture.mode}{_frames(picture)}"
                return _to_bytes(path, ImageOps.exif_transpose(picture), picture.format).convert(mode), before
        except Image.DecompressionBombError:
            raise InputError(f"{path} is too large: it has more pixels than Pillow reads") from None
        except MemoryError:
            raise InputError(f"not enough memory for the image {path}") from None
        except _DAMAGED as reason:
            raise InputError(
                f"{path} is not an image that can be read: {reason or 'it is damaged'}"
            ) from None


def _frames(image: Image) -> str:
    """Return a note for files with several images, of which only the first is read; else empty."""
    count = getattr(image, "n_frames", 1)
    return f", the first of {count} frames" if count > 1 else ""


def _to_bytes(path: Path, image: Image, format: str | None) -> Image:
    """Convert channels to 8 bits; Pillow itself would clamp larger values to 255.

    Of 16-bit channels, the high byte is kept, as OpenCV does, and Pillow for color images.

    Raises:
        InputError: if pixels are 32-bit integers or floats, whose range is unknown.
    """
    from PIL import Image as Images

    is_short = image.mode.startswith("I;16") or (image.mode == "I" and format in _OF_SHORTS)
    if is_short:
        return Images.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        kind = "32-bit integers" if image.mode == "I" else "real numbers"
        raise InputError(
            f"{path} has pixels that are {kind}, of no known range",
            hint="save them as .npy in the scale that the model takes, or as an image of 8 or 16 bits",
        )
    return image


def _check_size(path: Path, width: int, height: int) -> None:
    """Check the size of an image against the memory limit, before decoding it.

    Raises:
        LimitError: if its pixels exceed the limit.
    """
    current().check("memory", 4 * width * height, Location(str(path)))
