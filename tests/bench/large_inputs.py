"""Time the reference kernel of every operation on inputs of ten million elements.

Samples are enlarged, one input and one axis at a time, as long as the operation accepts them.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import math
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness.sample import Sample, all_samples

from ir_runtime.errors import InferenceError
from ir_runtime.ir.tensor import Array, TensorType, Value
from ir_runtime.ops import Op


class TooLong(BaseException):
    """A kernel exceeded its time. Derived from `BaseException`, so that no kernel catches it."""


@dataclass(frozen=True)
class Direction:
    """Some inputs of a sample with equal shapes, and the axis along which to enlarge them."""

    inputs: tuple[int, ...]
    axis: int

    def enlarge(self, sample: Sample, factor: int) -> list[Array]:
        """Return the inputs of the sample, repeated in this direction."""
        arrays = list(sample.inputs)
        for index in self.inputs:
            repeats = [factor if axis == self.axis else 1 for axis in range(arrays[index].ndim)]
            arrays[index] = np.tile(arrays[index], repeats)
        return arrays

    def __str__(self) -> str:
        return f"input {','.join(map(str, self.inputs))} axis {self.axis}"


def directions(sample: Sample) -> Iterator[Direction]:
    """Yield the directions in which the operation accepts a larger sample with the same output ranks."""
    before = _types(sample, list(sample.inputs))
    seen = set()
    for index, array in enumerate(sample.inputs):
        alike = tuple(i for i, other in enumerate(sample.inputs) if other.shape == array.shape)
        for axis in range(array.ndim):
            for inputs in ((index,), alike):
                if (inputs, axis) not in seen and array.size:
                    seen.add((inputs, axis))
                    direction = Direction(inputs, axis)
                    after = _types(sample, direction.enlarge(sample, 2))
                    if after is not None and before is not None and _ranks(after) == _ranks(before):
                        yield direction


def _types(sample: Sample, arrays: list[Array]) -> tuple[TensorType, ...] | None:
    op = sample.layer()
    try:
        types = op.infer_types(*map(Value.constant, arrays))
        op.evaluate(*arrays)
    except Exception:  # not every direction makes sense
        return None
    return types


def _ranks(types: tuple[TensorType, ...]) -> list[int | None]:
    return [t.shape.rank for t in types]


def measure(op: Op, arrays: list[Array], limit: int) -> float | None:
    """Return the seconds of a run; infinity beyond the limit of time or memory.

    Returns ``None`` if the enlarged inputs do not fit together.
    """
    signal.alarm(limit)
    start = time.perf_counter()
    try:
        op.evaluate(*arrays)
        return time.perf_counter() - start
    except (TooLong, MemoryError):
        return math.inf
    except (InferenceError, ValueError):
        return None
    finally:
        signal.alarm(0)


def chosen(samples: list[Sample], count: int) -> list[Sample]:
    """Return the first samples that can be enlarged, f32 ones with axes first."""
    usable = [s for s in samples if s.inputs and s.inputs[0].size > 1]
    return sorted(usable, key=lambda s: s.inputs[0].dtype != np.float32 or s.inputs[0].ndim < 2)[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="versioned names; all without any")
    parser.add_argument("--elements", type=int, default=10_000_000, help="size of the enlarged input")
    parser.add_argument("--samples", type=int, default=1, help="samples to enlarge of each version")
    parser.add_argument("--slow", type=float, default=5, help="seconds from which a kernel is marked")
    parser.add_argument("--limit", type=int, default=30, help="seconds after which a kernel is stopped")
    parser.add_argument("--memory", type=int, default=6, help="GiB there are")
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (asked.memory << 30, -1))
    signal.signal(signal.SIGALRM, _stop)
    warnings.simplefilter("ignore")
    rows = []
    for name, samples in _by_name(asked.names).items():
        for sample in chosen(samples, asked.samples):
            for direction in directions(sample):
                size = max(sample.inputs[i].size for i in direction.inputs)
                arrays = direction.enlarge(sample, max(1, asked.elements // size))
                if (seconds := measure(sample.layer(), arrays, asked.limit)) is not None:
                    rows.append((seconds, name, str(direction), str(sample)))
                    print(f"{seconds:8.2f}  {name:32}{direction}", file=sys.stderr, flush=True)
    print("\n seconds  operation                       enlarged                sample")
    for seconds, name, grown, shown in sorted(rows, reverse=True):
        print(f"{' ' if seconds < asked.slow else '!'}{seconds:7.2f}  {name:32}{grown:24}{shown[:60]}")


def _by_name(names: list[str]) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in all_samples():
        if not names or sample.op in names:
            found.setdefault(sample.op, []).append(sample)
    return found


def _stop(*_: object) -> None:
    raise TooLong


if __name__ == "__main__":
    main()
