"""Open a source, and identify it if it is not an IR."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from ..._util.nearest import suggestion
from ..._util.wrong_arguments import ArgumentTypeError
from ...codes import Code
from ...diagnostics import Location
from ...errors import ParseError
from ...limits import DEFAULT, Limits

__all__ = ["DOWNLOAD", "LFS_POINTER", "LFS_PULL", "Source", "SourceLike", "is_webpage", "open_source"]

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
# The ways XML may start: a tag, UTF-16 with or without a byte order mark, or that of UTF-8.
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
        LimitError: if it is too large.
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
    """Return whether a file starts as HTML, as if the page about a file was saved instead."""
    return head.lstrip().lower().startswith(_WEBPAGE)


def _something_else(data: bytes) -> tuple[str, str] | None:
    """Identify data that is not XML, with a hint."""
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
    """Return the path of an open file, to find the .bin beside it; members of archives have names but no path."""
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
        with path.open("rb") as file:  # the size of a file that is not regular is 0
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
