"""What OpenVINO's scripts wish for.

Here THROUGHPUT gives each run fewer threads, so that several go on at once, as many as ``num_requests`` says;
the other hints are accepted, and change nothing.
"""

from __future__ import annotations

from enum import Enum

from ._property import Property

__all__ = [
    "ExecutionMode",
    "PerformanceMode",
    "Priority",
    "SchedulingCoreType",
    "allow_auto_batching",
    "enable_cpu_pinning",
    "enable_hyper_threading",
    "execution_mode",
    "inference_precision",
    "kv_cache_precision",
    "model_priority",
    "num_requests",
    "performance_mode",
    "scheduling_core_type",
]


class PerformanceMode(Enum):
    """Few results soon, or many in all."""

    LATENCY = 1
    THROUGHPUT = 2
    CUMULATIVE_THROUGHPUT = 3


class ExecutionMode(Enum):
    """Speed, or numbers as exact as the model asks for. Here it is always the latter."""

    PERFORMANCE = 1
    ACCURACY = 2


class Priority(Enum):
    """Which model goes first."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2


class SchedulingCoreType(Enum):
    """Which cores to run on."""

    ANY_CORE = 0
    PCORE_ONLY = 1
    ECORE_ONLY = 2


allow_auto_batching = Property("ALLOW_AUTO_BATCHING")
enable_cpu_pinning = Property("ENABLE_CPU_PINNING")
enable_hyper_threading = Property("ENABLE_HYPER_THREADING")
execution_mode = Property("EXECUTION_MODE_HINT")
inference_precision = Property("INFERENCE_PRECISION_HINT")
kv_cache_precision = Property("KV_CACHE_PRECISION")
model_priority = Property("MODEL_PRIORITY")
num_requests = Property("PERFORMANCE_HINT_NUM_REQUESTS")
performance_mode = Property("PERFORMANCE_HINT")
scheduling_core_type = Property("SCHEDULING_CORE_TYPE")
