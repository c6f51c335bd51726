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
    """Threads, and the number of runs that share them."""

    threads: int
    """All threads together."""
    count: int = 1
    """How many runs are expected at once."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Streams:
        """Return the streams that properties ask for, as `check_config` returns them."""
        threads = config.get("INFERENCE_NUM_THREADS") or cores(
            hyper_threads=bool(config.get("ENABLE_HYPER_THREADING")),
            slow=config.get("SCHEDULING_CORE_TYPE") is SchedulingCoreType.ANY_CORE,
        )
        most = min(threads, config.get("PERFORMANCE_HINT_NUM_REQUESTS") or threads)
        asked = config.get("NUM_STREAMS") or 0
        if asked == _AUTO:
            return cls(threads, most)
        if asked:
            return cls(threads, max(asked, 1))
        wide = "THROUGHPUT" in str(config.get("PERFORMANCE_HINT"))
        return cls(threads, most if wide else 1)

    def share(self, running: int) -> int:
        """Return the threads of one run, while this many are going on."""
        return self.threads // (self.count if self.count > running else running) or 1
