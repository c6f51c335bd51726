"""The target of the kernels of this process: that of the library which it has loaded, or which it builds.

Emitters ask nothing else what there is.
"""

from __future__ import annotations

import os

from ..machine_code.library import library, named_target
from .targets import Target

__all__ = ["TARGET", "VENDOR"]


def _selected() -> tuple[Target, str]:
    """Return the target, and the vendor of the processor; that is empty where kernels are built, which do not depend on it."""
    if building := os.environ.get("IR_RUNTIME_BUILDING"):
        return named_target(building), ""
    loaded = library()
    return loaded.target, loaded.processor.vendor


TARGET, VENDOR = _selected()
