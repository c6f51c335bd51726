"""Open model sources and weights, and identify files that are not IR."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np

from ..._util.command_line import on_command_line
from ..._util.nearest import suggestion
from ..._util.wrong_arguments import ArgumentTypeError
from ...codes import Code
from ...diagnostics import Location
from ...errors import ParseError
from ...ir.array import Packed
from ...ir.element import ElementType
from ...ir.pages import MappedFile
from ...ir.tensor import Array
from ...limits import DEFAULT, Limits
from ...ops.kernels.strings import header_size, unpack_strings

__all__ = [
    "DOWNLOAD",
    "LFS_POINTER",
    "LFS_PULL",
    "Source",
    "SourceLike",
    "Weights",
    "WeightsLike",
    "is_webpage",
    "open_source",
    "open_weights",
    "packed_bytes",
]

SourceLike: TypeAlias = "str | os.PathLike[str] | bytes | IO[bytes] | IO[str]"

# Signatures of other formats: the bytes, their offset, a description, and a hint.
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""The start of a file that Git LFS has not downloaded."""
LFS_PULL = "download the file itself: git lfs pull"
DOWNLOAD = "download the raw file: on GitHub with the button Raw, on Hugging Face with the button download"
_CONVERT = "convert it first: ovc MODEL, or openvino.convert_model and openvino.save_model"
_SIGNATURES = (
    (LFS_POINTER, 0, "a pointer of Git LFS", LFS_PULL),
    (b"\x1f\x8b", 0, "compressed with gzip", "decompress it first: gunzip FILE"),
    (b"PK\x03\x04", 0, "a ZIP archive, such as a PyTorch or Keras model", _CONVERT),
    (b"TFL3", 4, "a TensorFlow Lite model", _CONVERT),
    (b"\x89HDF", 0, "an HDF5 file, such as a Keras model", _CONVERT),
    (b"GGUF", 0, "a GGUF model", _CONVERT),
    (b"\x80", 0, "a Python pickle, which is never opened", _CONVERT),
    (b"\x93NUMPY", 0, "a NumPy array", "give the .xml of the model; arrays are its inputs"),
    (b"\x08", 0, "a protocol buffer, such as an ONNX or TensorFlow model", _CONVERT),
)
_URL = re.compile(r"(?:https?|ftp|s3|gs|hf)://")
_WEBPAGE = (b"<!doctype html", b"<html")
# The first bytes of XML: a tag, a byte order mark of UTF-8 or UTF-16, or UTF-16 without one.
_XML = (b"<", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00<")


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of a file, its name in messages, and its path on disk, if any."""

    data: bytes
    name: str
    path: Path | None = None


def open_source(source: SourceLike, limits: Limits = DEFAULT) -> Source:
    """Read a path, bytes, or an open file.

    Raises:
        ParseError: if it cannot be read, or is clearly not XML.
        LimitError: if it exceeds the limit on the size of XML.
    """
    opened = _read_source(source, limits)
    limits.check("xml_bytes", len(opened.data), Location(opened.name))
    if not opened.data.strip():
        raise _unreadable(opened.name, "the file is empty", "an IR starts with <net name=... version=...>")
    if other := _something_else(opened.data):
        what, hint = other
        raise _unreadable(opened.name, f"this is {what}, not an OpenVINO IR", _sibling(opened.path) or hint)
    return opened


def is_webpage(head: bytes) -> bool:
    """Return whether a file starts as HTML: probably the page about a file, saved instead of it."""
    return head.lstrip().lower().startswith(_WEBPAGE)


def _something_else(data: bytes) -> tuple[str, str] | None:
    """Return a description of data that is not XML, and a hint; ``None`` if it may be XML."""
    for signature, start, what, hint in _SIGNATURES:
        if data[start : start + len(signature)] == signature:
            return what, hint
    head = data[:4096].lstrip()
    if is_webpage(head):
        if b"<layer" in data or (b"&lt;layer" in data and b"&lt;net" not in data):
            return "a web page with examples", "copy the <layer> elements from it"
        return "a web page about the file", DOWNLOAD
    if not head.startswith(_XML) and b"<layer" not in data:
        return (
            "in an unknown format",
            f"give the .xml of the model; if it is a model of another kind, {_CONVERT}",
        )
    return None


def _read_source(source: SourceLike, limits: Limits) -> Source:
    if isinstance(source, bytes | bytearray | memoryview):
        return Source(bytes(source), "<bytes>")
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return Source(source.strip().encode(), "<text>")
    if isinstance(source, str | os.PathLike):
        return _open_path(os.fspath(source), limits)
    if not hasattr(source, "read"):
        message = f"a model must be a path, bytes or an open file, got {type(source).__name__}"
        raise ArgumentTypeError(message, code=Code.BAD_REQUEST)
    data = source.read(limits.xml_bytes + 1)
    name = getattr(source, "name", None)
    shown = name if isinstance(name, str) else "<file>"
    return Source(data.encode() if isinstance(data, str) else bytes(data), shown, _path_of(source, shown))


def _path_of(file: IO[bytes] | IO[str], name: str) -> Path | None:
    """Return the path of an open file, to find the .bin beside it; ``None`` if it is no file on disk, but a member of an archive."""
    try:
        return Path(name) if os.path.samestat(os.fstat(file.fileno()), os.stat(name)) else None
    except (OSError, ValueError, AttributeError):
        return None


def _open_path(text: str, limits: Limits) -> Source:
    if _URL.match(text):
        raise _unreadable(
            text,
            "this is a URL, and nothing is downloaded",
            "download the .xml and the .bin into one folder, and name the .xml",
        )
    path = Path(text)
    try:
        size = path.stat().st_size
        limits.check("xml_bytes", size, Location(str(path)))
        with path.open("rb") as file:  # files that are not regular have size 0
            return Source(file.read((size or limits.xml_bytes) + 1), str(path), path)
    except FileNotFoundError:
        raise _unreadable(_shown(path), "no such file", _sibling_hint(path)) from None
    except IsADirectoryError:
        raise _unreadable(str(path), "this is a folder", "give the .xml in it") from None
    except OSError as reason:
        why = reason.strerror or str(reason)
        raise _unreadable(_shown(path), f"the file cannot be read: {why}", _sibling_hint(path)) from None
    except ValueError:
        raise _unreadable(
            _shown(path), "a path must not contain a null character", _sibling_hint(path)
        ) from None


def _shown(path: Path) -> str:
    text = ascii(str(path))[1:-1] if "\0" in str(path) else str(path)
    first = text.splitlines()[0] if text else text
    return text if text == first and len(text) <= 200 else f"{first[:60]}…"


def _sibling_hint(path: Path) -> str:
    try:
        return _sibling(path)
    except (OSError, ValueError):
        return ""


def _sibling(path: Path | None) -> str:
    if path is None or not path.name:
        return ""
    candidates = [path.with_suffix(".xml"), path.with_name(path.name + ".xml")]
    sibling = next((c for c in candidates if c != path and c.is_file()), None)
    return suggestion(str(sibling) if sibling else None)


def _unreadable(name: str, message: str, hint: str = "") -> ParseError:
    return ParseError(message, code=Code.UNREADABLE, where=Location(name), hint=hint)


WeightsLike: TypeAlias = "str | os.PathLike[str] | bytes | IO[bytes] | Array"


# Number of bytes in which to look for signatures of other kinds of files.
_HEAD = 64


class Weights:
    """The read-only bytes of a ``.bin``; ``data`` is ``None`` if the model has none."""

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
        """Return the constant at ``offset``: a view of the file, in which sub-byte elements stay packed.

        Raises:
            ParseError: if it extends beyond the file, or ``size`` is too small for the shape.
        """
        needed = packed_bytes(element, shape)
        if size < needed:
            raise ParseError(
                f"attribute 'size' is {size}, but {element.label}{_lengths(shape)} takes {needed} bytes",
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
            message = f"its {size} bytes are not the packed strings of string{_lengths(shape)}: {reason}"
            raise ParseError(message, code=Code.WEIGHTS_RANGE, where=where) from None
        texts.flags.writeable = False
        return texts.reshape(shape)


def _lengths(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


def packed_bytes(element: ElementType, shape: tuple[int, ...]) -> int:
    """Return the size of a constant in the ``.bin`` in bytes; for strings, only the size of their header."""
    count = math.prod(shape)
    return header_size(count) if element is ElementType.string else element.nbytes(count)


def open_weights(weights: WeightsLike | None, model: Path | None) -> Weights:
    """Open the given weights, or else the ``.bin`` beside the model.

    Raises:
        ParseError: if the given file cannot be read.
    """
    default_name = "the given .bin"
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
        return Weights(missing="pass the contents of the .bin as weights=")
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
    """Raise if the weights start like a Git LFS pointer, a web page or an .xml."""
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
