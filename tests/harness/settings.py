"""How far properties are explored."""

from __future__ import annotations

import os


def examples(usual: int) -> int:
    """How many examples to try: so many in a usual run, many more when exploring."""
    return usual * 5 if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else usual
