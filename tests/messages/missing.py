"""Print the messages that no snapshot shows yet: ``python tests/messages/missing.py [part of a path]``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness.shown import missing

if __name__ == "__main__":
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    found = [message for message in missing() if part in message.file]
    print(*found, f"{len(found)} messages are shown nowhere", sep="\n")
