"""Write XML in OpenVINO's layout, one element per line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from ...codes import Code
from ...errors import InputError

__all__ = ["Printer", "is_tag"]

# Line breaks and tabs are written as references, as parsers turn plain ones into spaces.
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_TAG = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def is_tag(text: str) -> bool:
    """Return whether a string can be the name of an element or an attribute."""
    return _TAG.fullmatch(text) is not None


class Printer:
    """Writes elements to a file, deterministically."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._indent = file, ""
        self._line('<?xml version="1.0"?>')

    def element(self, tag: str, attributes: Mapping[str, str] | None = None) -> None:
        """Write an empty element."""
        self._line(f"<{tag}{self._attributes(tag, attributes)} />")

    def text(self, tag: str, text: str) -> None:
        """Write an element that contains text."""
        self._line(f"<{tag}>{text.translate(_ESCAPES)}</{tag}>")

    @contextmanager
    def inside(self, tag: str, attributes: Mapping[str, str] | None = None) -> Iterator[None]:
        """Write an element around the content written in the block."""
        self._line(f"<{tag}{self._attributes(tag, attributes)}>")
        self._indent += "\t"
        yield
        self._indent = self._indent[1:]
        self._line(f"</{tag}>")

    def _attributes(self, tag: str, attributes: Mapping[str, str] | None) -> str:
        if not attributes:
            return ""
        for name, text in attributes.items():
            if invalid := _NOT_IN_XML.search(text):
                raise InputError(
                    f"XML has no character U+{ord(invalid.group()):04X}, but {name!r} of <{tag}> is {text[:80]!r}",
                    code=Code.BAD_REQUEST,
                    hint="give it another name before saving",
                )
        return "".join(f' {name}="{text.translate(_ESCAPES)}"' for name, text in attributes.items())

    def _line(self, text: str) -> None:
        self._file.write(f"{self._indent}{text}\n".encode())
