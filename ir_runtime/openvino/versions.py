"""Versions, as OpenVINO describes those of its plugins."""

from __future__ import annotations

from dataclasses import dataclass

from .._version import API_VERSION

__all__ = ["Version"]


@dataclass(frozen=True)
class Version:
    """The version of a device's runtime. As OpenVINO's ``Version``.

    >>> import ir_runtime as ov
    >>> version = ov.Core().get_versions("CPU")["CPU"]
    >>> version.description
    'ir_runtime CPU'
    >>> (version.major, version.minor) >= (2026, 4), version.patch, version.build_number == ov.get_version()
    (True, 1, True)
    """

    description: str
    build_number: str = API_VERSION

    @property
    def major(self) -> int:
        """The first number."""
        return self._numbers()[0]

    @property
    def minor(self) -> int:
        """The second number."""
        return self._numbers()[1]

    @property
    def patch(self) -> int:
        """The third number."""
        return self._numbers()[2]

    def _numbers(self) -> tuple[int, ...]:
        parts = self.build_number.partition("-")[0].split(".")[:3]
        return tuple(int(part) if part.isdecimal() else 0 for part in [*parts, "0", "0"])

    def __repr__(self) -> str:
        return f"<Version: {self.build_number} {self.description}>"
