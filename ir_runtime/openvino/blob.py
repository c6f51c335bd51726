"""Serialization of compiled models to blobs, a portable, versioned and checksummed format of this package.

A blob holds a header, the XML and the weights. The model is compiled again on import, for the importing
machine; the blob contains no code.
"""

from __future__ import annotations

import hashlib
import struct
from io import BytesIO
from typing import IO, Any

import numpy as np

from .._util.wrong_arguments import ArgumentTypeError
from ..codes import Code
from ..errors import ParseError
from ..io.writer import write
from ..limits import DEFAULT, Limits
from .model import Model
from .reading import read_model
from .tensor import Tensor

__all__ = ["read_blob", "write_blob"]

_MAGIC = b"IRRTBLOB"
_VERSION = 1
_HEAD = struct.Struct("<8sIIQQ32s")
"""The magic bytes, the version of the format, whether f16 is computed in f16, the lengths of the XML and of the weights,
and the SHA-256 of these two, with the flag where it is set."""
_OPENVINO = b"RR_UPCVO"


def write_blob(model: Model, computes_f16: bool = False) -> bytes:
    """Serialize a model, including added outputs, to a blob.

    Args:
        model: the model.
        computes_f16: whether it was compiled to compute in f16.
    """
    xml, weights = BytesIO(), BytesIO()
    write(model._content(), xml, weights)
    body = xml.getvalue(), weights.getvalue()
    digest = _digest(b"".join(body), int(computes_f16))
    return _HEAD.pack(_MAGIC, _VERSION, computes_f16, *map(len, body), digest) + b"".join(body)


def _digest(body: bytes | memoryview, computes_f16: int) -> bytes:
    digest = hashlib.sha256(body)
    if computes_f16:
        digest.update(struct.pack("<I", computes_f16))
    return digest.digest()


def read_blob(blob: object, limits: Limits = DEFAULT) -> tuple[Model, bool]:
    """Return the model in a blob, and whether it was compiled to compute in f16.

    Args:
        blob: bytes, an open binary file, or a tensor or array of bytes.
        limits: the resource limits for reading and running the model.

    Raises:
        ParseError: if it is not a blob of this package, has another version, or is damaged.
    """
    data = memoryview(_bytes(blob))
    if bytes(data[:8]) != _MAGIC:
        raise _damage_error(
            _what(bytes(data[:8])), "export_model of ir_runtime writes one; read_model reads an .xml"
        )
    if len(data) < _HEAD.size:
        raise _damage_error("the blob is cut off")
    _, version, computes_f16, xml, weights, digest = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise _damage_error(
            f"the blob has version {version} of its format, expected {_VERSION}", "export it again"
        )
    if len(data) != _HEAD.size + xml + weights:
        raise _damage_error(f"the blob must have {_HEAD.size + xml + weights} bytes, got {len(data)}")
    body = data[_HEAD.size :]
    if _digest(body, computes_f16) != digest:
        raise _damage_error("the blob is damaged: its contents do not have its checksum", "export it again")
    weights_of_model = np.frombuffer(body[xml:], np.uint8).copy()
    return read_model(bytes(body[:xml]), weights_of_model, limits=limits), bool(computes_f16)


def _bytes(blob: Any) -> Any:
    if hasattr(blob, "read"):
        file: IO[bytes] = blob
        data = file.read()
        if not data and file.seekable():  # export_model leaves the position at the end
            file.seek(0)
            data = file.read()
        return data
    if isinstance(blob, bytes | bytearray | memoryview):
        return blob
    if not isinstance(blob, Tensor | np.ndarray):
        message = f"a compiled model must be bytes, an open file or a tensor, got {type(blob).__name__}"
        raise ArgumentTypeError(message, code=Code.BAD_REQUEST)
    return np.ascontiguousarray(blob.data if isinstance(blob, Tensor) else blob).view(np.uint8)


def _what(start: bytes) -> str:
    if start.startswith(_OPENVINO):
        return "this is a blob of OpenVINO, which only the OpenVINO that wrote it can import"
    return "this is not a compiled model"


def _damage_error(message: str, hint: str = "") -> ParseError:
    return ParseError(message, code=Code.UNREADABLE, hint=hint)
