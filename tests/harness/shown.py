"""Which of the package's messages some snapshot shows."""

from __future__ import annotations

from harness.snapshots import FOLDER
from harness.spoken import Message, Package


def shown() -> str:
    """All snapshots in one text."""
    files = sorted(path for path in FOLDER.rglob("*") if path.is_file())
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def missing() -> list[Message]:
    """The messages that no snapshot shows, but for those that are no messages to users."""
    text = shown()
    return [message for message in Package().messages() if not message.pattern.search(text)]
