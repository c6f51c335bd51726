"""Limits on the resources for reading and running a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from ._util.command_line import on_command_line
from ._util.deadline import deadline, set_deadline
from ._util.forks import computing
from ._util.scoped import setting
from .codes import Code
from .diagnostics import MOST, Location
from .errors import LimitError

__all__ = [
    "DEFAULT",
    "Limits",
    "Trips",
    "check_array_size",
    "current",
    "current_trips",
    "set_limits",
    "within",
]

_WORDS = {
    "xml_bytes": "the XML has {} bytes",
    "page_bytes": "the page has {} bytes",
    "examples": "the page has {} examples",
    "layers": "the model has {} layers",
    "edges": "the model has {} edges",
    "nesting": "bodies are nested {} deep",
    "attribute_bytes": "the value of an attribute has {} bytes",
    "open_lengths": "inputs have {} open lengths",
    "rank": "a tensor has {} dimensions",
    "elements": "a tensor has {} elements",
    "constant_bytes": "constants take {} bytes together",
    "memory": "{} bytes of memory are needed at once",
    "trips": "loops run {} iterations in all",
}
_OPTIONS = {"memory": "--max-memory", "seconds": "--timeout"}

# Assumed where the system does not report its physical memory.
_USUAL_MEMORY = 16 << 30


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _USUAL_MEMORY


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the resources that a file may use. The defaults are far above any ordinary model.

    >>> import ir_runtime as ov
    >>> limits = ov.Limits(memory=1 << 20, seconds=5)
    >>> limits.memory, limits.seconds
    (1048576, 5)

    Args:
        xml_bytes: size of the XML.
        page_bytes: size of a page of the specification.
        examples: number of examples on such a page.
        layers: number of layers of one graph.
        edges: number of edges of one graph.
        nesting: depth of nested bodies.
        attribute_bytes: size of the value of one attribute.
        open_lengths: number of dynamic dims of all inputs of one graph.
        rank: number of dimensions of a tensor.
        elements: number of elements of one tensor.
        constant_bytes: total size of all constants in the ``.bin``.
        memory: peak bytes of a run: its inputs, all tensors alive at the same time, and constants that are unpacked
            or folded. Constants in the ``.bin`` do not count, except in the reference interpreter. The parsed XML
            tree is held to this limit, too. The default is the physical memory.
        trips: total iterations of all loops in a run or a compilation, those of nested loops included.
        seconds: time for reading and checking, for compiling, and for each run.
        findings: number of findings that are kept per model. Further findings are only counted, but of each code
            the first few are always kept.
    """

    xml_bytes: int = 1 << 30
    page_bytes: int = 1 << 19
    examples: int = 1000
    layers: int = 1_000_000
    edges: int = 8_000_000
    nesting: int = 32
    attribute_bytes: int = 1 << 22
    open_lengths: int = 20_000
    rank: int = 64
    elements: int = 1 << 36
    constant_bytes: int = 1 << 40
    memory: int = field(default_factory=_physical_memory)
    trips: int = 100_000_000
    seconds: float = 3600
    findings: int = MOST

    def check(self, name: str, found: int, where: Location | None = None, of: str = "") -> None:
        """Raise `LimitError` if ``found`` exceeds the limit ``name``.

        >>> import ir_runtime as ov
        >>> ov.Limits(rank=8).check("rank", 4)

        Args:
            name: the name of a limit, such as ``memory``.
            found: the amount that the model needs, in the unit of the limit.
            where: the location, for the message.
            of: for the message, the object that takes so many bytes, if it is not the whole run.

        Raises:
            LimitError: if ``found`` exceeds the limit.
        """
        most = getattr(self, name)
        if found > most:
            option = f", or {_OPTIONS[name]}" if name in _OPTIONS else ""
            python = f"if you trust the file, read it with limits=ir_runtime.Limits({name}=...){option}"
            options = f"if you trust the file, give it more: {_OPTIONS[name]}" if name in _OPTIONS else ""
            words = f"{of} come to {found} bytes" if of else _WORDS[name].format(found)
            raise LimitError(
                f"{words}; the limit is {most}",
                limit=name,
                code=Code.LIMIT,
                where=where,
                hint=options if on_command_line() and options else python,
            )


class Trips:
    """Counter of loop iterations since limits were applied."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def add(self, limits: Limits) -> None:
        """Count one iteration.

        Raises:
            LimitError: if the count exceeds ``limits.trips``.
        """
        self.count += 1
        if self.count > limits.trips:
            limits.check("trips", self.count)


DEFAULT = Limits()
_CURRENT: ContextVar[Limits] = ContextVar("limits", default=DEFAULT)
_TRIPS: ContextVar[Trips | None] = ContextVar("trips", default=None)


@contextmanager
def within(limits: Limits) -> Iterator[None]:
    """Return a context manager that applies limits, including the time limit."""
    with setting(_CURRENT, limits), setting(_TRIPS, Trips()), deadline(limits.seconds), computing():
        yield


def set_limits(limits: Limits) -> float:
    """Apply limits to the rest of the current context (`contextvars`), and return the deadline as `current_deadline` does."""
    _CURRENT.set(limits)
    _TRIPS.set(Trips())
    return set_deadline(limits.seconds)


def current() -> Limits:
    """Return the current limits."""
    return _CURRENT.get()


def current_trips() -> Trips:
    """Return the iteration counter of the run, or a new one if no limits were applied."""
    trips = _TRIPS.get()
    return Trips() if trips is None else trips


def check_array_size(elements: int, itemsize: int = 1) -> None:
    """Raise if an array would exceed the memory limit. Kernels call this before they allocate.

    Raises:
        LimitError: if ``elements`` of ``itemsize`` bytes each exceed the limit.
    """
    limits = _CURRENT.get()
    if elements * itemsize > limits.memory:
        limits.check("memory", elements * itemsize)
