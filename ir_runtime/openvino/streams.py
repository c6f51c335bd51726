"""OpenVINO's streams: the number of concurrent runs, and the threads of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._util.cores import cores
from ..properties.hint import SchedulingCoreType

__all__ = ["Streams"]

_AUTO = -1


@dataclass(frozen=True, slots=True)
class Streams:
    """Threads, and the number of concurrent runs that share them."""

    threads: int
    """All threads together."""
    count: int = 1
    """How many runs are expected at once."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Streams:
        """Return the streams that properties request, as validated by `check_config`."""
        threads = config.get("INFERENCE_NUM_THREADS") or cores(
            hyper_threads=bool(config.get("ENABLE_HYPER_THREADING")),
            slow=config.get("SCHEDULING_CORE_TYPE") is SchedulingCoreType.ANY_CORE,
        )
        most = min(threads, config.get("PERFORMANCE_HINT_NUM_REQUESTS") or threads)
        requested = config.get("NUM_STREAMS") or 0
        if requested == _AUTO:
            return cls(threads, most)
        if requested:
            return cls(threads, max(requested, 1))
        wide = "THROUGHPUT" in str(config.get("PERFORMANCE_HINT"))
        return cls(threads, most if wide else 1)

    def share(self, running: int) -> int:
        """Return the threads of one run, given the number of concurrent runs."""
        return self.threads // (self.count if self.count > running else running) or 1
