"""Compare kernels of the NumPy backend with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from ir_runtime.backends.numpy import backend
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Op

__all__ = ["SPECIAL", "agree", "layouts", "numbers", "same", "text", "unknown"]

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
    """Return the same numbers in different memory layouts."""
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
    """Compare the kernel for constants on the right with the reference, for any memory layout of ``x``."""
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
