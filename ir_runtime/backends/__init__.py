"""Kernels that stand in for the reference where they can do better.

A backend is a module here with a `Backend` named ``backend``. ``reference`` is the one without
kernels of its own: every layer runs its operation's `evaluate`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from ..codes import Code
from ..errors import InputError
from ..ir.graph import Layer
from ..ir.tensor import Array, Value
from ..nearest import nearest
from ..ops import Op, registry
from .core.default import TYPES, settled, usual
from .core.lengths import Accepts, accepting, any_lengths
from .core.pattern import Fusion, MatchContext, Pattern
from .core.unary import UNREAD, Unary

__all__ = [
    "UNREAD",
    "FusingKernel",
    "Accepts",
    "Backend",
    "Kernel",
    "MatchContext",
    "Fusion",
    "Offer",
    "Unary",
    "accepting",
    "any_lengths",
    "available",
    "awaited",
    "choose",
    "load",
]

Kernel: TypeAlias = Callable[..., "Array | tuple[Array, ...]"]
"""Takes the inputs of a layer, returns its outputs; never changes an input."""

Offer: TypeAlias = Callable[..., "Kernel | None"]
"""Takes an operation and what is known of its inputs; returns a kernel, or declines."""


@runtime_checkable
class FusingKernel(Protocol):
    """A kernel that can take over the layer that alone reads its result."""

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """A kernel that computes that layer, too, or ``None``.

        It takes what this kernel takes, then the layer's other inputs.

        Args:
            op: the operation of the layer.
            inputs: what is known of its inputs.
            place: which of them is this kernel's result.
        """


_CHAINS = {"reference": (), "numpy": ("numpy",), "numba": ("numba", "numpy")}

# What a backend needs that comes with an extra of this package: the packages, and the extra.
_NEEDS = {"numba": (("numba", "platformdirs"), "fast")}


@dataclass(frozen=True)
class Backend:
    """A name and, per operation, functions that offer a kernel or decline with ``None``."""

    name: str
    offers: dict[type[Op], list[Offer]] = field(default_factory=dict)
    packed: dict[type[Op], list[Offer]] = field(default_factory=dict)
    patterns: dict[type[Op], list[Pattern]] = field(default_factory=dict)
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    """What its kernels want around a run, such as a number of threads."""
    compiling: Callable[[], AbstractContextManager[object]] = nullcontext
    """What it wants around a compilation; when that ends, its kernels are ready."""
    kernel_modules: Mapping[str, str] = field(default_factory=dict)
    """Modules of its package that are imported when a model has an operation of that type; spaces between.

    What multiplies compressed weights is looked for before, so it cannot be in one of them."""
    pattern_modules: Mapping[str, str] = field(default_factory=dict)
    """Likewise, the modules that may find it to be the last of a `Fusion`."""

    def accelerates(self, *ops: type[Op]) -> Callable[[Offer], Offer]:
        """Register a function that may offer kernels for the given operations.

        It is asked once for each layer, when compiling, with the operation and a `Value` for each
        input: constants have their contents, which the kernel may pack. For operations with several
        outputs it is also told which ones nobody reads, as ``unread``; for those, the kernel may return
        anything.
        """

        def register(offer: Offer) -> Offer:
            for cls in ops:
                self.offers.setdefault(cls, []).append(offer)
            return offer

        return register

    def quantized(self, *ops: type[Op]) -> Callable[[Offer], Offer]:
        """Register a function that may offer kernels where an input is `Compressed`.

        Such an input has ``compressed`` instead of contents; at run time the kernel is given an array
        of zeros in its place, of the right shape and without memory.
        """

        def register(offer: Offer) -> Offer:
            for cls in ops:
                self.packed.setdefault(cls, []).append(offer)
            return offer

        return register

    def pattern(self, *ops: type[Op]) -> Callable[[Pattern], Pattern]:
        """Register a function that may find layers of these operations to be the last of a `Fusion`."""

        def register(found: Pattern) -> Pattern:
            for cls in ops:
                self.patterns.setdefault(cls, []).append(found)
            return found

        return register

    def _import(self, op: type, where: Mapping[str, str]) -> None:
        for module in where.get(getattr(op, "name", ""), "").split():
            import_module(f"{__name__}.{self.name}.kernels.{module}")

    def match(self, context: MatchContext, layer: Layer) -> Fusion | None:
        """The first match that ends with a layer, or ``None``."""
        self._import(type(layer.op), self.pattern_modules)
        found = (pattern(context, layer) for pattern in self.patterns.get(type(layer.op), ()))  # type: ignore[arg-type]
        return next((match for match in found if match is not None), None)

    def kernel_packed(self, op: Op, inputs: Sequence[Value]) -> Kernel | None:
        """The first kernel offered for a layer with compressed inputs, or ``None``."""
        offers = (offer(op, *inputs) for offer in self.packed.get(type(op), ()))
        return next((kernel for kernel in offers if kernel is not None), None)

    def kernel(self, op: Op, inputs: Sequence[Value], unread: Collection[int] = ()) -> Kernel | None:
        """The first kernel offered for a layer, or ``None``."""
        self._import(type(op), self.kernel_modules)
        several = len(op.outputs) > 1 or any(port.variadic for port in op.outputs)
        how = {"unread": unread} if several else {}
        if len(inputs) < sum(not (port.optional or port.variadic) for port in op.inputs):
            return None  # which the operation itself refuses, in words
        with np.errstate(all="ignore"):  # constants may hold what they like
            offered = (offer(op, *inputs, **how) for offer in self.offers.get(type(op), ()))
            return next((kernel for kernel in offered if kernel is not None), None)


def choose(
    op: Op, inputs: Sequence[Value], backends: Sequence[Backend], unread: Collection[int] = ()
) -> Kernel | None:
    """The first kernel that a backend offers for a layer; without one, its reference is to run."""
    offered = (backend.kernel(op, inputs, unread) for backend in backends)
    return next((kernel for kernel in offered if kernel is not None), None)


def available() -> tuple[str, ...]:
    """The names of the backends that can run here."""
    return tuple(name for name in _CHAINS if _missing(name) is None)


def _missing(name: str) -> str | None:
    """A package that a backend lacks."""
    packages, _ = _NEEDS.get(name, ((), ""))
    return next((package for package in packages if not find_spec(package)), None)


def load(
    name: str | None = None, large: Callable[[], bool] = lambda: False
) -> tuple[str, tuple[Backend, ...]]:
    """A backend by name, followed by those it falls back on.

    Args:
        name: ``reference``, ``numpy`` or ``numba``; by default what ``IR_RUNTIME_BACKEND`` says, else what
            is `usual`.
        large: says whether it is for a model that is worth loading machine code for; asked where that decides.

    Raises:
        InputError: if there is no such backend, or what it needs is not installed.
    """
    name = name or os.environ.get("IR_RUNTIME_BACKEND") or usual(large())
    if name not in _CHAINS:
        near = nearest(name, _CHAINS)
        hint = f"did you mean {near!r}? " if near else ""
        raise InputError(
            f"there is no backend {name!r}",
            code=Code.BAD_REQUEST,
            hint=f"{hint}available are {', '.join(available())}",
        )
    if (package := _missing(name)) is not None:
        raise InputError(
            f"the backend {name!r} needs {package}, which is not installed",
            code=Code.BAD_REQUEST,
            hint=f"pip install 'ir_runtime[{_NEEDS[name][1]}]'",
        )
    return name, tuple(import_module(f".{part}", __name__).backend for part in _CHAINS[name])


def awaited(name: str | None, large: Callable[[], bool]) -> str:
    """The name of the backend that `load` takes once kernels are compiled; its arguments are those of `load`."""
    return name or os.environ.get("IR_RUNTIME_BACKEND") or settled(large())


def prepare() -> None:
    """Import what most models need, so that reading and compiling the first one need not."""
    _, backends = load(os.environ.get("IR_RUNTIME_BACKEND") or usual(True, begin=False))
    for type in TYPES:
        for op in registry.versions(type):
            for backend in backends[:1]:
                backend._import(op, backend.kernel_modules)
