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

# Where the system does not say how much memory it has.
_USUAL_MEMORY = 16 << 30


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _USUAL_MEMORY


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the resources a file may use, a field for each. The defaults are far above any ordinary model.

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
        nesting: depth of bodies in bodies.
        attribute_bytes: size of the value of one attribute.
        open_lengths: number of open lengths of all inputs of one graph.
        rank: number of dimensions of a tensor.
        elements: number of elements of one tensor.
        constant_bytes: what all constants claim of the ``.bin``, together.
        memory: bytes that a run needs at once: its inputs, all tensors that are alive at the same time,
            and constants that are unpacked or folded; those in the ``.bin`` do not count, except where every layer runs by its
            reference. Also about as many as
            the tree of a large XML takes. By default, what the machine has.
        trips: number of iterations of all loops together in a run, or while compiling; a loop inside another
            counts each of its iterations.
        seconds: how long reading and checking may take, how long compiling, and how long each run.
        findings: how many findings of an input are kept. The rest is not refused, but counted; of each code,
            the first few are kept in any case.
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
        """Raise `LimitError` if ``found`` is more than the limit of that name.

        >>> import ir_runtime as ov
        >>> ov.Limits(rank=8).check("rank", 4)

        Args:
            name: of a limit, such as ``memory``.
            found: what the model needs, in the unit of the limit.
            where: the place in the file, for the message.
            of: what has so many bytes, if it is not the whole run.

        Raises:
            LimitError: if it is more.
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
    """The iterations of all loops since limits were applied."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def add(self, limits: Limits) -> None:
        """Count an iteration that begins.

        Raises:
            LimitError: if there are too many.
        """
        self.count += 1
        if self.count > limits.trips:
            limits.check("trips", self.count)


DEFAULT = Limits()
_CURRENT: ContextVar[Limits] = ContextVar("limits", default=DEFAULT)
_TRIPS: ContextVar[Trips | None] = ContextVar("trips", default=None)


@contextmanager
def within(limits: Limits) -> Iterator[None]:
    """Apply limits, including the time limit, within a ``with`` statement."""
    with setting(_CURRENT, limits), setting(_TRIPS, Trips()), deadline(limits.seconds), computing():
        yield


def set_limits(limits: Limits) -> float:
    """Apply limits to the rest of the current context (`contextvars`); return the deadline, as `current_deadline`."""
    _CURRENT.set(limits)
    _TRIPS.set(Trips())
    return set_deadline(limits.seconds)


def current() -> Limits:
    """Return the current limits."""
    return _CURRENT.get()


def current_trips() -> Trips:
    """Return the count that iterations add to: of the run, or of a loop alone where no limits were applied."""
    trips = _TRIPS.get()
    return Trips() if trips is None else trips


def check_array_size(elements: int, itemsize: int = 1) -> None:
    """Raise if an array would exceed the memory limit; kernels call it before they allocate one.

    Raises:
        LimitError: if ``elements`` of ``itemsize`` bytes each do not fit into memory.
    """
    limits = _CURRENT.get()
    if elements * itemsize > limits.memory:
        limits.check("memory", elements * itemsize)
