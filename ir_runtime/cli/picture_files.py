"""Find and open the files of images."""

from __future__ import annotations

import glob
import struct
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..diagnostics import Location
from ..errors import InputError
from ..limits import current

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["SUFFIXES", "open_picture", "picture_files"]

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
_STARTS = (b"\x89PNG", b"\xff\xd8\xff", b"BM", b"GIF8", b"RIFF", b"II*\0", b"MM\0*", b"P5", b"P6")
# Formats whose grey images of 16 bits Pillow gives as 32-bit integers.
_OF_SHORTS = ("PPM", "PNG")
# What Pillow raises on files that are cut off or made to break it.
_DAMAGED: tuple[type[Exception], ...] = (
    OSError, ValueError, SyntaxError, EOFError, TypeError, LookupError, ArithmeticError, AttributeError, struct.error, zlib.error,
)  # fmt: skip


def picture_files(path: str) -> list[Path] | None:
    """Return the images that a path, a folder or a pattern stands for; ``None`` if it is something else.

    Raises:
        InputError: if a folder has no images, or a pattern also matches other files.
    """
    place = Path(path)
    if place.is_dir():
        files = sorted(each for each in place.iterdir() if each.suffix.lower() in SUFFIXES)
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
    if len(files) > 1 and (others := [each for each in files if each.suffix.lower() not in SUFFIXES]):
        raise InputError(f"{path} matches {len(files)} files, of which {others[0]} is not an image")
    return files or None


def open_picture(path: Path, mode: str) -> tuple[Image, str]:
    """Read an image in a mode of Pillow; also return its size and mode in the file.

    Raises:
        InputError: if Pillow is not installed, or the file is damaged.
        LimitError: if its pixels take more memory than allowed.
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
                return _of_bytes(path, ImageOps.exif_transpose(picture), picture.format).convert(mode), before
        except Image.DecompressionBombError:
            raise InputError(f"{path} is too large: it has more pixels than Pillow reads") from None
        except MemoryError:
            raise InputError(f"not enough memory for the image {path}") from None
        except _DAMAGED as reason:
            raise InputError(
                f"{path} is not an image that can be read: {reason or 'it is damaged'}"
            ) from None


def _frames(image: Image) -> str:
    """Note that only the first image of a file is read, if it has several."""
    count = getattr(image, "n_frames", 1)
    return f", the first of {count} frames" if count > 1 else ""


def _of_bytes(path: Path, image: Image, format: str | None) -> Image:
    """Convert channels to bytes; Pillow would clamp larger values to 255.

    For 16 bits, the high byte is kept, as by OpenCV, and by Pillow for color.

    Raises:
        InputError: if there is no range of values that 0 to 255 could stand for.
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
    """Raise if the pixels of an image take more memory than allowed, before they are decoded.

    Raises:
        LimitError: if so.
    """
    current().check("memory", 4 * width * height, Location(str(path)))
