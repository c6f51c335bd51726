"""Profiling information per layer, as OpenVINO reports it."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from ..executor.step import Profile
from ..ir.graph import Layer
from .build.layer import type_name

__all__ = ["ProfilingInfo", "Status", "profiling_info"]


class Status(Enum):
    """The status of a layer in a run."""

    NOT_RUN = 0
    OPTIMIZED_OUT = 1
    """It ran as part of the one before it."""
    EXECUTED = 2


@dataclass(eq=False, kw_only=True, slots=True)
class ProfilingInfo:
    """The timing of a layer. As OpenVINO's ``ProfilingInfo``.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> compiled = ov.compile_model(ov.Model([opset1.exp(x, name="y")], [x]), config={"PERF_COUNT": True})
    >>> request = compiled.create_infer_request()
    >>> found = request.infer(np.zeros(2, np.float32))
    >>> [(info.node_name, info.node_type) for info in request.get_profiling_info() if info.node_name == "y"]
    [('y', 'Exp')]
    """

    node_name: str = ""
    node_type: str = ""
    exec_type: str = ""
    real_time: datetime.timedelta = datetime.timedelta()
    cpu_time: datetime.timedelta = datetime.timedelta()
    status: Status = Status.NOT_RUN

    Status: ClassVar[type[Status]] = Status
    NOT_RUN = Status.NOT_RUN
    OPTIMIZED_OUT = Status.OPTIMIZED_OUT
    EXECUTED = Status.EXECUTED


def profiling_info(profile: Profile, backend: str) -> list[ProfilingInfo]:
    """Return an entry for each layer, in the order they ran."""
    entries = []
    for step, seconds in profile.times:
        kernel = step.kernel_name or backend
        entries.append(_entry(step.layer, kernel, seconds, Status.EXECUTED))
        entries += [_entry(layer, kernel, 0, Status.OPTIMIZED_OUT) for layer in step.also]
    return entries


def _entry(layer: Layer, kernel: str, seconds: float, status: Status) -> ProfilingInfo:
    span = datetime.timedelta(seconds=seconds)
    return ProfilingInfo(
        node_name=layer.name,
        node_type=type_name(layer.type),
        exec_type=kernel,
        real_time=span,
        cpu_time=span,
        status=status,
    )
