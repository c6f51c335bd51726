"""Kernels that stand in for the reference where they can do better.

A backend is a module here with a `Backend` named ``backend``. ``reference`` is the one without
kernels: every layer runs its operation's `evaluate`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from .._util.nearest import did_you_mean
from ..codes import Code
from ..errors import InputError
from ..ops import registry
from .core.backend import Backend, choose
from .core.default import TYPES, default_backend, eventual_backend
from .core.kernel import UNREAD, Compute, Kernel, KernelTemplate, Offer, ResultShape
from .core.lengths import Accepts, any_lengths
from .core.pattern import Fusion, MatchContext, Refusal
from .core.precision import Precision

__all__ = [
    "UNREAD",
    "Accepts",
    "Backend",
    "Fusion",
    "Compute",
    "Kernel",
    "KernelTemplate",
    "MatchContext",
    "Offer",
    "Precision",
    "Refusal",
    "ResultShape",
    "any_lengths",
    "available",
    "awaited",
    "choose",
    "load",
    "prepare",
]

_CHAINS = {"reference": (), "numpy": ("numpy",), "numba": ("numba", "numpy")}

# What a backend needs that comes with an extra of this package: the packages, and the extra.
_NEEDS = {"numba": (("llvmlite", "platformdirs"), "fast")}


def available() -> tuple[str, ...]:
    """Return the names of the backends that can run here.

    >>> available()[:2]
    ('reference', 'numpy')
    """
    return tuple(name for name in _CHAINS if _missing(name) is None)


def _missing(name: str) -> str | None:
    """Return a package that a backend needs and that is not installed."""
    packages, _ = _NEEDS.get(name, ((), ""))
    return next((package for package in packages if not find_spec(package)), None)


def load(
    name: str | None = None, large: Callable[[], bool] = lambda: False
) -> tuple[str, tuple[Backend, ...]]:
    """Return a backend by name, followed by those it falls back on.

    >>> name, backends = load("numpy")
    >>> name, [backend.name for backend in backends]
    ('numpy', ['numpy'])

    Args:
        name: ``reference``, ``numpy`` or ``numba``; by default what ``IR_RUNTIME_BACKEND`` says, else the
            `default_backend`.
        large: says whether it is for a model that is worth loading machine code for; asked where that decides.

    Raises:
        InputError: if the backend is unknown, or what it needs is not installed.
    """
    name = _checked(name or os.environ.get("IR_RUNTIME_BACKEND") or default_backend(large()))
    return name, tuple(import_module(f".{part}", __name__).backend for part in _CHAINS[name])


def _checked(name: str) -> str:
    """Return the name of a backend that can run here, or raise what `load` raises."""
    if name not in _CHAINS:
        raise InputError(
            f"unknown backend {name!r}",
            code=Code.BAD_REQUEST,
            hint=f"{did_you_mean(name, _CHAINS, after=' ')}available are {', '.join(available())}",
        )
    if (package := _missing(name)) is not None:
        raise InputError(
            f"the backend {name!r} needs {package}, which is not installed",
            code=Code.BAD_REQUEST,
            hint=f"pip install 'ir_runtime[{_NEEDS[name][1]}]'",
        )
    return name


def awaited(name: str | None, large: Callable[[], bool]) -> str:
    """Return the name of the backend that `load` takes once kernels are compiled.

    Its arguments are those of `load`.

    Raises:
        InputError: if the backend is unknown, or what it needs is not installed.

    >>> awaited("numpy", lambda: True)
    'numpy'
    """
    return _checked(name or os.environ.get("IR_RUNTIME_BACKEND") or eventual_backend(large()))


def prepare() -> None:
    """Import what most models need, so that reading and compiling the first one need not.

    >>> prepare()

    Raises:
        InputError: if ``IR_RUNTIME_BACKEND`` is not a backend.
    """
    _, backends = load(os.environ.get("IR_RUNTIME_BACKEND") or default_backend(True, begin=False))
    for type in TYPES:
        for op in registry.versions(type):
            for backend in backends:
                backend._import(op, backend.kernel_modules)
                backend._import(op, backend.pattern_modules)
