"""Backends: kernels that replace the reference implementation where they are faster.

A backend is a subpackage with a `Backend` named ``backend``. ``reference`` has no kernels: every layer runs its operation's
`evaluate`. The default is ``native`` if there is a library for the processor, otherwise ``numpy``.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from .._util.nearest import did_you_mean
from ..codes import Code
from ..errors import InputError
from ..ops import registry
from .core.backend import Backend, Fusion, MatchContext, Refusal, choose
from .core.kernel import UNREAD, Accepts, Compute, Kernel, KernelTemplate, Offer, ResultShape, any_lengths
from .core.precision import Precision

if TYPE_CHECKING:
    from .native.machine_code import Library

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

TYPES = (
    "Add", "AvgPool", "Clamp", "Concat", "Convert", "Convolution", "Gather", "GroupConvolution", "MatMul", "MaxPool",
    "Multiply", "MVN", "ReLU", "ReduceMean", "Reshape", "Sigmoid", "Slice", "SoftMax", "Split", "Transpose",
)  # fmt: skip
"""Common operations, whose modules `prepare` imports."""


def native_library() -> Library:
    """Return the library of the native backend, loading it if needed.

    Raises:
        InputError: if no library is usable.
    """
    module = import_module(".native.machine_code", __package__)
    library: Library = module.library()
    return library


def default_backend() -> str:
    """Return the name of the default backend; the first time, warn if it is ``numpy``, and say why."""
    if (message := _lack()) is None:
        return "native"
    _warn_once(message)
    return "numpy"


def silent_default() -> str:
    """Return the name of the default backend, without a warning."""
    return "native" if _lack() is None else "numpy"


@cache
def _lack() -> str | None:
    """Return the warning that the native backend is unusable, with the reason, or ``None`` if it is usable."""
    try:
        native_library()
    except InputError as reason:
        return f"the backend 'numpy' is used, as {reason.message}: {reason.hint}"
    return None


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=3)


_CHAINS = {"reference": (), "numpy": ("numpy",), "native": ("native", "numpy")}

# Former names, and the current ones that messages suggest.
_FORMER = {"numba": "native"}


def available() -> tuple[str, ...]:
    """Return the names of the backends that can run here.

    >>> available()[:2]
    ('reference', 'numpy')
    """
    return tuple(name for name in _CHAINS if name != "native" or silent_default() == name)


def load(name: str | None = None) -> tuple[str, tuple[Backend, ...]]:
    """Return the name of a backend, and the backend followed by its fallbacks.

    >>> name, backends = load("numpy")
    >>> name, [backend.name for backend in backends]
    ('numpy', ['numpy'])

    Args:
        name: ``reference``, ``numpy`` or ``native``; by default the value of ``IR_RUNTIME_BACKEND``, else the
            `default_backend`.

    Raises:
        InputError: if the backend is unknown, or cannot run here.
    """
    name = chosen(name)
    return name, tuple(import_module(f".{part}", __name__).backend for part in _CHAINS[name])


def chosen(name: str | None = None) -> str:
    """Return the name of the backend that `load` would load.

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
    """Import the kernels of common operations in advance, so that compiling the first model takes less time.

    >>> prepare()

    Raises:
        InputError: if ``IR_RUNTIME_BACKEND`` is not a backend.
    """
    _, backends = load(os.environ.get("IR_RUNTIME_BACKEND") or silent_default())
    for type in TYPES:
        for op in registry.versions(type):
            for backend in backends:
                backend.prepare(op)
