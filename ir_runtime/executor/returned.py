"""Results of a model in C order: steps copy those that nothing else reads, in the threads of the run.

Callers get contiguous arrays. Feature maps are stored channels last, and a backend may reorder them faster than NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from ..backends import Compute
from ..ir.tensor import Array
from .step import Step

__all__ = ["with_contiguous_results"]


def with_contiguous_results(
    steps: Sequence[Step], results: Collection[int], contiguous: Callable[[Array], Array]
) -> list[Step]:
    """Return the steps, of which those that compute nothing but one result let it be contiguous.

    Args:
        steps: in order.
        results: the slots of the results.
        contiguous: copies an array that is not.
    """
    own = set(results) - {slot for step in steps for slot in step.reads}
    return [
        replace(
            step,
            kernel=replace(step.kernel, run=_contiguous_outputs(step.kernel.run, contiguous), view=False),
        )
        if own.issuperset(step.writes)
        else step
        for step in steps
    ]


def _contiguous_outputs(compute: Compute, contiguous: Callable[[Array], Array]) -> Compute:
    """Return a function that gives contiguous outputs."""

    def run(*arrays: Array) -> Array | tuple[Array, ...]:
        found: Any = compute(*arrays)
        return tuple(map(contiguous, found)) if isinstance(found, tuple) else contiguous(found)

    return run
