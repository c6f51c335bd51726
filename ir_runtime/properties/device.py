"""Properties of a device."""

from __future__ import annotations

from typing import Any

from .kinds import Choice, Property, anything, text

__all__ = [
    "Capability",
    "Type",
    "architecture",
    "capabilities",
    "full_name",
    "gops",
    "id",
    "luid",
    "pci_info",
    "priorities",
    "properties",
    "thermal",
    "type",
    "uuid",
]


class Capability:
    """Strings that ``OPTIMIZATION_CAPABILITIES`` of a device may contain.

    >>> import ir_runtime
    >>> Capability.FP32 in ir_runtime.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    True
    """

    FP32 = "FP32"
    BF16 = "BF16"
    FP16 = "FP16"
    INT8 = "INT8"
    INT16 = "INT16"
    BIN = "BIN"
    WINOGRAD = "WINOGRAD"
    EXPORT_IMPORT = "EXPORT_IMPORT"


class Type(Choice):
    """Whether a device is integrated with the CPU or discrete.

    >>> import ir_runtime
    >>> ir_runtime.Core().get_property("CPU", "DEVICE_TYPE").name
    'INTEGRATED'
    """

    INTEGRATED = 0
    DISCRETE = 1


def _priorities(value: Any) -> str:
    """Return device names as one string; the names of a list are joined by commas."""
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else text(value)


architecture: Property = Property("DEVICE_ARCHITECTURE")
capabilities: Property = Property("OPTIMIZATION_CAPABILITIES")
full_name: Property = Property("FULL_DEVICE_NAME")
gops: Property = Property("DEVICE_GOPS")
id: Property = Property("DEVICE_ID", text)
luid: Property = Property("DEVICE_LUID")
pci_info: Property = Property("DEVICE_PCI_INFO")
priorities: Property = Property("MULTI_DEVICE_PRIORITIES", _priorities)
properties: Property = Property("DEVICE_PROPERTIES", anything)
thermal: Property = Property("DEVICE_THERMAL")
type: Property = Property("DEVICE_TYPE")
uuid: Property = Property("DEVICE_UUID")
