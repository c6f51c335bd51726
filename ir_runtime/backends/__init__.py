"""Kernels that stand in for the reference where they can do better.

A backend is a module here with a `Backend` named ``backend``. ``reference`` is the one without
kernels: every layer runs its operation's `evaluate`.
"""

from __future__ import annotations

import os
from importlib import import_module

from .._util.nearest import did_you_mean
from ..codes import Code
from ..errors import InputError
from ..ops import registry
from .core.backend import Backend, choose
from .core.default import TYPES, default_backend, native_library, silent_default
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
    "choose",
    "chosen",
    "load",
    "prepare",
]

_CHAINS = {"reference": (), "numpy": ("numpy",), "native": ("native", "numpy")}

# Former names, of which messages say the present ones.
_FORMER = {"numba": "native"}


def available() -> tuple[str, ...]:
    """Return the names of the backends that can run here.

    >>> available()[:2]
    ('reference', 'numpy')
    """
    return tuple(name for name in _CHAINS if name != "native" or silent_default() == name)


def load(name: str | None = None) -> tuple[str, tuple[Backend, ...]]:
    """Return a backend by name, followed by those it falls back on.

    >>> name, backends = load("numpy")
    >>> name, [backend.name for backend in backends]
    ('numpy', ['numpy'])

    Args:
        name: ``reference``, ``numpy`` or ``native``; by default what ``IR_RUNTIME_BACKEND`` says, else the
            `default_backend`.

    Raises:
        InputError: if the backend is unknown, or cannot run here.
    """
    name = chosen(name)
    return name, tuple(import_module(f".{part}", __name__).backend for part in _CHAINS[name])


def chosen(name: str | None = None) -> str:
    """Return the name of the backend that `load` loads.

    >>> chosen("numpy")
    'numpy'

    Raises:
        InputError: as `load`.
    """
    name = name or os.environ.get("IR_RUNTIME_BACKEND") or default_backend()
    if name not in _CHAINS:
        raise InputError(
            f"unknown backend {name!r}",
            code=Code.BAD_REQUEST,
            hint=f"{did_you_mean(_FORMER.get(name, name), _CHAINS, after=' ')}available are {', '.join(available())}",
        )
    if name == "native":
        native_library()
    return name


def prepare() -> None:
    """Import what most models need, so that reading and compiling the first one need not.

    >>> prepare()

    Raises:
        InputError: if ``IR_RUNTIME_BACKEND`` is not a backend.
    """
    _, backends = load(os.environ.get("IR_RUNTIME_BACKEND") or silent_default())
    for type in TYPES:
        for op in registry.versions(type):
            for backend in backends:
                backend.prepare(op)
