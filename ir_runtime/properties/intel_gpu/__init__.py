"""Properties of OpenVINO's GPU plugin, as names only: the device is not available here."""

from __future__ import annotations

from ..kinds import Property, flag
from . import hint

__all__ = [
    "CapabilityGPU",
    "MemoryType",
    "device_max_alloc_mem_size",
    "device_total_mem_size",
    "disable_winograd_convolution",
    "enable_loop_unrolling",
    "execution_units_count",
    "hint",
    "memory_statistics",
    "uarch_version",
]


class CapabilityGPU:
    """Strings that ``OPTIMIZATION_CAPABILITIES`` of a GPU may contain.

    >>> CapabilityGPU.HW_MATMUL
    'GPU_HW_MATMUL'
    """

    HW_MATMUL = "GPU_HW_MATMUL"
    USM_MEMORY = "GPU_USM_MEMORY"


class MemoryType:
    """Names of the memory types of a GPU.

    >>> MemoryType.buffer
    'GPU_BUFFER'
    """

    surface = "GPU_SURFACE"
    buffer = "GPU_BUFFER"


device_max_alloc_mem_size: Property = Property("GPU_DEVICE_MAX_ALLOC_MEM_SIZE")
device_total_mem_size: Property = Property("GPU_DEVICE_TOTAL_MEM_SIZE")
disable_winograd_convolution: Property = Property("GPU_DISABLE_WINOGRAD_CONVOLUTION", flag)
enable_loop_unrolling: Property = Property("GPU_ENABLE_LOOP_UNROLLING", flag)
execution_units_count: Property = Property("GPU_EXECUTION_UNITS_COUNT")
memory_statistics: Property = Property("GPU_MEMORY_STATISTICS")
uarch_version: Property = Property("GPU_UARCH_VERSION")
