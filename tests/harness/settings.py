"""How far properties are explored."""

from __future__ import annotations

import os


def examples(usual: int, thorough: int) -> int:
    """Return how many examples to try: in a usual run, in the exhaustive one, and twice as many when exploring."""
    return {"thorough": thorough, "explore": 2 * thorough}.get(
        os.environ.get("HYPOTHESIS_PROFILE", ""), usual
    )
