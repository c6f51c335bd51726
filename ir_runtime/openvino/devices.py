"""OpenVINO's device names: aliases of the CPU, and unavailable devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .._util.nearest import nearest, suggestion
from .._util.wrong_arguments import ArgumentTypeError
from ..codes import Code
from ..errors import InputError

__all__ = ["CPU", "OVER_OTHERS", "Device"]

CPU = "CPU"
OVER_OTHERS = ("AUTO", "MULTI", "HETERO", "BATCH")
"""Devices that choose among others, or combine them."""
_ABSENT = ("GPU", "NPU")
_HINT = 'use "CPU", or "AUTO", which selects it'


@dataclass(frozen=True, slots=True)
class Device:
    """A device that runs models on the CPU."""

    name: str
    """CPU, or one that runs on it, such as AUTO."""
    others: tuple[str, ...] = ()
    """The devices named after the colon."""

    @classmethod
    def of(cls, name: str | None, config: Mapping[str, object] | None = None) -> Device:
        """Parse the name of a device to compile for.

        Args:
            name: such as ``CPU``, ``AUTO``, ``HETERO:CPU``; None is AUTO.
            config: properties, which may name candidate devices.

        Raises:
            InputError: if the device is unknown or not available.
        """
        device = cls.named("AUTO" if name is None else name)
        others = device.others or _priorities(config or {})
        if device.name in ("MULTI", "HETERO", "BATCH") and not others:
            raise InputError(
                f"device {device.name} names no device to run on",
                code=Code.BAD_REQUEST,
                hint=f'use "{device.name}:CPU"',
            )
        if device.name == "AUTO":
            others = tuple(other for other in others if other not in _ABSENT) or _available(others)
        for other in (device.name, *others):
            _check_available(other)
        return device

    @classmethod
    def queried(cls, name: str) -> Device:
        """Parse a device name for queries of properties or versions, such as ``CPU.0``.

        OpenVINO accepts the number in queries, but not for compiling.

        Raises:
            InputError: if the device is unknown or not available.
        """
        kind = name.partition(".")[0] if isinstance(name, str) else ""
        return cls(kind) if kind in (CPU, *OVER_OTHERS) else cls.of(name)

    @classmethod
    def named(cls, name: object) -> Device:
        """Parse the name of a device, available or not.

        Raises:
            InputError: if the device is unknown.
            ArgumentTypeError: if the name is not a string.
        """
        if not isinstance(name, str):
            message = f"the name of a device must be a string, got {type(name).__name__}"
            raise ArgumentTypeError(message, code=Code.BAD_REQUEST, hint=_HINT)
        head, _, tail = name.partition(":")
        others = tuple(_kind(part) for part in tail.split(",") if part and not part.startswith("-"))
        if head not in OVER_OTHERS:
            head, others = _kind(head), () if not tail else (_unknown(name),)
        return cls(head, others)

    @property
    def full_name(self) -> str:
        """The name with its sub-devices, such as ``HETERO:CPU``."""
        return f"{self.name}:{','.join(self.others)}" if self.others else self.name

    @property
    def all(self) -> tuple[str, ...]:
        """The device and its sub-devices."""
        return tuple(dict.fromkeys((self.name, *self.others)))


def _priorities(config: Mapping[str, object]) -> tuple[str, ...]:
    names = str(config.get("MULTI_DEVICE_PRIORITIES", "")) if isinstance(config, Mapping) else ""
    return tuple(_kind(part) for part in names.split(",") if part and not part.startswith("-"))


def _available(others: tuple[str, ...]) -> tuple[str, ...]:
    return others or (CPU,)


def _kind(name: str) -> str:
    """Return the device kind of a name such as ``GPU.1`` or ``CPU(4)``."""
    kind, _, number = name.partition("(")[0].partition(".")
    if kind == CPU and number:
        raise InputError(f"device CPU has no number, got {name!r}", code=Code.BAD_REQUEST, hint=_HINT)
    return kind if kind in (CPU, *_ABSENT) else _unknown(name)


def _unknown(name: str) -> str:
    names = (CPU, *OVER_OTHERS)
    near = name.upper() if name.upper() in names else nearest(name, names)
    raise InputError(f"unknown device {name!r}", code=Code.BAD_REQUEST, hint=suggestion(near) or _HINT)


def _check_available(name: str) -> None:
    if name in _ABSENT:
        message = f"device {name} is not available: ir_runtime runs on the CPU"
        raise InputError(message, code=Code.BAD_REQUEST, hint=_HINT)
