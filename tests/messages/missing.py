"""Print the messages without a snapshot: ``python tests/messages/missing.py [part of a path]``."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.path[0] = __file__.rpartition("messages")[0]  # a table may be called as a module of Python
    from messages.raised import missing

    part = sys.argv[1] if len(sys.argv) > 1 else ""
    found = [message for message in missing() if part in message.file]
    print(*found, f"{len(found)} messages are shown nowhere", sep="\n")
