"""OpenVINO's streams: the number of concurrent runs, and the threads of each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..codes import Code
from ..errors import InputError

__all__ = ["Streams"]

_MODES = ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT", "UNDEFINED")


@dataclass(frozen=True, slots=True)
class Streams:
    """Threads, and the number of runs that share them."""

    threads: int
    """All threads together."""
    count: int = 1
    """How many runs are expected at once."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Streams:
        """What properties ask for.

        Raises:
            InputError: if one of them is no number, or no such hint.
        """
        threads = _number(config, "INFERENCE_NUM_THREADS") or os.cpu_count() or 1
        requests = _number(config, "PERFORMANCE_HINT_NUM_REQUESTS") or threads
        given = str(config.get("NUM_STREAMS", "")).upper().rpartition(".")[2]
        if given in ("AUTO", "-1"):
            return cls(threads, min(threads, requests))
        if given in ("NUMA", "-2"):
            return cls(threads)
        if given and (count := _number(config, "NUM_STREAMS")):
            return cls(threads, count)
        return cls(threads, min(threads, requests) if _mode(config).endswith("THROUGHPUT") else 1)

    def share(self, running: int) -> int:
        """The threads of one run, while so many are going on."""
        return max(1, self.threads // max(self.count, running))


def _mode(config: Mapping[str, Any]) -> str:
    mode = str(config.get("PERFORMANCE_HINT", "LATENCY")).upper().rpartition(".")[2]
    if mode not in _MODES:
        hint = f"available are {', '.join(_MODES)}"
        raise InputError(f"unknown PERFORMANCE_HINT {mode!r}", code=Code.BAD_REQUEST, hint=hint)
    return mode


def _number(config: Mapping[str, Any], name: str) -> int:
    """A property that is a whole number; 0 where it is not set."""
    text = str(config.get(name, 0))
    if not text.isdecimal():
        raise InputError(f"{name} must be a non-negative integer, got {text[:40]!r}", code=Code.BAD_REQUEST)
    return int(text)
