"""Which of the package's messages some snapshot shows."""

from __future__ import annotations

from collections.abc import Iterator

from harness.snapshots import FOLDER
from harness.spoken import HOLE, Message, messages

_STOPS = "stops arithmetic on intervals where nothing is known; inference catches it"
_DAMAGED = "caught where files are opened, where the file is said to be damaged"
_HELD = "says what cannot be, as whatever enters a plan is held against its type; kernels are guarded all the same"
_KERNEL = "tells whoever writes a kernel"
NO_MESSAGES = {
    ("ir_runtime/ir/dimension.py", "is not a single number"): _STOPS,
    ("ir_runtime/ir/dimension.py", "has no known bounds"): _STOPS,
    ("ir_runtime/ops/conversion.py", "bounds on integers say nothing"): _STOPS,
    ("ir_runtime/ops/reduction.py", "what nothing reduces to"): _STOPS,
    ("ir_runtime/_util/array_files.py", "the header is too long"): _DAMAGED,
    ("ir_runtime/_util/array_files.py", "the header cannot be read"): _DAMAGED,
    ("ir_runtime/_util/array_files.py", "a length is negative"): _DAMAGED,
    ("ir_runtime/executor/context.py", "cannot delete"): "completes a mapping; no operation deletes",
    ("ir_runtime/executor/guard.py", "as was inferred, got"): _HELD,
    ("ir_runtime/executor/guard.py", "a layer before it computes"): _HELD,
    ("ir_runtime/backends/native/codegen/descriptor.py", "expected a field"): _KERNEL,
    ("ir_runtime/backends/native/codegen/descriptor.py", "got unknown fields"): _KERNEL,
    ("ir_runtime/backends/native/codegen/ir.py", "is no constant of"): _KERNEL,
    ("ir_runtime/backends/native/build/", ""): _KERNEL,
}
"""What is raised, but never reaches a user; by the start of the path and part of the text, with the reason."""


def shown() -> str:
    """All snapshots in one text."""
    files = sorted(path for path in FOLDER.rglob("*") if path.is_file())
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def is_for_users(message: Message) -> bool:
    """Whether a message may reach a user."""
    return not any(is_one(message, *key) for key in NO_MESSAGES)


def is_one(message: Message, path: str, part: str) -> bool:
    """Whether a key of `NO_MESSAGES` means a message."""
    return message.file.startswith(path) and part in message.text


def missing() -> list[Message]:
    """The messages that no snapshot shows."""
    text = shown()
    return [m for m in messages() if is_for_users(m) and not is_in(m, text)]


def is_in(message: Message, text: str) -> bool:
    """Whether a text shows a message. Patterns are slow, so they are tried where the longest part stands."""
    longest = max(message.text.split(HOLE), key=len)
    if "\n" in message.text or longest not in text:
        return longest in text and message.pattern.search(text) is not None
    return any(message.pattern.search(line) for line in _lines_with(longest, text))


def _lines_with(part: str, text: str) -> Iterator[str]:
    """The lines of a text in which a part stands."""
    at = text.find(part)
    while at >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield text[text.rfind("\n", 0, at) + 1 : end]
        at = text.find(part, end)
