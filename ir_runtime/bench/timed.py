"""The measured times of the steps and runs of a model."""

from __future__ import annotations

from dataclasses import dataclass

from .._util.records import Record
from .peaks import Peaks

__all__ = ["ComparedTime", "OperationTime", "RunTimes", "StepTime", "TimelineEvent"]


@dataclass(frozen=True, slots=True)
class StepTime:
    """The time of one step: a layer and the layers fused into it."""

    layers: tuple[str, ...]
    """The layers, by name, in order."""
    operations: tuple[str, ...]
    """Their operations."""
    pattern: str
    """The pattern that they match; empty where the first one's kernel computes the others as epilogue."""
    seconds: float
    """The median time per run."""
    calls: float
    """How often it ran in one run: more than once inside loops."""
    within: str
    """The body that it is in; empty for steps of the model itself."""
    flops: int | None
    """FLOPs of one call, as its operations declare them; ``None`` where they depend on the data."""
    bytes: int | None
    """Bytes of one call that go in and out, weights included."""
    range: tuple[float, float] | None = None
    """The seconds of the fastest and of the slowest run; ``None`` if only the median is known."""
    main: int = 0
    """The place of the layer with the most FLOPs, which gives the step its name."""

    @property
    def name(self) -> str:
        """The name of the layer with the most FLOPs."""
        return self.layers[self.main]

    @property
    def operation(self) -> str:
        """The operation of the layer with the most FLOPs."""
        return self.operations[self.main]

    @property
    def spread(self) -> float | None:
        """Half the range of the times over the median."""
        if self.range is None or not self.seconds:
            return None
        fastest, slowest = self.range
        return (slowest - fastest) / 2 / self.seconds

    @property
    def gflops(self) -> float | None:
        """GFLOPs per second."""
        return None if self.flops is None else _rate(self.flops * self.calls, self.seconds)

    @property
    def gbytes(self) -> float | None:
        """GB per second."""
        return None if self.bytes is None else _rate(self.bytes * self.calls, self.seconds)

    def efficiency(self, peaks: Peaks) -> float | None:
        """Return the fraction of the roofline; more than 1 if data stays in the caches."""
        if self.flops is None or self.bytes is None or not self.seconds:
            return None
        return peaks.attainable(self.flops * self.calls, self.bytes * self.calls) / self.seconds

    def bound(self, peaks: Peaks) -> str | None:
        """Return the bottleneck: ``compute`` or ``memory``."""
        if self.flops is None or self.bytes is None:
            return None
        return peaks.bound(self.flops, self.bytes)

    def record(self, peaks: Peaks, total: float) -> Record:
        """Return a dict for JSON."""
        return {
            "layer": self.name,
            "layers": list(self.layers),
            "operations": list(self.operations),
            "pattern": self.pattern or None,
            "within": self.within or None,
            "ms": self.seconds * 1e3,
            "range_ms": None if self.range is None else [seconds * 1e3 for seconds in self.range],
            "share": self.seconds / total if total else None,
            "calls": self.calls,
            "flops": self.flops,
            "bytes": self.bytes,
            "gflops": self.gflops,
            "gbytes_per_second": self.gbytes,
            "bound": self.bound(peaks),
            "roofline": self.efficiency(peaks),
        }


@dataclass(frozen=True, slots=True)
class OperationTime:
    """The sums over the steps of one operation: that of the layer with the most FLOPs."""

    operation: str
    steps: int
    seconds: float

    def record(self, total: float) -> Record:
        """Return a dict for JSON."""
        share = self.seconds / total if total else None
        return {"operation": self.operation, "steps": self.steps, "ms": self.seconds * 1e3, "share": share}


@dataclass(frozen=True, slots=True)
class ComparedTime:
    """The smallest sets of layers that both runtimes compute as units."""

    layers: tuple[str, ...]
    steps: int
    seconds: float
    nodes: tuple[str, ...]
    """The other runtime's nodes, each as its type and how it is implemented."""
    other: float
    """Seconds of the other runtime."""

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "layers": list(self.layers),
            "steps": self.steps,
            "ms": self.seconds * 1e3,
            "nodes": list(self.nodes),
            "other_ms": self.other * 1e3,
        }


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """A step in one run: its index, start and duration."""

    step: int
    start: float
    seconds: float


@dataclass(frozen=True, slots=True)
class RunTimes:
    """One run."""

    start: float
    seconds: float
    cpu: float
    """Seconds of all threads of the process."""
    events: tuple[TimelineEvent, ...]


def _rate(amount: float, seconds: float) -> float | None:
    return amount / seconds / 1e9 if seconds else None
