"""Hints of OpenVINO's GPU plugin, as names only."""

from __future__ import annotations

from ..hint import Priority
from ..kinds import Property, choice, flag, number

__all__ = [
    "ThrottleLevel",
    "available_device_mem",
    "enable_large_allocations",
    "enable_lora_operation",
    "host_task_priority",
    "queue_priority",
    "queue_throttle",
]

ThrottleLevel = Priority

available_device_mem: Property = Property("AVAILABLE_DEVICE_MEM_SIZE", number)
enable_large_allocations: Property = Property("GPU_ENABLE_LARGE_ALLOCATIONS", flag)
enable_lora_operation: Property = Property("GPU_ENABLE_LORA_OPERATION", flag)
host_task_priority: Property = Property("GPU_HOST_TASK_PRIORITY", choice(Priority))
queue_priority: Property = Property("GPU_QUEUE_PRIORITY", choice(Priority))
queue_throttle: Property = Property("GPU_QUEUE_THROTTLE", choice(Priority))
