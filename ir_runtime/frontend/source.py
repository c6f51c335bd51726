"""Opening what the user points at, and saying what it is when it is no IR."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from ..codes import Code
from ..diagnostics import Location
from ..errors import ParseError
from ..limits import DEFAULT, Limits

__all__ = ["Source", "SourceLike", "open_source"]

SourceLike: TypeAlias = "str | os.PathLike[str] | bytes | IO[bytes] | IO[str]"

# First bytes, where they start, what the file is, and what to do about it.
_CONVERT = "convert it first: ovc MODEL, or openvino.convert_model and openvino.save_model"
_SIGNATURES = (
    (b"PK\x03\x04", 0, "a ZIP archive, such as a PyTorch or Keras model", _CONVERT),
    (b"TFL3", 4, "a TensorFlow Lite model", _CONVERT),
    (b"\x89HDF", 0, "an HDF5 file, such as a Keras model", _CONVERT),
    (b"GGUF", 0, "a GGUF model", _CONVERT),
    (b"\x80", 0, "a Python pickle, which is never opened", _CONVERT),
    (b"\x93NUMPY", 0, "a NumPy array", "give the .xml of the model; arrays are its inputs"),
    (b"\x08", 0, "a protocol buffer, such as an ONNX or TensorFlow model", _CONVERT),
)


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of a file, the name to use in messages, and where it lies if it is on disk."""

    data: bytes
    name: str
    path: Path | None = None


def open_source(source: SourceLike, limits: Limits = DEFAULT) -> Source:
    """Read a path, bytes, or an open file.

    Raises:
        ParseError: if it cannot be read, or is plainly something else than XML.
        LimitError: if it is too large.
    """
    found = _read(source, limits)
    limits.check("xml_bytes", len(found.data))
    for signature, start, what, hint in _SIGNATURES:
        if found.data[start : start + len(signature)] == signature:
            raise _unreadable(found.name, f"this is {what}, not an OpenVINO IR", hint)
    if not found.data.strip():
        raise _unreadable(found.name, "the file is empty", "an IR starts with <net name=... version=...>")
    return found


def _read(source: SourceLike, limits: Limits) -> Source:
    if isinstance(source, bytes | bytearray | memoryview):
        return Source(bytes(source), "<bytes>")
    if isinstance(source, str | os.PathLike):
        return _read_path(Path(source), limits)
    if not hasattr(source, "read"):
        raise TypeError(f"a model is a path, bytes or an open file, not {type(source).__name__}")
    text = source.read(limits.xml_bytes + 1)
    name = getattr(source, "name", "<file>")
    return Source(text.encode() if isinstance(text, str) else text, str(name))


def _read_path(path: Path, limits: Limits) -> Source:
    try:
        limits.check("xml_bytes", path.stat().st_size)
        return Source(path.read_bytes(), str(path), path)
    except FileNotFoundError:
        raise _unreadable(str(path), "there is no such file", _sibling(path)) from None
    except IsADirectoryError:
        raise _unreadable(str(path), "this is a folder", "give the .xml in it") from None
    except OSError as reason:
        raise _unreadable(str(path), f"the file cannot be read: {reason.strerror or reason}") from None


def _sibling(path: Path) -> str:
    candidates = [path.with_suffix(".xml"), path.with_name(path.name + ".xml")]
    found = next((c for c in candidates if c != path and c.is_file()), None)
    return f"did you mean {found}?" if found else ""


def _unreadable(name: str, message: str, hint: str = "") -> ParseError:
    return ParseError(message, code=Code.UNREADABLE, where=Location(name), hint=hint)
