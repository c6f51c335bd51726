"""Execution of the bodies of layers such as Loop and If."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.arrays import DType
from ..backends import Compute
from ..ir.array import as_booleans
from ..ir.graph import Body, Layer
from ..ir.tensor import Array, TensorType
from .context import RUN
from .plan import ExecutionPlan
from .step import OutputContract

__all__ = ["Visitor", "check_contracts", "normalize_booleans"]

# Passed to body Parameters without an entry in the port map, which nothing reads.
_UNREAD = np.empty(0)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Runs the bodies of a layer with the observers of the run.

    The inputs of a body are checked against the inferred types of its Parameters, as a port map may
    contradict them.
    """

    plans: Mapping[str, ExecutionPlan]
    contracts: Mapping[str, Mapping[int, OutputContract]]

    def __call__(self, body: Body, feeds: Mapping[int, Array]) -> dict[int, Array]:
        contracts = self.contracts[body.name]
        for parameter, array in feeds.items():
            contracts[parameter].check(array)
        arrays = [feeds.get(parameter, _UNREAD) for parameter in body.parameters]
        results = self.plans[body.name].execute(arrays, RUN.get())
        return dict(zip(body.results, results, strict=True))


def normalize_booleans(compute: Compute) -> Compute:
    """Wrap a third-party function so that the bytes of its Boolean results are 0 and 1."""

    def run_normalized(*arrays: Array) -> Array | tuple[Array, ...]:
        results: Any = compute(*arrays)
        results_tuple = results if isinstance(results, tuple) else (results,)
        return tuple(
            [as_booleans(result) if isinstance(result, np.ndarray) else result for result in results_tuple]
        )

    return run_normalized


def check_contracts(compute: Compute, layer: Layer, types: Sequence[TensorType]) -> Compute:
    """Wrap a function so that its results are checked against the inferred types.

    A port map may be wrong, a variable may have another type, and a third-party operation may compute
    something else.
    """
    contracts = [OutputContract.of(layer, type) for type in types]
    last: dict[int, tuple[tuple[int, ...], DType]] = {}
    """The last accepted shape and data type of each result."""

    def run_checked(*arrays: Array) -> Array | tuple[Array, ...]:
        results = compute(*arrays)
        results_tuple = results if isinstance(results, tuple) else (results,)
        for index, (contract, array) in enumerate(zip(contracts, results_tuple, strict=False)):
            if last.get(index) != (kind := (array.shape, array.dtype)):
                contract.check(array)
                last[index] = kind
        return results

    return run_checked
