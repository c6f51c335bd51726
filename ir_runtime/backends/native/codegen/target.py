"""The target of the kernels in this process: that of the loaded library, or of the one being built.

Emitters ask only this module for processor features.
"""

from __future__ import annotations

import os

from ..machine_code import find_target, library
from .targets import Target

__all__ = ["TARGET", "VENDOR"]


def _select_target() -> tuple[Target, str]:
    """Return the target and the vendor of the processor; a build must not depend on the vendor, so it is empty then."""
    if building := os.environ.get("IR_RUNTIME_BUILDING"):
        return find_target(building), ""
    loaded = library()
    return loaded.target, loaded.processor.vendor


TARGET, VENDOR = _select_target()
