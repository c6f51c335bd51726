"""Tensors that look like images, as small PNGs."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np

from .._util.markup import element
from ..ir.array import Array
from .text import dims

__all__ = ["as_picture", "pictures", "png"]

_LARGEST = 160
_LEAST = 8
_MOST = 8


def pictures(tensors: Sequence[tuple[str, Array]]) -> str:
    """Return the tensors that look like images, as HTML; empty if none does."""
    parts: list[str] = []
    for name, array in tensors:
        picture = as_picture(array)
        if picture is None or len(parts) == _MOST:
            continue
        source = "data:image/png;base64," + base64.b64encode(png(picture)).decode()
        size = {"width": picture.shape[1], "height": picture.shape[0]}
        caption = element("figcaption", text=f"{name} ({dims(array.shape)})")
        parts.append(
            element(
                "figure",
                caption,
                f'<img alt="" src="{source}" width="{size["width"]}" height="{size["height"]}">',
            )
        )
    return element("div", *parts, class_="thumbs") if parts else ""


def as_picture(array: Array) -> Array | None:
    """Return the first image of a tensor as u8 ``[height, width, 1 or 3]``; ``None`` if it does not look like one."""
    if array.dtype.kind not in "fuib" or array.ndim not in (3, 4) or not array.size:
        return None
    image = array[0] if array.ndim == 4 else array
    if image.shape[0] in (1, 3) and min(image.shape[1:]) >= _LEAST:
        image = np.moveaxis(image, 0, -1)
    elif image.shape[-1] not in (1, 3) or min(image.shape[:2]) < _LEAST:
        return None
    step = -(-max(image.shape[:2]) // _LARGEST)
    return _bytes(image[::step, ::step])


def _bytes(image: Array) -> Array:
    """Scale an image to 0 to 255: the smallest finite number is black, the largest white."""
    if image.dtype == np.uint8:
        return image
    wide = np.nan_to_num(image.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = wide.min(), wide.max()
    scaled: Array = (wide - low) * (255 / (high - low) if high > low else 0)
    return scaled.astype(np.uint8)


def png(image: Array) -> bytes:
    """Return u8 ``[height, width, 1 or 3]`` as a PNG."""
    height, width, colours = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(image))
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if colours == 3 else 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
