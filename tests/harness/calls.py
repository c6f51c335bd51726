"""How much Python does: calls are counted, which takes the same number whatever else the machine is doing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def calls(action: Callable[[], object]) -> int:
    """How many functions of Python and of C an action calls; NumPy's ufuncs are objects, and not counted."""
    count = 0

    def event(frame: FrameType, kind: str, argument: object) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(event)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count
