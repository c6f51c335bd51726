"""Which of the package's messages some snapshot shows."""

from __future__ import annotations

from harness.snapshots import FOLDER
from harness.spoken import Message, messages

NO_MESSAGES = {
    (
        "ir_runtime/ir/dimension.py",
        "is not a single number",
    ): "stops arithmetic on intervals, which is caught",
    ("ir_runtime/ir/dimension.py", "has no known bounds"): "stops arithmetic on intervals, which is caught",
    (
        "ir_runtime/runtime/context.py",
        "cannot delete a variable",
    ): "no operation deletes: completes a mapping",
}
"""What is raised, but never reaches a user; by file and part of the text, with the reason."""


def shown() -> str:
    """All snapshots in one text."""
    files = sorted(path for path in FOLDER.rglob("*") if path.is_file())
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def is_for_users(message: Message) -> bool:
    """Whether a message may reach a user."""
    return not any(message.file == file and part in message.text for file, part in NO_MESSAGES)


def missing() -> list[Message]:
    """The messages that no snapshot shows."""
    text = shown()
    return [m for m in messages() if is_for_users(m) and not m.pattern.search(text)]
