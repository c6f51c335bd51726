"""OpenVINO's devices, their properties and defaults, and the division of threads among streams."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._util.cores import cores, parallelism
from .._util.nearest import nearest, suggestion
from .._util.wrong_arguments import ArgumentTypeError
from .._version import __version__
from ..codes import Code
from ..errors import InputError
from ..properties import CacheMode, CompatibilityCheck, Property, device, hint, intel_auto, intel_cpu, log
from ..properties.hint import SchedulingCoreType
from ..properties.kinds import anything

__all__ = [
    "ACCEPTED",
    "COMPILED",
    "CPU",
    "Device",
    "OVER_OTHERS",
    "READABLE",
    "Streams",
    "compiled_value",
    "default",
    "names_of",
]


# OpenVINO's device names: aliases of the CPU, and unavailable devices.

CPU = "CPU"
OVER_OTHERS = ("AUTO", "MULTI", "HETERO", "BATCH")
"""Devices that choose among or combine other devices."""
_ABSENT = ("GPU", "NPU")
_HINT = 'use "CPU", or "AUTO", which selects it'


@dataclass(frozen=True, slots=True)
class Device:
    """A device of OpenVINO. All available ones run models on the CPU."""

    name: str
    """The device: CPU, or a device that runs on it, such as AUTO."""
    others: tuple[str, ...] = ()
    """The devices named after the colon."""

    @classmethod
    def of(cls, name: str | None, config: Mapping[str, object] | None = None) -> Device:
        """Parse the name of a device to compile for.

        Args:
            name: a name such as ``CPU``, ``AUTO`` or ``HETERO:CPU``; None stands for AUTO.
            config: properties, of which ``MULTI_DEVICE_PRIORITIES`` may name candidate devices.

        Raises:
            InputError: if the device is unknown or not available.
        """
        device = cls.parse("AUTO" if name is None else name)
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
    def parse_query(cls, name: str) -> Device:
        """Parse the device name of a query for properties or versions, such as ``CPU.0``.

        OpenVINO accepts a number in queries, but not for compilation.

        Raises:
            InputError: if the device is unknown or not available.
        """
        kind = name.partition(".")[0] if isinstance(name, str) else ""
        return cls(kind) if kind in (CPU, *OVER_OTHERS) else cls.of(name)

    @classmethod
    def parse(cls, name: object) -> Device:
        """Parse the name of a device, which may be unavailable.

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
        """The names of the device and its sub-devices."""
        return tuple(dict.fromkeys((self.name, *self.others)))


def _priorities(config: Mapping[str, object]) -> tuple[str, ...]:
    names = str(config.get("MULTI_DEVICE_PRIORITIES", "")) if isinstance(config, Mapping) else ""
    return tuple(_kind(part) for part in names.split(",") if part and not part.startswith("-"))


def _available(others: tuple[str, ...]) -> tuple[str, ...]:
    return others or (CPU,)


def _kind(name: str) -> str:
    """Return the kind of device in a name such as ``GPU.1`` or ``CPU(4)``."""
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


# OpenVINO's streams: the number of concurrent runs, and their threads.

_AUTOMATIC = -1


@dataclass(frozen=True, slots=True)
class Streams:
    """The number of threads, and the number of concurrent runs that share them."""

    threads: int
    """The total number of threads."""
    count: int = 1
    """The number of concurrent runs to expect."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Streams:
        """Return the streams requested by properties, which `check_config` has validated."""
        threads = config.get("INFERENCE_NUM_THREADS") or cores(
            hyper_threads=bool(config.get("ENABLE_HYPER_THREADING")),
            slow=config.get("SCHEDULING_CORE_TYPE") is SchedulingCoreType.ANY_CORE,
        )
        most = min(threads, config.get("PERFORMANCE_HINT_NUM_REQUESTS") or threads)
        requested = config.get("NUM_STREAMS") or 0
        if requested == _AUTOMATIC:
            return cls(threads, most)
        if requested:
            return cls(threads, max(requested, 1))
        wide = "THROUGHPUT" in str(config.get("PERFORMANCE_HINT"))
        return cls(threads, most if wide else 1)

    def share(self, running: int) -> int:
        """Return the number of threads for one of ``running`` concurrent runs, at least 1."""
        return self.threads // (self.count if self.count > running else running) or 1


# The properties of devices and compiled models, and their defaults.

_HINTS = (
    "NUM_STREAMS INFERENCE_NUM_THREADS PERF_COUNT INFERENCE_PRECISION_HINT PERFORMANCE_HINT EXECUTION_MODE_HINT "
    "PERFORMANCE_HINT_NUM_REQUESTS ENABLE_CPU_PINNING ENABLE_CPU_RESERVATION SCHEDULING_CORE_TYPE "
    "MODEL_DISTRIBUTION_POLICY ENABLE_HYPER_THREADING"
)
_CACHES = (
    "KV_CACHE_PRECISION KEY_CACHE_PRECISION VALUE_CACHE_PRECISION KEY_CACHE_GROUP_SIZE VALUE_CACHE_GROUP_SIZE"
)
_CPU = (
    "CPU_DENORMALS_OPTIMIZATION LOG_LEVEL CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE ENABLE_TENSOR_PARALLEL "
    f"TBB_PARTITIONER DYNAMIC_QUANTIZATION_GROUP_SIZE {_CACHES}"
)
_ABOUT = "SUPPORTED_PROPERTIES AVAILABLE_DEVICES RANGE_FOR_ASYNC_INFER_REQUESTS RANGE_FOR_STREAMS EXECUTION_DEVICES"
_KIND = "FULL_DEVICE_NAME OPTIMIZATION_CAPABILITIES DEVICE_TYPE DEVICE_ARCHITECTURE COMPATIBILITY_CHECK"
_MULTI = (
    "DEVICE_BIND_BUFFER EXECUTION_MODE_HINT FULL_DEVICE_NAME LOG_LEVEL MODEL_PRIORITY MULTI_DEVICE_PRIORITIES "
    "OPTIMIZATION_CAPABILITIES PERFORMANCE_HINT PERFORMANCE_HINT_NUM_REQUESTS PERF_COUNT SCHEDULE_POLICY "
    "SUPPORTED_PROPERTIES"
)
_AUTO = "DEVICES_UTILIZATION_THRESHOLD ENABLE_RUNTIME_FALLBACK ENABLE_STARTUP_FALLBACK LOW_POWER_DEVICE PERF_CURVE_TABLE"
_RUN = "NETWORK_NAME SUPPORTED_PROPERTIES EXECUTION_DEVICES PERFORMANCE_HINT OPTIMAL_NUMBER_OF_INFER_REQUESTS"
_CHOSEN = "DEVICE_PROPERTIES MODEL_PRIORITY LOADED_FROM_CACHE"

READABLE = {
    CPU: f"{_ABOUT} {_KIND} {_HINTS} DEVICE_ID {_CPU} ENABLE_WEIGHTLESS WEIGHTS_PATH",
    "AUTO": " ".join(sorted(f"{_MULTI} {_AUTO}".split())),
    "MULTI": _MULTI,
    "HETERO": "SUPPORTED_PROPERTIES FULL_DEVICE_NAME OPTIMIZATION_CAPABILITIES MULTI_DEVICE_PRIORITIES "
    "MODEL_DISTRIBUTION_POLICY",
    "BATCH": "SUPPORTED_PROPERTIES FULL_DEVICE_NAME MULTI_DEVICE_PRIORITIES AUTO_BATCH_TIMEOUT PERF_COUNT",
}
"""The ``SUPPORTED_PROPERTIES`` of a device, in the order of OpenVINO."""

COMPILED = {
    CPU: f"SUPPORTED_PROPERTIES NETWORK_NAME OPTIMAL_NUMBER_OF_INFER_REQUESTS {_HINTS} EXECUTION_DEVICES {_CPU} "
    "RUNTIME_REQUIREMENTS",
    "AUTO": f"{_RUN} MULTI_DEVICE_PRIORITIES {_CHOSEN} PERF_COUNT",
    "MULTI": f"{_RUN} {_CHOSEN} SCHEDULE_POLICY PERF_COUNT MULTI_DEVICE_PRIORITIES",
    "HETERO": "NETWORK_NAME OPTIMAL_NUMBER_OF_INFER_REQUESTS EXECUTION_DEVICES LOADED_FROM_CACHE "
    "HETERO_NUMBER_OF_SUBMODELS SUPPORTED_PROPERTIES DEVICE_PROPERTIES MULTI_DEVICE_PRIORITIES",
    "BATCH": "SUPPORTED_PROPERTIES OPTIMAL_NUMBER_OF_INFER_REQUESTS NETWORK_NAME EXECUTION_DEVICES AUTO_BATCH_TIMEOUT",
}
"""The ``SUPPORTED_PROPERTIES`` of a model compiled for a device, in the order of OpenVINO."""

# Properties that OpenVINO lists as writable for compiled models, though they cannot be set.
_CHANGED = (
    "PERFORMANCE_HINT DEVICE_PROPERTIES MODEL_PRIORITY PERF_COUNT MULTI_DEVICE_PRIORITIES SCHEDULE_POLICY"
)
_CHANGEABLE = {"AUTO": _CHANGED.split(), "MULTI": _CHANGED.split(), "BATCH": ["AUTO_BATCH_TIMEOUT"]}

# Properties of every device, followed by obsolete ones that older scripts set, and unlisted ones.
_GLOBAL = (
    "CACHE_DIR CACHE_MODE ENABLE_MMAP FORCE_TBB_TERMINATE ALLOW_AUTO_BATCHING AUTO_BATCH_TIMEOUT DEVICE_PROPERTIES "
    "LOADED_FROM_CACHE MODEL_PTR CACHE_ENCRYPTION_CALLBACKS COMPILED_BLOB"
)
_FORMER = "AFFINITY COMPILATION_NUM_THREADS MODEL_PRIORITY LP_TRANSFORMS_MODE SNIPPETS_MODE ACTIVATIONS_SCALE_FACTOR"

for _name in _FORMER.split():
    if _name not in Property.known:
        Property(_name, anything)
Property("BACKEND", anything)
Property("HETERO_NUMBER_OF_SUBMODELS")

ACCEPTED = frozenset(
    {
        *_GLOBAL.split(),
        *_FORMER.split(),
        "BACKEND",
        *(name for names in READABLE.values() for name in names.split()),
    }
    - {name for name, known in Property.known.items() if known.kind is None and name != "LOADED_FROM_CACHE"}
)
"""Properties that may be set."""

# Properties that OpenVINO returns as strings for models compiled for the CPU.
_TEXTS = ("PERF_COUNT", "PERFORMANCE_HINT", "PERFORMANCE_HINT_NUM_REQUESTS")
_NAMED = ("SUPPORTED_PROPERTIES", "NETWORK_NAME")
_ARCHITECTURES = {"x86_64": "intel64", "AMD64": "intel64", "aarch64": "arm64"}


def names_of(device: str, compiled: bool = False) -> dict[str, str]:
    """Map each property of a device or a compiled model to RW, or to RO if it cannot be set."""
    names = (COMPILED if compiled else READABLE)[device].split()
    changeable = _CHANGEABLE.get(device, ()) if compiled else ACCEPTED
    fixed = {name for name in names if name not in changeable}
    return {name: "RO" if name in fixed else "RW" for name in names}


def compiled_value(name: str, device: str, streams: Streams, config: Mapping[str, object]) -> object:
    """Return the value of a property that a compiled model computes or formats specially; None for other properties."""
    if name == "SUPPORTED_PROPERTIES":
        return names_of(device, compiled=True)
    if name in ("NUM_STREAMS", "OPTIMAL_NUMBER_OF_INFER_REQUESTS"):
        return streams.count
    if name == "INFERENCE_NUM_THREADS":
        return streams.threads
    if name == "MULTI_DEVICE_PRIORITIES":
        return CPU
    if name == "DEVICE_PROPERTIES":
        names = [property_name for property_name in COMPILED[CPU].split() if property_name not in _NAMED]
        values = {property_name: config.get(property_name, default(property_name)) for property_name in names}
        return {CPU: values | {"NUM_STREAMS": streams.count, "INFERENCE_NUM_THREADS": streams.threads}}
    if device == CPU and name in _TEXTS:
        return _text(config.get(name, default(name)))
    return None


def _text(value: object) -> str:
    """Format a value as OpenVINO's compiled models do."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    return str(getattr(value, "name", value))


def default(name: str) -> object:
    """Return the default of a property, None if it has none."""
    from ..ir.element import ElementType

    defaults: dict[str, object] = {
        "ACTIVATIONS_SCALE_FACTOR": 0.0,
        "ALLOW_AUTO_BATCHING": True,
        "AUTO_BATCH_TIMEOUT": 1000,
        "AVAILABLE_DEVICES": [""],
        "CACHE_DIR": "",
        "CACHE_MODE": CacheMode.OPTIMIZE_SPEED,
        "COMPATIBILITY_CHECK": CompatibilityCheck.NOT_APPLICABLE,
        "COMPILATION_NUM_THREADS": parallelism(),
        "CPU_DENORMALS_OPTIMIZATION": False,
        "CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE": 1.0,
        "DEVICES_UTILIZATION_THRESHOLD": {},
        "DEVICE_ARCHITECTURE": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "DEVICE_BIND_BUFFER": False,
        "DEVICE_ID": "",
        "DEVICE_TYPE": device.Type.INTEGRATED,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        "ENABLE_CPU_PINNING": False,
        "ENABLE_CPU_RESERVATION": False,
        "ENABLE_HYPER_THREADING": True,
        "ENABLE_MMAP": True,
        "ENABLE_RUNTIME_FALLBACK": True,
        "ENABLE_STARTUP_FALLBACK": True,
        "ENABLE_TENSOR_PARALLEL": False,
        "ENABLE_WEIGHTLESS": False,
        "EXECUTION_DEVICES": [CPU],
        "EXECUTION_MODE_HINT": hint.ExecutionMode.ACCURACY,
        "FORCE_TBB_TERMINATE": False,
        "HETERO_NUMBER_OF_SUBMODELS": 1,
        "INFERENCE_NUM_THREADS": 0,
        "INFERENCE_PRECISION_HINT": ElementType.f32,
        "KEY_CACHE_GROUP_SIZE": 0,
        "KEY_CACHE_PRECISION": ElementType.f32,
        "KV_CACHE_PRECISION": ElementType.f32,
        "LOADED_FROM_CACHE": False,
        "LOG_LEVEL": log.Level.NO,
        "LOW_POWER_DEVICE": "",
        "MODEL_DISTRIBUTION_POLICY": set(),
        "MODEL_PRIORITY": hint.Priority.MEDIUM,
        "MULTI_DEVICE_PRIORITIES": "",
        "NUM_STREAMS": 1,
        "OPTIMAL_NUMBER_OF_INFER_REQUESTS": 1,
        "OPTIMIZATION_CAPABILITIES": ["FP32", "INT8", "BIN", "EXPORT_IMPORT"],
        "PERFORMANCE_HINT": hint.PerformanceMode.LATENCY,
        "PERFORMANCE_HINT_NUM_REQUESTS": 0,
        "PERF_COUNT": False,
        "PERF_CURVE_TABLE": {},
        "RANGE_FOR_ASYNC_INFER_REQUESTS": (1, 1, 1),
        "RANGE_FOR_STREAMS": (1, parallelism()),
        "RUNTIME_REQUIREMENTS": f"meta=1.0;ir_runtime={__version__}",
        "SCHEDULE_POLICY": intel_auto.SchedulePolicy.DEVICE_PRIORITY,
        "SCHEDULING_CORE_TYPE": hint.SchedulingCoreType.ANY_CORE,
        "TBB_PARTITIONER": intel_cpu.TbbPartitioner.STATIC,
        "VALUE_CACHE_GROUP_SIZE": 0,
        "VALUE_CACHE_PRECISION": ElementType.f32,
        "WEIGHTS_PATH": "",
    }
    return defaults.get(name)
