"""A cache of shape arithmetic: layers that depend on shapes alone are computed once per shape.

A model of dynamic shapes measures its tensors, picks lengths, multiplies and joins them, and even makes masks
and first values of caches of them. Run after run, the shapes are mostly the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ..backends import Kernel
from ..ir.tensor import Array
from .context import RUN
from .plan import ExecutionPlan

__all__ = ["ShapeCache"]

# What is kept for a step: results of this many bytes, for this many shapes.
KEPT = 1 << 20
REMEMBERED = 64


@dataclass(frozen=True, slots=True, eq=False)
class ShapeCache:
    """Computes shape arithmetic from the tensors whose shapes are used.

    Args:
        plan: computes the result.
        known: results by shapes.
    """

    plan: ExecutionPlan
    known: dict[Hashable, tuple[Array, ...]] = field(default_factory=dict)

    @property
    def kernel(self) -> Kernel:
        """The kernel; the steps of the plan check inputs."""
        return Kernel(self, checks_inputs=True, of_shapes=True)

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        key = arrays[0].shape if len(arrays) == 1 else tuple([array.shape for array in arrays])
        results = self.known.get(key)
        return self._compute(key, arrays) if results is None else results

    def _compute(self, key: Hashable, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        results = tuple(self.plan.execute(arrays, RUN.get()))
        for array in results:
            array.flags.writeable = False  # who gets one of them as an output of the model, gets a copy
        size = sum(array.nbytes for array in results)
        if size <= KEPT:
            kept = sum(array.nbytes for known in list(self.known.values()) for array in known)
            if kept + size > KEPT or len(self.known) >= REMEMBERED:
                self.known.clear()
            self.known[key] = results
        return results
