"""Names of OpenVINO's properties, so that scripts need not spell them: keys of ``config``.

>>> from ir_runtime import properties
>>> properties.enable_profiling == "PERF_COUNT", properties.cache_dir("/tmp/cache")
(True, ('CACHE_DIR', '/tmp/cache'))
"""

from __future__ import annotations

from . import device, hint, streams
from ._property import Property

__all__ = [
    "Property",
    "available_devices",
    "cache_dir",
    "compilation_num_threads",
    "device",
    "enable_mmap",
    "enable_profiling",
    "execution_devices",
    "hint",
    "inference_num_threads",
    "model_name",
    "num_streams",
    "optimal_number_of_infer_requests",
    "streams",
    "supported_properties",
]

available_devices = Property("AVAILABLE_DEVICES")
cache_dir = Property("CACHE_DIR")
compilation_num_threads = Property("COMPILATION_NUM_THREADS")
enable_mmap = Property("ENABLE_MMAP")
enable_profiling = Property("PERF_COUNT")
execution_devices = Property("EXECUTION_DEVICES")
inference_num_threads = Property("INFERENCE_NUM_THREADS")
model_name = Property("NETWORK_NAME")
num_streams = Property("NUM_STREAMS")
optimal_number_of_infer_requests = Property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
supported_properties = Property("SUPPORTED_PROPERTIES")
