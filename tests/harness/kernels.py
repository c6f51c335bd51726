"""What fast backends have registered, and what of that makes kernels for a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeAlias
from unittest.mock import patch

from ir_runtime import backends
from ir_runtime.backends import Backend
from ir_runtime.backends.core.backend import LastLayer

__all__ = ["FAST", "loaded", "registered", "watched"]

FAST = tuple(name for name in backends.available() if name != "reference")
_KINDS = ("offers", "packed", "patterns")

Maker: TypeAlias = Callable[..., Any] | LastLayer
"""A registered function, or a pattern with what it is tried for."""


@cache
def loaded(name: str) -> Backend:
    """A backend with all its modules."""
    package = import_module(f"{backends.__name__}.{name}")
    kernels = import_module(f"{package.__name__}.kernels")
    for module in iter_modules(kernels.__path__, f"{kernels.__name__}."):
        import_module(module.name)
    found: Backend = package.backend
    return found


def registered() -> set[str]:
    """A name for each function that may make kernels, and each operation that it is asked for."""
    return {_name(name, op, make) for name, _, op, makers in _registrations() for make in makers}


@contextmanager
def watched() -> Iterator[set[str]]:
    """The names of those that made kernels inside."""
    found: set[str] = set()
    with ExitStack() as stack:
        for name, registry, op, makers in _registrations():
            told = [_telling(maker, _name(name, op, maker), found) for maker in makers]
            stack.enter_context(patch.dict(registry, {op: told}))
        yield found


def _registrations() -> Iterator[tuple[str, dict[Any, Any], Any, list[Maker]]]:
    for name in FAST:
        for kind in _KINDS:
            registry = getattr(loaded(name), kind)
            for op, makers in list(registry.items()):
                yield name, registry, op, makers


def _function(maker: Maker) -> Callable[..., Any]:
    return maker.match if isinstance(maker, LastLayer) else maker


def _name(backend: str, op: Any, maker: Maker) -> str:
    function = _function(maker)
    module = function.__module__.rpartition(".")[2]
    return f"{backend}: {module}.{function.__name__} for {op.versioned_name()}"


def _telling(maker: Maker, name: str, found: set[str]) -> Maker:
    function = _function(maker)

    def telling(*args: Any, **how: Any) -> Any:
        if (made := function(*args, **how)) is not None:
            found.add(name)
        return made

    return maker._replace(match=telling) if isinstance(maker, LastLayer) else telling
