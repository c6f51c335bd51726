"""The target of this process's kernels: that of the loaded library, or of the one being built.

Emitters query only this module for features of the processor.
"""

from __future__ import annotations

import os

from ..machine_code import library, named_target
from .targets import Target

__all__ = ["TARGET", "VENDOR"]


def _selected() -> tuple[Target, str]:
    """Return the target and the processor's vendor; the vendor is empty during a build, which must not depend on it."""
    if building := os.environ.get("IR_RUNTIME_BUILDING"):
        return named_target(building), ""
    loaded = library()
    return loaded.target, loaded.processor.vendor


TARGET, VENDOR = _selected()
