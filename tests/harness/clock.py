"""How long something takes, on a machine that others use, too."""

from __future__ import annotations

import time
from typing import Any

import ir_runtime as ir


def best_of(compiled: ir.CompiledModel, feeds: Any, runs: int = 10) -> float:
    """Seconds of processor time of the quickest of some runs."""

    def seconds() -> float:
        start = time.process_time()
        compiled(feeds)
        return time.process_time() - start

    return min(seconds() for _ in range(runs))
