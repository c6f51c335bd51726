"""Properties of OpenVINO's devices AUTO and MULTI, which are the CPU here."""

from __future__ import annotations

from .kinds import Choice, Property, anything, choice, flag, mapping, text

__all__ = [
    "SchedulePolicy",
    "device_bind_buffer",
    "devices_utilization_threshold",
    "enable_runtime_fallback",
    "enable_startup_fallback",
    "low_power_device",
    "perf_curve_table",
    "schedule_policy",
]


class SchedulePolicy(Choice):
    """How AUTO chooses the device for the next inference.

    >>> SchedulePolicy.DEFAULT == SchedulePolicy.DEVICE_PRIORITY
    True
    """

    ROUND_ROBIN = 0
    DEVICE_PRIORITY = 1
    DEFAULT = 1


device_bind_buffer: Property = Property("DEVICE_BIND_BUFFER", flag)
devices_utilization_threshold: Property = Property("DEVICES_UTILIZATION_THRESHOLD", mapping)
enable_runtime_fallback: Property = Property("ENABLE_RUNTIME_FALLBACK", flag)
enable_startup_fallback: Property = Property("ENABLE_STARTUP_FALLBACK", flag)
low_power_device: Property = Property("LOW_POWER_DEVICE", text)
perf_curve_table: Property = Property("PERF_CURVE_TABLE", anything)
schedule_policy: Property = Property("SCHEDULE_POLICY", choice(SchedulePolicy))
