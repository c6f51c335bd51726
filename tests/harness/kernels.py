"""Kernels of the fast backends: which are registered, and comparisons of their results with the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np

import ir_runtime as ov
from ir_runtime import backends
from ir_runtime.backends import Backend
from ir_runtime.backends.core.backend import LastLayer
from ir_runtime.backends.numpy import backend
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Op

FAST = tuple(name for name in backends.available() if name != "reference")
_KINDS = ("offers", "packed", "patterns")

Maker: TypeAlias = Callable[..., Any] | LastLayer
"""A registered function, or a pattern with what it is tried for."""


@cache
def loaded(name: str) -> Backend:
    """Return a backend with all its modules imported."""
    package = import_module(f"{backends.__name__}.{name}")
    kernels = import_module(f"{package.__name__}.kernels")
    for module in iter_modules(kernels.__path__, f"{kernels.__name__}."):
        import_module(module.name)
    found: Backend = package.backend
    return found


def registered() -> set[str]:
    """Return a name for each registered kernel factory and operation."""
    return {_name(name, op, make) for name, _, op, makers in _registrations() for make in makers}


@contextmanager
def watched() -> Iterator[set[str]]:
    """Collect the names of the kernel factories that succeed inside the block."""
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


SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, 3e38, -3e38, 88.8, -104.0, 4.0, -1.0], np.float32
)


def numbers(*shape: int, seed: int = 0, special: bool = False) -> Array:
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape).astype(np.float32)
    if special and x.size:
        x.reshape(-1)[rng.integers(0, x.size, 1 + x.size // 7)] = rng.choice(SPECIAL)
    return x


def unknown(x: Array, dynamic: bool = False) -> Value:
    shape = PartialShape.dynamic(x.ndim) if dynamic else PartialShape(x.shape)
    return Value.unknown(ElementType.from_dtype(x.dtype), shape)


def layouts(x: Array) -> list[Array]:
    """Return equal arrays in different memory layouts."""
    found = [x]
    if x.ndim > 2:
        found.append(np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1))
    if x.ndim:
        found.append(np.repeat(x, 2, axis=-1)[..., ::2])
    return found


def same(found: Any, wanted: Any, rtol: float = 2e-5) -> None:
    assert isinstance(found, np.ndarray)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    finite = np.abs(wanted[np.isfinite(wanted)])
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * finite.max(initial=0.0))


def agree(op: Op, x: Array, *constants: Array, dynamic: bool = False, unread: tuple[int, ...] = ()) -> None:
    """Compare the kernel for constant right operands with the reference, for several memory layouts of ``x``."""
    kernel = backend.kernel(op, [unknown(x, dynamic), *map(Value.constant, constants)], unread)
    assert kernel is not None
    for stored in layouts(x):
        stored.setflags(write=False)
        with np.errstate(all="ignore"), backend.around():
            wanted = op.evaluate(stored, *constants)
            found, again = kernel(stored, *constants), kernel(stored, *constants)
        if isinstance(wanted, tuple):
            (found, *_), (again, *_), (wanted, *_) = found, again, wanted
        same(found, wanted)
        np.testing.assert_array_equal(found, again)


def text(numbers: Any) -> str:
    return ",".join(map(str, numbers))


RUNS = 4

Draw = Callable[[np.random.Generator], Array]


def same_as_the_reference(model: ov.Model, *draws: Draw, exact: bool = True) -> ov.CompiledModel:
    """Require equal results from both backends, in recorded and replayed runs as well; return the compiled model."""
    reference, compiled = (ov.compile_model(model, backend=name) for name in ("reference", "native"))
    rng = np.random.default_rng(0)
    for _ in range(RUNS):
        feed = [draw(rng) for draw in draws]
        found, expected = compiled(feed)[0], reference(feed)[0]
        if exact:
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    return compiled


def program_of(compiled: ov.CompiledModel) -> Any:
    """Return the program of the only recorded run."""
    (program,) = compiled._plan.programs.recorded.values()
    return program


def begun(compiled: ov.CompiledModel) -> list[str]:
    """Return the types of the layers at the start of each instruction of the recorded run."""
    return [compiled._plan.steps[start].layer.type for start in program_of(compiled).starts]


def draw_numbers(shape: tuple[int, ...], dtype: Any = np.float32, scale: float = 50) -> Draw:
    """Return a function that draws normally distributed arrays."""
    return lambda rng: (scale * rng.standard_normal(shape)).astype(dtype)
