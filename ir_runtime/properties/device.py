"""What a device says about itself."""

from __future__ import annotations

from ._property import Property

__all__ = ["full_name"]

full_name = Property("FULL_DEVICE_NAME")
