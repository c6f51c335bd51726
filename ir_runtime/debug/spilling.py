"""Keep tensors in memory up to a limit, and spill further ones to a temporary folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import overload
from weakref import WeakValueDictionary, finalize

import numpy as np

from .._util.arrays import DType
from .._util.files import create, write_raw
from .._util.scoped import setting
from ..ir.graph import Port
from ..ir.tensor import Array
from ..limits import Limits

__all__ = [
    "Kept",
    "keep_copy",
    "MemoryBudget",
    "Tensors",
    "budget_of",
    "keeping",
    "run_limits",
    "tensors",
    "within_budget",
]

PART = 4
"""The memory limit divided by the memory for kept tensors, which shrinks if a run needs more of the rest."""


class MemoryBudget:
    """The memory budget of kept tensors; tensors beyond it are written to a temporary folder.

    The folder is removed with this object, also after errors and interrupts.

    Args:
        limit: the maximum size of tensors in memory, in bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.resident, self.spilled = limit, 0, 0
        self._folder: Path | None = None
        self._holders = WeakValueDictionary[int, Tensors]()
        self._numbers = count()

    def register(self, holder: Tensors) -> None:
        """Register a collection of tensors that shares this budget."""
        self._holders[id(holder)] = holder

    def shrink(self, limit: int) -> None:
        """Lower the limit and spill the excess to files."""
        self.limit = min(self.limit, limit)
        for holder in [*self._holders.values()]:
            if self.resident > self.limit:
                holder.spill()

    def fits(self, array: Array) -> bool:
        """Return whether an array can stay in memory; scalars always do, as they cannot be mapped."""
        return not _can_be_file(array) or self.resident + array.nbytes <= self.limit

    def write(self, array: Array) -> SpilledArray:
        """Write an array to a file."""
        if self._folder is None:
            self._folder = Path(mkdtemp(prefix="ir_runtime_"))
            finalize(self, rmtree, self._folder, ignore_errors=True)
        path = self._folder / f"{next(self._numbers)}.bin"
        with create(path) as file:
            write_raw(file, array)
        self.spilled += array.nbytes
        return SpilledArray(path, array.dtype, array.shape)

    def close(self) -> None:
        """Delete the files."""
        if self._folder is not None:
            rmtree(self._folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class SpilledArray:
    """An array in a file, which is opened for each read, as the number of open files is limited."""

    path: Path
    dtype: DType
    shape: tuple[int, ...]

    def read(self) -> Array:
        """Memory-map the array.

        Pages of a mapping count as process memory while the mapping exists, so each reader creates its own.
        """
        return np.memmap(self.path, self.dtype, "r", shape=self.shape)


class Tensors(MutableMapping[Port, Array]):
    """A mapping of ports to tensors within a memory budget."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        budget.register(self)
        self._arrays: dict[Port, Array | SpilledArray] = {}

    def __getitem__(self, port: Port) -> Array:
        array = self._arrays[port]
        return array.read() if isinstance(array, SpilledArray) else array

    def __setitem__(self, port: Port, array: Array) -> None:
        self.pop(port, None)
        if self._budget.fits(array):
            self._budget.resident += array.nbytes if _can_be_file(array) else 0
            # The file of a mapping may be the one that was just removed.
            self._arrays[port] = np.array(array) if isinstance(array, np.memmap) else array
        else:
            self._arrays[port] = self._budget.write(array)

    def keep_copy(self, port: Port, array: Array) -> None:
        """Keep a copy of an array that may be overwritten later; beyond the budget, write it to a file without copying."""
        self[port] = np.array(array, order="C") if self._budget.fits(array) else array

    def spill(self) -> None:
        """Spill arrays to files until the remaining ones fit the budget."""
        for port, array in self._arrays.items():
            if self._budget.resident <= self._budget.limit:
                return
            if not isinstance(array, SpilledArray) and _can_be_file(array):
                self._arrays[port] = self._budget.write(array)
                self._budget.resident -= array.nbytes

    def __delitem__(self, port: Port) -> None:
        array = self._arrays.pop(port)
        if isinstance(array, SpilledArray):
            array.path.unlink()
        elif _can_be_file(array):
            self._budget.resident -= array.nbytes

    def __iter__(self) -> Iterator[Port]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def _can_be_file(array: Array) -> bool:
    return array.dtype != object and array.ndim > 0 and array.size > 0


_BUDGET: ContextVar[MemoryBudget | None] = ContextVar("budget", default=None)


@contextmanager
def within_budget(limits: Limits) -> Iterator[MemoryBudget]:
    """Apply the memory limit to tensors kept in the block; nested blocks share the budget."""
    if (outer := _BUDGET.get()) is not None:
        yield outer
        return
    budget = budget_of(limits)
    try:
        with keeping(budget):
            yield budget
    finally:
        budget.close()


@contextmanager
def keeping(budget: MemoryBudget) -> Iterator[None]:
    """Apply an existing budget to tensors kept in the block."""
    with setting(_BUDGET, budget):
        yield


def budget_of(limits: Limits) -> MemoryBudget:
    """Return the budget for kept tensors within limits."""
    return MemoryBudget(limits.memory // PART)


def run_limits(limits: Limits, needed: int) -> Limits:
    """Divide the memory limit between a run and kept tensors; return the limits of the run.

    Args:
        limits: the overall limits.
        needed: the minimum memory of the run in bytes; kept tensors beyond the remaining memory are spilled.
    """
    if (budget := _BUDGET.get()) is None:
        return limits
    budget.shrink(max(limits.memory - needed, 0))
    return replace(limits, memory=limits.memory - budget.limit)


class Kept(Sequence[Array]):
    """A sequence of arrays, spilled to files beyond the memory budget.

    Args:
        arrays: the arrays; a list is emptied, so that spilled arrays leave memory.
        copies: copy the arrays, as they may be overwritten.
    """

    def __init__(self, arrays: Iterable[Array] = (), copies: bool = False) -> None:
        self._tensors = tensors()
        waiting = arrays if isinstance(arrays, list) else [*arrays]
        waiting.reverse()
        while waiting:
            array = waiting.pop()
            port = Port(len(self._tensors), 0)
            if copies:
                keep_copy(self._tensors, port, array)
            else:
                self._tensors[port] = array

    def __len__(self) -> int:
        return len(self._tensors)

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Array]: ...
    def __getitem__(self, index: int | slice) -> Array | Sequence[Array]:
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return [self._tensors[Port(number, 0)] for number in numbers]
        return self._tensors[Port(numbers, 0)]


def keep_copy(into: MutableMapping[Port, Array], port: Port, array: Array) -> None:
    """Store a copy of an array in a mapping of tensors."""
    if isinstance(into, Tensors):
        into.keep_copy(port, array)
    else:
        into[port] = np.array(array, order="C")


def tensors() -> MutableMapping[Port, Array]:
    """Return an empty mapping for tensors, within the current budget if there is one."""
    budget = _BUDGET.get()
    return {} if budget is None else Tensors(budget)
