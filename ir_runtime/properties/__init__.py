"""OpenVINO's properties, the keys of ``config``, as constants, and the enumerations of their values.

>>> from ir_runtime import properties
>>> properties.enable_profiling == "PERF_COUNT", properties.cache_dir("/tmp/cache")
(True, ('CACHE_DIR', '/tmp/cache'))
"""

from __future__ import annotations

from .._util.absent import list_public
from . import device, hint, intel_auto, intel_cpu, intel_gpu, intel_npu, log, streams
from .kinds import Choice, Property, anything, choice, element_type, flag, number, text

__all__ = [
    "CacheMode",
    "CompatibilityCheck",
    "Property",
    "WorkloadType",
    "auto_batch_timeout",
    "available_devices",
    "cache_dir",
    "cache_encryption_callbacks",
    "cache_mode",
    "compatibility_check",
    "compilation_num_threads",
    "device",
    "enable_mmap",
    "enable_profiling",
    "enable_weightless",
    "execution_devices",
    "force_tbb_terminate",
    "hint",
    "inference_num_threads",
    "intel_auto",
    "intel_cpu",
    "intel_gpu",
    "intel_npu",
    "key_cache_group_size",
    "key_cache_precision",
    "loaded_from_cache",
    "log",
    "max_batch_size",
    "model_name",
    "num_streams",
    "optimal_batch_size",
    "optimal_number_of_infer_requests",
    "range_for_async_infer_requests",
    "range_for_streams",
    "runtime_requirements",
    "streams",
    "supported_properties",
    "value_cache_group_size",
    "value_cache_precision",
    "weights_path",
    "workload_type",
]


class CacheMode(Choice):
    """The optimization goal of a cache of compiled models.

    >>> from ir_runtime import properties
    >>> properties.cache_mode("OPTIMIZE_SIZE")[1] is properties.CacheMode.OPTIMIZE_SIZE
    True
    """

    OPTIMIZE_SIZE = 0
    OPTIMIZE_SPEED = 1


class CompatibilityCheck(Choice):
    """Whether a device can run a compiled model.

    >>> from ir_runtime import properties
    >>> properties.CompatibilityCheck.SUPPORTED.name
    'SUPPORTED'
    """

    NOT_APPLICABLE = 0
    SUPPORTED = 1
    UNSUPPORTED = 2


class WorkloadType(Choice):
    """The urgency of inference: `EFFICIENT` yields to other work.

    >>> from ir_runtime import properties
    >>> properties.workload_type(properties.WorkloadType.EFFICIENT)[0]
    'WORKLOAD_TYPE'
    """

    DEFAULT = 0
    EFFICIENT = 1


_cache_precision = element_type("u8", "i8", "u4", "u3", "bf16", "f16", "f32")

auto_batch_timeout: Property = Property("AUTO_BATCH_TIMEOUT", number)
available_devices: Property = Property("AVAILABLE_DEVICES")
cache_dir: Property = Property("CACHE_DIR", text)
cache_encryption_callbacks: Property = Property("CACHE_ENCRYPTION_CALLBACKS", anything)
cache_mode: Property = Property("CACHE_MODE", choice(CacheMode))
compatibility_check: Property = Property("COMPATIBILITY_CHECK")
compilation_num_threads: Property = Property("COMPILATION_NUM_THREADS", number)
enable_mmap: Property = Property("ENABLE_MMAP", flag)
enable_profiling: Property = Property("PERF_COUNT", flag)
enable_weightless: Property = Property("ENABLE_WEIGHTLESS", flag)
execution_devices: Property = Property("EXECUTION_DEVICES")
force_tbb_terminate: Property = Property("FORCE_TBB_TERMINATE", flag)
inference_num_threads: Property = Property("INFERENCE_NUM_THREADS", number)
key_cache_group_size: Property = Property("KEY_CACHE_GROUP_SIZE", number)
key_cache_precision: Property = Property("KEY_CACHE_PRECISION", _cache_precision)
loaded_from_cache: Property = Property("LOADED_FROM_CACHE")
max_batch_size: Property = Property("MAX_BATCH_SIZE")
model_name: Property = Property("NETWORK_NAME")
num_streams: Property = streams.num
optimal_batch_size: Property = Property("OPTIMAL_BATCH_SIZE")
optimal_number_of_infer_requests: Property = Property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
range_for_async_infer_requests: Property = Property("RANGE_FOR_ASYNC_INFER_REQUESTS")
range_for_streams: Property = Property("RANGE_FOR_STREAMS")
runtime_requirements: Property = Property("RUNTIME_REQUIREMENTS")
supported_properties: Property = Property("SUPPORTED_PROPERTIES")
value_cache_group_size: Property = Property("VALUE_CACHE_GROUP_SIZE", number)
value_cache_precision: Property = Property("VALUE_CACHE_PRECISION", _cache_precision)
weights_path: Property = Property("WEIGHTS_PATH", text)
workload_type: Property = Property("WORKLOAD_TYPE", choice(WorkloadType))

list_public(__name__)
