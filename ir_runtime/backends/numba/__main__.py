"""The background process that compiles all kernels, at the lowest priority."""

from __future__ import annotations

import os

from .machine_code.build_all import BuildLock, build_all

if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)
    with BuildLock.acquire() as acquired:
        if acquired:
            for _ in build_all():
                pass
