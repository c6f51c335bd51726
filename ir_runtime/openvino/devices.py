"""OpenVINO's names of devices: those that mean the CPU, and those that are not available here."""

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
        """Read the name of a device to compile for.

        Args:
            name: such as ``CPU``, ``AUTO``, ``HETERO:CPU``; None is AUTO.
            config: properties, which may name the devices to choose among.

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
            others = tuple(each for each in others if each not in _ABSENT) or _available(others)
        for each in (device.name, *others):
            _check_available(each)
        return device

    @classmethod
    def queried(cls, name: str) -> Device:
        """Read the name of a device whose properties or version are requested, as of ``CPU.0``.

        OpenVINO ignores the number there, but does not compile for such a device.

        Raises:
            InputError: if the device is unknown or not available.
        """
        kind = name.partition(".")[0] if isinstance(name, str) else ""
        return cls(kind) if kind in (CPU, *OVER_OTHERS) else cls.of(name)

    @classmethod
    def named(cls, name: object) -> Device:
        """Read the name of a device, whether it is available or not.

        Raises:
            InputError: if the device is unknown.
            ArgumentTypeError: if the name is not a string.
        """
        if not isinstance(name, str):
            message = f"the name of a device must be a string, got {type(name).__name__}"
            raise ArgumentTypeError(message, code=Code.BAD_REQUEST, hint=_HINT)
        head, _, tail = name.partition(":")
        others = tuple(_kind(each) for each in tail.split(",") if each and not each.startswith("-"))
        if head not in OVER_OTHERS:
            head, others = _kind(head), () if not tail else (_unknown(name),)
        return cls(head, others)

    @property
    def full_name(self) -> str:
        """The name with the devices named after the colon, such as ``HETERO:CPU``."""
        return f"{self.name}:{','.join(self.others)}" if self.others else self.name

    @property
    def all(self) -> tuple[str, ...]:
        """The device and those named after it."""
        return tuple(dict.fromkeys((self.name, *self.others)))


def _priorities(config: Mapping[str, object]) -> tuple[str, ...]:
    given = str(config.get("MULTI_DEVICE_PRIORITIES", "")) if isinstance(config, Mapping) else ""
    return tuple(_kind(each) for each in given.split(",") if each and not each.startswith("-"))


def _available(others: tuple[str, ...]) -> tuple[str, ...]:
    return others or (CPU,)


def _kind(name: str) -> str:
    """Return the device of a name such as ``GPU.1`` or ``CPU(4)``."""
    kind, _, number = name.partition("(")[0].partition(".")
    if kind == CPU and number:
        raise InputError(f"device CPU has no number, got {name!r}", code=Code.BAD_REQUEST, hint=_HINT)
    return kind if kind in (CPU, *_ABSENT) else _unknown(name)


def _unknown(name: str) -> str:
    known = (CPU, *OVER_OTHERS)
    near = name.upper() if name.upper() in known else nearest(name, known)
    raise InputError(f"unknown device {name!r}", code=Code.BAD_REQUEST, hint=suggestion(near) or _HINT)


def _check_available(name: str) -> None:
    if name in _ABSENT:
        message = f"device {name} is not available: ir_runtime runs on the CPU"
        raise InputError(message, code=Code.BAD_REQUEST, hint=_HINT)
