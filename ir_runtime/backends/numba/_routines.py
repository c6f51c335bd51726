"""Large functions that many kernels call: compiled once, and called by name.

A `device` function becomes a part of each kernel that calls it, and is translated anew for each. The tiles
of products take seconds of that. A routine has machine code of its own; kernels only know its name, which
has to be known to the linker before they are compiled or loaded: see `prepare`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import types

from . import _compile

__all__ = ["prepare", "routine"]


class Routine:
    """A function of numbers, and the name by which kernels call it."""

    def __init__(self, function: Callable[..., None], kinds: tuple[Any, ...]) -> None:
        self.function, self.kinds = function, kinds
        self.name = f"{function.__module__}.{function.__qualname__}".replace(".", "_")
        self._compiled: Any = None

    def prepare(self) -> None:
        """Compile it, and make its name known."""
        if self._compiled is None:
            prepare(self.function)
            compiled = _compile.called_back(self.function, self.kinds)
            llvm.add_symbol(self.name, compiled.address)
            self._compiled = compiled

    def typing(self, context: Any, *arguments: Any) -> Any:
        """How numba calls it."""
        self.prepare()
        words = [ir.FloatType() if kind == types.float32 else ir.IntType(64) for kind in self.kinds]

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kind = ir.FunctionType(ir.VoidType(), words)
            known = builder.module.globals.get(self.name) or ir.Function(builder.module, kind, self.name)
            builder.call(known, values)
            return context.get_dummy_value()

        return types.void(*self.kinds), generate


def routine(*kinds: Any) -> Callable[[Callable[..., None]], Any]:
    """Make a routine of a function that takes numbers of these types and returns nothing."""

    def make(function: Callable[..., None]) -> Any:
        found = Routine(function, kinds)

        def typing(context: Any, *arguments: Any) -> Any:
            return found.typing(context, *arguments)

        # Numba looks at the number of arguments.
        names = ["context", *(f"argument{i}" for i in range(len(kinds)))]
        parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        typing.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        typing.__name__ = typing.__qualname__ = function.__name__
        called: Any = numba.extending.intrinsic(typing)
        called.routine = found
        return called

    return make


def prepare(function: Callable[..., Any]) -> None:
    """Prepare every routine that a function calls, itself or in what is compiled into it."""
    for found in _called(function, set()):
        found.prepare()


def _called(function: Callable[..., Any], seen: set[Any]) -> Iterator[Routine]:
    for name in function.__code__.co_names:
        known = function.__globals__.get(name)
        if isinstance(found := getattr(known, "routine", None), Routine):
            yield found
        inner = getattr(known, "py_func", None)
        if inner is not None and inner not in seen:
            seen.add(inner)
            yield from _called(inner, seen)
