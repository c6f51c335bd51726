"""Read the constants of a model as views of a memory-mapped file."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np

from ..._util.command_line import on_command_line
from ...codes import Code
from ...diagnostics import Location
from ...errors import ParseError
from ...ir.array import Packed
from ...ir.element import ElementType
from ...ir.pages import MappedFile
from ...ir.tensor import Array
from ...ops.kernels.strings import header_size, unpack_strings
from .source import DOWNLOAD, LFS_POINTER, LFS_PULL, is_webpage

__all__ = ["Weights", "WeightsLike", "open_weights", "packed_bytes"]

WeightsLike: TypeAlias = "str | os.PathLike[str] | bytes | IO[bytes] | Array"


# Signatures of other kinds of files.
_HEAD = 64


class Weights:
    """The bytes of a ``.bin``, read-only; ``None`` if the model has none."""

    def __init__(
        self,
        data: bytes | bytearray | memoryview | MappedFile | Array | None = None,
        name: str = "",
        missing: str = "",
    ) -> None:
        self.name: str = name
        self.missing: str = missing
        self._file = data if isinstance(data, MappedFile) else None
        self.data: Array | None = None
        if data is not None:
            self.data = np.frombuffer(data, np.uint8)
            self.data.flags.writeable = False  # the caller's data is only read

    def check(self) -> None:
        """Check that the memory-mapped file still has its length.

        Raises:
            ParseError: if it was truncated.
        """
        if self._file is not None:
            self._file.check()

    def __len__(self) -> int:
        return 0 if self.data is None else len(self.data)

    def tensor(
        self, element: ElementType, shape: tuple[int, ...], offset: int, size: int, where: Location
    ) -> Array | Packed:
        """Return the constant at ``offset`` as a view; sub-byte elements stay packed.

        Raises:
            ParseError: if it is outside the file, or ``size`` is too small for the shape.
        """
        needed = packed_bytes(element, shape)
        if size < needed:
            raise ParseError(
                f"attribute 'size' is {size}, but {element.label}{_shown(shape)} takes {needed} bytes",
                code=Code.WEIGHTS_RANGE,
                where=where,
            )
        if self.data is None and needed:
            raise ParseError(
                "the model has constants, but no weights were found",
                code=Code.WEIGHTS_MISSING,
                where=where,
                hint=self.missing or "constants are stored in the .bin of a whole model; a page has none",
            )
        if needed and offset + size > len(self):
            raise ParseError(
                f"attributes 'offset' and 'size' ask for bytes {offset} to {offset + size}, "
                f"but {self.name} ends at {len(self)}",
                code=Code.WEIGHTS_RANGE,
                where=where,
                hint="the .bin is cut off, or belongs to another .xml",
            )
        if element is ElementType.string:
            return self._texts(shape, offset, size, where)
        return self._view(element, shape, offset)

    def _view(self, element: ElementType, shape: tuple[int, ...], offset: int) -> Array | Packed:
        count = math.prod(shape)
        if self.data is None or not count:
            return np.empty(shape, element.dtype)
        raw = self.data[offset : offset + element.nbytes(count)]
        if element.bits < 8:
            return Packed(raw, element, shape)
        if element is ElementType.boolean:
            return np.asarray(raw != 0).reshape(shape)
        return raw.view(element.dtype).reshape(shape)

    def _texts(self, shape: tuple[int, ...], offset: int, size: int, where: Location) -> Array:
        assert self.data is not None
        try:
            texts = unpack_strings(self.data[offset : offset + size], math.prod(shape))
        except ValueError as reason:
            message = f"its {size} bytes are not the packed strings of string{_shown(shape)}: {reason}"
            raise ParseError(message, code=Code.WEIGHTS_RANGE, where=where) from None
        texts.flags.writeable = False
        return texts.reshape(shape)


def _shown(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


def packed_bytes(element: ElementType, shape: tuple[int, ...]) -> int:
    """Return the size of a constant in the ``.bin``; for strings, that of the header."""
    count = math.prod(shape)
    return header_size(count) if element is ElementType.string else element.nbytes(count)


def open_weights(weights: WeightsLike | None, model: Path | None) -> Weights:
    """Open the given weights, or else the ``.bin`` beside the model.

    Raises:
        ParseError: if the given file cannot be read.
    """
    default_name = "the .bin given"
    if weights is None or (isinstance(weights, str) and not weights):  # OpenVINO's default is ""
        return _beside(model)
    if isinstance(weights, str | os.PathLike):
        return _map(Path(weights))
    if isinstance(weights, bytes | bytearray | memoryview):
        return Weights(weights, default_name)
    if isinstance(weights, np.ndarray):
        return Weights(np.ascontiguousarray(weights).reshape(-1).view(np.uint8), default_name)
    tensor = getattr(weights, "data", None)
    if isinstance(tensor, np.ndarray):  # a Tensor, as OpenVINO takes
        return open_weights(tensor, model)
    data = weights.read() if hasattr(weights, "read") else weights
    if not isinstance(data, bytes | bytearray):
        raise TypeError(
            f"weights must be a path, bytes, an array or a binary file, got {type(data).__name__}"
        )
    name = getattr(weights, "name", default_name)
    return Weights(data, name if isinstance(name, str) else default_name)


def _beside(model: Path | None) -> Weights:
    if model is None:
        return Weights(missing="give the content of the .bin as weights=")
    path = model.with_suffix(".bin")
    if not path.is_file():
        others = [candidate for candidate in sorted(model.parent.glob("*.bin"))[:2] if candidate.is_file()]
        lone = f"; the only .bin in its folder is {others[0]}" if len(others) == 1 else ""
        how = "--weights BIN" if on_command_line() else "weights=, --weights"
        return Weights(missing=f"put it at {path}, or name it ({how}){lone}")
    return _map(path)


def _map(path: Path) -> Weights:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:  # an empty file cannot be mapped
                return Weights(b"", str(path))
            _refuse_other(file.read(_HEAD), str(path))
            return Weights(MappedFile.of(file, str(path)), str(path))
    except (OSError, ValueError) as reason:
        raise ParseError(
            f"the weights cannot be read: {getattr(reason, 'strerror', None) or reason}",
            code=Code.UNREADABLE,
            where=Location(str(path)),
        ) from None


def _refuse_other(head: bytes, name: str) -> None:
    """Refuse a Git LFS pointer, a web page or an .xml in place of the weights."""
    if head.startswith(LFS_POINTER):
        what, hint = "a pointer of Git LFS", LFS_PULL
    elif is_webpage(head):
        what, hint = "a web page about the weights", DOWNLOAD
    elif head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"<?xml", b"<net")):
        what, hint = (
            "the .xml of a model",
            "give the .bin of the model; the one beside the .xml is the default",
        )
    else:
        return
    raise ParseError(
        f"this is {what}, not the weights themselves", code=Code.UNREADABLE, where=Location(name), hint=hint
    )
