"""How far properties are explored."""

from __future__ import annotations

import os


def examples(usual: int) -> int:
    """How many examples to try: so many in a usual run, more in the exhaustive one, many more when exploring."""
    return usual * {"thorough": 3, "explore": 5}.get(os.environ.get("HYPOTHESIS_PROFILE", ""), 1)
