"""OpenVINO's devices and properties, and their meaning here."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

from ..backends import load
from ..codes import Code
from ..errors import InputError
from ..nearest import nearest
from .streams import Streams

__all__ = ["DEVICES", "check_device", "check_config", "describe_device", "wants_f16"]

DEVICES = ("CPU", "GPU", "NPU", "AUTO")

# Properties that change how fast OpenVINO runs, or that ask for what is always so here.
_HARMLESS = frozenset(
    [
        "AFFINITY",
        "ALLOW_AUTO_BATCHING",
        "CACHE_DIR",
        "CACHE_MODE",
        "COMPILATION_NUM_THREADS",
        "CPU_DENORMALS_OPTIMIZATION",
        "CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE",
        "DEVICE_ID",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE",
        "ENABLE_CPU_PINNING",
        "ENABLE_CPU_RESERVATION",
        "ENABLE_HYPER_THREADING",
        "ENABLE_MMAP",
        "ENABLE_TENSOR_PARALLEL",
        "ENABLE_WEIGHTLESS",
        "EXECUTION_MODE_HINT",
        "KEY_CACHE_GROUP_SIZE",
        "KEY_CACHE_PRECISION",
        "KV_CACHE_PRECISION",
        "LOG_LEVEL",
        "LP_TRANSFORMS_MODE",
        "MODEL_DISTRIBUTION_POLICY",
        "MODEL_PRIORITY",
        "SCHEDULING_CORE_TYPE",
        "SNIPPETS_MODE",
        "TBB_PARTITIONER",
        "VALUE_CACHE_GROUP_SIZE",
        "VALUE_CACHE_PRECISION",
        "WEIGHTS_PATH",
    ]
)
_STREAMS = frozenset(
    {"INFERENCE_NUM_THREADS", "NUM_STREAMS", "PERFORMANCE_HINT", "PERFORMANCE_HINT_NUM_REQUESTS"}
)
_MEANT = frozenset({"PERF_COUNT", "INFERENCE_PRECISION_HINT", "BACKEND"}) | _STREAMS
_warned: set[str] = set()


def check_device(name: str | None) -> None:
    """Accept the devices that OpenVINO has; say once that the model runs on the CPU all the same.

    Raises:
        InputError: if there is no such device.
    """
    for device in (name or "CPU").upper().replace(":", ",").split(","):
        kind = device.strip().partition(".")[0].partition("(")[0]
        if kind not in (*DEVICES, "MULTI", "HETERO", "BATCH"):
            hint = "expected CPU; GPU, NPU and AUTO are accepted and mean the same"
            raise InputError(f"unknown device {device.strip()!r}", code=Code.BAD_REQUEST, hint=hint)
        if kind in ("GPU", "NPU"):
            _warn_once(f"device {kind} is not used: ir_runtime runs on the CPU")


def check_config(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The properties that mean something here; the others are accepted, and said to be ignored.

    Raises:
        InputError: if there is no such property.
    """
    found = {str(key): value for key, value in (config or {}).items()}
    for key, value in found.items():
        if key not in _HARMLESS | _MEANT:
            near = nearest(key, _HARMLESS | _MEANT)
            hint = f"did you mean {near!r}?" if near else ""
            raise InputError(f"unknown property {key!r}", code=Code.BAD_REQUEST, hint=hint)
        if key in _HARMLESS:
            _warn_once(f"property {key}={value} is accepted, but has no effect in ir_runtime")
    Streams.of(found)  # refuses what is no number
    precision = _precision(found)
    if precision not in ("f32", "f16", "dynamic"):
        _warn_once(f"INFERENCE_PRECISION_HINT={precision} is ignored: tensors have the types of the model")
    return found


def wants_f16(config: Mapping[str, Any]) -> bool:
    """Whether properties ask for f32 to be computed in f16."""
    return _precision(config) == "f16"


def _precision(config: Mapping[str, Any]) -> str:
    """The name of an element type, given as a text or as a type, ours or OpenVINO's."""
    text = str(config.get("INFERENCE_PRECISION_HINT", "f32")).lower()
    return {"<type: 'float32'>": "f32", "<type: 'float16'>": "f16"}.get(text, text)


def describe_device(name: str, backend: str | None = None) -> Any:
    """The value of a property that nobody has set.

    Raises:
        InputError: if there is no such property.
    """
    known: dict[str, Any] = {
        "AVAILABLE_DEVICES": [""],
        "CACHE_DIR": "",
        "EXECUTION_DEVICES": ["CPU"],
        "EXECUTION_MODE_HINT": "ACCURACY",
        "FULL_DEVICE_NAME": f"ir_runtime ({load(backend)[0]} backend)",
        "INFERENCE_NUM_THREADS": os.cpu_count(),
        "INFERENCE_PRECISION_HINT": "f32",
        "NUM_STREAMS": 1,
        "OPTIMAL_NUMBER_OF_INFER_REQUESTS": 1,
        "OPTIMIZATION_CAPABILITIES": ["FP32"],
        "PERFORMANCE_HINT": "LATENCY",
        "PERF_COUNT": False,
    }
    read_only = dict.fromkeys([*known, "SUPPORTED_PROPERTIES"], "RO")
    known["SUPPORTED_PROPERTIES"] = {**read_only, **dict.fromkeys(sorted(_HARMLESS | _MEANT), "RW")}
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean {near!r}?" if near else f"available are {', '.join(known)}"
        raise InputError(f"unknown property {name!r}", code=Code.BAD_REQUEST, hint=hint)
    return known[name]


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, stacklevel=4)
