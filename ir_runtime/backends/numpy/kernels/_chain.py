"""Element-wise work on a whole fresh result, in whatever order it lies in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ....cached import cached_property
from ....ir.tensor import Array, Value
from ....ops import Op
from ....ops.activation.clipped import ReLU
from ... import Kernel, Unary
from ...common.activations import UFUNCS, Activation, activation_of, broadcast_binary
from ...common.epilogue import binary_ufunc, constant_row
from ...common.layout import flat, is_f32, moved, same_shape
from ...core.lengths import any_lengths

__all__ = ["SMALL", "Chain", "bent", "mapped", "shifted"]


# A constant takes on the shape of a tensor that is no larger: NumPy adds equal shapes in a third of the time.
SMALL = 1 << 10


@dataclass(frozen=True)
class Link:
    """One layer: changes the result so far, in place where its memory allows, and returns it."""

    inputs: int
    """How many others the layer has."""
    run: Callable[..., Array]
    full_tensor: bool = False
    """Whether ``run`` takes the one other, too."""


@dataclass(frozen=True)
class Chain:
    """A kernel with a fresh result, and layers done to it, in place where its memory allows.

    NumPy's own functions refuse lengths that do not fit.
    """

    head: Kernel
    arity: int
    links: tuple[Link, ...] = ()
    accepts = staticmethod(any_lengths)

    def absorb(self, op: Op, inputs: Sequence[Value], place: int) -> Kernel | None:
        """A kernel that also does what ``op`` does."""
        link = _link(op, inputs, place)
        return None if link is None else Chain(self.head, self.arity, (*self.links, link))

    @cached_property
    def _work(self) -> list[tuple[Callable[..., Array], int]]:
        """For each link what to call, and where its other argument is; 0 if it takes none."""
        work, start = [], self.arity
        for link in self.links:
            work.append((link.run, start if link.full_tensor else 0))
            start += link.inputs
        return work

    def built(self) -> Kernel:
        """The head alone where no layer was absorbed, else without a look at inputs that are not needed."""
        if not self.links:
            return self.head
        if not isinstance(self.head, Unary) or any(link.full_tensor for link in self.links):
            return self
        head, runs = self.head.run, tuple(link.run for link in self.links)

        def run(x: Array) -> Array:
            out: Any = head(x)
            for change in runs:
                out = change(out)
            return out  # type: ignore[no-any-return]

        return Unary(run, self.head.place)

    def __call__(self, *arrays: Array) -> Array:
        out: Any = self.head(*arrays[: self.arity])
        for run, place in self._work:
            out = run(out, arrays[place]) if place else run(out)
        return out  # type: ignore[no-any-return]


def _link(op: Op, inputs: Sequence[Value], place: int) -> Link | None:
    ours = inputs[place]
    if not is_f32(*inputs) or ours.shape.rank is None:
        return None
    others = len(inputs) - 1
    if place == 0 and (run := mapped(op, inputs)) is not None:
        return Link(others, lambda out: run(out, out))
    if len(inputs) != 2:
        return None
    other = inputs[1 - place]
    if (ufunc := binary_ufunc(op, place, other)) is None:
        return None
    if (shift := shifted(ufunc, other, ours)) is not None:
        return Link(others, lambda out: shift(out, out))
    if same_shape(other, ours):
        return Link(others, lambda out, array: ufunc(out, array, out=out), full_tensor=True)
    return None


def mapped(op: Op, inputs: Sequence[Value]) -> Callable[..., Array] | None:
    """What an operation does to each f32 of its first input, or ``None``; takes an array to write to, too."""
    if isinstance(op, ReLU) and (run := shifted(np.maximum, _ZERO, inputs[0])) is not None:
        return run
    if (ufunc := UFUNCS.get(type(op))) is not None:
        return ufunc if inputs[0].shape.rank else None
    activation = activation_of(op, inputs)
    return None if activation is None else partial(bent, activation)


_ZERO = Value.constant(np.float32(0))


def bent(activation: Activation, x: Array, out: Array | None = None) -> Array:
    """A curve of every element, into ``out`` or a new array that lies as ``x`` does."""
    if x.flags.c_contiguous and (out is None or out is x):
        made = np.empty(x.shape, np.float32) if out is None else out
        activation(x.reshape(-1), made.reshape(-1))
        return made
    line = flat(x)
    if line is None:
        x = out = x.copy(order="C")
        line = x.reshape(-1)
    result = np.empty_like(x) if out is None else out
    target = flat(result)
    assert target is not None
    activation(line, target)
    return result


def shifted(ufunc: np.ufunc, other: Value, ours: Value) -> Callable[..., Array] | None:
    """A ufunc of a tensor and a constant that varies along one axis only, or ``None``.

    Along the axis that is stored last, the constant is repeated, for longer inner loops.
    """
    if (full := _in_full(other, ours)) is not None:
        return _with_number(ufunc, full.tobytes(), full.dtype) if not full.ndim else _with(ufunc, full)
    axes = range(-(ours.shape.rank or 0), 0)
    found = next(((axis, row) for axis in axes if (row := constant_row(other, ours, axis)) is not None), None)
    if found is None:
        return None
    axis, row = found
    run = broadcast_binary(ufunc, row)
    shaped = row.reshape(-1, *(1,) * (-1 - axis))

    def kernel(x: Array, out: Array | None = None) -> Array:
        if x.size <= SMALL:
            return ufunc(x, shaped, out=out)  # type: ignore[no-any-return]
        result = np.empty_like(x) if out is None else out
        source, target = moved(x, axis, -1), moved(result, axis, -1)
        if source.flags.c_contiguous and target.flags.c_contiguous:
            run(source.reshape(-1), target.reshape(-1))
        else:
            ufunc(x, shaped, out=result)
        return result

    return kernel


@lru_cache(256)
def _with_number(ufunc: np.ufunc, number: bytes, dtype: np.dtype[Any]) -> Callable[..., Array]:
    """Layers that use the same number share the function."""
    return _with(ufunc, np.frombuffer(number, dtype).reshape(()))


def _with(ufunc: np.ufunc, full: Array) -> Callable[..., Array]:
    return lambda x, out=None: ufunc(x, full, out=out)


def _in_full(other: Value, ours: Value) -> Array | None:
    """A constant in the shape of a small tensor, if that has room for it."""
    known = other.known()
    if known is None or not ours.shape.rank or not ours.shape.is_static:
        return None
    shape = ours.shape.static
    if math.prod(shape) > SMALL or known.ndim > len(shape):
        return None
    if known.size == 1:
        return known.reshape(())  # which is as good
    if known.shape == shape:
        return known.copy()
    try:
        return np.broadcast_to(known, shape).copy()
    except ValueError:  # the result is larger
        return None
