"""The process in the background that makes all kernels; it lets every other one go first."""

from __future__ import annotations

import os

from .jit.build_all import Making, make_all

if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)
    with Making.marked() as ours:
        if ours:
            for _ in make_all():
                pass
