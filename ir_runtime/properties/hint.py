"""Performance hints.

THROUGHPUT gives each inference fewer threads, so that ``num_requests`` inferences run concurrently.
``execution_mode``, ``inference_precision``, ``dynamic_quantization_group_size`` and ``kv_cache_precision`` set the precision;
``enable_hyper_threading`` and ``scheduling_core_type`` affect the default number of threads.
The other hints are accepted and have no effect.
"""

from __future__ import annotations

from .kinds import Choice, Property, anything, choice, choices, element_type, flag, number, real

__all__ = [
    "ExecutionMode",
    "ModelDistributionPolicy",
    "PerformanceMode",
    "Priority",
    "SchedulingCoreType",
    "activations_scale_factor",
    "allow_auto_batching",
    "compiled_blob",
    "dynamic_quantization_group_size",
    "enable_cpu_pinning",
    "enable_cpu_reservation",
    "enable_hyper_threading",
    "execution_mode",
    "inference_precision",
    "kv_cache_precision",
    "model",
    "model_distribution_policy",
    "model_priority",
    "num_requests",
    "performance_mode",
    "scheduling_core_type",
]


class PerformanceMode(Choice):
    """Whether to optimize the latency of one inference or the throughput of many.

    >>> from ir_runtime.properties import hint
    >>> hint.performance_mode(hint.PerformanceMode.THROUGHPUT)[1].name
    'THROUGHPUT'
    """

    LATENCY = 1
    THROUGHPUT = 2
    CUMULATIVE_THROUGHPUT = 3


class ExecutionMode(Choice):
    """Whether lower precision may be used for speed. Here the default is `ACCURACY`, the precision of the model.

    >>> from ir_runtime.properties import hint
    >>> hint.execution_mode("ACCURACY")[1] is hint.ExecutionMode.ACCURACY
    True
    """

    PERFORMANCE = 1
    ACCURACY = 2


class Priority(Choice):
    """The priority of a model on a shared device.

    >>> Priority.LOW < Priority.HIGH, Priority.DEFAULT is Priority.MEDIUM
    (True, True)
    """

    LOW = 0
    MEDIUM = 1
    HIGH = 2
    DEFAULT = 1


class SchedulingCoreType(Choice):
    """The kind of CPU cores to run on: performance cores, efficiency cores, or any.

    >>> from ir_runtime.properties import hint
    >>> hint.scheduling_core_type("PCORE_ONLY")[1] is hint.SchedulingCoreType.PCORE_ONLY
    True
    """

    ANY_CORE = 0
    PCORE_ONLY = 1
    ECORE_ONLY = 2


class ModelDistributionPolicy(Choice):
    """How a model is divided among several sockets or devices.

    >>> int(ModelDistributionPolicy.PIPELINE_PARALLEL)
    1
    """

    TENSOR_PARALLEL = 0
    PIPELINE_PARALLEL = 1


activations_scale_factor: Property = Property("ACTIVATIONS_SCALE_FACTOR", real)
allow_auto_batching: Property = Property("ALLOW_AUTO_BATCHING", flag)
compiled_blob: Property = Property("COMPILED_BLOB", anything)
dynamic_quantization_group_size: Property = Property("DYNAMIC_QUANTIZATION_GROUP_SIZE", number)
enable_cpu_pinning: Property = Property("ENABLE_CPU_PINNING", flag)
enable_cpu_reservation: Property = Property("ENABLE_CPU_RESERVATION", flag)
enable_hyper_threading: Property = Property("ENABLE_HYPER_THREADING", flag)
execution_mode: Property = Property("EXECUTION_MODE_HINT", choice(ExecutionMode))
inference_precision: Property = Property(
    "INFERENCE_PRECISION_HINT", element_type("f32", "f16", "bf16", "dynamic")
)
kv_cache_precision: Property = Property(
    "KV_CACHE_PRECISION", element_type("u8", "u4", "u3", "bf16", "f16", "f32")
)
model: Property = Property("MODEL_PTR", anything)
model_distribution_policy: Property = Property("MODEL_DISTRIBUTION_POLICY", choices(ModelDistributionPolicy))
model_priority: Property = Property("MODEL_PRIORITY", choice(Priority))
num_requests: Property = Property("PERFORMANCE_HINT_NUM_REQUESTS", number)
performance_mode: Property = Property("PERFORMANCE_HINT", choice(PerformanceMode))
scheduling_core_type: Property = Property("SCHEDULING_CORE_TYPE", choice(SchedulingCoreType))
