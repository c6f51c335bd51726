"""Versions, as OpenVINO describes those of its plugins."""

from __future__ import annotations

from dataclasses import dataclass

from .._version import __version__

__all__ = ["Version"]


@dataclass(frozen=True)
class Version:
    """The version of what runs a device. As OpenVINO's ``Version``.

    >>> import ir_runtime as ov
    >>> version = ov.Core().get_versions("CPU")["CPU"]
    >>> version.description
    'ir_runtime CPU'
    >>> (version.major, version.minor, version.patch) >= (0, 1, 0)
    True
    """

    description: str
    build_number: str = __version__

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
        parts = self.build_number.split("+")[0].split(".")[:3]
        return tuple(int(part) if part.isdecimal() else 0 for part in [*parts, "0", "0"])

    def __repr__(self) -> str:
        return f"<Version: {self.build_number} {self.description}>"
